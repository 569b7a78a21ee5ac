"""Arithmetic on one capped simplex {w : 0 ≤ w ≤ 1, Σ sᵢwᵢ = h}: its projection, and the weights of the smallest losses.

`trimlearn.weights` makes sets of it. Everything is in float64 and in the namespace of its first argument.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, isfinite
from numbers import Integral
from typing import Any

from trimlearn._utils.arrays import Array, asarray_like, kth_smallest, namespace
from trimlearn._utils.validation import is_number

__all__ = [
    "ROUNDING",
    "SNAP",
    "Solve",
    "h_of",
    "on_capped",
    "project",
    "select_smallest",
    "snap_h",
    "total_weight",
    "weighted_sum",
    "where_present",
]

SNAP = 1e-9  # h this close to an integer, as a share of n, is that integer: far above the rounding of n·(1 − share)
ROUNDING = 1e-12  # what a cumulative sum of float64 weights may be off, as a share of its total: √n·eps/2 at n = 10⁸


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


def _threshold(f: Array, s: Array | None, h: float) -> Array:
    """The smallest value θ of f with Σ_{fᵢ ≤ θ} sᵢ ≥ h: the weighted h-th smallest."""
    if s is None:
        return kth_smallest(f, ceil(h) - 1)
    xp = namespace(f)
    order = xp.argsort(f, stable=False)
    held = xp.cumulative_sum(s[order])
    before = int(xp.count_nonzero(held < h - ROUNDING * float(held[-1])))
    return f[order[min(before, f.shape[0] - 1)]]


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


def weighted_sum(a: Array, s: Array | None) -> float:
    """Σ sᵢaᵢ in float64."""
    xp = namespace(a)
    return float(xp.sum(a if s is None else s * a, dtype=xp.float64))


def total_weight(n: int, s: Array | None) -> float:
    """Σs, or n; ValueError unless s is one nonnegative finite weight per row, not all 0."""
    if s is None:
        if n < 1:
            raise ValueError(f"n must be at least 1 row, got {n}.")
        return float(n)
    if tuple(s.shape) != (n,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n},), got {tuple(s.shape)}.")
    total = weighted_sum(s, None)
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
