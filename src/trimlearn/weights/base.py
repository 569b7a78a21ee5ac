"""r1(w), what is known about the example weights w: the sets they may lie in.

Each set is known through two maps, both exact: `prox`, the projection of a w-step with τ < ∞, and `minimise`, its
limit τ = ∞, which gives weight to the smallest losses. With sample weights s the constraint is Σ sᵢwᵢ = h and the
metric Σ sᵢ(·)², so that weight 2 is the row twice and weight 0 its removal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, isfinite
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace, sum64
from trimlearn._utils.text import described


class WeightSet(ABC):
    """The set W of example weights whose indicator is r1: W = {w : 0 ≤ w ≤ 1, and more}.

    In every method ``s`` is the sample weights, one per row, or None for all ones. Arrays follow the namespace, device
    and dtype of the first argument.

    Attributes
    ----------
    h : float
        Σ sᵢwᵢ for every w in the set; inf where the set keeps every row, however many there are.
    B : float
        The paper's Bᵢ: |wᵢ| ≤ B for every w in the set.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.weights import CappedSimplex
    >>> r1 = CappedSimplex(2)
    >>> r1.h, r1.contain(np.array([1.0, 0.5, 0.5])), r1.at_h(3)
    (2.0, True, CappedSimplex(3.0))
    """

    h: float
    B: float = 1.0

    def __repr__(self) -> str:
        return described(self)

    @abstractmethod
    def check(self, n: int, s: Array | None = None) -> None:
        """Raise ValueError if the set is empty, or not defined, for ``n`` rows with sample weights ``s``."""

    @abstractmethod
    def start(self, n: int, s: Array | None = None) -> Array:
        """The centre of the set: every row has the same weight (its group's share h/n), as float64."""

    @abstractmethod
    def prox(self, v: Array, s: Array | None = None) -> Array:
        """argmin over the set of ½ Σ sᵢ(wᵢ − vᵢ)². ``v`` must be finite."""

    @abstractmethod
    def minimise(self, f: Array, s: Array | None = None) -> Array:
        """argmin over the set of Σ sᵢwᵢfᵢ; rows tied at the threshold share what is left equally.

        NaN counts as +inf: rows whose loss overflowed come last.
        """

    @abstractmethod
    def at_h(self, h: float) -> WeightSet:
        """The same kind of set with another h: what a continuation in h walks through."""

    @abstractmethod
    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        """Whether ``w`` lies in the set, up to ``tol`` per weight and ``tol`` of the total."""


@final
class AllOnes(WeightSet):
    """The set {w = 1}: nothing is trimmed, and SMART becomes ProxSAGA or ProxSVRG (the paper's section 2.2).

    Examples
    --------
    >>> import numpy as np
    >>> AllOnes().minimise(np.array([3.0, 0.1]))
    array([1., 1.])
    """

    h = inf

    def check(self, n: int, s: Array | None = None) -> None:
        total_weight(n, s)

    def start(self, n: int, s: Array | None = None) -> Array:
        self.check(n, s)
        return where_present(np.ones(n), s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return where_present(namespace(v).ones_like(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return where_present(namespace(f).ones_like(f), s)

    def at_h(self, h: float) -> AllOnes:
        return self

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        off = where_present(w - 1, s)
        return bool(namespace(w).all(namespace(w).abs(off) <= tol))


def in_unit_box(w: Array, tol: float) -> bool:
    return bool(namespace(w).all((w >= -tol) & (w <= 1 + tol)))


def projectable(v: Array) -> Array:
    if not bool(namespace(v).all(namespace(v).isfinite(v))):
        raise ValueError("v must be finite to be projected; losses that overflowed need tau=inf (minimise).")
    return v


def weighted_sum(a: Array, s: Array | None) -> float:
    """Σ sᵢaᵢ in float64."""
    return sum64(a if s is None else s * a)


def total_weight(n: int, s: Array | None) -> float:
    """Σs, or n; ValueError unless s is one nonnegative finite weight per row, not all 0."""
    if s is None:
        if n < 1:
            raise ValueError(f"n must be at least 1 row, got {n}.")
        return float(n)
    if tuple(s.shape) != (n,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n},), got {tuple(s.shape)}.")
    total = sum64(s)
    if not (isfinite(total) and bool(namespace(s).all(s >= 0))):
        raise ValueError("sample_weight must be finite and >= 0; remove or repair the offending entries.")
    if total == 0:
        raise ValueError("sample_weight must not be all zero: there is nothing to fit.")
    return total


def where_present(w: Array, s: Array | None) -> Array:
    """w with weight 0 for the rows that s = 0 removes; w may be a NumPy array where s is none."""
    if s is None:
        return w
    xp = namespace(w)
    return xp.where(asarray_like(s > 0, w, xp.bool), w, xp.zeros_like(w))
