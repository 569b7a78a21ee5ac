"""r1(w), what is known about the example weights w: the sets they may lie in.

Each set is known through two maps, both exact: `prox`, the projection of a w-step with τ < ∞, and `minimise`, its
limit τ = ∞, which gives weight to the smallest losses. With sample weights s the constraint is Σ sᵢwᵢ = h and the
metric Σ sᵢ(·)², so that weight 2 is the row twice and weight 0 its removal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from math import inf, isfinite
from numbers import Real
from typing import Any, final

import numpy as np
from array_api_compat import is_array_api_obj

from trimlearn.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn.capped import (
    ROUNDING,
    SNAP,
    Solve,
    on_capped,
    project,
    select_smallest,
    snap_h,
    total_weight,
    weighted_sum,
    where_present,
)
from trimlearn.validation import is_missing

__all__ = ["AllOnes", "CappedSimplex", "GroupCappedSimplex", "WeightSet", "snap_h"]


class WeightSet(ABC):
    """The set W whose indicator is r1: W = {w : 0 ≤ w ≤ 1, and more}.

    ``s`` is always the sample weights, one per row, or None for all ones. Arrays follow the namespace, device and
    dtype of the first argument.
    """

    B: float = 1.0  # the paper's Bᵢ: |wᵢ| ≤ B for every w in the set

    @property
    @abstractmethod
    def h(self) -> float:
        """Σ sᵢwᵢ for every w in the set; inf where the set keeps every row, however many there are."""

    @abstractmethod
    def check(self, n: int, s: Array | None = None) -> None:
        """Raise ValueError if the set is empty, or not defined, for ``n`` rows with sample weights ``s``."""

    @abstractmethod
    def start(self, n: int, s: Array | None = None) -> np.ndarray:
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
class CappedSimplex(WeightSet):
    """{w : 0 ≤ w ≤ 1, Σ sᵢwᵢ = h}: trust h of the n examples (the paper's Δ_h).

    h is real, 0 < h ≤ n (Σs with sample weights); h = n keeps every row. h within 1e-9·n of an integer is taken
    as that integer. The projection is clip(v − λ, 0, 1), the one λ that makes the sum h found by sorting.

    >>> import numpy as np
    >>> r1 = CappedSimplex(2)
    >>> r1.minimise(np.array([3.0, 0.1, 7.0, 0.2]))
    array([0., 1., 0., 1.])
    >>> r1.prox(np.array([0.5, 0.9, -0.3, 1.4]))
    array([0.3, 0.7, 0. , 1. ])
    """

    def __init__(self, h: float) -> None:
        self._h = _number("h", h, "CappedSimplex(h) keeps h of the n examples")

    def __repr__(self) -> str:
        return f"CappedSimplex({self._h!r})"

    @property
    def h(self) -> float:
        return self._h

    def check(self, n: int, s: Array | None = None) -> None:
        snap_h(self._h, total_weight(n, s))

    def start(self, n: int, s: Array | None = None) -> np.ndarray:
        total = total_weight(n, s)
        return _present(np.full(n, snap_h(self._h, total) / total), s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return self._solve(project, _finite(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return self._solve(select_smallest, f, s)

    def _solve(self, solve: Solve, values: Array, s: Array | None) -> Array:
        total = total_weight(values.shape[0], s)
        return on_capped(solve, values, s, snap_h(self._h, total), total)

    def at_h(self, h: float) -> CappedSimplex:
        return CappedSimplex(h)

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        total = total_weight(w.shape[0], s)
        return _in_unit_box(w, tol) and abs(weighted_sum(w, s) - snap_h(self._h, total)) <= tol * total

    def level(self, mass: Callable[[float], float], lo: float, hi: float) -> float:
        """The λ with mass(λ) = h, where mass(λ) = Σ sᵢ clip(vᵢ − λ, 0, 1) is only known by its values.

        This is the projection where the rows lie on many machines and only scalars travel, each evaluation one
        round. ``lo`` and ``hi`` must bracket λ: min v − 1 and max v always do. mass is nonincreasing and piecewise
        linear, so the secant steps of Brent's method land on λ, exact to rounding, after 5 to 30 rounds.

        >>> v = np.array([0.5, 0.9, -0.3, 1.4])
        >>> round(CappedSimplex(2).level(lambda a: np.clip(v - a, 0, 1).sum(), -1.3, 1.4), 12)
        0.2
        """
        from scipy.optimize import brentq  # only a cluster needs it: 0.1 s of import for everybody else

        excess = cache(lambda level: float(mass(level)) - self._h)  # brentq asks for both ends again
        above, below = excess(lo), excess(hi)
        if above < -ROUNDING * self._h or below > ROUNDING * self._h:
            raise ValueError(f"lo = {lo} and hi = {hi} do not bracket h = {self._h:g}; take min(v) - 1 and max(v).")
        if above <= 0 or below >= 0:  # λ is an end, missed by rounding alone
            return float(lo if above <= 0 else hi)
        return float(brentq(excess, lo, hi, xtol=1e-15, rtol=1e-15, maxiter=200))


@final
class GroupCappedSimplex(WeightSet):
    """{w : 0 ≤ w ≤ 1, Σ_{i in g} sᵢwᵢ = h_g for every group g}: a quota per group, so that no group is wiped out.

    groups: one label per row. h: a number, split pro rata of the groups' sizes (Σs in each); or a quota per group,
    as a dict by label or an array in the order of ``labels`` (sorted where labels can be sorted).

    >>> import numpy as np
    >>> r1 = GroupCappedSimplex(["rare", "common", "common", "common"], h={"rare": 1, "common": 2})
    >>> r1.minimise(np.array([9.0, 0.1, 0.2, 7.0]))
    array([1., 1., 1., 0.])
    """

    def __init__(self, groups: Iterable[Any], h: float | Mapping[Any, float] | Iterable[float]) -> None:
        self.labels, self._codes = _factorise(groups)
        order = np.argsort(self._codes, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(self._codes))[:-1])
        self._back = np.argsort(order)  # puts the groups' weights, one group after the other, back in row order
        self._target = None if isinstance(h, Real) else _quotas_by_label(h, self.labels)
        self._h = _number("h", h if self._target is None else self._target.sum(), "the groups' quotas must sum to > 0")

    def __repr__(self) -> str:
        return f"GroupCappedSimplex({len(self.labels)} groups, h={self._h!r})"

    @property
    def h(self) -> float:
        return self._h

    def quotas(self, n: int, s: Array | None = None) -> np.ndarray:
        """h_g per group, in the order of ``labels``, for ``n`` rows with sample weights ``s``."""
        if n != self._codes.shape[0]:
            raise ValueError(f"groups has {self._codes.shape[0]} labels for {n} rows; give one label per row.")
        total = total_weight(n, s)
        sizes = self._sizes(s)
        quotas = self._split(sizes, snap_h(self._h, total), total)
        for label, quota, size in zip(self.labels, quotas, sizes, strict=True):
            if quota > size + SNAP * total:
                raise ValueError(f"h asks for {quota:g} of group {label!r}, which has {size:g}; lower its quota.")
        return np.array([snap_h(min(quota, size), size) for quota, size in zip(quotas, sizes, strict=True)])

    def _sizes(self, s: Array | None) -> np.ndarray:
        return np.bincount(self._codes, weights=None if s is None else to_numpy(s)).astype(np.float64)

    def _split(self, sizes: np.ndarray, h: float, total: float) -> np.ndarray:
        """h over the groups: pro rata, or on the straight line from the full sizes to the target quotas and to 0."""
        if self._target is None:
            return sizes * (h / total)
        target = float(self._target.sum())
        if h <= target:
            return self._target * (h / target)
        trimmed: np.ndarray = sizes - self._target
        return sizes - trimmed * ((total - h) / (total - target))

    def check(self, n: int, s: Array | None = None) -> None:
        self.quotas(n, s)

    def start(self, n: int, s: Array | None = None) -> np.ndarray:
        quotas, sizes = self.quotas(n, s), self._sizes(s)
        return _present((quotas / np.where(sizes > 0, sizes, 1.0))[self._codes], s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return self._solve(project, _finite(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return self._solve(select_smallest, f, s)

    def _solve(self, solve: Solve, values: Array, s: Array | None) -> Array:
        xp = namespace(values)
        quotas, sizes, parts = self.quotas(values.shape[0], s), self._sizes(s), []
        for rows, quota, size in zip(self._rows, quotas, sizes, strict=True):
            index = asarray_like(rows, values, dtype=xp.int64)
            part = None if s is None else s[index]
            parts.append(on_capped(solve, values[index], part, float(quota), float(size)))
        return xp.concat(parts)[asarray_like(self._back, values, dtype=xp.int64)]

    def at_h(self, h: float) -> GroupCappedSimplex:
        """The quotas that sum to h: each moves in a straight line from its group's size (h = n) to its target."""
        other = object.__new__(GroupCappedSimplex)
        other.__dict__.update(self.__dict__, _h=_number("h", h, "h of the n examples are kept"))
        return other

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        n = w.shape[0]
        held = to_numpy(w) if s is None else to_numpy(w) * to_numpy(s)
        sums = np.bincount(self._codes, weights=held, minlength=len(self.labels))
        return _in_unit_box(w, tol) and bool(np.all(np.abs(sums - self.quotas(n, s)) <= tol * total_weight(n, s)))


@final
class AllOnes(WeightSet):
    """{w = 1}: nothing is trimmed; SMART becomes ProxSAGA or ProxSVRG (the paper's section 2.2).

    >>> import numpy as np
    >>> AllOnes().minimise(np.array([3.0, 0.1]))
    array([1., 1.])
    """

    def __repr__(self) -> str:
        return "AllOnes()"

    @property
    def h(self) -> float:
        return inf

    def check(self, n: int, s: Array | None = None) -> None:
        total_weight(n, s)

    def start(self, n: int, s: Array | None = None) -> np.ndarray:
        self.check(n, s)
        return _present(np.ones(n), s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return where_present(namespace(v).ones_like(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return where_present(namespace(f).ones_like(f), s)

    def at_h(self, h: float) -> AllOnes:
        return self

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        off = where_present(w - 1, s)
        return bool(namespace(w).all(namespace(w).abs(off) <= tol))


def _present(w: np.ndarray, s: Array | None) -> np.ndarray:
    """The same for a NumPy w, wherever s lies."""
    return w if s is None else np.where(to_numpy(s) > 0, w, 0.0)


def _in_unit_box(w: Array, tol: float) -> bool:
    return bool(namespace(w).all((w >= -tol) & (w <= 1 + tol)))


def _finite(v: Array) -> Array:
    if not bool(namespace(v).all(namespace(v).isfinite(v))):
        raise ValueError("v must be finite to be projected; losses that overflowed need tau=inf (minimise).")
    return v


def _number(name: str, value: Any, meaning: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}: {meaning}.")
    return float(value)


def _factorise(groups: Iterable[Any]) -> tuple[list[Any], np.ndarray]:
    """The distinct labels, sorted where they can be, and each row's position among them."""
    rows = list(to_numpy(groups) if is_array_api_obj(groups) else groups)
    if not rows or any(map(is_missing, rows)):
        raise ValueError("groups must hold one label per row, none of them missing.")
    try:
        labels = list(dict.fromkeys(rows))
    except TypeError as error:
        raise ValueError("groups must be one-dimensional: one hashable label per row.") from error
    with suppress(TypeError):  # labels of mixed kinds keep the order of their first row
        labels.sort()
    code = {label: g for g, label in enumerate(labels)}
    return labels, np.array([code[label] for label in rows])


def _quotas_by_label(h: Any, labels: list[Any]) -> np.ndarray:
    """h per group as float64, in the order of ``labels``."""
    if isinstance(h, Mapping):
        if set(h) != set(labels):
            raise ValueError(f"h must have one quota for each label of groups, {labels!r}, got {list(h)!r}.")
        h = [h[label] for label in labels]
    try:
        quotas = to_numpy(h).astype(np.float64, casting="same_kind")  # refuses text, objects and complex numbers
    except (TypeError, ValueError) as error:
        raise ValueError(f"h must be a number or one quota per group, got {h!r}.") from error
    if quotas.shape != (len(labels),):
        raise ValueError(f"h must be a number or {len(labels)} quotas, one per group, got shape {quotas.shape}.")
    if not np.all(np.isfinite(quotas) & (quotas >= 0)):
        raise ValueError(f"h must be finite and >= 0 in every group, got {quotas.tolist()}.")
    return quotas
