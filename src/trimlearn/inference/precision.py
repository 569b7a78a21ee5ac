"""How far estimates spread: covariances by orthogonal factors, and what the data do not determine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.inference.design import Matrix, design_blocks

# Rounding leaves errors of some 10⁻¹⁶·√n·p in the singular values of columns of length 1. This is above them up to n =
# 10⁶ and p = 1,000: what is shorter cannot be told from a direction in which the columns depend on each other.
NEGLIGIBLE = 1e-10
# The part of a combination of coefficients that may lie in such directions, which are themselves known to no better
# than 10⁻¹⁶ / NEGLIGIBLE where the next one is only just longer.
MISSED = 1e-6


def leverages(A: Matrix, c: NDArray[np.float64]) -> NDArray[np.float64]:
    """aᵢᵀ(Σ cⱼaⱼaⱼᵀ)⁺aᵢ of every row of A: the variance of the fit there, in units of that of one error, if row j was
    fitted with weight cⱼ. Directions in which those rows do not vary count for nothing.

    >>> leverages(np.array([[1.0], [1.0], [3.0]]), np.array([1.0, 1.0, 0.0]))
    array([0.5, 0.5, 4.5])
    """
    root = A * np.sqrt(c)[:, None]
    unit = np.linalg.norm(root, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    _, d, Vt = np.linalg.svd(np.linalg.qr(root / unit, mode="r"), full_matrices=False)
    real = d > NEGLIGIBLE * d.max(initial=0.0)
    return np.asarray(np.sum(((A / unit) @ Vt[real].T / d[real]) ** 2, axis=1))


def triangle(X: Any, intercept: bool, M: Matrix) -> Matrix:
    """R with RᵀR = Σᵢ (MᵢᵀMᵢ) ⊗ aᵢaᵢᵀ, where aᵢ is a row of `design` and M is (n, K, c): QR by blocks of rows.

    Forming the sum itself would square the condition number. X may be sparse or a memory map: it is read once.

    >>> X = np.array([[3.0], [4.0]])
    >>> float(abs(triangle(X, False, np.ones((2, 1, 1)))[0, 0]))
    5.0
    """
    K, c = M.shape[1:]
    width = c * (X.shape[1] + intercept)
    R = np.empty((0, width))
    for rows, A in design_blocks(X, intercept, numbers=K * width, least=2 * width // K):  # R is stacked on every block
        block = np.einsum("bkc,bq->bkcq", M[rows], A).reshape(-1, width)
        R = np.asarray(np.linalg.qr(np.vstack([R, block]), mode="r"))
    return R


@final
@dataclass(frozen=True)
class Spread:
    """Cov(θ) = FᵀF of an estimate θ, and the directions N (rows, in units of 1/d) of which the data say nothing."""

    F: Matrix
    N: Matrix
    d: NDArray[np.float64]
    parameters: float  # how many were fitted: the rank, or the trace of the smoother under a ridge penalty

    def deviation(self, C: Matrix) -> NDArray[np.float64]:
        """Standard deviations of the combinations Cθ (one a row); inf where the data do not determine them."""
        relative = C / self.d
        missed = np.linalg.norm(relative @ self.N.T, axis=1) > MISSED * np.linalg.norm(relative, axis=1)
        return np.where(missed, np.inf, np.linalg.norm(C @ self.F.T, axis=1))

    def scaled(self, scale: float) -> Spread:
        """The same of errors ``scale`` times as large."""
        return Spread(scale * self.F, self.N, self.d, self.parameters)


def spread(R: Matrix, ridge: NDArray[np.float64], meat: Matrix | None = None, eps: float = 0.0) -> Spread:
    """The spread of θ = argmin Σ losses + ½ Σ ridgeⱼθⱼ², whose losses have information RᵀR (dispersion 1):

        (RᵀR + D)⁺ G (RᵀR + D)⁺,   G = RᵀR, or Σ score·scoreᵀ = meatᵀmeat for a sandwich (White 1980).

    ``eps``: the rounding error of the data, relative; columns may depend on each other up to that.
    """
    root = np.vstack([R, np.diag(np.sqrt(ridge))])
    d = np.linalg.norm(root, axis=0)
    d = np.where(d > 0, d, 1.0)
    _, length, V = np.linalg.svd(np.linalg.qr(root / d, mode="r"))
    known = length > max(NEGLIGIBLE, 32 * eps) * length.max(initial=0.0)
    W = V[known].T / length[known] / d[:, None]
    parameters = round(float(np.sum((R @ W) ** 2)), 9)  # whole without a ridge
    return Spread((R if meat is None else meat) @ W @ W.T, V[~known], d, parameters)
