"""MM-estimation of rows that are asked for sums only, as those on the workers of a cluster are.

What is asked of all residuals (their scale, the cut-off, the share of bad rows) is read off a summary: values, and how
many rows each of them stands for. What is asked of the rows themselves is moments with weights that residuals give.
`trimlearn.robust.regression.streamed` does the same where residuals are at hand, one number a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import final

import numpy as np

from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.mm import EASY, FIRM, ROUGH, SETTLED_LARGE, Lqq, chance, judged, narrowed, spread
from trimlearn.robust.verdict import Verdict

__all__ = ["RowsElsewhere", "SmoothFit", "Weigh", "refitted", "smoothed", "to_the_edge"]

STEPS = 30  # at most, a limit on time: four to eight are made
ROUNDS = 3  # of fitting, measuring and judging: as in `mm_estimate`
LONGEST = 2.0  # times the step of renewed weights: for normal errors Newton's is 1.3 times that

Weigh = Callable[[np.ndarray], np.ndarray]  # weights of residuals


class RowsElsewhere(ABC):
    """Rows with standardised columns that are asked for sums at coefficients u; r = t − A u are their residuals."""

    n: int  # how many there are
    q: int  # how many coefficients
    floor: float  # the rounding of targets: `trimlearn.robust.scale.rounding_floor`

    @abstractmethod
    def summary(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values that stand for residuals, and how many each stands for."""

    @abstractmethod
    def edge(self, value: float) -> float:
        """The largest residual that a value of a summary may stand for."""

    @abstractmethod
    def moments(self, weigh: Weigh, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty and minus the gradient, Σ wᵢrᵢaᵢ − penalty·u, with w = weigh(r)."""


@dataclass(frozen=True)
class Within:
    """Weight 1 up to a cut, 0 beyond."""

    cut: float

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(r) <= self.cut, dtype=r.dtype)


@dataclass(frozen=True)
class Smooth:
    """The weights of ψ in units of a scale up to a cut, 0 beyond."""

    psi: Lqq
    scale: float
    cut: float

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return np.where(np.abs(r) <= self.cut, self.psi.weight(r / r.dtype.type(self.scale)), 0)


@final
@dataclass(frozen=True)
class SmoothFit:
    """An MM-estimate: coefficients u, verdict, ψ; noise and bread as in `trimlearn.robust.regression.mm.MMFit`."""

    u: np.ndarray
    verdict: Verdict
    psi: Lqq
    noise: float
    bread: float


def refitted(rows: RowsElsewhere, u: np.ndarray, cut: float) -> np.ndarray:
    """Least squares of the rows with |r| ≤ cut at u."""
    G, g = rows.moments(Within(cut), u)
    return np.asarray(u + solve_symmetric(G, g[:, None])[:, 0])


def to_the_edge(rows: RowsElsewhere, verdict: Verdict) -> Verdict:
    """A verdict on a summary, as one on the rows: the last value kept stands for rows up to its edge."""
    if verdict.cutoff == inf:
        return verdict
    return replace(verdict, cutoff=rows.edge(verdict.cutoff * verdict.scale) / verdict.scale)


def smoothed(
    rows: RowsElsewhere, raw: tuple[np.ndarray, Verdict], sharp: tuple[np.ndarray, Verdict], trusted: bool
) -> SmoothFit:
    """The MM-estimate of all rows, from a trimmed fit ``raw`` and from least squares on what that explains, ``sharp``:
    decided as `trimlearn.robust.regression.mm.mm_estimate` does, which see."""
    psi, u, scale = Lqq(FIRM), raw[0], raw[1].scale
    for _ in range(2):
        u = _solved(rows, u, scale, inf, psi, ROUGH)
        verdict = _judged(rows, u, scale, inf, psi)
        scale = verdict.scale
    flagged = _flagged(rows, u, sharp[1])
    firm = trusted or verdict.scale > chance(rows.n, rows.q, flagged / rows.n) * sharp[1].scale
    if firm:
        u, verdict = sharp
    else:
        flagged = _flagged(rows, u, verdict)
    psi = Lqq(FIRM if firm else EASY)
    for _ in range(ROUNDS):
        cut, before = verdict.cutoff * verdict.scale, flagged
        u = _solved(rows, u, verdict.scale, cut, psi, SETTLED_LARGE)
        verdict = _judged(rows, u, verdict.scale, cut, psi)
        flagged = _flagged(rows, u, verdict)
        if flagged == before:
            break
    values, counts = rows.summary(u)
    verdict = replace(verdict, inliers=np.abs(values) <= verdict.cutoff * verdict.scale)
    narrow = narrowed(values, counts, rows.q, verdict, psi)
    verdict = replace(verdict, cutoff=min(verdict.cutoff, narrow.end))
    if narrow.k != psi.k:
        u = _solved(rows, u, verdict.scale, verdict.cutoff * verdict.scale, narrow, SETTLED_LARGE)
        values, counts = rows.summary(u)
    w = Smooth(narrow, verdict.scale, verdict.cutoff * verdict.scale)(values)
    return SmoothFit(u, verdict, narrow, *spread(values, counts, rows.q, w, verdict.scale, narrow))


def _solved(rows: RowsElsewhere, u: np.ndarray, scale: float, cut: float, psi: Lqq, settled: float) -> np.ndarray:
    """Σ ψ(rᵢ/σ) aᵢ = 0 over the rows with |r| ≤ cut, from u.

    Steps are those of least squares with renewed weights, times mean weight over mean slope of ψ, which makes them
    Newton's where errors do not depend on the rows.
    """
    for _ in range(STEPS):
        values, counts = rows.summary(u)
        on = np.abs(values) <= cut
        t = values[on] / scale
        ratio = float(counts[on] @ psi.weight(t)) / max(float(counts[on] @ psi.slope(t)), 1.0)
        G, g = rows.moments(Smooth(psi, scale, cut), u)
        step = solve_symmetric(G, g[:, None])[:, 0] * min(max(ratio, 1.0), LONGEST)
        u = u + step
        if float(np.abs(step).sum()) <= settled * scale:
            break
    return u


def _judged(rows: RowsElsewhere, u: np.ndarray, scale: float, cut: float, psi: Lqq) -> Verdict:
    values, counts = rows.summary(u)
    return to_the_edge(rows, judged(values, counts, rows.q, scale, np.abs(values) <= cut, psi))


def _flagged(rows: RowsElsewhere, u: np.ndarray, verdict: Verdict) -> float:
    """How many rows the verdict flags."""
    values, counts = rows.summary(u)
    return float(counts[np.abs(values) > verdict.cutoff * verdict.scale].sum())
