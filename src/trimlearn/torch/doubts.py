"""Whether examples that were flagged may be right, and the module, or what is measured, to blame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from trimlearn.estimators.linear.doubt import DOUBTFUL
from trimlearn.robust.regression.misfit import looks_like_misfit
from trimlearn.robust.verdict import Verdict

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROWS = 2_000  # looked at, at most: a limit on time, half a second
FEWEST = 8  # of either kind: fewer are a region by chance
TREES = 100  # scikit-learn's default: each example is left out by a third of them
# Of the flagged, half have this share of the votes of a forest that is told the inputs alone. It was 0.60 to 0.98 for
# steps, corners and spikes of 5 to 10 % of the rows, also with a fifth more flagged anywhere (but 0.35 and 0.5 for a
# spike and a corner among 20 features); 0 to 0.1 for errors anywhere, 0.2 to 0.35 for errors that grow with x, and 0.3
# to 0.5 where x is twice as large.
TOLD = 0.55
# A choice, in times the way from an example to the nearest: that of the flagged beside that of the others, and the gap
# between the two beside the former. It lets pass regions of 2 to 20 features, and neither a cluster apart nor x that is
# five times too large; along a single feature the end of a tail is too sparse for it.
APART = 3.0
# A tail: the share of the examples that must be flagged; the area under the curve of the target itself, 0.99 for a
# log-normal one, and 0.6 for errors anywhere; the share of the flagged within twice the cut-off, a third of that tail.
TAIL, HIGHEST, NEAR = 0.05, 0.95, 0.25


def doubt_of_flagged(X: Floats | None, y: Floats | None, scores: Floats, verdict: Verdict) -> str:
    """A sentence, or nothing. X: the inputs, if they are a table; y: the targets, if they are a number each."""
    flagged = ~verdict.inliers
    if min(flagged.sum(), (~flagged).sum()) < FEWEST:
        return ""
    share = f"{flagged.mean():.0%} of the examples do not follow the module, but"
    if X is not None and np.all(np.isfinite(X)):
        many = y is not None and verdict.contamination > DOUBTFUL
        if (many and looks_like_misfit(X, y, scores, verdict.cutoff)) or is_region(X, flagged):
            return (
                f"{share} seem to follow a rule of their own: it may be too simple, or not trained enough, rather than "
                "these examples wrong. Look at the losses over the inputs, or give a contamination."
            )
    if y is not None and verdict.contamination > TAIL and _ends_a_tail(y, scores, flagged, verdict.cutoff):
        return (
            f"{share} nearly all of them are at one end of the targets, and the others go on to them without a gap: "
            "the targets may have a long tail, rather than these be wrong. Fit their logarithms, or give a "
            "contamination."
        )
    return ""


def is_region(X: Floats, flagged: Bools) -> bool:
    """Whether the inputs alone tell which examples are flagged, and these lie beside the others.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> is_region(X, X[:, 0] > 1.2), is_region(X, np.arange(300) % 10 == 0)
    (True, False)
    """
    chosen = np.linspace(0, len(X) - 1, min(ROWS, len(X))).round().astype(np.intp)
    X, flagged = X[chosen], flagged[chosen]
    if min(flagged.sum(), (~flagged).sum()) < FEWEST or np.median(_votes(X, flagged)[flagged]) <= TOLD:
        return False
    low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    Z = (X - middle) / np.where(high > low, high - low, 1.0)
    spacing = np.asarray(cKDTree(Z).query(Z, k=[2])[0])[:, 0]  # the nearest is the example itself
    usual, theirs = np.median(spacing[~flagged]), np.median(spacing[flagged])
    gap = np.min(cKDTree(Z[~flagged]).query(Z[flagged])[0])
    return bool(theirs <= APART * usual and gap <= APART * theirs)


def _votes(X: Floats, flagged: Bools) -> Floats:
    """What a forest says of each example by the trees that have not seen it."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(TREES, oob_score=True, random_state=0).fit(X, flagged)
    votes: Floats = np.nan_to_num(forest.oob_decision_function_[:, 1], nan=0.5)
    return votes


def _ends_a_tail(y: Floats, scores: Floats, flagged: Bools, cutoff: float) -> bool:
    """Whether the flagged have the largest targets, or the smallest, and begin where the others end."""
    side = _area(y, flagged)
    return max(side, 1 - side) > HIGHEST and float(np.mean(scores[flagged] < 2 * cutoff)) > NEAR


def _area(values: Floats, flagged: Bools) -> float:
    """The chance that a flagged example has a larger value than another one: the area under the ROC curve."""
    m = int(flagged.sum())
    ranks = float(rankdata(values)[flagged].sum())
    return (ranks - m * (m + 1) / 2) / (m * (len(values) - m))
