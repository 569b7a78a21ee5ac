"""Whether rows lie apart from a regression, or only seem to, because the others were chosen for lying near it.

Leave out b of n rows of a regression with q coefficients and normal errors, and let Λ be the sum of squared residuals
of the fit to the others over that of the fit to all rows.

- Of a row named beforehand Λ is a beta variable with (n − q − 1)/2 and 1/2. The farthest of n rows counts n times
  (Bonferroni; this is the test of the largest Studentised residual, Cook and Weisberg 1982, section 2.2.2).
- Where the size of the errors is known, what less is left follows χ² with b degrees of freedom. It counts C(n, b) times
  for every b up to n/2.
- Of the b farthest rows, which a trimmed fit finds, the sum kept is that of least trimmed squares: its mean is known
  (Croux and Rousseeuw 1992), in small samples too (Pison, Van Aelst and Willems 2002), and log Λ is about normal, with
  the variance that the delta method gives. `benchmarks.calibration outlying` compares that with simulated searches.

Residuals of a deviance follow these laws about.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Final, TypeVar
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, ndtri, stdtr
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from trimlearn.robust.scale import Chi, small_sample

__all__ = ["in_doubt", "law_of_farthest", "log_sets_expected", "without_chance"]

LEVEL: Final = 0.05  # sets of rows as far apart that chance may make: customary, and as of scatters
# So few that it is not in doubt whether it was chance: by the bound, whatever was searched; or by the law, of which the
# tail is the less certain the farther out (a choice).
SURE, VERY_SURE = 1e-3, 1e-5
PARTS: Final = 8  # of the rows left out, by which they come back: a limit on time, where many are
LEAST: Final = float(np.finfo(np.float64).tiny)  # that has a logarithm: of doubles, without loss of digits
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
    *,
    size: float = 0.0,
) -> tuple[Model, Mask, bool]:
    """The model, and the rows it is fitted to, once rows that chance may have set apart count again; and whether it is
    in doubt that the others are wrong.

    Back come as many of the nearest rows left out as chance sets apart from the inliers, those beyond them being left
    aside. q: coefficients. residuals: of all rows, by a model. refit: the model of some rows, begun at another. size:
    of the errors, where it is known: then chance is also denied only where it is for errors of that size.

    >>> y = np.append(np.linspace(-1.0, 1.0, 19), [1.5, 40.0])
    >>> mean = lambda rows, _: float(y[rows].mean())
    >>> model, rows, doubt = without_chance(0.0, y < 1.2, None, 1, lambda m: y - m, mean)
    >>> round(model, 3), np.flatnonzero(~rows), doubt
    (0.075, array([20]), False)
    """
    mass: NDArray[np.float64] = np.ones(len(inliers)) if s is None else s.astype(np.float64)
    squares, rows = residuals(model) ** 2, inliers
    left, n = _sum(squares, mass, inliers), float(mass[inliers].sum())
    far = np.unique(squares[~inliers])[::-1]  # copies of a row come back together
    kept, everything = left, left
    for part in range(PARTS if len(far) else 0):
        back = inliers | (squares <= far[part * len(far) // PARTS])
        with catch_warnings():  # a fit to rows that no model explains may not end, and is only compared with
            simplefilter("ignore", ConvergenceWarning)
            found = refit(back, model)
        every, b = _sum(residuals(found) ** 2, mass, back), float(mass[back & ~inliers].sum())
        everything = every if part == 0 else everything
        expected = log_sets_expected(left / max(every, left, LEAST), n + b, b, q)
        if size > 0:
            less = max(every - left, 0.0) / size**2
            expected = max(expected, float(chi2.logsf(less, b)) + log_choices(n + b, b))
        if expected > log(LEVEL):
            model, rows, kept = refit(back, found), back, every
            break
    off = float(mass[~rows].sum())
    doubt = off > 0 and in_doubt(kept / max(everything, kept, LEAST), float(mass.sum()), off, q)
    return model, rows, doubt


def in_doubt(ratio: float, n: float, b: float, q: int) -> bool:
    """Whether chance may have set b of n rows apart all the same, Λ being ``ratio``.

    >>> in_doubt(0.1, 20, 4, 3), in_doubt(0.001, 20, 4, 3)
    (True, False)
    """
    return log_bound(ratio, n, b, q) > log(SURE) and log_sets_expected(ratio, n, b, q) > log(VERY_SURE)


def log_sets_expected(ratio: float, n: float, b: float, q: int) -> float:
    """The logarithm of how many sets of b of n rows are expected by chance without which Λ is as small as ``ratio``.

    Where no trimmed fit leaves out as many it is no more than `log_bound`. Student's law stands for the normal one: in
    few rows its tail is not known well.

    >>> round(log_sets_expected(0.5, 20, 1, 3), 1), round(log_sets_expected(0.5, 20, 4, 3), 1)
    (-3.9, -0.0)
    >>> round(log_sets_expected(0.1, 20, 4, 3), 1)
    -6.5
    """
    if b <= 1 or b > (n - q) / 2:
        return log_bound(ratio, n, b, q)
    mean, deviation = law_of_farthest(n, b, q)
    return log(max(float(stdtr(n - q - b, (log(max(ratio, LEAST)) - mean) / deviation)), LEAST))


def log_bound(ratio: float, n: float, b: float, q: int) -> float:
    """The same at most, whatever was searched: Λ of rows named beforehand is a beta variable, and there are C(n, b)
    ways to choose them, for every b up to n/2 where it is more than one.

    >>> round(log_bound(0.5, 20, 1, 3), 1), round(log_bound(0.1, 20, 4, 3), 1)
    (-3.9, -1.6)
    """
    freedom = max(n - q - b, 1.0)
    return log_choices(n, b) + log(max(float(betainc(freedom / 2, b / 2, min(ratio, 1.0))), LEAST))


def log_choices(n: float, b: float) -> float:
    """log C(n, b), and log n for the choice of b where it is more than one."""
    return float(gammaln(n + 1.0) - gammaln(b + 1.0) - gammaln(n - b + 1.0)) + (log(n) if b > 1 else 0.0)


def _sum(squares: NDArray[np.float64], s: NDArray[np.float64], rows: Mask) -> float:
    return float(s[rows] @ squares[rows])


def law_of_farthest(n: float, b: float, q: int) -> tuple[float, float]:
    """Mean and standard deviation of log Λ for the b farthest of n rows."""
    share, law = 1 - b / n, Chi()
    cut = law.upper(b / n)
    left = share * law.second_moment(cut)
    mean = log(left * n / (n - q)) - 2 * log(small_sample(n, q, n - b))
    squares = ndtri(0.5 + (np.arange(GRID) + 0.5) / (2 * GRID)) ** 2
    return mean, sqrt(float(np.var(np.minimum(squares, cut**2) / left - squares)) / (n - q))
