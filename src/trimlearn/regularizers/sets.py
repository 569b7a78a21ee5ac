"""Sets of vectors and of matrices: r2(x) = 0 inside, infinity outside, prox = projection."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace
from trimlearn._utils.validation import check_count, check_positive
from trimlearn.regularizers.base import Indicator, check_is_matrix, check_reals, per_coordinate, positive_part, rounding


@final
@dataclass(frozen=True, eq=False)
class Box(Indicator):
    """The box lower <= x <= upper, coordinate by coordinate.

    A point counts as inside when it misses a bound by no more than √eps·max(1, |bound|).

    Parameters
    ----------
    lower, upper : float or array
        The bounds, which broadcast to x and may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Box(lower=-1.0, upper=[0.5, np.inf]).prox(np.array([2.0, 7.0]), 1.0)
    >>> u.tolist(), value
    ([0.5, 7.0], 0.0)
    """

    lower: float | Array = -inf
    upper: float | Array = inf
    convex = True
    separable = True

    def __post_init__(self) -> None:
        lower, upper = check_reals("lower", self.lower), check_reals("upper", self.upper)
        try:
            ordered = np.all((lower <= upper) & (lower < inf) & (upper > -inf))
        except ValueError as error:
            raise ValueError(f"lower {lower.shape} and upper {upper.shape} do not broadcast to one shape.") from error
        if not ordered:
            raise ValueError(f"lower must be <= upper everywhere, got {self.lower!r} and {self.upper!r}; swap them?")

    def contains(self, x: Array) -> bool:
        xp = namespace(x)
        u = self.feasible(x)
        scale = xp.maximum(xp.abs(u), xp.ones_like(u))
        return bool(xp.all(xp.abs(x - u) <= rounding(x) * scale))

    def feasible(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.minimum(xp.maximum(x, per_coordinate("lower", self.lower, x)), per_coordinate("upper", self.upper, x))


@final
@dataclass(frozen=True, eq=False)
class NonNegative(Indicator):
    """The orthant x >= 0. A point counts as inside when no coordinate is below −√eps.

    Examples
    --------
    >>> import numpy as np
    >>> u, value = NonNegative().prox(np.array([2.0, -1.0]), 1.0)
    >>> u.tolist(), value
    ([2.0, 0.0], 0.0)
    """

    convex = True
    separable = True

    def contains(self, x: Array) -> bool:
        return bool(namespace(x).all(x >= -rounding(x)))

    def feasible(self, x: Array) -> Array:
        return positive_part(x)


@final
@dataclass(frozen=True, eq=False)
class Simplex(Indicator):
    """The simplex {x >= 0, Σx = total}, over all entries of x, up to √eps·total.

    The projection is max(x − θ, 0) with θ from one sort [1]_.

    Parameters
    ----------
    total : float
        What the entries sum to.

    References
    ----------
    .. [1] M. Held, P. Wolfe and H. P. Crowder, Validation of subgradient optimization, Mathematical Programming 6
       (1974).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Simplex().prox(np.array([1.0, 0.5, -2.0]), 1.0)
    >>> u.tolist(), value
    ([0.75, 0.25, 0.0], 0.0)
    """

    total: float = 1.0
    convex = True

    def __post_init__(self) -> None:
        check_positive(self.total, "total")

    def contains(self, x: Array) -> bool:
        xp = namespace(x)
        slack = rounding(x) * self.total
        miss = abs(float(xp.sum(x, dtype=xp.float64)) - self.total)
        return miss <= slack and bool(xp.all(x >= -slack))

    def feasible(self, x: Array) -> Array:
        xp = namespace(x)
        v = xp.astype(x, xp.float64)
        v = v - xp.max(v)  # the projection does not see a common shift, rounding would
        down = xp.flip(xp.sort(xp.reshape(v, (-1,))))
        count = asarray_like(np.arange(1.0, down.shape[0] + 1), down)
        theta = (xp.cumulative_sum(down) - self.total) / count
        support = int(xp.sum(xp.astype(down > theta, xp.int64)))
        return xp.astype(positive_part(v - theta[support - 1]), x.dtype)


@final
@dataclass(frozen=True, eq=False)
class Sphere(Indicator):
    """The sphere ‖x‖ = radius in the Frobenius norm, over all entries of x, up to √eps·radius.

    The projection is radius·x/‖x‖. From x = 0 every point of the sphere is nearest: radius times the first unit
    vector is returned.

    Parameters
    ----------
    radius : float
        The norm of x.

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Sphere(radius=10.0).prox(np.array([3.0, 4.0]), 1.0)
    >>> u.tolist(), value
    ([6.0, 8.0], 0.0)
    """

    radius: float = 1.0
    convex = False

    def __post_init__(self) -> None:
        check_positive(self.radius, "radius")

    def contains(self, x: Array) -> bool:
        return abs(_norm(x) - self.radius) <= rounding(x) * self.radius

    def feasible(self, x: Array) -> Array:
        xp = namespace(x)
        largest = float(xp.max(xp.abs(x)))
        if largest == 0:
            first = np.zeros(tuple(x.shape))
            first.flat[0] = self.radius
            return asarray_like(first, x)
        x = x / largest  # squares of very small or large entries would under- or overflow
        return x * (float(self.radius) / _norm(x))


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


def _norm(x: Array) -> float:
    xp = namespace(x)
    x = xp.astype(x, xp.float64)
    return sqrt(float(xp.sum(x * x)))


def _thin_svd(x: Array) -> Any:
    """U, s, Vᵀ of x = U diag(s) Vᵀ; all NaN when x is not finite, where LAPACK would raise."""
    xp = namespace(x)
    if not bool(xp.all(xp.isfinite(x))):
        x = xp.ones_like(x)
        return tuple(nan * part for part in xp.linalg.svd(x, full_matrices=False))
    return xp.linalg.svd(x, full_matrices=False)


def _check_tall(x: Array) -> None:
    check_is_matrix(x, "Stiefel")
    if x.shape[0] < x.shape[1]:
        raise ValueError(f"Stiefel needs at least as many rows as columns in x, got {tuple(x.shape)}; transpose x.")
