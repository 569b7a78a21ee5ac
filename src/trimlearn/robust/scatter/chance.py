"""Whether rows lie apart from normal ones, or only seem to, because the others were chosen for lying together.

Of n normal rows in p dimensions leave out b. Let A be the sum of squares and products of all rows about their mean, and
B that of the rows kept; or, where the b rows have a mean of their own, the sum of both groups', each about its mean.
Λ = det B/det A follows Wilks' law with b degrees of freedom (or 1), and n − 1 − b (or n − 2) for error, whatever the
covariance (S. S. Wilks, Multivariate statistical outliers, Sankhyā 25, 1963). That is so for rows named beforehand.
The rows off may be the farthest of all C(n, b) choices of b rows, for every b up to n/2 and in both ways: the
probability of so small a Λ counts n C(n, b) times (Bonferroni). Of many rows both are out of range: logarithms are not.

The rows may be their coordinates along leading principal axes of all of them, however many features there are: given
these axes and their variances, the coordinates of normal rows are as random as before, and Λ follows the same law.
"""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt
from typing import Final

import numpy as np
from scipy.special import betainc, betaln, gammaln

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scatter.steps import FLOOR, Moments
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["LEVEL", "PER_DIMENSION", "beyond_chance", "far_out", "leading_scores", "log_groups_expected", "log_wilks"]

# Customary. Without a test 2 to 5 % of clean samples of 15 to 30 rows have more than a fifth flagged, and 1 % at most
# with it, at 0.01 and 0.3 too; at 0.01 3 % fewer bad rows of 15 × 3 are found (`benchmarks.calibration chance`).
LEVEL: Final = 0.05
LEAST: Final = 1e-290  # of a probability that is computed as such: doubles end at 1e-308
# How many times farther than the farthest of the others half of some rows lie, that are called far out. At 2.1 or more
# are those that are moved by 5 σ in five features, or have one of a thousand σ; at 1.9 or less other groups of rows
# (wine, vowels, digits) and heavy tails: of t with 5 degrees of freedom 96 of 100 samples of 50 × 5.
FAR_OUT: Final = 2.0
PER_DIMENSION: Final = 5  # rows per axis: Rousseeuw and Van Zomeren's (1990) advice for covariances


def leading_scores(A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Coordinates of the rows A, which count s times, along as many leading principal axes as they can tell of."""
    D = A - s @ A / float(s.sum())
    axes = np.linalg.svd(np.sqrt(s)[:, None] * D, full_matrices=False)[2]
    return np.asarray(D @ axes[: int(max(1.0, float(s.sum()) // PER_DIMENSION))].T)


def beyond_chance(
    A: np.ndarray, s: np.ndarray, d2: np.ndarray, off: np.ndarray, expected: float | None = None
) -> np.ndarray:
    """Of the rows off, as many of the farthest as chance did not set apart; d2: how far all rows are.

    expected: how many groups as far apart chance may make at most, by Bonferroni's bound; None: LEVEL.

    >>> A = np.random.default_rng(0).normal(size=(20, 3))
    >>> d2 = np.sum(A**2, axis=1)
    >>> off = d2 > 3.0
    >>> int(off.sum()), int(beyond_chance(A, np.ones(20), d2, off).sum())
    (5, 1)
    >>> int(beyond_chance(A + 9.0 * off[:, None], np.ones(20), d2, off).sum())
    5
    """
    Z, found = RobustUnits.of(A, s, False).into(A), np.array(off)
    most = log(LEVEL if expected is None else expected)
    for nearest in np.unique(d2[off]):  # copies of a row together
        if log_groups_expected(Z, s, found) <= most:
            break
        found &= d2 > nearest
    return found


def far_out(distances: np.ndarray, s: np.ndarray, share: float, others: float) -> bool:
    """Whether the farthest share of the rows, as a whole, lies not only beyond the others but far from them.

    Errors that matter do, where other groups of rows or a tail begin at once. others: how far the farthest of these is.

    >>> distances = np.array([1.0, 2.0, 3.0, 3.5, 7.0, 9.0])
    >>> far_out(distances, np.ones(6), 0.5, 3.0), far_out(np.sqrt(distances), np.ones(6), 0.5, sqrt(3.0))
    (True, False)
    """
    return weighted_quantile(distances, s, 1.0 - 0.5 * share) > FAR_OUT * others


def log_groups_expected(Z: np.ndarray, s: np.ndarray, off: np.ndarray) -> float:
    """The logarithm of how many groups are expected by chance, at most, that lie as far apart as the rows off from the
    other rows of Z, which count s times.

    Z has features of robust scale 1. A single row is not asked about (−inf), since the others were hardly chosen for
    its sake; nor is it where too few are kept to tell.
    """
    n, b, p = float(s.sum()), float(s[off].sum()), Z.shape[1]
    if b <= 1.0 or n - b - 1.0 <= p:
        return -inf
    kept, apart = (_squares(Z, np.where(which, s, 0.0)) for which in (~off, off))
    every = _log_det(_squares(Z, s) / n)
    alone = log_wilks(_log_det(kept / n) - every, p, b, n - 1.0 - b)
    together = log_wilks(_log_det((kept + apart) / n) - every, p, 1.0, n - 2.0)
    return log(n) + float(gammaln(n + 1.0) - gammaln(b + 1.0) - gammaln(n - b + 1.0)) + min(alone, together)


def log_wilks(log_ratio: float, p: float, q: float, m: float) -> float:
    """log P(log Λ ≤ log_ratio) for p dimensions, q degrees of freedom and m for error, by Rao's (1951) F law, which is
    exact where p or q is 1 or 2; of a probability out of range, the bound of an incomplete beta function by a geometric
    series.

    >>> round(exp(log_wilks(log(0.5), 1, 1, 10)), 4), round(exp(log_wilks(log(0.5), 3, 1, 20)), 4)
    (0.0101, 0.0051)
    >>> round(log_wilks(log(0.5), 3, 1, 4000))
    -1382
    """
    squares = p * p + q * q - 5.0
    root = sqrt((p * p * q * q - 4.0) / squares) if squares > 0 and p * q != 2.0 else 1.0
    a, b = 0.5 * ((m + q - 0.5 * (p + q + 1.0)) * root - 0.5 * p * q + 1.0), 0.5 * p * q
    if a <= 0:
        return 0.0
    share = min(log_ratio, 0.0) / root
    x = exp(share)
    probability = float(betainc(a, b, x))
    if probability > LEAST:
        return log(probability)
    return a * share + b * log1p(-x) - log(a) - float(betaln(a, b)) - log1p(-x * max(1.0, (a + b) / (a + 1.0)))


def _squares(Z: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Sums of squares and products of rows about their mean, weighted by c."""
    return np.asarray(Moments.of(Z, c[None]).S[0] * float(c.sum()))


def _log_det(S: np.ndarray) -> float:
    """log det, no eigenvalue being less than a fit believes in."""
    return float(np.sum(np.log(np.maximum(np.linalg.eigvalsh(S), FLOOR))))
