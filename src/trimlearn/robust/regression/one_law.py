"""Whether one law explains all residuals about as well as groups do: the rows explained, and those that are flagged.

Then errors may be skewed, or of two scales, rather than the flagged rows wrong. Laws are compared by their likelihoods
(Kass and Raftery 1995, Bayes factors, JASA 90).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["groups", "looks_of_two_scales", "looks_skewed", "one_group", "skewness_evidence"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

THINNEST = 0.25  # σ of the flagged group, at least, in that of the others: equal flagged rows would have none
ROWS = 2_000  # looked at, at most: a limit on time
TOO_FEW, SHARE = 5, 0.05  # rows, and of all rows, that are flagged: fewer may be strays of any law (choices)
ONE_SIDED = 0.9  # of the flagged rows: chance puts 5 of 5 normal ones on one side once in 16 times
# Logarithm of the likelihood by which two groups must beat one skewed law to be believed: "strong evidence" by Kass and
# Raftery (1995). Of 25 samples of 100 rows with lognormal errors none was above it, of 25 with 20 % at 5 σ none below
# (python -m benchmarks.calibration skewness).
EVIDENCE = 3.0
# Shapes g that are tried: near 0 the law is normal, at 1 lognormal. Beyond 1.6 half of the rows lie within a seventh of
# the way to the mean.
SHAPES = np.linspace(0.1, 1.6, 16)
STRAYS, REACH = 0.02, 10.0  # the share of rows of no law, and how many σ they reach: so that no row is impossible
# Times by which the wider of two scales may exceed the other. Beyond, a row of the wider one tells less than a 50th of
# what others tell, and it makes no difference to a fit whether it is wrong or vague (a choice).
WIDEST = 7.0
ROUNDS = 50  # of EM for two scales, a limit on time: each gains less than the one before


def one_group(r: Floats, c: Floats, rank: float = 0.0) -> float:
    """The logarithm of the likelihood of one normal law around 0 for residuals r, each of which counts c times, of a
    fit with so many coefficients.

    >>> round(one_group(np.array([-1.0, 1.0]), np.ones(2)), 3)
    -2.838
    """
    scale = np.sqrt(c @ r**2 / max(c.sum() - rank, 1.0))
    return float(c @ log_normal(r, scale))


def groups(r: Floats, c: Floats, scale: float, *off: Flags) -> float:
    """The same for several normal groups: one around 0 of this scale, and the rows of each ``off``, of a mean and scale
    of theirs.

    >>> r = np.array([-1.0, 1.0, 9.0, 9.5])
    >>> groups(r, np.ones(4), 1.0, r > 5) > one_group(r, np.ones(4))
    True
    """
    n, rest, log_density = c.sum(), 1.0, []
    for bad, count in ((r[rows], c[rows]) for rows in off):
        mean, share = count @ bad / count.sum(), count.sum() / n
        spread = max(float(np.sqrt(count @ (bad - mean) ** 2 / count.sum())), THINNEST * scale)
        log_density.append(np.log(share) + log_normal(r - mean, spread))
        rest -= share
    return float(c @ np.logaddexp.reduce([np.log(rest) + log_normal(r, scale), *log_density]))


def log_normal(r: Floats, scale: float) -> Floats:
    """The logarithm of the density of a normal law around 0 of this scale."""
    return np.asarray(-0.5 * (r / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


def looks_skewed(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = TOO_FEW) -> bool:
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
    found = skewness_evidence(scores, flagged, share, fewest)
    return found is not None and found > -EVIDENCE


def skewness_evidence(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = TOO_FEW) -> float | None:
    """The logarithm of the likelihood of one skewed law, less that of two groups; None where too few rows are flagged,
    or not on one side, or all others are the same.

    >>> skewness_evidence(np.arange(10.0), np.arange(10) > 8) is None
    True
    """
    found = _asked(scores, flagged, share, fewest)
    if found is None:
        return None
    r, off = found
    side = np.sign(np.median(r[off]))
    if np.mean(np.sign(r[off]) == side) < ONE_SIDED:
        return None
    good = r[~off]
    return _skewed(side * r) - groups(r - good.mean(), np.ones(len(r)), float(good.std()), off)


def looks_of_two_scales(scores: Floats, flagged: Flags) -> bool:
    """Whether errors of two scales around the fit, as under heavy tails, explain the scores about as well as groups do:
    the rows flagged above, those flagged below, and the others.

    scores: residuals in units of σ, with signs. It is asked where rows are flagged on both sides.

    >>> rng = np.random.default_rng(0)
    >>> mixed = rng.normal(size=200) * np.where(np.arange(200) < 60, 5.0, 1.0)
    >>> looks_of_two_scales(mixed, np.abs(mixed) > 3)
    True
    >>> gross = rng.normal(size=200) + np.where(np.arange(200) < 40, 12.0, 0.0) * rng.choice([-1, 1], 200)
    >>> looks_of_two_scales(gross, np.abs(gross) > 3)
    False
    """
    found = _asked(scores, flagged, SHARE, TOO_FEW)
    if found is None:
        return False
    r, off = found
    above, below = off & (r > 0), off & (r < 0)
    if max(above.sum(), below.sum()) >= ONE_SIDED * off.sum():
        return False
    r = r - r[~off].mean()
    scale = float(r[~off].std())
    return _two_scales(r, scale, off) - groups(r, np.ones(len(r)), scale, above, below) > -EVIDENCE


def _asked(scores: Floats, flagged: Flags, share: float, fewest: int) -> tuple[Floats, Flags] | None:
    """Some of the rows: their scores, and which are flagged; None where those are too few."""
    chosen = np.flatnonzero(np.isfinite(scores))
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(ROWS, len(chosen))).round().astype(np.intp)]
    r, off = np.asarray(scores, dtype=np.float64)[chosen], flagged[chosen]
    few = min(off.sum(), (~off).sum()) < fewest or off.mean() < share or np.ptp(r[~off]) == 0
    return None if few else (r, off)


def _two_scales(r: Floats, scale: float, off: Flags) -> float:
    """The logarithm of the likelihood of the most likely mixture of two normal laws around 0, by EM; −∞ where the wider
    one is no law of errors."""
    scales, shares = np.array([scale, np.sqrt(np.mean(r[off] ** 2))]), np.array([1 - off.mean(), off.mean()])
    both = np.empty((2, len(r)))
    for _ in range(ROUNDS):
        for k in range(2):
            both[k] = np.log(shares[k]) + log_normal(r, scales[k])
        each = np.exp(both - np.logaddexp(*both))
        scales, shares = np.sqrt(each @ r**2 / each.sum(axis=1)), each.mean(axis=1)
    return float(np.logaddexp(*both).sum()) if scales[1] <= WIDEST * scales[0] else -np.inf


def _skewed(u: Floats) -> float:
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
