"""Factors that make the minimum covariance determinant unbiased for normal data: asymptotic, and for small samples."""

from __future__ import annotations

from math import exp, floor
from typing import Final

import numpy as np
from scipy.special import chdtri, gammainc

from trimlearn.robust.scale import curve_through

__all__ = ["chi2_quantile", "consistency", "small_sample_scatter"]


# G. Pison, S. Van Aelst and G. Willems, Small sample corrections for LTS and MCD, Metrika 55 (2002): on clean normal
# data the raw MCD is too small by 1 − exp(a)/n^b; (a, b) at the trimming α = 0.500 and 0.875, for p = 1 and 2. For
# p > 2 the curve goes through 1 − η/p^κ at n = 2p² and n = 3p²: (η, κ) at each. Digits as in R's robustbase (covMcd).
FEW: Final = {
    1: ((0.262024211897096, 0.604756680630497), (-0.351584646688712, 1.01646567502486)),
    2: ((0.673292623522027, 0.691365864961895), (0.446537815635445, 1.06690782995919)),
}
MANY: Final = (  # from the same table
    ((1.42764571687802, 1.26263336932151), (1.06141115981725, 1.28907991440387)),
    ((0.455179464070565, 1.11192541278794), (0.294241208320834, 1.09649329149811)),
)


def chi2_quantile(probability: float, p: int) -> float:
    """The quantile of χ²_p.

    >>> round(chi2_quantile(0.975, 2), 4)
    7.3778
    """
    return float(chdtri(p, 1.0 - probability))


def consistency(share: float, p: int) -> float:
    """c with E[c·Σ(w)] = Σ for normal data when the ``share`` nearest rows are kept (Croux and Haesbroeck 1999).

    >>> round(consistency(0.5, 2), 4), consistency(1.0, 5)
    (3.2589, 1.0)
    """
    if share >= 1.0:
        return 1.0
    return share / float(gammainc(p / 2 + 1, chi2_quantile(share, p) / 2))


def small_sample_scatter(h: float, n: float, p: int) -> float:
    """By what the raw MCD of h of n clean rows is to be multiplied, besides `consistency`.

    >>> round(small_sample_scatter(39, 75, 3), 4), small_sample_scatter(75, 75, 3)
    (1.1279, 1.0)
    """
    n = max(n, 2.0 * p)  # where the curves were fitted
    half = float(floor((n + p + 1) / 2))
    alpha = 0.5 + 0.5 * (h - half) / (n - half) if n > half else 1.0
    pairs = FEW[p] if p <= 2 else tuple(curve_through(p, (2, 3), points) for points in MANY)
    bias = [1.0 - exp(a) / n**b for a, b in pairs]
    return 1.0 / max(0.1, float(np.interp(alpha, (0.5, 0.875, 1.0), [*bias, 1.0])))
