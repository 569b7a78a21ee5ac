"""Convex penalties, one coordinate at a time: nothing, squares, absolute values, both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array, namespace, to_numpy
from trimlearn.regularizers.around import ExceptIntercept
from trimlearn.regularizers.base import Regularizer, Separable, check_alpha, check_reals, per_coordinate, positive_part


def soft_threshold(x: Array, level: Array) -> Array:
    """sign(x) · max(|x| − level, 0)."""
    xp = namespace(x)
    return xp.sign(x) * positive_part(xp.abs(x) - level)


@final
@dataclass(frozen=True, eq=False)
class Zero(Separable):
    """No term at all, r2(x) = 0: nothing is known about the model.

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Zero().prox(np.array([3.0, -1.0]), 0.5)
    >>> u.tolist(), value
    ([3.0, -1.0], 0.0)
    """

    convex = True
    smooth = True

    def _penalty(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def _shrink(self, x: Array, gamma: Array) -> Array:
        return x

    def gradient(self, x: Array) -> Array:
        """0."""
        return namespace(x).zeros_like(x)

    def curvature(self, x: Array) -> Array:
        """0."""
        return namespace(x).zeros_like(x)

    def lipschitz(self) -> float:
        """0."""
        return 0.0


@final
@dataclass(frozen=True, eq=False)
class Ridge(Separable):
    """The squared norm r2(x) = α/2 ‖x‖² [1]_.

    Parameters
    ----------
    alpha : float or array
        The strength α; an array that broadcasts to x gives one for each coordinate.

    References
    ----------
    .. [1] A. E. Hoerl and R. W. Kennard, Ridge regression: biased estimation for nonorthogonal problems, Technometrics
       12 (1970).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = Ridge(alpha=2.0).prox(np.array([3.0, -1.5]), 1.0)
    >>> u.tolist(), value
    ([1.0, -0.5], 1.25)
    """

    alpha: float | Array = 1.0
    convex = True
    smooth = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def _penalty(self, x: Array) -> Array:
        return per_coordinate("alpha", self.alpha, x) * x * x / 2

    def _shrink(self, x: Array, gamma: Array) -> Array:
        return x / (1 + gamma * per_coordinate("alpha", self.alpha, x))

    def gradient(self, x: Array) -> Array:
        """α x."""
        return per_coordinate("alpha", self.alpha, x) * x

    def curvature(self, x: Array) -> Array:
        """α."""
        return per_coordinate("alpha", self.alpha, x) * namespace(x).ones_like(x)

    def lipschitz(self) -> float:
        """The largest α."""
        return float(np.max(to_numpy(self.alpha)))


@final
@dataclass(frozen=True, eq=False)
class L1(Separable):
    """The lasso's r2(x) = α‖x‖₁, whose prox is soft thresholding [1]_.

    Parameters
    ----------
    alpha : float or array
        The strength α; an array that broadcasts to x gives one for each coordinate.

    References
    ----------
    .. [1] R. Tibshirani, Regression shrinkage and selection via the lasso, J. R. Stat. Soc. B 58 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = L1(alpha=2.0).prox(np.array([3.0, 0.5]), 0.5)
    >>> u.tolist(), value
    ([2.0, 0.0], 4.0)
    """

    alpha: float | Array = 1.0
    convex = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def _penalty(self, x: Array) -> Array:
        return per_coordinate("alpha", self.alpha, x) * namespace(x).abs(x)

    def _shrink(self, x: Array, gamma: Array) -> Array:
        return soft_threshold(x, gamma * per_coordinate("alpha", self.alpha, x))


@final
@dataclass(frozen=True, eq=False)
class ElasticNet(Separable):
    """The elastic net r2(x) = α·l1_ratio·‖x‖₁ + α·(1 − l1_ratio)/2·‖x‖², as scikit-learn writes it [1]_.

    Parameters
    ----------
    alpha : float or array
        The strength α; an array that broadcasts to x gives one for each coordinate.
    l1_ratio : float
        The share of ‖x‖₁, in [0, 1].

    References
    ----------
    .. [1] H. Zou and T. Hastie, Regularization and variable selection via the elastic net, J. R. Stat. Soc. B 67
       (2005).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = ElasticNet(alpha=2.0, l1_ratio=0.5).prox(np.array([3.0, 0.5]), 1.0)
    >>> u.tolist(), value
    ([1.0, 0.0], 1.5)
    """

    alpha: float | Array = 1.0
    l1_ratio: float = 0.5
    convex = True

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        ratio = check_reals("l1_ratio", self.l1_ratio)
        if ratio.ndim or not 0 <= ratio <= 1:
            raise ValueError(f"l1_ratio must be a number in [0, 1], got {self.l1_ratio!r}.")

    def _penalty(self, x: Array) -> Array:
        size, ratio = namespace(x).abs(x), float(self.l1_ratio)
        return per_coordinate("alpha", self.alpha, x) * size * (ratio + (1 - ratio) / 2 * size)

    def _shrink(self, x: Array, gamma: Array) -> Array:
        strength, ratio = gamma * per_coordinate("alpha", self.alpha, x), float(self.l1_ratio)
        return soft_threshold(x, strength * ratio) / (1 + strength * (1 - ratio))


def as_elastic_net(r2: Regularizer, shape: tuple[int, ...]) -> tuple[np.ndarray, float] | None:
    """α, written out in the shape of x, and the share of ‖x‖₁ with which r2 is an elastic net; None where it is none.

    >>> as_elastic_net(ExceptIntercept(ElasticNet(2.0, 0.25)), (2,)), as_elastic_net(L1(3.0), (1,))
    ((array([2., 0.]), 0.25), (array([3.]), 1.0))
    """
    if isinstance(r2, ExceptIntercept):
        inner = as_elastic_net(r2.r2, (shape[0] - 1, *shape[1:]))
        return None if inner is None else (np.concatenate([inner[0], np.zeros((1, *shape[1:]))]), inner[1])
    if not isinstance(r2, (Zero, Ridge, L1, ElasticNet)):
        return None
    alpha = 0.0 if isinstance(r2, Zero) else to_numpy(r2.alpha)
    ratio = float(r2.l1_ratio) if isinstance(r2, ElasticNet) else float(isinstance(r2, L1))
    return np.zeros(shape) + np.asarray(alpha, dtype=np.float64), ratio
