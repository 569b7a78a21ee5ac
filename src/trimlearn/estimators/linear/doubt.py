"""What a regression says where the rows it flags may be right."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from scipy.special import betainc

from trimlearn._utils.warn import warn
from trimlearn.estimators.linear.examples import Examples
from trimlearn.robust.regression.averaging import NEAREST
from trimlearn.robust.regression.misfit import bends, drifts, looks_like_misfit, widens
from trimlearn.robust.regression.one_law import looks_of_two_scales, looks_skewed
from trimlearn.robust.regression.wild_cells import wild_values
from trimlearn.robust.verdict import Verdict

DOUBTFUL = 0.1  # share of bad rows from which on it is asked whether they are misfit: routine data hold 1 to 10 %
MARKS = 5  # rows with one value of y, from which on it is asked what that value stands for: fewer are chance (a choice)
GRADES = 10  # values of y up to which they may be grades: the longest scales in use have ten or eleven (a choice)
NAMED = 3  # features named in a warning: more are not read (a choice)
FEWEST = 3  # rows on one side, of which it is asked whether errors are skewed: it changes no fit (a choice)
# Share of rows on an exact fit, below which the others are too many to be mere outliers: routine data hold 1 to 10 % of
# gross errors (Hampel, Ronchetti, Rousseeuw and Stahel 1986, section 1.2c), and some room.
EXACT = 0.85
# Share of the rows, and one at least, that is expected to be judged wrongly, from which on that is told: of 5 % of bad
# rows that is all of them (a choice).
MISTAKEN = 0.05
BY_CHANCE = 1e-3  # chance of as many zeros, below which they are told: few clean tables are (a choice)
MAJORITY = 1.0  # standard errors by which right rows must be more than half: else both groups may be right (a choice)


def warn_of_doubt(
    rows: Examples,
    kept: float,
    coefficients: int,
    residuals: np.ndarray,
    weights: np.ndarray,
    verdict: Verdict,
    wrong: np.ndarray | None = None,
    names: np.ndarray | None = None,
    *,
    smooth: bool,
) -> None:
    """UserWarning where contamination="auto" cannot tell which rows are wrong, or where those that are flagged may be
    the model's fault: a code for what is missing, one value of y for many rows, few values of y, a curve, skewed
    errors, errors of two scales, or errors that grow. For a fit that is not exact. wrong: how probable it is that each
    row is wrong, where the fit tells. names: of the features. smooth: whether rows count less the farther off they
    are."""
    warn_of_no_trimming(rows, kept, coefficients, exact=False)
    scores, flagged = residuals / verdict.scale, weights <= 0
    doubt = doubt_of_codes(rows.X, ~flagged, names)
    doubt = doubt or doubt_of_mark(rows.t, flagged)
    doubt = doubt or doubt_of_many(rows.X, rows.t, scores, verdict.cutoff, verdict.contamination)
    doubt = doubt or doubt_of_errors(rows.X, rows.t, rows.t - residuals, scores, flagged)
    if smooth:
        doubt = doubt or doubt_of_mean(rows, residuals, flagged)
    if doubt is not None:
        warn(doubt)
    elif wrong is not None and (mistakes := _expected_mistakes(scores, flagged, wrong)) > max(1.0, MISTAKEN * rows.n):
        warn(
            "It is in doubt which rows are wrong: several fits explain them about as well, and of "
            f"{flagged.sum()} rows flagged and {rows.n - flagged.sum()} others some {mistakes:.0f} are likely to be "
            "judged wrongly. Look at outlier_probability_, or give a contamination.",
        )


def doubt_of_codes(X: Any, counts: np.ndarray, names: np.ndarray | None) -> str | None:
    """A sentence where a value of a feature seems to stand for what is missing, in rows that count."""
    found = {j: value for j, value in wild_values(X).items() if np.any(counts & (X[:, j] == value))}
    if not found:
        return None
    told = [
        f"{j if names is None else names[j]!r} is {value:g} in {np.mean(X[:, j] == value):.1%} of the rows"
        for j, value in list(found.items())[:NAMED]
    ]
    more = f" (and {len(found) - NAMED} more features)" if len(found) > NAMED else ""
    return (
        f"Feature {', feature '.join(told)}{more}, far from all other values there: it may stand for what is missing. "
        "These rows count, and pull the coefficient towards 0: drop them, or fill in a likely value."
    )


def doubt_of_mark(y: np.ndarray, flagged: np.ndarray) -> str | None:
    """A sentence where many rows have one value of y that may be none, or where y holds few values, whose residuals lie
    on as many parallel lines."""
    values, count = np.unique(y, return_counts=True)
    if flagged.mean() > MISTAKEN and len(values) <= min(GRADES, len(y) / MARKS):
        return (
            f"{flagged.mean():.0%} of the rows are flagged, but y holds only {len(values)} different values: these may "
            "be classes, grades or counts, and the rows right. Use TrimmedLogisticRegression or TrimmedGLM, or give a "
            "contamination."
        )
    mark = _mark(values, count, y, flagged)
    if mark is None:
        return None
    return (
        f"y is {mark:g} in {np.mean(y == mark):.0%} of the rows, while no other value is there as often: it may stand "
        "for what is missing or too small to be measured, or y may consist of two parts. Fit the other rows on their "
        "own, or give a contamination."
    )


def doubt_of_many(
    X: Any, y: np.ndarray, scores: np.ndarray, cutoff: float, contamination: float, fit: str = "linear fit"
) -> str | None:
    """A sentence where so many rows are called bad that they may follow a rule of their own, or be the right ones.
    scores: residuals in units of σ, with signs; fit: what users call it."""
    if contamination > DOUBTFUL and looks_like_misfit(X, y, scores, cutoff):
        return (
            f"{contamination:.0%} of the rows do not follow the {fit}, but seem to follow a rule of their own: the "
            "model may be too simple (a curve, a step, two groups) rather than these rows wrong. Look at the residuals "
            "over the features, or give a contamination."
        )
    if contamination > DOUBTFUL and contamination + MAJORITY / (2 * sqrt(len(y))) > 0.5:
        return (
            f"{contamination:.0%} of the rows do not follow the {fit}: nearly as many as do, so that it cannot be told "
            "which of them are right. Look at both groups, or give a contamination."
        )
    return None


def doubt_of_errors(
    X: Any, y: np.ndarray, fitted: np.ndarray, scores: np.ndarray, flagged: np.ndarray, fit: str = "linear fit"
) -> str | None:
    """A sentence where residuals bend, are skewed, or grow, so that the rows flagged may be right. Scores as above."""
    about = X, fitted, scores, ~flagged
    if bends(*about):
        return (
            "The residuals of the rows that count bend along the fit: the model may be too simple (a curve, an "
            "interaction), or rows far out in the features pull at it. Look at the residuals over the predictions; add "
            "squares or products of features, or transform y."
        )
    if looks_skewed(scores, flagged, fewest=FEWEST):
        cure = "fit log(y), or a TrimmedGLM," if y.min() > 0 else "transform y,"
        return (
            f"{flagged.mean():.0%} of the rows lie far off on one side of the {fit}, but one skewed law explains all "
            f"residuals about as well: the errors may be skewed rather than these rows wrong. Then {cure} or give a "
            "contamination."
        )
    if flagged.any() and widens(*about):
        cure = "fit log(y), or give sample_weight," if y.min() > 0 else "give sample_weight,"
        return (
            f"{flagged.mean():.1%} of the rows are flagged, but the errors of the others change their size along the "
            "fit or a feature: rows may be flagged because they lie where errors are large. Then "
            f"{cure} or a contamination."
        )
    if looks_of_two_scales(scores, flagged):
        return (
            f"{flagged.mean():.0%} of the rows lie far off on both sides of the {fit}, but errors of two scales "
            "explain all residuals about as well: these rows may be less precise, or errors have heavy tails, rather "
            "than these rows wrong. Then give sample_weight or a contamination."
        )
    return None


def doubt_of_mean(rows: Examples, residuals: np.ndarray, flagged: np.ndarray) -> str | None:
    """A sentence where least squares on the rows that are not flagged has other slopes: skewed errors that grow are
    fitted where they are dense. Of many rows that are flagged it is rather asked which are wrong."""
    if flagged.mean() > DOUBTFUL or not drifts(rows.X, rows.t - residuals, residuals, ~flagged, rows.s):
        return None
    cure = "fit log(y), or give" if rows.t.min() > 0 else "give"
    return (
        "Rows far off count less, and least squares on those that are not flagged has other slopes: errors may be "
        f"skewed, and change their size along the fit. Then {cure} sample_weight, or contamination=0 and "
        "reweight=False for the mean of y."
    )


def _mark(values: np.ndarray, count: np.ndarray, t: np.ndarray, flagged: np.ndarray) -> float | None:
    """Of these values of t, the one that many rows have, where no other one repeats like that: most of the others are
    there once. None where all these rows are flagged: then they do no harm."""
    most = int(count.max())
    mark = float(values[count.argmax()])
    if most < max(MARKS, DOUBTFUL * len(t)) or 2 * (len(values) - 1) < len(t) - most or flagged[t == mark].all():
        return None
    return mark


def _expected_mistakes(scores: np.ndarray, flagged: np.ndarray, wrong: np.ndarray) -> float:
    """How many rows are expected to be flagged though right, or not though wrong, of those that may be either."""
    return float(np.where(flagged, 1 - wrong, wrong)[np.abs(scores) > NEAREST].sum())


def warn_of_chance(flagged: np.ndarray) -> None:
    """UserWarning where chance may have set the rows that are flagged apart, and they are many enough to matter."""
    count = int(np.count_nonzero(flagged))
    if count > max(1.0, MISTAKEN * len(flagged)):
        warn(
            f"It is in doubt whether the rows flagged, {count} of {len(flagged)}, are wrong: among so few rows chance "
            "sets as many about as far apart. Look at outlier_probability_, or give a contamination.",
        )


def warn_of_long_tail(scores: np.ndarray, flagged: np.ndarray) -> None:
    """UserWarning where the rows flagged by a family of laws may be the tail of one that scatters more. scores:
    deviance residuals in units of σ, with signs."""
    if looks_skewed(scores, flagged, fewest=FEWEST):
        warn(
            f"{flagged.mean():.0%} of the rows lie far off on one side of the fit, but one skewed law explains all "
            "rows about as well: y may scatter more than the family has it (overdispersion, a long tail) rather than "
            "these rows be wrong; without them the mean is off. Give contamination=0 if they are right.",
        )


def warn_of_zeros(t: np.ndarray, mean: np.ndarray, s: np.ndarray) -> None:
    """UserWarning where more of these counts are 0 than Poisson laws of the means have, and enough to matter. s: how
    many observations each is."""
    total, zeros, expected = (float(s @ part) for part in (np.ones(len(t)), t == 0, np.exp(-mean)))
    if zeros - expected <= max(1.0, MISTAKEN * total) or np.any(t != np.floor(t)):
        return
    if betainc(zeros, total - zeros + 1, expected / total) < BY_CHANCE:  # a bound (Hoeffding 1956), as means differ
        warn(
            f"{zeros / total:.0%} of the counts that the fit rests on are 0, where it expects {expected / total:.0%}: "
            "some may be 0 for another reason than a small mean, as where nothing was recorded, or y scatters more "
            "than counts do. Then predictions and standard errors are off: leave such rows out, or model apart whether "
            "y is 0.",
        )


def warn_of_separation(t: np.ndarray, z: np.ndarray, counts: np.ndarray) -> None:
    """UserWarning where predictions z part the labels 0 and 1 of all rows that count: the likelihood then has no
    maximum (Albert and Anderson 1984)."""
    if np.all(((2 * t - 1) * z)[counts] > 0):
        warn(
            "the fit parts the labels of all rows that count: without a penalty its coefficients grow without end, and "
            'their size means nothing. Give penalty="l2".',
        )


def warn_of_exact_fit(weights: np.ndarray) -> None:
    """UserWarning where many rows lie on the fit up to rounding, and many do not."""
    share = float(np.mean(weights > 0))
    if share < EXACT:
        warn(
            f"{share:.0%} of the rows lie exactly on the fit, the others count as outliers. If y is rounded, or holds "
            "few values, give a contamination, or use another model.",
        )


def warn_of_no_trimming(
    rows: Examples, kept: float, coefficients: int, *, exact: bool, worth: float | None = None
) -> None:
    """UserWarning where contamination="auto" has to keep all rows: a fit needs more rows than it has coefficients, and
    of these most. Where one more row than that lies exactly on the fit, none is wrong. worth: how many equal rows they
    are, by sample weights of which only ratios matter; weights that count rows and sum to too little are warned of
    elsewhere."""
    worth = rows.n if worth is None else worth
    agree = exact and worth > coefficients
    if kept >= rows.S and worth <= coefficients + 1 and not agree:
        many = rows.n > coefficients + 1
        weighed = f", which by their sample_weight are worth {worth:.2g} equal ones," if many else ""
        cure = "weights that are less unlike" if many else "a contamination, with a penalty, or fewer features"
        warn(
            f"{rows.n} rows{weighed} are too few for {coefficients} coefficients to tell which of them are wrong: "
            f"nothing is trimmed. Give {cure}.",
        )
