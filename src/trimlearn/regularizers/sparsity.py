"""Few non-zero coefficients: ‖x‖₀ as a penalty or as a limit, and whole groups of coefficients in or out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace, segment_sum, to_numpy
from trimlearn._utils.validation import check_count
from trimlearn.regularizers.base import Regularizer, check_alpha, check_step, per_coordinate, positive_part


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


@final
@dataclass(frozen=True, eq=False)
class GroupL2(Regularizer):
    """The group lasso r2(x) = α Σ_g ‖x_g‖₂, without weights for the sizes of groups [1]_.

    Parameters
    ----------
    alpha : float
        The strength α.
    groups : array of shape (rows of x,), optional
        One label per row of x: rows with equal labels form a group, with all their columns. By default each row of a
        2-D x is a group: a feature is in or out for all classes at once.

    References
    ----------
    .. [1] M. Yuan and Y. Lin, Model selection and estimation in regression with grouped variables, J. R. Stat. Soc. B
       68 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = GroupL2(alpha=1.0, groups=["a", "a", "b"]).prox(np.array([6.0, 8.0, 1.0]), 5.0)
    >>> u.tolist(), value
    ([3.0, 4.0, 0.0], 5.0)
    """

    alpha: float = 1.0
    groups: Any = None
    convex = True
    separable = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if np.ndim(to_numpy(self.alpha)):
            raise ValueError(f"alpha must be a scalar for GroupL2, got {self.alpha!r}.")
        if self.groups is not None and np.ndim(to_numpy(self.groups)) != 1:
            raise ValueError("groups must be 1-D, one label per row of x.")

    def value(self, x: Array) -> float:
        norms, _ = self._norms(x)
        return float(self.alpha) * float(namespace(x).sum(norms))

    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        xp = namespace(x)
        level = float(check_step(gamma, x, "GroupL2")) * float(self.alpha)
        norms, index = self._norms(x)
        # x_g · max(1 − level/‖x_g‖, 0); a group of norm 0 stays 0
        factor = positive_part(1 - level / xp.where(norms > 0, norms, xp.ones_like(norms)))
        factor = xp.astype(xp.take(factor, index, axis=0), x.dtype)
        u = x * xp.reshape(factor, (x.shape[0],) + (1,) * (x.ndim - 1))
        return u, self.value(u)

    def feasible(self, x: Array) -> Array:
        return x

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, int]:
        """The group number of each row, and how many groups there are."""
        labels, index = np.unique(to_numpy(self.groups), return_inverse=True)
        return index, len(labels)

    def _norms(self, x: Array) -> tuple[Array, Array]:
        """‖x_g‖₂ of each group in float64, and the group number of each row of x."""
        xp = namespace(x)
        self._check_rows(x)
        index, count = (np.arange(x.shape[0]), x.shape[0]) if self.groups is None else self._numbered
        index = asarray_like(index, x, dtype=xp.int64)
        squares = xp.astype(x, xp.float64) ** 2
        rows = squares if x.ndim == 1 else xp.sum(squares, axis=tuple(range(1, x.ndim)))
        return xp.sqrt(segment_sum(rows, index, count)), index

    def _check_rows(self, x: Array) -> None:
        if self.groups is None and x.ndim != 2:
            raise ValueError(f"groups is needed for an x of shape {tuple(x.shape)}: give one label per row of x.")
        if self.groups is not None and len(self.groups) != x.shape[0]:
            raise ValueError(f"groups has {len(self.groups)} labels but x has {x.shape[0]} rows; give one per row.")
