"""The Hessian H of a weighted sum of losses, as far as a Newton step has to know it: written out, or in blocks.

Inner problems with a closed form: weighted ridge regression and weighted principal components.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

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
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    scale = _positive(np.sqrt(np.abs(np.diag(A))))
    A, T = A / scale / scale[:, None], T / scale[:, None]
    factor, pivots, rank, _ = dpstrf(A, tol=len(A) * np.finfo(np.float64).eps)
    if not np.all(np.diag(factor)[:rank] >= REGULAR):
        return _least_norm(A, T, scale, len(A))
    order, R = pivots - 1, factor[:rank, :rank]
    u = np.zeros_like(T)
    u[order[:rank]] = solve_triangular(R, solve_triangular(R, T[order[:rank]], trans="T"))
    if rank < len(A):
        null = np.zeros((len(A), len(A) - rank))
        null[order] = np.vstack([-solve_triangular(R, factor[:rank, rank:]), np.eye(len(A) - rank)])
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


def _positive(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0, scale, 1.0)


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


NEGATIVE = 1e-6  # share of the largest diagonal entry below which −⟨v, Hv⟩/‖v‖² is rounding: differences give 1e-10
# What an eigenvalue of a matrix of unit diagonal may be by rounding: 2e-16 for each of thousands of terms that cancel
# in a Schur complement. Gauges, and blocks that no example determines, are left where they are.
FLAT = 1e-12


class NewtonSystem(ABC):
    """A symmetric matrix H of the order of x, which may be kept in any form that can be solved with.

    Vectors are flat NumPy arrays in float64. Nothing changes a system once it is made.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import DenseSystem
    >>> H = DenseSystem(np.array([[2.0, 0.0], [0.0, 0.0]]))
    >>> H.solve(np.array([4.0, 0.0])), H.plus(np.ones(2)).diagonal
    (array([2., 0.]), array([3., 1.]))
    """

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Hⱼⱼ."""

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether all of H is."""

    @abstractmethod
    def plus(self, diagonal: np.ndarray) -> NewtonSystem:
        """H + diag(diagonal): damping, or a ridge."""

    @abstractmethod
    def times(self, d: np.ndarray) -> np.ndarray:
        """H d."""

    @abstractmethod
    def solve(self, g: np.ndarray) -> np.ndarray | None:
        """d with H d = g, 0 in directions that neither sees; None where H is 0 or negative along what is left of g."""

    @abstractmethod
    def matrix(self) -> np.ndarray:
        """H written out: for models of few parameters."""


@final
@dataclass(frozen=True)
class DenseSystem(NewtonSystem):
    """H written out.

    Parameters
    ----------
    H : array of shape (dim, dim)
        The matrix.

    Examples
    --------
    >>> import numpy as np
    >>> DenseSystem(np.diag([1.0, 4.0])).solve(np.ones(2))
    array([1.  , 0.25])
    """

    H: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return np.diag(self.H)

    @property
    def finite(self) -> bool:
        return bool(np.all(np.isfinite(self.H)))

    def plus(self, diagonal: np.ndarray) -> DenseSystem:
        return DenseSystem(self.H + np.diag(diagonal))

    def times(self, d: np.ndarray) -> np.ndarray:
        return np.asarray(self.H @ d)

    def solve(self, g: np.ndarray) -> np.ndarray | None:
        """Losses of linear predictions have no negative H. Others may; `solve_symmetric` leaves those directions."""
        if _falls_without_end(self.diagonal, g):
            return None
        d = solve_symmetric(self.H, g[:, None])[:, 0]
        left = g - self.H @ d
        if left @ self.H @ left < -NEGATIVE * np.abs(np.diag(self.H)).max() * (left @ left):
            return None
        return d

    def matrix(self) -> np.ndarray:
        return self.H


@final
@dataclass(frozen=True)
class SchurSystem(NewtonSystem):
    """H = [[B, E], [Eᵀ, C]] ⪰ 0 with a block-diagonal C, which is eliminated: B − E C⁻¹Eᵀ is factored (Cholesky).

    Parameters
    ----------
    B : array of shape (q, q)
        What the parameters that stay share among themselves.
    E : SciPy sparse array of shape (q, count·size)
        What they share with the others.
    C : array of shape (count, size, size)
        The blocks of the others.
    stay, go : integer arrays
        Where in x the parameters of B and those of C are.

    Notes
    -----
    Bundle adjustment has 9 parameters for each camera, 3 for each of many more points, and no two points share an
    observation: time and memory grow with the observations, and with the cube and square of the cameras only [1]_.

    References
    ----------
    .. [1] B. Triggs, P. McLauchlan, R. Hartley and A. Fitzgibbon, Bundle adjustment: a modern synthesis (2000), §6.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> E = sp.csr_array([[1.0, 0.0]])
    >>> H = SchurSystem(np.array([[2.0]]), E, np.ones((2, 1, 1)), np.array([0]), np.array([1, 2]))
    >>> H.matrix() @ H.solve(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    B: np.ndarray
    E: Any
    C: np.ndarray
    stay: np.ndarray
    go: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return self._joined(np.diag(self.B), np.diagonal(self.C, axis1=1, axis2=2).ravel())

    @property
    def finite(self) -> bool:
        return all(bool(np.all(np.isfinite(part))) for part in (self.B, self.E.data, self.C))

    def plus(self, diagonal: np.ndarray) -> SchurSystem:
        size = self.C.shape[1]
        added = diagonal[self.go].reshape(-1, size, 1) * np.eye(size)
        return replace(self, B=self.B + np.diag(diagonal[self.stay]), C=self.C + added)

    def times(self, d: np.ndarray) -> np.ndarray:
        a, b = d[self.stay], d[self.go]
        return self._joined(self.B @ a + self.E @ b, self.E.T @ a + _blocks(self.C, b))

    def solve(self, g: np.ndarray) -> np.ndarray | None:
        from scipy.sparse import bsr_array

        if _falls_without_end(self.diagonal, g):
            return None
        inverse, count = inverses(self.C), len(self.C)
        blocks = bsr_array((inverse, np.arange(count), np.arange(count + 1)), shape=(len(self.go),) * 2)
        EC = self.E @ blocks
        a = _solve_psd(self.B - (EC @ self.E.T).toarray(), g[self.stay] - EC @ g[self.go], np.diag(self.B))
        return self._joined(a, _blocks(inverse, g[self.go] - self.E.T @ a))

    def matrix(self) -> np.ndarray:
        H = np.zeros((len(self.stay) + len(self.go),) * 2)
        H[np.ix_(self.stay, self.stay)] = self.B
        H[np.ix_(self.stay, self.go)] = E = self.E.toarray()
        H[np.ix_(self.go, self.stay)] = E.T
        for block, at in zip(self.C, self.go.reshape(len(self.C), -1), strict=True):
            H[np.ix_(at, at)] = block
        return H

    def _joined(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        d = np.empty(len(a) + len(b))
        d[self.stay], d[self.go] = a, b
        return d


def _falls_without_end(diagonal: np.ndarray, g: np.ndarray) -> bool:
    """Whether a parameter has a gradient and no curvature: a loss that says so, one of kinks for example, is linear."""
    return bool(np.any((diagonal == 0) & (g != 0)))


def _blocks(C: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("cij,cj->ci", C, d.reshape(C.shape[:2]))).ravel()


def inverses(C: np.ndarray) -> np.ndarray:
    """The inverse of every block, 0 in the directions that it does not see, whatever the scales of its parameters."""
    scale = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(C / scale[:, :, None] / scale[:, None, :])
    seen = values > FLAT
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    root = vectors / scale[:, :, None]
    return np.asarray((root * inverse[:, None, :]) @ root.transpose(0, 2, 1))


def _solve_psd(S: np.ndarray, g: np.ndarray, size: np.ndarray) -> np.ndarray:
    """S⁻¹g for a positive semidefinite S that was found as a difference of numbers of the given size.

    What is flat up to the rounding of that difference gets a curvature of it: a gradient that does not see such a
    direction, as one of a gauge does not, moves nothing along it.
    """
    from scipy.linalg import cho_factor, cho_solve

    if not len(g):
        return g
    scale = np.sqrt(np.where(size > 0, size, 1.0))
    A = S / scale / scale[:, None]
    flat = FLAT
    while True:
        try:
            factor = cho_factor(A + flat * np.eye(len(A)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding has made it less than it is
            flat *= 100.0
        else:
            return np.asarray(cho_solve(factor, g / scale, check_finite=False) / scale)
