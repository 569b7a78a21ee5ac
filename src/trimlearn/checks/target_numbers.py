"""Which numbers are wrong: two groups of residuals, from models that have not seen their rows.

A right number y differs from its prediction by an error whose size may depend on the prediction and the other
columns. In units of that size errors follow a Student law whose degrees of freedom and two scales, above and below,
are told by the data: heavy and lopsided tails are no contamination. A wrong number has nothing to do with its row: it
follows a wide law around the median of all numbers, less what is near the prediction, since a number that might as
well be right is not called wrong. Of these,

    Σ log [(1 − π) f(rᵢ) + π g(yᵢ)]

is maximised over π, the share of wrong numbers, and the scales of f. P(wrong) = π g/(π g + (1 − π) f) is Bayes' rule,
and so is the mean over what the data leave open: the degrees of freedom, and whether any number is wrong (`GAIN`).

How large errors of a number are, row by row: by what is predicted, and by what the other columns tell.

Errors of a large house's price are larger than those of a small one's, and those of a castle's larger than of both.
Where that is not known, all castles are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gammaln, softmax
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.checks.findings import RIGHT_ANYWAY
from trimlearn.checks.numbers import NORMAL_MAD, median_and_deviation
from trimlearn.checks.target_task import TargetJudgement
from trimlearn.robust.scale import rounding_floor

WINDOW, SHARE = 40, 0.125  # rows at least, and share of them, whose median gives the size of errors near a prediction
KNOTS = 50  # predictions at which it is taken, a limit on time; between them it is interpolated
CHANCE = 1.165  # over √k is the standard deviation of the logarithm of a median of k half-normal errors
LOWEST = 0.3  # of the common size: rows that happen to be fitted well are no reason to call the next one wrong
NO_ERROR, MANY = 1e-6, 0.6  # of the mean error: no error at all; and the share of rows that have one as a rule
TINY = 1e-12  # a scale whose logarithm is finite
FOREST_ROWS = 3_000  # up to which sizes are learnt by a forest; of more, boosting learns as much in a tenth of the time
BOOSTED = 5_000  # rows that each of two boosting models learns from, a limit on time: a tenth of a second
# Of these models: on 11 sets of errors they explain as much as 100 trees of a forest do, or more.
SMALL_STEPS: dict[str, Any] = {"max_iter": 40, "max_leaf_nodes": 8, "min_samples_leaf": 50, "max_bins": 63}
FEWEST = 100  # rows: of fewer, ten in each leaf are all there is to learn
TREES, LEAF = 100, 10  # some 37 have not seen a row; the mean of ten logarithms of errors has a deviation of a third
MOST_FEATURES = 10  # that a split chooses from; a limit on time: of half of 50, three forests took 50 s on 100,000 rows
SMALLEST = 0.05  # the share of smallest errors that count alike: the logarithm of one near 0 tells nothing
# Of the variance of the logarithms of errors, what the other columns must explain to be believed. Where sizes depend on
# nothing they explain -0.08 to 0.01 of it, where they do 0.1 to 0.45, on real tables of 130 to 900 rows.
EXPLAINED = 0.02


def error_sizes(predicted: Floats, r: Floats, floor: float, X: Floats | None = None, seed: int = 0) -> Floats:
    """The typical |r| of each row, of residuals r about predictions by models that have not seen it.

    By the prediction alone, unless trees find that the features X tell more: each row is judged by trees that have not
    seen it.

    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([1.0, 20.0], 200)
    >>> sizes = error_sizes(np.zeros(400), kind * rng.normal(size=400), 0.0, kind[:, None])
    >>> bool(np.median(sizes[200:]) > 10 * np.median(sizes[:200]))
    True
    """
    near = local_scale(predicted, r, floor)
    if X is None or len(r) < FEWEST or not telling_rows(r, floor).all():
        return near
    a = np.abs(r)
    logs = np.log(np.maximum(a, max(float(np.quantile(a, SMALLEST)), floor, TINY)))
    learnt, explained = _by_features(np.column_stack([X, predicted]), logs, seed)
    if explained < EXPLAINED:
        return near
    size = np.exp(learnt)
    size *= float(np.median(a / size))
    return np.maximum(size, max(LOWEST * float(np.median(a)), floor, TINY))


def _by_features(X: Floats, logs: Floats, seed: int) -> tuple[Floats, float]:
    """The logarithm that the features expect, and which share of its variance they explain, both for unseen rows."""
    if len(logs) > FOREST_ROWS:
        return _by_halves(X, logs, seed)
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAF,
        max_features=min(MOST_FEATURES, (X.shape[1] + 1) // 2),
        bootstrap=True,
        oob_score=True,
        random_state=seed,
    ).fit(X, logs)
    unseen = np.asarray(forest.oob_prediction_, dtype=np.float64)
    return unseen, _explained(logs, unseen)


def _by_halves(X: Floats, logs: Floats, seed: int) -> tuple[Floats, float]:
    """The same where rows are many: two boosting models, of some rows each, and each asked about the other's."""
    halves = np.array_split(np.random.default_rng(seed).permutation(len(logs)), 2)
    fitted = [np.sort(half[:BOOSTED]) for half in halves]
    models = [
        HistGradientBoostingRegressor(**SMALL_STEPS, early_stopping=False, random_state=seed).fit(X[rows], logs[rows])
        for rows in fitted
    ]
    asked = [(models[1], fitted[0]), (models[0], fitted[1])]
    unseen = [np.asarray(model.predict(X[rows]), dtype=np.float64) for model, rows in asked]
    explained = _explained(logs[np.concatenate(fitted)], np.concatenate(unseen))
    learnt = np.zeros(len(logs))
    if explained >= EXPLAINED:
        for model, half in zip(models[::-1], halves, strict=True):
            learnt[half] = model.predict(X[half])
    return learnt, explained


def _explained(logs: Floats, unseen: Floats) -> float:
    return 1 - float(np.mean((logs - unseen) ** 2)) / max(float(np.var(logs)), TINY)


def telling_rows(r: Floats, floor: float) -> Flags:
    """Which rows tell how large errors are. Where most numbers are the same and predicted exactly, the others do."""
    off = np.abs(r) > NO_ERROR * max(float(np.mean(np.abs(r))), floor)
    return off if off.mean() < MANY else np.ones(len(r), dtype=bool)


def local_scale(predicted: Floats, r: Floats, floor: float) -> Floats:
    """The median |r| among rows of about this prediction, drawn to that of all rows as far as it may differ by chance.

    >>> level = np.repeat([1.0, 10.0], 500)
    >>> r = level * np.random.default_rng(0).normal(size=1000)
    >>> local_scale(level, r, 0.0)[[0, -1]].round(1)
    array([1.3, 5.7])
    """
    n, a, order = len(r), np.abs(r), np.argsort(predicted, kind="stable")
    telling = telling_rows(r, floor)
    common = max(float(np.median(a[telling])) if telling.any() else 0.0, floor, TINY)
    width = min(n, max(WINDOW, round(SHARE * n)))
    starts = np.unique(np.linspace(0, n - width, KNOTS).astype(np.int64))
    windows = [order[start : start + width] for start in starts]
    at = np.array([np.median(predicted[rows]) for rows in windows])
    size = np.log([max(float(np.median(a[rows])), LOWEST * common) for rows in windows])
    varies = float(np.var(size))
    trust = max(0.0, 1 - CHANCE**2 / width / varies) if varies > 0 else 0.0  # James and Stein (1961)
    near = trust * np.interp(predicted, at, size) + (1 - trust) * np.log(common)
    return np.asarray(np.exp(near), dtype=np.float64)


# Degrees of freedom that are tried, above and below: from tails without variance to normal ones, or one long tail and
# one short, which must pay for itself as well. With tails of 1.5 one number a thousand times too far out was right.
EVEN, LOPSIDED = (2.5, 4.0, 7.0, 15.0, 60.0), ((2.5, 60.0), (60.0, 2.5))
DEGREES = (*((degrees, degrees) for degrees in EVEN), *LOPSIDED)
UNKNOWN = (2.5, 2.5)  # the degrees where most numbers are the same: tails without variance, as no law is known
GAIN = 2.0  # of log-likelihood by which wrong numbers must pay for themselves: a test at 5 % with one parameter (Wilks)
NEAR = (
    3.0  # σ of errors from a prediction within which a wrong number is as good as right: all but 3 of 1,000 right ones
)
# Where predictions err by the first share of what a constant does, or less, wrong numbers stand out; from the second on
# they hardly do, and tails would be taken for them: on numbers that nothing predicts, a tenth was flagged without this.
TELLS, SEEN = (0.5, 0.75), 0.5
PAIRS = 2_000  # of a prediction and another row's number, from which the share of such numbers is known to a point
WIDE = (1.0, 1.2)  # degrees of freedom and robust σ of a wrong number's law: tails beyond those of any right one
ALIKE = 0.3  # standard deviation of the log of the ratio of the scales above and below, a prior: mild skewness
FIRST = -3.0  # log-odds of π at the start: 5 %
BOUNDS = (-8.0, 0.0)  # of these log-odds: from 3 in 10,000 to a half, beyond which right and wrong change places
FITTED = 5_000  # rows to which the law is fitted, a limit on time: a share of 10 % is known to half a point from them
ANYWHERE = (
    10.0  # the same where most numbers are one and the same, and no law is known of the others: odds of 1 in 20,000
)
FEW = 10  # rows that deviate: of fewer no law of errors is known
EXACT = "Nearly all targets are exactly what the other columns say: which of the few others are wrong, nobody can tell."
ALL_THE_SAME = "Nearly all targets are the same number: which of the few others are wrong, nobody can tell."
USELESS = 0.9  # of the error of a constant: a model that does no better has learnt nothing that helps
AS_WELL = 1.25  # times the error of all together, up to which a line predicts as well (a choice)


def expected_by_all(y: Floats, opinions: list[Floats]) -> Floats:
    """What the models expect together: the median of their predictions.

    The second opinion is the line's. Trees cannot go on beyond the rows they have seen, a line can: where it predicts
    as well as all together, each number has the nearer one of the two, for what one of them explains is not wrong.

    >>> expected_by_all(np.array([0.0, 9.0]), [np.array([0.1, 5.0]), np.array([0.1, 9.0]), np.array([0.0, 5.0])])
    array([0.1, 9. ])
    """
    middle = np.median(opinions, axis=0)
    if len(opinions) < 2:
        return np.asarray(middle)
    line = opinions[1]
    if np.median(np.abs(y - line)) > AS_WELL * np.median(np.abs(y - middle)):
        return np.asarray(middle)
    return np.where(np.abs(y - line) < np.abs(y - middle), line, middle)


def judge_target_numbers(y: Floats, predicted: Floats, seed: int = 0, X: Floats | None = None) -> TargetJudgement:
    """Judge numbers by predictions of models that have not seen them. X: features that may tell the size of errors.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=200)
    >>> y = truth + 0.2 * rng.standard_normal(200)
    >>> y[:20] += 5
    >>> found = judge_target_numbers(y, truth)
    >>> round(found.contamination, 1), bool(found.flagged[:20].all()), int(found.flagged[20:].sum()) <= 2
    (0.1, True, True)
    """
    size = error_sizes(predicted, y - predicted, rounding_floor(y), X, seed)
    r = (y - predicted) / size
    rng = np.random.default_rng(seed)
    telling = telling_rows(y - predicted, rounding_floor(y))
    rows = rng.permutation(np.flatnonzero(telling))[:FITTED]
    if len(rows) < FEW:
        said = ALL_THE_SAME if np.median(np.abs(y - np.median(y))) == 0 else EXACT
        return TargetJudgement(np.abs(r), np.zeros(len(y)), 0.0, predicted, caveats=(said,))
    there, here = rng.choice(rows, PAIRS), rng.integers(len(y), size=PAIRS)
    useless = float(np.median(np.abs(y - predicted)) / max(np.median(np.abs(y - np.median(y))), TINY))
    least = SEEN * float(np.interp(useless, TELLS, (0.0, 1.0)))
    seen = max(least, TINY, float(_visible((y[there] - predicted[here]) / size[here]).mean()))
    with np.errstate(divide="ignore"):  # a residual of 0
        wrong = _wide(y) + np.log(size) + np.log(_visible(r)) - np.log(seen)  # the density in units of r
    if telling.all():
        groups = _two_groups(r[rows], wrong[rows], DEGREES, GAIN)
    else:  # those that are not the same may lie anywhere, and all on one side
        groups = _two_groups(r[rows] * rng.choice([-1.0, 1.0], len(rows)), wrong[rows], (UNKNOWN,), ANYWHERE)
    probability = np.sum([group.weight * group.probability(r, wrong) for group in groups], axis=0)
    share = float(telling.mean() * sum(group.weight * expit(group.log_odds) for group in groups))
    likely = max(groups, key=lambda group: group.weight)
    score = np.abs(r) / likely.law.typical
    probability = (1 - RIGHT_ANYWAY) * np.clip(probability, 0.0, 1.0)  # weights sum to 1 but for rounding
    return TargetJudgement(score, probability, share, predicted, caveats=_caveats(y, predicted))


def _caveats(y: Floats, predicted: Floats) -> tuple[str, ...]:
    """Where nothing was learnt."""
    if np.median(np.abs(y - predicted)) < USELESS * np.median(np.abs(y - np.median(y))):
        return ()
    return (
        "The other columns tell next to nothing about the target: only wrong values far from all others are found.",
    )


def _visible(r: Floats) -> Floats:
    """How much of wrong numbers at these residuals is told from right ones."""
    return np.asarray(-np.expm1(-0.5 * (r / (NORMAL_MAD * NEAR)) ** 2))


@final
@dataclass(frozen=True)
class _Law:
    """Student's law with a scale and degrees of freedom above 0, and others below."""

    above: float
    below: float
    degrees: tuple[float, float]

    @property
    def typical(self) -> float:
        return float(np.sqrt(self.above * self.below))

    def log_density(self, r: Floats) -> Floats:
        peaks = [float(_student(np.zeros(1), degrees)[0]) for degrees in self.degrees]
        area = (self.above / np.exp(peaks[0]) + self.below / np.exp(peaks[1])) / 2  # of both halves, of height 1
        up = _student(r / self.above, self.degrees[0]) - peaks[0]
        down = _student(r / self.below, self.degrees[1]) - peaks[1]
        return np.asarray(np.where(r > 0, up, down) - np.log(area))


@final
@dataclass(frozen=True)
class _Groups:
    """Right and wrong numbers, and the weight of these two among others: their posterior probability."""

    law: _Law
    log_odds: float  # of being wrong; −inf where nobody is
    weight: float

    def probability(self, r: Floats, wrong: Floats) -> Floats:
        return np.asarray(expit(self.log_odds + wrong - self.law.log_density(r)))


def _two_groups(r: Floats, wrong: Floats, laws: tuple[tuple[float, float], ...], gain: float) -> list[_Groups]:
    """For each number of degrees of freedom one with wrong numbers and one without."""
    start = float(np.log(max(NORMAL_MAD * np.median(np.abs(r)), TINY)))
    near, tried = [(start - 2, start + 2)] * 2, []
    for degrees in laws:
        for bounds, first, price in ((near, [start, start], 0.0), ([*near, BOUNDS], [start, start, FIRST], gain)):
            found = minimize(_cost, first, (r, wrong, degrees), method="L-BFGS-B", bounds=bounds)
            law = _Law(float(np.exp(found.x[0])), float(np.exp(found.x[1])), degrees)
            likelihood = -float(found.fun) - price - (GAIN if degrees[0] != degrees[1] else 0.0)
            tried.append((law, float(found.x[2]) if price else -np.inf, likelihood))
    weights = softmax([likelihood for _, _, likelihood in tried])
    return [_Groups(law, odds, float(weight)) for (law, odds, _), weight in zip(tried, weights, strict=True)]


def _cost(parameters: Floats, r: Floats, wrong: Floats, degrees: tuple[float, float]) -> float:
    above, below = parameters[:2]
    prior = ((above - below) / ALIKE) ** 2 / 2
    right = _Law(float(np.exp(above)), float(np.exp(below)), degrees).log_density(r)
    if len(parameters) == 2:
        return float(prior - right.sum())
    odds = parameters[2]
    return float(prior - (np.logaddexp(right, odds + wrong) - np.logaddexp(0.0, odds)).sum())


def _student(t: Floats, degrees: float) -> Floats:
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(degrees * np.pi) / 2
    return np.asarray(constant - (degrees + 1) / 2 * np.log1p(t * t / degrees))


def _wide(y: Floats) -> Floats:
    """The log-density of a wrong number."""
    degrees, width = WIDE
    centre, spread = median_and_deviation(y)
    return np.asarray(_student((y - centre) / (width * spread), degrees) - np.log(width * spread))
