"""Least trimmed squares and MM-estimation of rows that are read from a disk, from a start that a sample of them gave.

Rows are read in order, a piece at a time, and never kept; one number for each row, its residual, is. What is asked of
all residuals (their scale, the cut-off, the share of bad rows) is read off a summary in which they are known to one part
in 4,096 and counted: `trimlearn._utils.digits.summarised`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.digits import kth_by_digits, summarised
from trimlearn._utils.threads import each, total
from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.mm import Lqq, judged, spread
from trimlearn.robust.verdict import Verdict
from trimlearn.weights.simplex import snap_h

__all__ = ["Concentrated", "SmoothFit", "StreamedRows", "concentrated", "smoothed"]

Vector = NDArray[np.floating]

PIECE_BYTES = 1 << 19  # of rows held by a thread: 0.5 MB and as much for their standardised copy stay in a level-2 cache
STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
SETTLED = 1e-9  # share of the objective that the next step could gain, when it is not made any more
MOVED = 1e-6  # share of σ by which no prediction, of a row of usual size, moves any more
NEAR = 0.05  # of the threshold: rows this near to it tell how many cross when it moves
MOST = 0.95  # of the curvature that such rows may take away: a step is twenty times longer at most


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
        x = u.astype(self.V.dtype)

        def part(at: slice) -> None:
            r[at] = self.t[at] - self._design(at) @ x

        each(part, self._pieces())
        return r

    def moments(self, weigh: Callable[[Vector], Vector], r: Vector, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty and minus the gradient, Σ wᵢrᵢaᵢ − penalty·u, with w = weigh(r), in float64;
        of rows of weight 0 nothing is added."""

        def part(at: slice) -> np.ndarray:
            D, w = self._design(at), weigh(r[at]).astype(self.V.dtype, copy=False)
            W = D * w[:, None]
            return np.column_stack([W.T @ D, W.T @ np.where(w > 0, r[at], 0)]).astype(np.float64)

        sums = total(part, self._pieces(), np.zeros((self.q, self.q + 1)))
        return sums[:, :-1] + np.diag(self.penalty), sums[:, -1] - self.penalty * u

    def _pieces(self) -> list[slice]:
        step = max(64, PIECE_BYTES // (self.q * self.V.itemsize))
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]

    def _design(self, at: slice) -> np.ndarray:
        D = np.empty((at.stop - at.start, self.q), self.V.dtype)
        p = len(self.center)
        np.subtract(self.V[at], self.center.astype(self.V.dtype), out=D[:, :p])
        D[:, :p] *= (1.0 / self.scale).astype(self.V.dtype)
        if self.intercept:
            D[:, p] = 1
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
        w = np.empty_like(self.r)
        for start in range(0, len(w), 1 << 20):
            at = slice(start, start + (1 << 20))
            w[at] = _kept(self.r[at], self.threshold, self.share)
        return w


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
        G, g = rows.moments(lambda a, theta=theta, share=share: _kept(a, theta, share), r, u)  # type: ignore[misc]
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
    for start in range(0, len(r), 1 << 18):
        a = np.abs(r[start : start + (1 << 18)])
        inside = a < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(a == theta))
        near += int(np.count_nonzero((a > (1 - NEAR) * theta) & (a < (1 + NEAR) * theta)))
        energy += float(np.sum(np.square(a, dtype=np.float64), where=inside))
    share = min(max((h - below) / max(tied, 1), 0.0), 1.0)
    return theta, share, (energy + (h - below) * theta * theta) / 2 / len(r), float(near)


def _kept(r: Vector, theta: float, share: float) -> Vector:
    a = np.abs(r)
    w = (a < theta).astype(r.dtype)
    w[a == theta] = share
    return w


@final
@dataclass(frozen=True)
class SmoothFit:
    """An MM-estimate: coefficients u, residuals r; scale, cut-off and share of bad rows; ψ; noise and bread as in `MMFit`."""

    u: np.ndarray
    r: Vector
    verdict: Verdict
    psi: Lqq
    noise: float
    bread: float


def smoothed(rows: StreamedRows, u: np.ndarray, scale: float, cutoff: float, psi: Lqq) -> SmoothFit:
    """The MM-estimate of all rows with this ψ, from the one of a sample: Σ ψ(rᵢ/σ) aᵢ = 0 over rows not flagged.

    Steps are those of least squares with renewed weights, times mean weight over mean slope of ψ, which makes them
    Newton's where errors do not depend on the rows. Scale and cut-off are found again in each.
    """
    length = inf
    for _ in range(STEPS):
        r = rows.residuals(u)
        values, counts = summarised(r, scale)
        on = np.abs(values) <= cutoff * scale
        verdict = judged(values, counts, rows.q, scale, on, psi)
        same = abs(verdict.cutoff * verdict.scale - cutoff * scale) <= MOVED * scale
        scale, cutoff = verdict.scale, min(verdict.cutoff, psi.end)
        on = np.abs(values) <= cutoff * scale
        t = values[on] / scale
        ratio = float(counts[on] @ psi.weight(t)) / max(float(counts[on] @ psi.slope(t)), 1.0)
        found = SmoothFit(u, r, verdict, psi, *_noise(values, counts, rows.q, scale, cutoff, psi))
        if length <= MOVED * scale and same:
            break

        def weigh(a: Vector, sigma: float = scale, cut: float = cutoff) -> Vector:
            return np.where(np.abs(a) <= cut * sigma, psi.weight(a / a.dtype.type(sigma)), 0)

        G, g = rows.moments(weigh, r, u)
        step = solve_symmetric(G, g[:, None])[:, 0] * min(ratio, 2.0)  # twice as long at most, for safety
        length = float(np.abs(step).sum())
        u = u + step
    return found


def _noise(r: Vector, c: Vector, q: int, scale: float, cutoff: float, psi: Lqq) -> tuple[float, float]:
    w = np.where(np.abs(r) <= cutoff * scale, psi.weight(r / scale), 0.0)
    return spread(r, c, q, w, scale, psi)
