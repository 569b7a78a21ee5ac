"""Whether rows lie apart from a regression, or only seem to, because the others were chosen for lying near it.

Leave out b of n rows of a regression with q coefficients and normal errors, and let Λ be the sum of squared residuals
of the fit to the others over that of the fit to all rows.

- Of a row named beforehand Λ is a beta variable with (n − q − 1)/2 and 1/2. The farthest of n rows counts n times
  (Bonferroni; this is the test of the largest Studentised residual, Cook and Weisberg 1982, section 2.2.2).
- Of the b farthest rows, which a trimmed fit finds, the sum kept is that of least trimmed squares: its mean is known
  (Croux and Rousseeuw 1992), in small samples too (Pison, Van Aelst and Willems 2002), and log Λ is about normal, with
  the variance that the delta method gives. `benchmarks.calibration outlying` compares that with simulated searches.

Residuals of a deviance follow these laws about.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, log_ndtr, ndtri

from trimlearn.robust.scale import Chi, small_sample

__all__ = ["SURE", "log_sets_expected", "without_chance"]

LEVEL: Final = 0.05  # sets of rows as far apart that chance may make: customary, and as of scatters
SURE: Final = 0.001  # so few that it is not in doubt whether it was chance (a choice)
PACE: Final = 8  # of so many rows one comes back at a time: a limit on time, where many are flagged
LEAST: Final = float(np.finfo(np.float64).tiny)
GRID: Final = 2000  # points of a law for its variance: two of its digits, of which one is enough

Mask = NDArray[np.bool_]
Model = TypeVar("Model")


def without_chance(
    model: Model,
    inliers: Mask,
    s: NDArray[np.floating] | None,
    q: int,
    residuals: Callable[[Model], NDArray[np.float64]],
    refit: Callable[[Mask, Model], Model],
) -> tuple[Model, Mask, float]:
    """The model, and the rows it is fitted to, once rows that chance may have set apart count again, the nearest first;
    and how many sets as far apart as the rows left out chance is expected to make.

    q: coefficients. residuals: of all rows, by a model. refit: the model of some rows, begun at another.

    >>> y = np.append(np.linspace(-1.0, 1.0, 19), 1.5)
    >>> mean = lambda rows, _: float(y[rows].mean())
    >>> model, rows, _ = without_chance(0.0, y < 1.2, None, 1, lambda m: y - m, mean)
    >>> round(model, 3), bool(rows.all())
    (0.075, True)
    """
    mass = np.ones(len(inliers)) if s is None else s.astype(np.float64)
    if inliers.all():
        return model, inliers, 0.0
    everything = refit(np.ones_like(inliers), model)
    every, n = float(mass @ residuals(everything) ** 2), float(mass.sum())
    while True:
        squares, off = residuals(model) ** 2, ~inliers
        kept, b = float(mass[inliers] @ squares[inliers]), float(mass[off].sum())
        expected = log_sets_expected(kept / max(every, kept, LEAST), n, b, q)
        if expected <= log(LEVEL):
            return model, inliers, exp(expected)
        nearest = np.sort(squares[off])[(np.count_nonzero(off) - 1) // PACE]
        inliers = inliers | (squares <= nearest)
        if inliers.all():
            return everything, inliers, 0.0
        model = refit(inliers, model)


def log_sets_expected(ratio: float, n: float, b: float, q: int) -> float:
    """The logarithm of how many sets of b of n rows are expected by chance without which Λ is as small as ``ratio``.

    >>> round(log_sets_expected(0.5, 20, 1, 3), 1), round(log_sets_expected(0.5, 20, 4, 3), 1)
    (-3.9, -0.0)
    >>> round(log_sets_expected(0.1, 20, 4, 3), 1)
    -7.8
    """
    if b <= 1 or b > (n - q) / 2:  # more than a trimmed fit leaves out: the bound, C(n, b) ways
        freedom = max(n - q - b, 1.0)
        ways = float(gammaln(n + 1.0) - gammaln(b + 1.0) - gammaln(n - b + 1.0))
        return ways + log(max(float(betainc(freedom / 2, b / 2, min(ratio, 1.0))), LEAST))
    mean, deviation = _law(n, b, q)
    return float(log_ndtr((log(max(ratio, LEAST)) - mean) / deviation))


def _law(n: float, b: float, q: int) -> tuple[float, float]:
    """Mean and standard deviation of log Λ for the b farthest of n rows."""
    share, law = 1 - b / n, Chi()
    cut = law.upper(b / n)
    left = share * law.second_moment(cut)
    mean = log(left * n / (n - q)) - 2 * log(small_sample(n, q, n - b))
    squares = ndtri(0.5 + (np.arange(GRID) + 0.5) / (2 * GRID)) ** 2
    return mean, sqrt(float(np.var(np.minimum(squares, cut**2) / left - squares)) / (n - q))
