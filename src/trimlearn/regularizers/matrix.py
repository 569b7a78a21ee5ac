"""Sets of matrices, projected onto by a singular value decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace
from trimlearn._utils.validation import check_count
from trimlearn.regularizers.base import Indicator, check_is_matrix, rounding


def _thin_svd(x: Array) -> Any:
    """U, s, Vᵀ of x = U diag(s) Vᵀ; all NaN when x is not finite, where LAPACK would raise."""
    xp = namespace(x)
    if not bool(xp.all(xp.isfinite(x))):
        x = xp.ones_like(x)
        return tuple(nan * part for part in xp.linalg.svd(x, full_matrices=False))
    return xp.linalg.svd(x, full_matrices=False)


@final
@dataclass(frozen=True, eq=False)
class Stiefel(Indicator):
    """Orthonormal columns: x in R^{p × k}, p >= k, xᵀx = I (each entry up to √eps). The paper's O^{m × k}, for PCA.

    The projection is the polar factor U Vᵀ of the thin SVD x = U S Vᵀ [1]_, also where x lacks full rank. (The Gram
    route x (xᵀx)^{-1/2} is cheaper but squares the condition number.)

    References
    ----------
    .. [1] N. J. Higham, Computing the polar decomposition, with applications, SIAM J. Sci. Stat. Comput. 7 (1986).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Stiefel().prox(np.array([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]]), 1.0)
    >>> np.allclose(u, [[1, 0], [0, 1], [0, 0]]), value
    (True, 0.0)
    """

    convex = False

    def contains(self, x: Array) -> bool:
        _check_tall(x)
        xp = namespace(x)
        v = xp.astype(x, xp.float64)
        miss = xp.matmul(v.T, v) - asarray_like(np.eye(v.shape[1]), v)
        return bool(xp.all(xp.abs(miss) <= rounding(x)))

    def feasible(self, x: Array) -> Array:
        _check_tall(x)
        u, _, vt = _thin_svd(x)
        return namespace(x).matmul(u, vt)


@final
@dataclass(frozen=True, eq=False)
class Rank(Indicator):
    """Matrices of rank at most k: singular values after the k-th are at most √eps times the first.

    The projection keeps the k largest singular values [1]_.

    Parameters
    ----------
    k : int
        The largest rank.

    References
    ----------
    .. [1] C. Eckart and G. Young, The approximation of one matrix by another of lower rank, Psychometrika 1 (1936).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Rank(k=1).prox(np.diag([3.0, 2.0]), 1.0)
    >>> np.allclose(u, np.diag([3.0, 0.0])), value
    (True, 0.0)
    """

    k: int = 1
    convex = False

    def __post_init__(self) -> None:
        check_count(self.k, "k")

    def contains(self, x: Array) -> bool:
        check_is_matrix(x, "Rank")
        if self.k >= min(x.shape):
            return True
        s = _thin_svd(x)[1]
        return float(s[self.k]) <= rounding(x) * float(s[0])

    def feasible(self, x: Array) -> Array:
        check_is_matrix(x, "Rank")
        if self.k >= min(x.shape):
            return x
        u, s, vt = _thin_svd(x)
        k = self.k
        return namespace(x).matmul(u[:, :k] * s[:k], vt[:k, :])


def _check_tall(x: Array) -> None:
    check_is_matrix(x, "Stiefel")
    if x.shape[0] < x.shape[1]:
        raise ValueError(f"Stiefel needs at least as many rows as columns in x, got {tuple(x.shape)}; transpose x.")
