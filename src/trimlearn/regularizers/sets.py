"""Sets of vectors: r2(x) = 0 inside, infinity outside, prox = projection."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace
from trimlearn._utils.validation import check_positive
from trimlearn.regularizers.base import Indicator, check_reals, per_coordinate, positive_part, rounding


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
        down = xp.sort(xp.reshape(v, (-1,)), descending=True)
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


def _norm(x: Array) -> float:
    xp = namespace(x)
    x = xp.astype(x, xp.float64)
    return sqrt(float(xp.sum(x * x)))
