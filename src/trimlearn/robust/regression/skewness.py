"""Whether rows flagged on one side of a fit are the tail of skewed errors, rather than a group of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trimlearn.robust.regression.groups import log_normal, two_groups

__all__ = ["evidence", "looks_skewed"]

ROWS = 2_000  # looked at, at most: a limit on time, and enough to tell two laws apart
FEWEST, SHARE = 5, 0.05  # rows, and of all rows, that are flagged: fewer may be strays of any law (choices)
ONE_SIDED = 0.9  # of the flagged rows: chance puts 5 of 5 normal ones on one side once in 16 times
# Logarithm of the likelihood by which two groups must beat one skewed law to be believed: "strong evidence" by Kass and
# Raftery (1995). Of 25 samples of 100 rows with lognormal errors none was above it, of 25 with 20 % at 5 σ none below
# (python -m benchmarks.calibration skewness).
EVIDENCE = 3.0
# Shapes g that are tried: near 0 the law is normal, at 1 lognormal. Beyond 1.6 half of the rows lie within a seventh of
# the way to the mean.
SHAPES = np.linspace(0.1, 1.6, 16)
STRAYS, REACH = 0.02, 10.0  # the share of rows of no law, and how many σ they reach: so that no row is impossible

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def looks_skewed(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = FEWEST) -> bool:
    """Whether one skewed law explains the scores about as well as two groups do, the flagged rows and the others.

    scores: residuals in units of σ, with signs. share, fewest: of the rows, and rows, that must be flagged for it to be
    asked.

    The law is Tukey's g, m + A(exp(gz) − 1)/g of a normal z: its median and its width below that are those of the
    scores, and of the shapes g the most likely one is taken.

    References: D. C. Hoaglin (1985), Summarizing shape numerically: the g-and-h distributions. R. E. Kass and A. E.
    Raftery (1995), Bayes factors, JASA 90.

    >>> rng = np.random.default_rng(0)
    >>> skewed = np.exp(rng.normal(size=200)) - 1
    >>> looks_skewed(skewed, skewed > 3)
    True
    >>> shifted = rng.normal(size=200) + np.where(np.arange(200) < 40, 6.0, 0.0)
    >>> looks_skewed(shifted, shifted > 3)
    False
    """
    found = evidence(scores, flagged, share, fewest)
    return found is not None and found > -EVIDENCE


def evidence(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = FEWEST) -> float | None:
    """The logarithm of the likelihood of one law, less that of two groups; None where too few rows are flagged, or not
    on one side, or all others are the same.

    >>> evidence(np.arange(10.0), np.arange(10) > 8) is None
    True
    """
    chosen = np.flatnonzero(np.isfinite(scores))
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(ROWS, len(chosen))).round().astype(np.intp)]
    r, off = np.asarray(scores, dtype=np.float64)[chosen], flagged[chosen]
    if min(off.sum(), (~off).sum()) < fewest or off.mean() < share or np.ptp(r[~off]) == 0:
        return None
    side = np.sign(np.median(r[off]))
    if np.mean(np.sign(r[off]) == side) < ONE_SIDED:
        return None
    good = r[~off]
    return _one_law(side * r) - two_groups(r - good.mean(), np.ones(len(r)), off, float(good.std()))


def _one_law(u: Floats) -> float:
    """The logarithm of the likelihood of the most likely g."""
    lower, m = np.quantile(u, (0.25, 0.5))
    width = m - lower
    if width <= 0:
        return -np.inf
    wide = REACH * width / ndtri(0.75)
    strays = np.log(STRAYS) + log_normal(u - m, wide)
    return max(float(np.logaddexp(np.log(1 - STRAYS) + _log_g(u - m, width, g), strays).sum()) for g in SHAPES)


def _log_g(u: Floats, width: float, g: float) -> Floats:
    """The logarithm of the density of A(exp(gz) − 1)/g, whose lower quartile is −width."""
    A = width * g / -np.expm1(g * ndtri(0.25))
    inside = 1 + g * u / A
    z = np.log(np.where(inside > 0, inside, 1.0)) / g
    return np.where(inside > 0, log_normal(z, 1.0) - np.log(A) - g * z, -np.inf)
