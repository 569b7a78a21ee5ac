"""Exchanges of single rows, which take a trimmed fit off the fixed points of concentration.

D. Hawkins (1994), The feasible solution algorithm for least trimmed squares regression, CSDA 17.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from trimlearn.robust.regression.concentration import CONVERGED
from trimlearn.robust.regression.elemental import RegressionSample, Sum, ridged
from trimlearn.robust.regression.leverage import Leverages

__all__ = ["End", "Exchanges", "exchanged", "settled"]

PAIRED = 300  # rows on either side of the threshold tried in pairs: see python -m benchmarks.calibration lts
SETTLED = 100  # concentration steps after an exchange at most, a limit on time: a few are enough
EXACT = 1e-24  # mean squared residual, for targets of scale 1, below which a fit is exact: (4,500 eps)²
GAIN = 1e-10  # relative decrease of an exchange that counts: a hundred times CONVERGED, for it is a difference of sums


@final
@dataclass(frozen=True)
class End:
    """Where concentration ended: coefficients u, the rows that they keep, the objective, the threshold of losses."""

    u: np.ndarray
    kept: Sum
    value: float
    level: float | None
    refit: np.ndarray  # the coefficients of least squares on those rows
    e: np.ndarray | None = None  # their residuals, where these are known


@final
class Exchanges:
    """Exchanges from one end of concentration: the best one of mass between two rows, then concentration again.

    With residuals e, G = Σ cᵢqᵢqᵢᵀ and hᵢⱼ = qᵢᵀG⁻¹qⱼ, moving mass δ from row i to row j lowers the minimum over u by
    [(1/δ + hⱼⱼ)eᵢ² − 2hᵢⱼeᵢeⱼ − (1/δ − hᵢᵢ)eⱼ²] / [(1/δ − hᵢᵢ)(1/δ + hⱼⱼ) + hᵢⱼ²].
    """

    def __init__(self, sample: RegressionSample, u: np.ndarray, known: dict[bytes, End | None] | None = None) -> None:
        """known: what follows an end, by the rows that it keeps, for walks that are taken one after the other: on few
        rows they meet."""
        c, level = sample.kept(sample.loss(u))
        self._sample, self._leverages, self._known = sample, Leverages(sample.Q), {} if known is None else known
        self.end, self.over = settled(sample, sample.summed(c), level), False

    def advance(self, rounds: int) -> Exchanges:
        """So many of them at most; it is ``over`` once one was in vain."""
        for _ in range(rounds):
            kept = self.end.kept.c.tobytes()
            if kept not in self._known:
                self._known[kept] = self._next()
            found = self._known[kept]
            if found is None:
                self.over = True
                break
            self.end = found
        return self

    def _next(self) -> End | None:
        sample, end = self._sample, self.end
        moved = exchanged(sample, end, self._leverages) if end.value > EXACT * sample.h else None
        if moved is None:
            return None
        found = settled(sample, sample.moved(moved, end.kept), end.level)
        return found if found.value < end.value * (1 - GAIN) else None


def settled(sample: RegressionSample, kept: Sum, level: float | None = None) -> End:
    """Where concentration ends from the rows that are kept first. level: a threshold that is near."""
    best = End(np.zeros(sample.r), kept, np.inf, level, sample.solved(kept.M[None])[0])
    for _ in range(SETTLED):
        u = best.refit
        e = sample.residuals(u)
        F = e * e
        c, level = sample.kept(F, level)
        value = float(c @ F)
        if not value < best.value * (1 - CONVERGED):
            return replace(best, e=e)
        if np.array_equal(c, best.kept.c):  # u is the fit to them already
            return End(u, best.kept, value, level, u, e)
        kept = sample.moved(c, best.kept)
        best = End(u, kept, value, level, sample.solved(kept.M[None])[0])
    return best


def exchanged(sample: RegressionSample, end: End, leverages: Leverages) -> np.ndarray | None:
    """The masses after the exchange that lowers the objective most; None where none does."""
    C, M = end.kept.c, end.kept.M
    e = sample.residuals(end.refit) if end.e is None else end.e
    inverse, lever = leverages.at(C, ridged(M[: sample.r, : sample.r]))
    give = _first(np.where(C > 0, -(e**2) / np.maximum(1 - C * lever, GAIN), np.inf))
    take = _first(np.where(C < sample.m, e**2 / (1 + sample.m * lever), np.inf))
    free = sample.m - C
    may_give, may_take = _hopeful((C[give], e[give], lever[give]), (free[take], e[take], lever[take]))
    give, take = give[may_give], take[may_take]
    if not len(give) or not len(take):
        return None
    cross = (sample.Q[give] @ inverse) @ sample.Q[take].T
    a, b, delta, gain = _best_pair(cross, (C[give], e[give], lever[give]), (free[take], e[take], lever[take]))
    if not gain > GAIN * float(C @ e**2):
        return None
    moved = C.copy()
    moved[give[a]] -= delta
    moved[take[b]] += delta
    return moved


Side = tuple[np.ndarray, np.ndarray, np.ndarray]  # of rows: the mass each may move, its residual, its leverage


def _hopeful(give: Side, take: Side) -> tuple[np.ndarray, np.ndarray]:
    """Which rows may be one of a pair that gains: those about the threshold, as a rule, a tenth of all.

    hᵢⱼ² ≤ hᵢᵢhⱼⱼ, so that with a = δhᵢᵢ and b = δhⱼⱼ a pair gains only where |eⱼ| < |eᵢ|·ρ for
    ρ = (√(ab) + √(1 + b − a))/(1 − a), which grows with a and with b, and these with δ.
    """
    (mass, e, lever), (free, other, theirs) = give, take
    if not len(e) or not len(other):
        return np.zeros(len(e), dtype=bool), np.zeros(len(other), dtype=bool)
    a, b, e, other = np.minimum(mass * lever, 1 - GAIN), free * theirs, np.abs(e), np.abs(other)

    def reach(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray((np.sqrt(a * b) + np.sqrt(1 + b - a)) / (1 - a))

    may_give = e * reach(a, b.max()) >= other.min()
    if not may_give.any():
        return may_give, np.zeros(len(other), dtype=bool)
    return may_give, other <= e[may_give].max() * reach(a[may_give].max(), b)


def _best_pair(cross: np.ndarray, give: Side, take: Side) -> tuple[int, int, float, float]:
    """The numbers of two rows, the mass δ that goes from one to the other, and what that lowers the minimum by.

    cross: hᵢⱼ of the rows that give and those that take, which is overwritten.
    """
    (mass, e, lever), (free, other, theirs) = give, take
    whole = bool(np.all(mass == mass[0]) and np.all(free == mass[0]))  # as without sample weights and ties
    delta = mass[:1, None] if whole else np.minimum.outer(mass, free)
    per = 1.0 / delta
    out, into, least = per - lever[:, None], per + theirs, GAIN * per
    gain = into * (e**2)[:, None]
    gain -= out * other**2
    each_other = 2 * cross  # in place from here on: these are the largest arrays
    each_other *= e[:, None]
    each_other *= other
    gain -= each_other
    cross *= cross
    cross += np.maximum(out, least) * into
    gain /= cross
    np.copyto(gain, -np.inf, where=~(out > least))
    a, b = np.unravel_index(int(np.argmax(gain)), gain.shape)
    return int(a), int(b), float(delta[0, 0] if whole else delta[a, b]), float(gain[a, b])


def _first(key: np.ndarray) -> np.ndarray:
    """The rows of the least finite keys, at most PAIRED of them."""
    rows = np.argpartition(key, PAIRED)[:PAIRED] if len(key) > PAIRED else np.arange(len(key))
    return np.asarray(rows[np.isfinite(key[rows])])
