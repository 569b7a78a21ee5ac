"""The capped simplex {w : 0 ≤ w ≤ 1, Σ sᵢwᵢ = h}, the set of the trimmed estimator: trust h of the n examples, or of
each group its own number.

First the sets, then h, then the arithmetic: the weights of the smallest losses and the projection, in float64 and in
the namespace of the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from math import ceil, inf
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from array_api_compat import is_array_api_obj

from trimlearn._utils.arrays import Array, asarray_like, kth_smallest, namespace, to_numpy
from trimlearn._utils.validation import check_positive, is_missing, is_number
from trimlearn.weights.base import WeightSet, in_unit_box, projectable, total_weight, weighted_sum, where_present

SNAP = 1e-9  # h this close to an integer, as a share of n, is that integer: far above the rounding of n·(1 − share)
ROUNDING = 1e-12  # what a cumulative sum of float64 weights may be off, as a share of its total: √n·eps/2 at n = 10⁸


@final
class CappedSimplex(WeightSet):
    """The set {w : 0 ≤ w ≤ 1, Σ sᵢwᵢ = h}: trust h of the n examples (the paper's Δ_h).

    The projection is clip(v − λ, 0, 1), the one λ that makes the sum h found by sorting.

    Parameters
    ----------
    h : float
        How many examples to keep, 0 < h ≤ n (Σs with sample weights); h = n keeps every row. h within 1e-9·n of an
        integer is taken as that integer.

    Examples
    --------
    >>> import numpy as np
    >>> r1 = CappedSimplex(2)
    >>> r1.minimise(np.array([3.0, 0.1, 7.0, 0.2]))
    array([0., 1., 0., 1.])
    >>> r1.prox(np.array([0.5, 0.9, -0.3, 1.4]))
    array([0.3, 0.7, 0. , 1. ])
    """

    def __init__(self, h: float) -> None:
        self.h = check_positive(h, "h")

    def __repr__(self) -> str:
        return f"CappedSimplex({self.h!r})"

    def check(self, n: int, s: Array | None = None) -> None:
        snap_h(self.h, total_weight(n, s))

    def start(self, n: int, s: Array | None = None) -> Array:
        total = total_weight(n, s)
        return where_present(np.full(n, snap_h(self.h, total) / total), s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return self._solve(project, projectable(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return self._solve(select_smallest, f, s)

    def _solve(self, solve: Solve, values: Array, s: Array | None) -> Array:
        total = total_weight(values.shape[0], s)
        return on_capped(solve, values, s, snap_h(self.h, total), total)

    def at_h(self, h: float) -> CappedSimplex:
        return CappedSimplex(h)

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        total = total_weight(w.shape[0], s)
        return in_unit_box(w, tol) and abs(weighted_sum(w, s) - snap_h(self.h, total)) <= tol * total

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

        excess = cache(lambda level: float(mass(level)) - self.h)  # brentq asks for both ends again
        above, below = excess(lo), excess(hi)
        if above < -ROUNDING * self.h or below > ROUNDING * self.h:
            raise ValueError(f"lo = {lo} and hi = {hi} do not bracket h = {self.h:g}; take min(v) - 1 and max(v).")
        if above <= 0 or below >= 0:  # λ is an end, missed by rounding alone
            return float(lo if above <= 0 else hi)
        return float(brentq(excess, lo, hi, xtol=1e-15, rtol=1e-15, maxiter=200))


@final
class GroupCappedSimplex(WeightSet):
    """The set {w : 0 ≤ w ≤ 1, Σ_{i in g} sᵢwᵢ = h_g for every group g}: a quota per group, so that none is wiped out.

    Parameters
    ----------
    groups : iterable
        One label per row.
    h : float, dict or array
        A number is split pro rata of the groups' sizes (Σs in each); else a quota per group, by label in a dict, or in
        the order of ``labels`` in an array.

    Attributes
    ----------
    labels : list
        The distinct labels, sorted where they can be.

    Examples
    --------
    >>> import numpy as np
    >>> r1 = GroupCappedSimplex(["rare", "common", "common", "common"], h={"rare": 1, "common": 2})
    >>> r1.minimise(np.array([9.0, 0.1, 0.2, 7.0]))
    array([1., 1., 1., 0.])
    """

    def __init__(self, groups: Iterable[Any], h: float | Mapping[Any, float] | Iterable[float]) -> None:
        self.labels, self._codes = factorise(groups)
        order = np.argsort(self._codes, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(self._codes))[:-1])
        self._back = np.argsort(order)  # puts the groups' weights, one group after the other, back in row order
        self._target = None if isinstance(h, Real) else _quotas_by_label(h, self.labels)
        total = h if self._target is None else self._target.sum()
        self.h = check_positive(total, "h" if self._target is None else "h, the sum of the groups' quotas,")

    def __repr__(self) -> str:
        return f"GroupCappedSimplex({len(self.labels)} groups, h={self.h!r})"

    def quotas(self, n: int, s: Array | None = None) -> np.ndarray:
        """h_g per group, in the order of ``labels``, for ``n`` rows with sample weights ``s``."""
        if n != self._codes.shape[0]:
            raise ValueError(f"groups has {self._codes.shape[0]} labels for {n} rows; give one label per row.")
        total = total_weight(n, s)
        sizes = self._sizes(s)
        quotas = self._split(sizes, snap_h(self.h, total), total)
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

    def start(self, n: int, s: Array | None = None) -> Array:
        quotas, sizes = self.quotas(n, s), self._sizes(s)
        return where_present((quotas / np.where(sizes > 0, sizes, 1.0))[self._codes], s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return self._solve(project, projectable(v), s)

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
        other.__dict__.update(self.__dict__, h=check_positive(h, "h"))
        return other

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        n = w.shape[0]
        held = to_numpy(w) if s is None else to_numpy(w) * to_numpy(s)
        sums = np.bincount(self._codes, weights=held, minlength=len(self.labels))
        return in_unit_box(w, tol) and bool(np.all(np.abs(sums - self.quotas(n, s)) <= tol * total_weight(n, s)))


def factorise(groups: Iterable[Any]) -> tuple[list[Any], np.ndarray]:
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


def snap_h(h: float, total: float) -> float:
    """Undo the rounding of n·(1 − contamination): h as it is used with rows of a total weight.

    Parameters
    ----------
    h : float
        The weight to keep.
    total : float
        The weight of all rows: n, or Σs.

    Returns
    -------
    float
        The nearest integer where h is within 1e-9·total of it, else h.

    Examples
    --------
    >>> snap_h(60_000 * (1 - 0.9), 60_000), snap_h(34.4, 43)
    (6000.0, 34.4)
    """
    nearest = float(round(h))
    snapped = nearest if abs(h - nearest) <= SNAP * total else h
    if snapped > total * (1 + SNAP):
        raise ValueError(f"h = {h:g} exceeds the total weight {total:g} of the rows; choose 0 < h <= {total:g}.")
    return min(snapped, total)


def h_of(contamination: Any, total: float, what: str = "rows") -> float | None:
    """The weight to keep of ``total`` (n, or Σs): h = total·(1 − contamination); None for "auto".

    ``contamination`` is a share (float) or a number (int) of bad ``what``.

    >>> h_of(0.2, 43), h_of(3, 43), h_of("auto", 43)
    (34.4, 40.0, None)
    """
    advice = f'give a share from 0 to below 1, a number of {what}, or "auto"'
    if isinstance(contamination, str):
        if contamination != "auto":
            raise ValueError(f"contamination={contamination!r} is not known; {advice}.")
        return None
    if not is_number(contamination):
        raise ValueError(f"contamination must be a number or 'auto', got {contamination!r}; {advice}.")
    counted = isinstance(contamination, Integral)
    bad = float(contamination)
    if not 0 <= bad < (total if counted else 1):
        most = f"{total:g}, the number of {what}" if counted else "1"
        raise ValueError(f"contamination={contamination!r} must be at least 0 and below {most}; {advice}.")
    return snap_h(total - bad if counted else total * (1.0 - bad), total)


Solve = Callable[[Array, Array, float], Array]  # (values, s, h) -> w in float64, for 0 < h < Σs


def on_capped(solve: Solve, values: Array, s: Array | None, h: float, total: float) -> Array:
    """``solve`` on one capped simplex, 0 ≤ h ≤ total; at both ends one point is left. w in the dtype of ``values``."""
    xp = namespace(values)
    if h <= 0:
        return xp.zeros_like(values)
    if h >= total:
        return where_present(xp.ones_like(values), s)
    s64 = None if s is None else xp.astype(s, xp.float64)
    return where_present(xp.astype(solve(values, s64, h), values.dtype), s)


def select_smallest(f: Array, s: Array | None, h: float) -> Array:
    """Weight 1 below the threshold, an equal share of what is left of h at it, 0 above."""
    xp = namespace(f)
    f = xp.where(xp.isnan(f), inf, f)
    theta = _threshold(f, s, h)
    below, tied = f < theta, f == theta
    share = (h - weighted_sum(below, s)) / weighted_sum(tied, s)
    share = min(max(share, 0.0), 1.0)  # rounding, where weights s are of very different sizes
    return xp.where(tied, share, xp.astype(below, f.dtype))


def project(v: Array, s: Array | None, h: float) -> Array:
    """clip(v − λ, 0, 1) with Σ s clip = h.

    With c the weighted h-th largest v, mass(c) < h ≤ mass(c − 1), so λ is in [c − 1, c): rows with v ≥ c + 1 have
    weight 1, rows with v ≤ c − 1 weight 0, and only those between are sorted. Measured from c they are at most 1,
    however large v is, so that no digits are lost in their sums.
    """
    xp = namespace(v)
    v = xp.astype(v, xp.float64)
    x = v + _threshold(-v, s, h)
    inside = (x > -1) & (x < 1)
    weight = xp.ones_like(x) if s is None else s
    rest = h - weighted_sum(xp.astype(x >= 1, xp.float64), s)
    return xp.clip(x - _root(x[inside], weight[inside], rest), 0.0, 1.0)


def _threshold(f: Array, s: Array | None, h: float) -> Array:
    """The smallest value θ of f with Σ_{fᵢ ≤ θ} sᵢ ≥ h: the weighted h-th smallest."""
    if s is None:
        return kth_smallest(f, ceil(h) - 1)
    xp = namespace(f)
    order = xp.argsort(f, stable=False)
    held = xp.cumulative_sum(s[order])
    before = int(xp.count_nonzero(held < h - ROUNDING * float(held[-1])))
    return f[order[min(before, f.shape[0] - 1)]]


def _root(x: Array, s: Array, rest: float) -> float:
    """The μ in [−1, 0] with Σ s clip(x − μ, 0, 1) = rest, for −1 < x < 1, by sorting and cumulative sums.

    As μ grows from −1 to 0, a row with x ≤ 0 is free (0 < w < 1) until μ = x, then at 0; one with x > 0 is at 1 until
    μ = x − 1, then free. So each row has one breakpoint, and between two of them the sum is linear in μ.
    """
    xp = namespace(x)
    low = x <= 0
    turn = xp.where(low, x, x - 1)
    order = xp.argsort(turn, stable=False)
    begin = xp.full_like(x[:1], -1.0)
    edges = xp.concat([begin, turn[order]])
    change = xp.concat([begin + 1, xp.cumulative_sum(xp.where(low, -s, s)[order])])
    free = change + weighted_sum(s, xp.astype(low, x.dtype))
    mass = weighted_sum(s, xp.clip(x + 1, 0.0, 1.0)) - xp.cumulative_sum(free[:-1] * (edges[1:] - edges[:-1]))
    k = int(xp.count_nonzero(mass >= rest))  # λ lies on the piece that begins at edges[k]
    left, right = float(edges[k]), float(edges[k + 1]) if k + 1 < edges.shape[0] else 0.0
    passed = turn <= left
    is_free, at_one = xp.astype(low != passed, x.dtype), xp.astype(~low & ~passed, x.dtype)
    slope = weighted_sum(s, is_free)
    root = (weighted_sum(s * x, is_free) + weighted_sum(s, at_one) - rest) / slope if slope > 0 else left
    return min(max(root, left), right)
