"""Least trimmed squares and MM-estimation of rows that are read from a disk, from a start that a sample of them gave.

Rows are read in order, a piece at a time, and never kept; one number for each row, its residual, is. What is asked of
all residuals (their scale, the cut-off, the share of bad rows) is read off a summary in which they are counted, and
known to one part in 4,096: `trimlearn._utils.digits.summarised`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.digits import kth_by_digits, summarised, upper_edge
from trimlearn._utils.threads import each, total
from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.mm import (
    EASY,
    FIRM,
    ROUGH,
    SETTLED_LARGE,
    Lqq,
    chance,
    judged,
    narrowed,
    spread,
)
from trimlearn.robust.scale import rounding_floor
from trimlearn.robust.streamed import kept_share
from trimlearn.robust.verdict import Verdict
from trimlearn.weights.simplex import snap_h

__all__ = ["Concentrated", "RowsElsewhere", "SmoothFit", "StreamedRows", "all_of_them", "concentrated", "smoothed"]

Vector = NDArray[np.floating]

TRIED = 10_000  # targets that their rounding is known by: a limit on time
# Of rows held by a thread: 0.5 MB and as much for their standardised copy stay in a level-2 cache.
PIECE_BYTES = 1 << 19  # bytes
STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
SETTLED = 1e-8  # share of the objective that the next step could gain, when it is not made any more
ROUNDS = 3  # of fitting, measuring and judging: as in `mm_estimate`
LONGEST = 2.0  # times the step of renewed weights: for normal errors Newton's is 1.3 times that
OFFSET = 10.0  # times its scale: of a column up to that far from 0 float32 keeps five digits in sums of squares
PIECE = 1 << 18  # residuals looked at in one go: a limit on memory, 2 MB
NEAR = 0.05  # of the threshold: rows this near to it tell how many cross when it moves
MOST = 0.95  # of the curvature that such rows may take away: a step is twenty times longer at most


class RowsElsewhere(Protocol):
    """Rows that are asked for sums only: on a disk, or on the workers of a cluster. ``r`` is what `residuals` gave, and
    need not be an array."""

    @property
    def n(self) -> int:
        """How many rows there are."""

    @property
    def q(self) -> int:
        """How many coefficients there are."""

    @property
    def floor(self) -> float:
        """The rounding of targets: `trimlearn.robust.scale.rounding_floor`."""

    def residuals(self, u: np.ndarray) -> Any:
        """t − A u, of every row."""

    def summary(self, r: Any, unit: float) -> tuple[np.ndarray, np.ndarray]:
        """Values that stand for residuals r of about the size of ``unit``, and how many each stands for."""

    def edge(self, value: float, unit: float) -> float:
        """The largest residual that a value of a summary may stand for."""

    def flagged(self, r: Any, cut: float) -> int:
        """How many rows have |r| > cut."""

    def moments(self, weigh: Callable[[Vector], Vector], r: Any, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty and minus the gradient, Σ wᵢrᵢaᵢ − penalty·u, with w = weigh(r)."""


@final
@dataclass(frozen=True)
class StreamedRows:
    """Rows V (n, p) with targets t, about a centre and in units of a scale; the intercept's column is last.

    penalty: what stands before ½u² of each standardised coefficient, beside Σ ½wᵢrᵢ².
    """

    V: np.ndarray
    t: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    intercept: bool
    penalty: np.ndarray

    @property
    def n(self) -> int:
        return len(self.t)

    @property
    def q(self) -> int:
        """How many coefficients there are."""
        return len(self.center) + self.intercept

    @cached_property
    def floor(self) -> float:
        """The rounding of targets, by the first of them."""
        return rounding_floor(self.t[:TRIED])

    def summary(self, r: Vector, unit: float) -> tuple[np.ndarray, np.ndarray]:
        """Values that stand for residuals r of about the size of ``unit``, and how many each stands for."""
        return summarised(r, unit)

    def edge(self, value: float, unit: float) -> float:
        """The largest residual that a value of a summary may stand for."""
        return upper_edge(value, unit)

    def flagged(self, r: Vector, cut: float) -> int:
        """How many rows have |r| > cut."""
        return sum(int(np.count_nonzero(~(np.abs(r[i : i + PIECE]) <= cut))) for i in range(0, len(r), PIECE))

    def standardised(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """Coefficients of the columns as they are, in units of the standardised ones."""
        u = np.asarray(coef, np.float64) * self.scale
        return np.append(u, intercept + float(coef @ self.center)) if self.intercept else u

    def plain(self, u: np.ndarray) -> np.ndarray:
        """The way back: coefficients, and the intercept last if there is one."""
        coef = u[: len(self.center)] / self.scale
        return np.append(coef, u[-1] - coef @ self.center) if self.intercept else coef

    def residuals(self, u: np.ndarray) -> Vector:
        """t − A u, of every row."""
        r = np.empty(self.n, self.V.dtype)
        x = self.plain(u)
        coef, offset = x[: len(self.center)].astype(self.V.dtype), self.V.dtype.type(x[-1] if self.intercept else 0.0)
        inner = u.astype(self.V.dtype)

        def part(at: slice) -> None:
            V = self.V[at]
            z = V @ coef + offset if self._as_they_are else self._standardise(V) @ inner[: len(coef)]
            if not self._as_they_are and self.intercept:
                z += inner[-1]
            np.subtract(self.t[at], z, out=r[at])

        each(part, self._pieces())
        return r

    def moments(self, weigh: Callable[[Vector], Vector], r: Vector, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty and minus the gradient, Σ wᵢrᵢaᵢ − penalty·u, with w = weigh(r), in float64;
        of rows of weight 0 nothing is added."""
        p = len(self.center)

        def part(at: slice) -> np.ndarray:
            V, w = self.V[at], weigh(r[at]).astype(self.V.dtype, copy=False)
            V = V if self._as_they_are else self._standardise(V)
            wr = np.where(w > 0, r[at], 0) * w
            sums = np.empty((p + 1, p + 2))
            sums[:p, :p] = (V * w[:, None]).T @ V
            sums[:p, p], sums[p, :p], sums[:p, p + 1] = (w @ V,) * 2 + (wr @ V,)
            sums[p, p:] = w.sum(dtype=np.float64), wr.sum(dtype=np.float64)
            return sums

        sums = total(part, self._pieces(), np.zeros((p + 1, p + 2)))
        if self._as_they_are:  # aᵢ = T(vᵢ, 1)
            T = np.eye(p + 1)
            T[:p, :p], T[:p, p] = np.diag(1.0 / self.scale), -self.center / self.scale
            sums = np.column_stack([T @ sums[:, :-1] @ T.T, T @ sums[:, -1]])
        sums = sums[: self.q]
        return sums[:, : self.q] + np.diag(self.penalty), sums[:, -1] - self.penalty * u

    @cached_property
    def _as_they_are(self) -> bool:
        """Whether sums of the columns lose no digits that count, if the centre is taken off them afterwards."""
        return self.V.dtype == np.float64 or bool(np.all(np.abs(self.center) <= OFFSET * self.scale))

    def _pieces(self) -> list[slice]:
        step = max(64, PIECE_BYTES // (self.q * self.V.itemsize))
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]

    def _standardise(self, V: np.ndarray) -> np.ndarray:
        D: np.ndarray = V - self.center.astype(V.dtype)
        D *= (1.0 / self.scale).astype(V.dtype)
        return D


@final
@dataclass(frozen=True)
class Concentrated:
    """A trimmed fit: coefficients u, residuals r, and the threshold |r| up to which rows are kept, those at it in part.

    objectives: F after each step.
    """

    u: np.ndarray
    r: Vector
    threshold: float
    share: float
    objectives: list[float]

    def weights(self) -> Vector:
        """w: 1 below the threshold, the share that is left at it, 0 beyond."""
        w: Vector = np.empty_like(self.r)
        for start in range(0, len(w), 1 << 20):
            at = slice(start, start + (1 << 20))
            w[at] = kept_share(self.r[at], self.threshold, self.share)
        return np.asarray(w)


def concentrated(rows: StreamedRows, u: np.ndarray, h: float) -> Concentrated:
    """Least trimmed squares that keep h, from u.

    The best w for u, then the best u for w, in turn. Such steps fall short where many rows lie at the threshold, for
    those change sides as u moves: if ρ is the share of the curvature that they take away, θ f(θ) n/h for a density f
    of |r| at the threshold θ, the step is 1/(1 − ρ) of that. Where the objective rises, it was too long, and the plain
    one is made instead, after which it cannot.
    """
    h = snap_h(h, rows.n)
    objectives: list[float] = []
    best: tuple[float, np.ndarray, np.ndarray] = (inf, u, np.zeros_like(u))  # the objective at u, and its plain step
    longer = True
    for _ in range(STEPS):
        r = rows.residuals(u)
        theta, share, value, near = _trim(r, h)
        value += 0.5 * float(rows.penalty @ u**2) / rows.n
        if value > best[0] * (1 + SETTLED) and longer:  # back, with the plain step
            u, longer = best[1] + best[2], False
            continue
        objectives.append(value)
        G, g = rows.moments(lambda a, theta=theta, share=share: kept_share(a, theta, share), r, u)  # type: ignore[misc]
        step = solve_symmetric(G, g[:, None])[:, 0]
        rho = min(MOST, theta * near / (2 * NEAR * theta) / h) if theta > 0 else 0.0
        gain = 0.5 * float(g @ step) / rows.n / (1 - rho)
        found = Concentrated(u, r, theta, share, objectives)
        if not gain > SETTLED * value or not value < best[0]:
            break
        best = (value, u, step)
        u, longer = u + step / (1 - rho), True
    return found


def _trim(r: Vector, h: float) -> tuple[float, float, float, float]:
    """θ with |r| ≤ θ for h of the rows, the share of those at it, 1/n Σ wᵢ½rᵢ², and how many lie within 5 % of θ."""
    theta = kth_by_digits(r, ceil(h) - 1)
    below = tied = near = 0
    energy = 0.0
    for start in range(0, len(r), PIECE):
        a = np.abs(r[start : start + PIECE])
        inside = a < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(a == theta))
        near += int(np.count_nonzero((a > (1 - NEAR) * theta) & (a < (1 + NEAR) * theta)))
        energy += float(np.sum(np.square(a, dtype=np.float64), where=inside))
    share = min(max((h - below) / max(tied, 1), 0.0), 1.0)
    return theta, share, (energy + (h - below) * theta * theta) / 2 / len(r), float(near)


@final
@dataclass(frozen=True)
class SmoothFit:
    """An MM-estimate: coefficients u, residuals r, verdict, ψ; noise and bread as in `MMFit`."""

    u: np.ndarray
    r: Any
    verdict: Verdict
    psi: Lqq
    noise: float
    bread: float


def smoothed(
    rows: RowsElsewhere, raw: tuple[np.ndarray, Verdict], sharp: tuple[np.ndarray, Verdict], trusted: bool
) -> SmoothFit:
    """The MM-estimate of all rows, from a trimmed fit ``raw`` and from least squares on what that explains, ``sharp``:
    decided as `trimlearn.robust.regression.mm.mm_estimate` does, which see."""
    psi = Lqq(FIRM)
    u, scale = raw[0], raw[1].scale
    for _ in range(2):
        u, r = _solved(rows, u, scale, inf, psi, ROUGH)
        verdict = _judged(rows, r, scale, inf, psi)
        scale = verdict.scale
    flagged = rows.flagged(r, sharp[1].cutoff * sharp[1].scale)
    firm = trusted or verdict.scale > chance(rows.n, rows.q, flagged / rows.n) * sharp[1].scale
    if firm:
        u, verdict = sharp
    else:
        flagged = rows.flagged(r, verdict.cutoff * verdict.scale)
    psi = Lqq(FIRM if firm else EASY)
    for _ in range(ROUNDS):
        cut, before = verdict.cutoff * verdict.scale, flagged
        u, r = _solved(rows, u, verdict.scale, cut, psi, SETTLED_LARGE)
        verdict = _judged(rows, r, verdict.scale, cut, psi)
        flagged = rows.flagged(r, verdict.cutoff * verdict.scale)
        if flagged == before:
            break
    values, counts = rows.summary(r, verdict.scale)
    verdict = replace(verdict, inliers=np.abs(values) <= verdict.cutoff * verdict.scale)
    narrow = narrowed(values, counts, rows.q, verdict, psi)
    verdict = replace(verdict, cutoff=min(verdict.cutoff, narrow.end))
    if narrow.k != psi.k:
        u, r = _solved(rows, u, verdict.scale, verdict.cutoff * verdict.scale, narrow, SETTLED_LARGE)
        values, counts = rows.summary(r, verdict.scale)
    w = np.where(np.abs(values) <= verdict.cutoff * verdict.scale, narrow.weight(values / verdict.scale), 0.0)
    return SmoothFit(u, r, verdict, narrow, *spread(values, counts, rows.q, w, verdict.scale, narrow))


def _solved(
    rows: RowsElsewhere, u: np.ndarray, scale: float, cut: float, psi: Lqq, settled: float
) -> tuple[np.ndarray, Any]:
    """Σ ψ(rᵢ/σ) aᵢ = 0 over the rows with |r| ≤ cut, from u; and the residuals.

    Steps are those of least squares with renewed weights, times mean weight over mean slope of ψ, which makes them
    Newton's where errors do not depend on the rows.
    """

    def weigh(a: Vector) -> Vector:
        return np.where(np.abs(a) <= cut, psi.weight(a / a.dtype.type(scale)), 0)

    r = rows.residuals(u)
    for _ in range(STEPS):
        values, counts = rows.summary(r, scale)
        on = np.abs(values) <= cut
        t = values[on] / scale
        ratio = float(counts[on] @ psi.weight(t)) / max(float(counts[on] @ psi.slope(t)), 1.0)
        G, g = rows.moments(weigh, r, u)
        step = solve_symmetric(G, g[:, None])[:, 0] * min(max(ratio, 1.0), LONGEST)
        u = u + step
        r = rows.residuals(u)
        if float(np.abs(step).sum()) <= settled * scale:
            break
    return u, r


def _judged(rows: RowsElsewhere, r: Any, scale: float, cut: float, psi: Lqq) -> Verdict:
    values, counts = rows.summary(r, scale)
    verdict = judged(values, counts, rows.q, scale, np.abs(values) <= cut, psi)
    return all_of_them(verdict, scale, rows.edge)


def all_of_them(verdict: Verdict, unit: float, edge: Callable[[float, float], float] = upper_edge) -> Verdict:
    """A verdict on a summary in this unit, as one on the rows: the last value kept stands for rows up to its edge."""
    if verdict.cutoff == inf:
        return verdict
    return replace(verdict, cutoff=edge(verdict.cutoff * verdict.scale, unit) / verdict.scale)
