"""The capped simplex, the set of the trimmed estimator: trust h of the n examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_positive
from trimlearn.weights.base import WeightSet, finite, in_unit_box
from trimlearn.weights.projection import (
    ROUNDING,
    Solve,
    on_capped,
    project,
    select_smallest,
    snap_h,
    total_weight,
    weighted_sum,
    where_present,
)

__all__ = ["CappedSimplex"]


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
        self._h = check_positive(h, "h")

    def __repr__(self) -> str:
        return f"CappedSimplex({self._h!r})"

    @property
    def h(self) -> float:
        return self._h

    def check(self, n: int, s: Array | None = None) -> None:
        snap_h(self._h, total_weight(n, s))

    def start(self, n: int, s: Array | None = None) -> Array:
        total = total_weight(n, s)
        return where_present(np.full(n, snap_h(self._h, total) / total), s)

    def prox(self, v: Array, s: Array | None = None) -> Array:
        return self._solve(project, finite(v), s)

    def minimise(self, f: Array, s: Array | None = None) -> Array:
        return self._solve(select_smallest, f, s)

    def _solve(self, solve: Solve, values: Array, s: Array | None) -> Array:
        total = total_weight(values.shape[0], s)
        return on_capped(solve, values, s, snap_h(self._h, total), total)

    def at_h(self, h: float) -> CappedSimplex:
        return CappedSimplex(h)

    def contain(self, w: Array, s: Array | None = None, tol: float = 1e-6) -> bool:
        total = total_weight(w.shape[0], s)
        return in_unit_box(w, tol) and abs(weighted_sum(w, s) - snap_h(self._h, total)) <= tol * total

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
