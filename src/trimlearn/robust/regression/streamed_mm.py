"""MM-estimation of rows that are asked for sums only: on a disk, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, final

import numpy as np

from trimlearn._utils.digits import upper_edge
from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.mm import (
    FIRM,
    ROUGH,
    SETTLED_LARGE,
    Lqq,
    centred,
    chance,
    eased,
    judged,
    narrowed,
    noise_and_bread,
)
from trimlearn.robust.regression.streamed_rows import StandardisedRows, Summary, Vector
from trimlearn.robust.verdict import Verdict

STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
ROUNDS = 3  # of fitting, measuring and judging: as in `mm_estimate`
LONGEST = 3.0  # times the step of least squares: for normal errors Newton's is 1.1 to 1.4 times that


@final
@dataclass(frozen=True)
class StreamedFit:
    """An MM-estimate: coefficients u, residuals r, verdict, ψ; noise and bread as in `SmoothFit`."""

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
    rows: StandardisedRows,
    raw: tuple[np.ndarray, Verdict],
    sharp: tuple[np.ndarray, Verdict],
    metric: RowMetric,
    trusted: bool,
    intercept: bool,
) -> StreamedFit:
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
    ratio, most = verdict.scale / sharp[1].scale, chance(rows.n, rows.q, flagged / rows.n)
    firm = trusted or ratio > most
    if firm:
        u, verdict = sharp
    else:
        flagged = rows.flagged(r, verdict.cutoff * verdict.scale)
    psi = Lqq(FIRM if firm else eased(ratio, most))
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
    refit = partial(centred, values, counts, verdict) if intercept else lambda _: values
    narrow = narrowed(values, counts, rows.q, verdict, psi, refit)
    verdict = replace(verdict, cutoff=min(verdict.cutoff, narrow.end))
    cut = verdict.cutoff * verdict.scale
    if narrow.k != psi.k:
        stretched = metric.stretched(summary, verdict.scale, cut, narrow)
        u, r = _solved(rows, u, verdict.scale, cut, narrow, SETTLED_LARGE, stretched)
        values, counts = rows.summary(r, verdict.scale)
    w = np.where(np.abs(values) <= cut, narrow.weight(values / verdict.scale), 0.0)
    return StreamedFit(u, r, verdict, narrow, *noise_and_bread(values, counts, rows.q, w, verdict.scale, narrow))


def _solved(
    rows: StandardisedRows, u: np.ndarray, scale: float, cut: float, psi: Lqq, settled: float, G: np.ndarray
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


def _judged(rows: StandardisedRows, summary: Summary, unit: float, cut: float, psi: Lqq) -> Verdict:
    values, counts = summary
    return all_of_them(judged(values, counts, rows.q, unit, np.abs(values) <= cut, psi), unit, rows.edge)


def all_of_them(verdict: Verdict, unit: float, edge: Callable[[float, float], float] = upper_edge) -> Verdict:
    """A verdict on a summary in this unit, as one on the rows: the last value kept stands for rows up to its edge."""
    if verdict.cutoff == inf:
        return verdict
    return replace(verdict, cutoff=edge(verdict.cutoff * verdict.scale, unit) / verdict.scale)
