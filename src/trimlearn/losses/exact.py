"""Inner problems with a closed form: weighted ridge regression, weighted principal components, and the linear systems
that they come down to."""

from __future__ import annotations

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, index_like, to_numpy
from trimlearn._utils.threads import total
from trimlearn.losses.linear import Linear
from trimlearn.regularizers import ExceptIntercept, Regularizer, Ridge, Zero

DIRECT = 4_000_000  # entries of the design up to which it is written out and factored: a limit on memory, 32 MB
COLUMNS = 2_000  # columns up to which a p × p matrix is formed: a limit on memory, 32 MB
REGULAR = 1e-4  # the least diagonal of a Cholesky factor: conditions up to its square's inverse leave 8 of 16 digits
ROWS = 8192  # rows of the design held at a time: a limit on memory, 131 MB for 2,000 columns


def ridge_regression(linear: Linear, t: Array, c: Array, r2: Regularizer) -> Array | None:
    """argmin Σ cᵢ½‖zᵢ − tᵢ‖² + r2(x) for r2 = Zero or Ridge, of least norm where it is not unique.

    The design is factored where it is small, and the normal equations are solved where it is tall; about the mean of
    its rows where there is an intercept without a penalty, for squares of an offset would leave no digits.
    """
    penalty = _penalty(linear, r2)
    if penalty is None or linear.p > COLUMNS:
        return None
    given = linear
    if linear.intercept and penalty[-1] == 0:
        linear = linear.recentred(linear.column_means(c))
    c, t = to_numpy(c).astype(np.float64), to_numpy(t).astype(np.float64)
    rows = np.flatnonzero(c > 0)
    if len(rows) * len(penalty) <= DIRECT:
        root = np.sqrt(c[rows])[:, None]
        A = np.vstack([linear.design(index_like(rows, linear.like)) * root, np.diag(np.sqrt(penalty))[penalty > 0]])
        T = np.vstack([t[rows] * root, np.zeros((np.count_nonzero(penalty), t.shape[1]))])
        x = _least_squares(A, T)
    else:

        def moments(piece: np.ndarray) -> np.ndarray:
            D = linear.design(index_like(piece, linear.like))
            return np.asarray((D * c[piece, None]).T @ np.hstack([D, t[piece]]))

        zero = np.hstack([np.diag(penalty), np.zeros((len(penalty), t.shape[1]))])
        A, T = np.split(total(moments, _pieces(rows), zero), [len(penalty)], axis=1)
        x = solve_symmetric(A, T)
    x = asarray_like(x[:, 0] if linear.K is None else x, linear.like)
    return x if linear is given else linear.carried(x, given)


def leading_subspace(linear: Linear, c: Array, k: int) -> Array | None:
    """The k leading eigenvectors of Σ cᵢaᵢaᵢᵀ, each with its largest entry positive."""
    if linear.p > COLUMNS:
        return None
    from scipy.linalg import eigh

    c = to_numpy(c).astype(np.float64)

    def moments(piece: np.ndarray) -> np.ndarray:
        D = linear.design(index_like(piece, linear.like))
        return np.asarray(D.T @ (D * c[piece, None]))

    M = total(moments, _pieces(np.flatnonzero(c > 0)), np.zeros((linear.p, linear.p)))
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


def _pieces(rows: np.ndarray) -> list[np.ndarray]:
    """Row numbers, a piece at a time."""
    return [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]


def solve_symmetric(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """A⁻¹T for a positive semidefinite A, of least norm if A is singular, whatever the scales of its columns.

    By Cholesky's factors with pivoting (Higham 2002, §10.3), where pivots are either regular or nothing: a fifth of
    the time of singular values at 650 columns. Those decide the rank in all other cases.
    """
    from scipy.linalg.lapack import dpotrs, dpstrf, dtrtrs

    scale = _positive(np.sqrt(np.abs(np.diag(A))))
    A, T = A / scale / scale[:, None], T / scale[:, None]
    factor, pivots, rank, _ = dpstrf(A, tol=len(A) * np.finfo(np.float64).eps)
    if not (rank and np.all(np.diag(factor)[:rank] >= REGULAR)):
        return _least_norm(A, T, scale, len(A))
    order, R = pivots - 1, factor[:rank, :rank]
    u = np.zeros_like(T)
    u[order[:rank]] = dpotrs(R, T[order[:rank]])[0]
    if rank < len(A):
        null = np.zeros((len(A), len(A) - rank))
        null[order] = np.vstack([-dtrtrs(R, factor[:rank, rank:])[0], np.eye(len(A) - rank)])
        u = _shortest(u, null, scale)
    return np.asarray(u / scale[:, None])


def solve_regular(A: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A⁻¹t for a positive semidefinite A of one scale, the shortest if A is singular.

    By Cholesky's factors where these are regular: a tenth of the time of singular values at 50 columns.
    """
    from scipy.linalg.lapack import dposv

    factor, u, failed = dposv(A, t)
    pivots = np.diag(factor)
    if failed or not pivots.min(initial=1.0) > REGULAR * pivots.max(initial=0.0):
        u = np.linalg.lstsq(A, t, rcond=None)[0]
    return np.asarray(u)


def _least_squares(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """The least-squares solution of A x = T, of least norm if it is not unique, whatever the scales of A's columns."""
    scale, q = _positive(np.linalg.norm(A, axis=0)), A.shape[1]
    if len(A) < 2 * q:
        return _least_norm(A / scale, T, scale, max(A.shape))
    R = np.asarray(np.linalg.qr(np.hstack([A / scale, T]), mode="r"))[:q]  # a third of the time of a tall SVD
    return _least_norm(R[:, :q], R[:, q:], scale, len(A))


def _least_norm(A: np.ndarray, T: np.ndarray, scale: np.ndarray, size: int) -> np.ndarray:
    """x = u/scale for the least-squares solution u of A u = T that makes x shortest. size: of the sums in A.

    The rank is judged on A, whose columns are of one scale; a cut-off on the unscaled matrix would take a feature of
    small scale for nothing.
    """
    U, s, Vt = np.linalg.svd(A, full_matrices=len(A) < A.shape[1])
    rank = int(np.count_nonzero(s > s.max(initial=0.0) * size * np.finfo(np.float64).eps))
    u = Vt[:rank].T @ ((U[:, :rank].T @ T) / s[:rank, None])
    if rank < A.shape[1]:
        u = _shortest(u, Vt[rank:].T, scale)
    return np.asarray(u / scale[:, None])


def _shortest(u: np.ndarray, null: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """u + a combination of the columns of ``null``, such that u/scale is shortest."""
    return np.asarray(u - null @ np.linalg.lstsq(null / scale[:, None], u / scale[:, None], rcond=None)[0])


def _positive(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0, scale, 1.0)
