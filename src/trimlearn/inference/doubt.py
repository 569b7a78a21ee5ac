"""Estimates spread more where rows that were left out may be right after all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimlearn.inference.design import design
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.precision import Spread

LEAST = 1e-6  # probability below which a row left out is wrong for certain: its part is below a thousandth of a σ
SURE = 0.75  # probability of one of both, from which on a row is not in doubt: odds of three to one (a choice)


def rows_in_doubt(fit: Fitted) -> int:
    """How many rows are neither right nor wrong for sure, of a mean of several fits."""
    if fit.scatter is None or fit.innocence is None:
        return 0
    return int(np.count_nonzero((fit.innocence > 1 - SURE) & (fit.innocence < SURE)))


def with_doubt(fit: Fitted, found: Spread, unit: Spread, scale: float, df: float) -> Spread:
    """``found``, the covariance of the rows that count, and what the others add if each is right with probability πᵢ:

        cov + Σ sᵢπᵢ δᵢδᵢᵀ,   δᵢ = H aᵢrᵢ/(1 + aᵢᵀHaᵢ),

    the change of θ that row i would make, a mixture of the two fits; H = ``unit``, the covariance of errors of variance
    1. Likewise σ² is a mixture: with row i it would be larger by (rᵢ²/(1 + aᵢᵀHaᵢ) − σ²)/(df + 1). Rows that are wrong
    for certain add nothing. Of clean normal samples of 20 rows one in nine has a row left out; coverage of 95 %
    intervals is then 0.82 instead of 0.70. Of a mean of several fits, these tell all that is in doubt.
    """
    if fit.scatter is not None:
        return Spread(_root(found.F, fit.scatter), found.N, found.d, found.parameters)
    s = np.ones(len(fit.weights)) if fit.sample_weight is None else np.asarray(fit.sample_weight, dtype=np.float64)
    innocence = np.zeros(len(s)) if fit.innocence is None else np.where(fit.weights > 0, 0.0, fit.innocence) * s
    on = np.flatnonzero(innocence > LEAST)
    if not len(on) or scale <= 0 or fit.ridge > 0:  # shrunk estimates are biased: more than their spread is in doubt
        return found
    A, share = design(fit.X[on], fit.has_intercept), innocence[on]
    r = np.asarray(fit.y)[on].astype(np.float64) - A @ fit.theta[0]
    HA = A @ unit.F.T @ unit.F
    h = np.einsum("ij,ij->i", A, HA)
    larger = 1 + max(0.0, float(share @ (r**2 / (1 + h) / scale**2 - 1)) / (df + 1))
    moved = (np.sqrt(share) * r / (1 + h))[:, None] * HA
    return Spread(_root(np.sqrt(larger) * found.F, moved), found.N, found.d, found.parameters)


def _root(F: NDArray[np.float64], G: NDArray[np.float64]) -> NDArray[np.float64]:
    """R with RᵀR = FᵀF + GᵀG."""
    return np.asarray(np.linalg.qr(np.vstack([F, G]), mode="r"))
