"""By what the scale of least trimmed squares is off in small samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np

__all__ = ["curve_through", "small_sample"]

# Pison, Van Aelst & Willems (2002): on clean normal data of n rows and p slopes the scale of least trimmed squares is
# too small by 1 − exp(a)/n^b; (a, b) for α = 0.500 and 0.875, by intercept.
NO_SLOPE = ((0.262024211897096, 0.604756680630497), (-0.351584646688712, 1.01646567502486))
ONE_SLOPE = {  # from the same table
    True: ((0.630869217886906, 0.650789250442946), (0.565065391014791, 1.03044199012509)),
    False: ((-0.0181777452315321, 0.697629772271099), (-0.310122738776431, 1.06241615923172)),
}
# For p > 1 the same curve goes through 1 + η/p^κ at n = 3p² and at n = 5p²: (η, κ) at each.
MORE_SLOPES = {
    True: (
        ((-0.746945886714663, 0.56264937192689), (-0.535478048924724, 0.543323462033445)),
        ((-0.458580153984614, 1.12236071104403), (-0.267178168108996, 1.1022478781154)),
    ),
    False: (
        ((-0.487338281979106, 0.405511279418594), (-0.340762058011, 0.37972360544988)),
        ((-0.251778730491252, 0.883966931611758), (-0.146660023184295, 0.86292940340761)),
    ),
}


def small_sample(n: float, p: float, h: float, intercept: bool = True) -> float:
    """By what the raw scale of least trimmed squares is to be multiplied in small samples; p counts the intercept.

    The constants are those of G. Pison, S. Van Aelst and G. Willems, Small sample corrections for LTS and MCD, Metrika
    55 (2002), as R's robustbase (LTScnp2) gives them, digit for digit. They are about α = (h − p − 1)/(n − p − 1),
    which is 0.5 where breakdown is largest, and is taken as 0.5 below. At most 10: the curves would change sign where
    p is near n.

    >>> round(small_sample(21, 4, h=13), 4)
    1.8842
    """
    slopes = round(p) - intercept
    if slopes <= 0:
        curves: Sequence[tuple[float, float]] = NO_SLOPE
    elif slopes == 1:
        curves = ONE_SLOPE[intercept]
    else:
        curves = [curve_through(slopes, (3, 5), points) for points in MORE_SLOPES[intercept]]
    half, most = (1 - exp(a) / n**b for a, b in curves)
    alpha = (h - p - 1) / (n - p - 1) if n > p + 1 else 0.5
    bias = max(0.1, float(np.interp(alpha, [0.5, 0.875, 1.0], [half, most, 1.0])))
    return 1 / (sqrt(bias) if slopes <= 0 else bias)  # without slopes they are about the variance


def curve_through(p: int, sizes: tuple[float, float], points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(a, b) of the curve 1 − exp(a)/n^b through 1 − |η|/p^κ at n = p² times each of two sizes; points: (η, κ) there.

    >>> a, b = curve_through(2, (3, 5), [(-0.75, 0.56), (-0.54, 0.54)])
    >>> round(exp(a) / 12**b, 4), round(0.75 / 2**0.56, 4)
    (0.5087, 0.5087)
    """
    first, second = (log(abs(eta) / p**kappa) for eta, kappa in points)
    b = (first - second) / log(sizes[1] / sizes[0])
    return first + b * log(sizes[0] * p**2), b
