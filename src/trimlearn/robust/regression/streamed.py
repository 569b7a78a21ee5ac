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

from trimlearn._utils.blocks import slices_apart, taken
from trimlearn._utils.digits import kth_by_digits, summarised, upper_edge
from trimlearn._utils.threads import total
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
from trimlearn.robust.streamed import SLICES, kept_share
from trimlearn.robust.verdict import Verdict
from trimlearn.weights.simplex import snap_h

__all__ = [
    "Concentrated",
    "RowMetric",
    "RowsElsewhere",
    "SmoothFit",
    "StreamedRows",
    "all_of_them",
    "concentrated",
    "smoothed",
]

Vector = NDArray[np.floating]
Summary = tuple[np.ndarray, np.ndarray]  # values that stand for residuals, and how many each stands for
Weigh = Callable[[Vector], Vector]  # weights of residuals

PIECE_BYTES = (
    1 << 19
)  # of rows held by a thread: 0.5 MB and as much for their standardised copy stay in a level-2 cache
TRIED = 10_000  # targets that their rounding is known by: a limit on time
STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
SETTLED = 1e-6  # share of the objective that the next step could gain, when it is not made any more
ROUNDS = 3  # of fitting, measuring and judging: as in `mm_estimate`
LONGEST = 3.0  # times the step of least squares: for normal errors Newton's is 1.1 to 1.4 times that
OFFSET = 10.0  # times its scale: of a column up to that far from 0 float32 keeps five digits in sums of squares
PIECE = 1 << 18  # residuals looked at in one go: a limit on memory, 2 MB
CURVED, PER_COLUMN = 200_000, 100  # rows for the curvature, and at least so many for each column: known to a tenth
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

    def residuals_and_slope(self, u: np.ndarray, weigh: Weigh) -> tuple[Any, np.ndarray]:
        """The residuals r, and minus the gradient Σ wᵢrᵢaᵢ − penalty·u with w = weigh(r)."""

    def slope(self, weigh: Weigh, r: Any, u: np.ndarray) -> np.ndarray:
        """Minus the gradient at u, whose residuals are known."""

    def curvature(self, weigh: Weigh, r: Any) -> np.ndarray:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty with w = weigh(r), all rows or some standing for all."""

    def summary(self, r: Any, unit: float) -> Summary:
        """Values that stand for residuals r of about the size of ``unit``, and how many each stands for."""

    def edge(self, value: float, unit: float) -> float:
        """The largest residual that a value of a summary may stand for."""

    def flagged(self, r: Any, cut: float) -> int:
        """How many rows have |r| > cut."""


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
        """The rounding of targets, by some of them."""
        return rounding_floor(taken(self.t, slices_apart(self.n, TRIED, SLICES)))

    def summary(self, r: Vector, unit: float) -> Summary:
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
        return self.residuals_and_slope(u, None)[0]

    def residuals_and_slope(self, u: np.ndarray, weigh: Weigh | None) -> tuple[Vector, np.ndarray]:
        """The residuals r, and minus the gradient Σ wᵢrᵢaᵢ − penalty·u with w = weigh(r), in one read of the rows."""
        r = np.empty(self.n, self.V.dtype)
        x = self.plain(u)
        coef, offset = x[: len(self.center)].astype(self.V.dtype), self.V.dtype.type(x[-1] if self.intercept else 0.0)
        inner = u.astype(self.V.dtype)

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            z = V @ (coef if self._as_they_are else inner[: len(coef)])
            z += offset if self._as_they_are or not self.intercept else inner[-1]
            np.subtract(self.t[at], z, out=r[at])
            return np.zeros(1) if weigh is None else _sums(V, r[at], weigh(r[at]))

        sums = total(part, self._pieces(), np.zeros(1))
        return r, np.zeros(self.q) if weigh is None else self._slope(sums, u)

    def slope(self, weigh: Weigh, r: Vector, u: np.ndarray) -> np.ndarray:
        """Minus the gradient for residuals that are known."""

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            return _sums(V, r[at], weigh(r[at]))

        return self._slope(total(part, self._pieces(), np.zeros(len(self.center) + 1)), u)

    def curvature(self, weigh: Weigh, r: Vector) -> np.ndarray:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty with w = weigh(r), in float64, from some of the rows: the steps it is for are
        repeated until they vanish."""
        p = len(self.center)
        m = min(self.n, max(CURVED, PER_COLUMN * self.q))

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            w = weigh(r[at]).astype(V.dtype, copy=False)
            sums = np.empty((p + 1, p + 1))
            sums[:p, :p] = (V * w[:, None]).T @ V
            sums[:p, p] = sums[p, :p] = w @ V
            sums[p, p] = w.sum(dtype=np.float64)
            return sums

        some = slices_apart(self.n, m, SLICES)
        pieces = [piece for at in some for piece in self._pieces(at)]
        sums, T = total(part, pieces, np.zeros((p + 1, p + 1))), self._transform
        times = self.n / sum(at.stop - at.start for at in some)
        return np.asarray(times * (T @ sums @ T.T)[: self.q, : self.q] + np.diag(self.penalty))

    def _slope(self, sums: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray((self._transform @ sums)[: self.q] - self.penalty * u)

    @cached_property
    def _transform(self) -> np.ndarray:
        """T with aᵢ = T(vᵢ, 1), v as it is read."""
        p = len(self.center)
        T = np.eye(p + 1)
        if self._as_they_are:
            T[:p, :p], T[:p, p] = np.diag(1.0 / self.scale), -self.center / self.scale
        return T

    @cached_property
    def _as_they_are(self) -> bool:
        """Whether sums of the columns lose no digits that count, if the centre is taken off them afterwards."""
        return self.V.dtype == np.float64 or bool(np.all(np.abs(self.center) <= OFFSET * self.scale))

    def _pieces(self, some: slice | None = None) -> list[slice]:
        """All rows, or some, in pieces."""
        step = max(64, PIECE_BYTES // (self.q * self.V.itemsize))
        start, end, _ = (some or slice(None)).indices(self.n)
        return [slice(i, min(i + step, end)) for i in range(start, end, step)]

    def _standardise(self, V: np.ndarray) -> np.ndarray:
        D: np.ndarray = V - self.center.astype(V.dtype)
        D *= (1.0 / self.scale).astype(V.dtype)
        return D


def _sums(V: np.ndarray, r: Vector, w: Vector) -> np.ndarray:
    """Σ wᵢrᵢ(vᵢ, 1); of rows of weight 0 nothing is added."""
    wr = np.where(w > 0, r, 0) * w
    wr = wr.astype(V.dtype, copy=False)
    return np.append((wr @ V).astype(np.float64), wr.sum(dtype=np.float64))


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
    longer, G = True, None
    for _ in range(STEPS):
        r = rows.residuals(u)
        theta, share, value, near = _trim(r, h)
        value += 0.5 * float(rows.penalty @ u**2) / rows.n
        if value > best[0] * (1 + SETTLED) and longer:  # back, with the plain step
            u, longer = best[1] + best[2], False
            continue

        def weigh(a: Vector, theta: float = theta, share: float = share) -> Vector:
            return kept_share(a, theta, share)

        objectives.append(value)
        found = Concentrated(u, r, theta, share, objectives)
        if not value < best[0] * (1 - SETTLED):
            break
        G = rows.curvature(weigh, r) if G is None else G  # that of other rows, as many, is about the same
        g = rows.slope(weigh, r, u)
        step = solve_symmetric(G, g[:, None])[:, 0]
        rho = min(MOST, near / (2 * NEAR) / h) if theta > 0 else 0.0
        if not 0.5 * float(g @ step) / rows.n / (1 - rho) > SETTLED * value:
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


@final
@dataclass(frozen=True)
class RowMetric:
    """G = Σ wᵢaᵢaᵢᵀ of the rows that count, and the sum of their weights."""

    G: np.ndarray
    weight: float

    def stretched(self, summary: Summary, scale: float, cut: float, psi: Lqq) -> np.ndarray:
        """Σ ψ'(rᵢ/σ)aᵢaᵢᵀ over the rows with |r| ≤ cut, if errors do not depend on the rows: G in the ratio of the
        slopes to the weights; a third of it at least."""
        values, counts = summary
        slopes = float(counts @ np.where(np.abs(values) <= cut, psi.slope(values / scale), 0.0))
        return self.G * max(slopes / self.weight, 1 / LONGEST)


def smoothed(
    rows: RowsElsewhere,
    raw: tuple[np.ndarray, Verdict],
    sharp: tuple[np.ndarray, Verdict],
    metric: RowMetric,
    trusted: bool,
) -> SmoothFit:
    """The MM-estimate of all rows, from a trimmed fit ``raw`` and from least squares on what that explains, ``sharp``:
    decided as `trimlearn.robust.regression.mm.mm_estimate` does, which see."""
    psi = Lqq(FIRM)
    u, scale = raw[0], raw[1].scale
    summary = rows.summary(rows.residuals(u), scale)
    for _ in range(2):
        u, r = _solved(rows, u, scale, inf, psi, ROUGH, metric.stretched(summary, scale, inf, psi))
        summary, unit = rows.summary(r, scale), scale
        verdict = _judged(rows, summary, unit, inf, psi)
        scale = verdict.scale
    flagged = rows.flagged(r, sharp[1].cutoff * sharp[1].scale)
    firm = trusted or verdict.scale > chance(rows.n, rows.q, flagged / rows.n) * sharp[1].scale
    if firm:
        u, verdict = sharp
    else:
        flagged = rows.flagged(r, verdict.cutoff * verdict.scale)
    psi = Lqq(FIRM if firm else EASY)
    for _ in range(ROUNDS):
        cut, before, unit = verdict.cutoff * verdict.scale, flagged, verdict.scale
        u, r = _solved(rows, u, unit, cut, psi, SETTLED_LARGE, metric.stretched(summary, unit, cut, psi))
        summary = rows.summary(r, unit)
        verdict = _judged(rows, summary, unit, cut, psi)
        flagged = rows.flagged(r, verdict.cutoff * verdict.scale)
        if flagged == before:
            break
    values, counts = summary
    verdict = replace(verdict, inliers=np.abs(values) <= verdict.cutoff * verdict.scale)
    narrow = narrowed(values, counts, rows.q, verdict, psi)
    verdict = replace(verdict, cutoff=min(verdict.cutoff, narrow.end))
    cut = verdict.cutoff * verdict.scale
    if narrow.k != psi.k:
        stretched = metric.stretched(summary, verdict.scale, cut, narrow)
        u, r = _solved(rows, u, verdict.scale, cut, narrow, SETTLED_LARGE, stretched)
        values, counts = rows.summary(r, verdict.scale)
    w = np.where(np.abs(values) <= cut, narrow.weight(values / verdict.scale), 0.0)
    return SmoothFit(u, r, verdict, narrow, *spread(values, counts, rows.q, w, verdict.scale, narrow))


def _solved(
    rows: RowsElsewhere, u: np.ndarray, scale: float, cut: float, psi: Lqq, settled: float, G: np.ndarray
) -> tuple[np.ndarray, Any]:
    """Σ ψ(rᵢ/σ) aᵢ = 0 over the rows with |r| ≤ cut, from u, by Newton's steps with the curvature G; and the residuals
    of the last step but one, by which they differ less than is said by ``settled``."""

    def weigh(a: Vector) -> Vector:
        return np.where(np.abs(a) <= cut, psi.weight(a / a.dtype.type(scale)), 0)

    for _ in range(STEPS):
        r, g = rows.residuals_and_slope(u, weigh)
        step = solve_symmetric(G, g[:, None])[:, 0]
        if float(np.abs(step).sum()) <= settled * scale:
            break
        u = u + step
    return u, r


def _judged(rows: RowsElsewhere, summary: Summary, unit: float, cut: float, psi: Lqq) -> Verdict:
    values, counts = summary
    return all_of_them(judged(values, counts, rows.q, unit, np.abs(values) <= cut, psi), unit, rows.edge)


def all_of_them(verdict: Verdict, unit: float, edge: Callable[[float, float], float] = upper_edge) -> Verdict:
    """A verdict on a summary in this unit, as one on the rows: the last value kept stands for rows up to its edge."""
    if verdict.cutoff == inf:
        return verdict
    return replace(verdict, cutoff=edge(verdict.cutoff * verdict.scale, unit) / verdict.scale)
