"""A quota for each group of examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any, final

import numpy as np
from array_api_compat import is_array_api_obj

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import check_positive, is_missing
from trimlearn.weights.base import WeightSet, in_unit_box, projectable, total_weight, where_present
from trimlearn.weights.simplex import SNAP, Solve, on_capped, project, select_smallest, snap_h

__all__ = ["GroupCappedSimplex"]


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
        self.labels, self._codes = _factorise(groups)
        order = np.argsort(self._codes, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(self._codes))[:-1])
        self._back = np.argsort(order)  # puts the groups' weights, one group after the other, back in row order
        self._target = None if isinstance(h, Real) else _quotas_by_label(h, self.labels)
        total = h if self._target is None else self._target.sum()
        self._h = check_positive(total, "h" if self._target is None else "h, the sum of the groups' quotas,")

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
        other.__dict__.update(self.__dict__, _h=check_positive(h, "h"))
        return other

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        n = w.shape[0]
        held = to_numpy(w) if s is None else to_numpy(w) * to_numpy(s)
        sums = np.bincount(self._codes, weights=held, minlength=len(self.labels))
        return in_unit_box(w, tol) and bool(np.all(np.abs(sums - self.quotas(n, s)) <= tol * total_weight(n, s)))


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
