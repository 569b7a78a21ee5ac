"""Few non-zero coefficients: ‖x‖₀ as a penalty or as a limit."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import final

from trimlearn._utils.arrays import Array, namespace
from trimlearn._utils.validation import check_count
from trimlearn.regularizers.base import Regularizer, check_alpha, check_step, per_coordinate


@final
@dataclass(frozen=True, eq=False)
class L0(Regularizer):
    """The number of non-zeros ‖x‖₀, as a penalty or as a limit [1]_. Give exactly one of ``alpha`` and ``k``.

    Parameters
    ----------
    alpha : float or array, optional
        The penalty r2(x) = α‖x‖₀; an array that broadcasts to x gives Σⱼ αⱼ[xⱼ ≠ 0]. It is separable, and its prox
        keeps |xⱼ| > √(2γαⱼ): hard thresholding.
    k : int, optional
        The limit: r2(x) = 0 if ‖x‖₀ <= k, else infinity. The prox keeps the k largest |xⱼ|; of equal ones the first.

    References
    ----------
    .. [1] T. Blumensath and M. E. Davies, Iterative hard thresholding for compressed sensing, Applied and Computational
       Harmonic Analysis 27 (2009).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([3.0, -1.0, 2.0])
    >>> u, value = L0(alpha=1.0).prox(x, 1.0)
    >>> u.tolist(), value
    ([3.0, 0.0, 2.0], 2.0)
    >>> u, value = L0(k=1).prox(x, 1.0)
    >>> u.tolist(), value
    ([3.0, 0.0, 0.0], 0.0)
    """

    alpha: float | Array | None = None
    k: int | None = None
    convex = False

    def __post_init__(self) -> None:
        if (self.alpha is None) == (self.k is None):
            raise ValueError("L0 takes exactly one of alpha (a penalty) and k (at most k non-zeros).")
        if self.k is None:
            check_alpha(self.alpha)
        else:
            check_count(self.k, "k")

    @property
    def separable(self) -> bool:
        return self.k is None

    def value(self, x: Array) -> float:
        xp = namespace(x)
        nonzero = x != 0
        if self.k is None:
            return float(xp.sum(xp.astype(nonzero, x.dtype) * per_coordinate("alpha", self.alpha, x), dtype=xp.float64))
        return 0.0 if int(xp.sum(xp.astype(nonzero, xp.int64))) <= self.k else inf

    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        step = check_step(gamma, x, None if self.k is None else "L0(k)")
        if self.k is not None:
            return self.feasible(x), 0.0
        xp = namespace(x)
        level = xp.sqrt(2 * step * per_coordinate("alpha", self.alpha, x))
        u = xp.where(xp.abs(x) <= level, xp.zeros_like(x), x)
        return u, self.value(u)

    def feasible(self, x: Array) -> Array:
        xp = namespace(x)
        size = xp.reshape(xp.abs(x), (-1,))
        if self.k is None or self.k >= size.shape[0]:
            return x
        size = xp.where(xp.isnan(size), xp.full_like(size, inf), size)  # NaN must not be dropped
        kth = xp.sort(size)[size.shape[0] - self.k]
        larger, equal = size > kth, xp.astype(size == kth, xp.int64)
        room = self.k - xp.sum(xp.astype(larger, xp.int64))
        keep = larger | ((equal == 1) & (xp.cumulative_sum(equal) <= room))
        return xp.where(xp.reshape(keep, x.shape), x, xp.zeros_like(x))
