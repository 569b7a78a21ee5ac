"""Inner problems with a closed form: weighted ridge regression and weighted principal components."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trimlearn.arrays import Array, asarray_like, index_like, to_numpy
from trimlearn.losses.linear import Linear
from trimlearn.regularizers import ExceptIntercept, Regularizer, Ridge, Zero

__all__ = ["leading_subspace", "ridge_regression", "solve_symmetric"]

DIRECT = 4_000_000  # entries of the design up to which it is written out and factored
COLUMNS = 2_000  # columns up to which a p × p matrix is formed
ROWS = 8192  # rows of the design held at a time


def ridge_regression(linear: Linear, t: Array, c: Array, r2: Regularizer) -> Array | None:
    """argmin Σ cᵢ½‖zᵢ − tᵢ‖² + r2(x) for r2 = Zero or Ridge, of least norm where it is not unique.

    The design is factored where it is small, and the normal equations are solved where it is tall.
    """
    penalty = _penalty(linear, r2)
    if penalty is None or linear.p > COLUMNS:
        return None
    c, t = to_numpy(c).astype(np.float64), to_numpy(t).astype(np.float64)
    rows = np.flatnonzero(c > 0)
    if len(rows) * len(penalty) <= DIRECT:
        root = np.sqrt(c[rows])[:, None]
        A = np.vstack([linear.design(index_like(rows, linear.like)) * root, np.diag(np.sqrt(penalty))[penalty > 0]])
        T = np.vstack([t[rows] * root, np.zeros((np.count_nonzero(penalty), t.shape[1]))])
        x = _least_squares(A, T)
    else:
        A, T = np.diag(penalty), np.zeros((len(penalty), t.shape[1]))
        for piece, D in _designs(linear, rows):
            A += D.T @ (D * c[piece, None])
            T += D.T @ (t[piece] * c[piece, None])
        x = solve_symmetric(A, T)
    return asarray_like(x[:, 0] if linear.K is None else x, linear.like)


def leading_subspace(linear: Linear, c: Array, k: int) -> Array | None:
    """The k leading eigenvectors of Σ cᵢaᵢaᵢᵀ, each with its largest entry positive."""
    if linear.p > COLUMNS:
        return None
    from scipy.linalg import eigh

    c = to_numpy(c).astype(np.float64)
    M = np.zeros((linear.p, linear.p))
    for piece, D in _designs(linear, np.flatnonzero(c > 0)):
        M += D.T @ (D * c[piece, None])
    U = eigh(M, subset_by_index=(linear.p - k, linear.p - 1))[1][:, ::-1]
    largest = np.abs(U).argmax(axis=0)
    return asarray_like(U * np.sign(U[largest, np.arange(k)]), linear.like)


def _penalty(linear: Linear, r2: Regularizer) -> np.ndarray | None:
    """α for every coordinate of x (its rows, if it has several columns), or None where r2 is not so simple."""
    inner = r2.r2 if isinstance(r2, ExceptIntercept) else r2
    if not isinstance(inner, (Zero, Ridge)):
        return None
    alpha = np.asarray(0.0 if isinstance(inner, Zero) else to_numpy(inner.alpha), dtype=np.float64)
    if alpha.ndim == 2 and alpha.shape[1] == 1:
        alpha = alpha[:, 0]
    elif alpha.ndim == 2 or (alpha.ndim == 1 and linear.K is not None):
        return None  # a penalty of its own for every column of x
    penalty = np.zeros(linear.p + linear.intercept)
    penalty[: len(penalty) - isinstance(r2, ExceptIntercept)] = alpha
    return penalty


def _designs(linear: Linear, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows of the design, a piece at a time."""
    for start in range(0, len(rows), ROWS):
        piece = rows[start : start + ROWS]
        yield piece, linear.design(index_like(piece, linear.like))


def solve_symmetric(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """A⁻¹T for a positive semidefinite A, of least norm if A is singular; else brought to one scale first."""
    scale = np.sqrt(np.abs(np.diag(A)))
    scale[scale == 0] = 1.0
    x, _, rank, _ = np.linalg.lstsq(A / np.outer(scale, scale), T / scale[:, None])
    return np.asarray(x / scale[:, None] if rank == len(A) else np.linalg.lstsq(A, T)[0])


def _least_squares(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The least-squares solution of A x = T; columns are brought to one scale first, unless x is not unique."""
    scale = np.linalg.norm(A, axis=0)
    scale[scale == 0] = 1.0
    x, _, rank, _ = np.linalg.lstsq(A / scale, T)
    return np.asarray(x / scale[:, None] if rank == A.shape[1] else np.linalg.lstsq(A, T)[0])
