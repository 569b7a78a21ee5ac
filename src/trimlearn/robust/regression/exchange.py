"""Exchanges of single rows, which take a trimmed fit off the fixed points of concentration.

D. Hawkins (1994), The feasible solution algorithm for least trimmed squares regression, CSDA 17.

The leverages of all rows while rows are exchanged one at a time.

Concentration steps, the best w for u and the best u for w in turn: of many starts, or of one on many rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from trimlearn._utils.threads import each
from trimlearn.robust.regression.elemental import RegressionSample, Sum, ridged

ENTRIES = 1_000_000  # of the largest array held at a time, a limit on memory: 8 MB
TOGETHER = 128  # starts in one batch at most: with 1,500 rows an array of 1.5 MB, which stays in the cache
CONVERGED = 1e-12  # relative decrease that is none: a sum of 4,500 squares is rounded by as much
LOST = 1e-6  # share of a sum of squares that a difference of such sums still tells, to ten digits
BRIEF = 3  # steps, in which nearly all rows change: starts together are one product, and sums of changes save nothing
NEAR = 0.05  # of the threshold of |e|: rows this near to it tell how many cross when u moves (as in streamed_lts)
FARTHEST = 8.0  # times a step, at most: of clean normal rows, half of them kept, it ought to be 7 times as long

Ends = tuple[np.ndarray, np.ndarray]  # coefficients U (B, r), and a value of each


def hurried(sample: RegressionSample, U: np.ndarray, steps: int) -> Ends:
    """So many concentration steps for every u, and the sum of squares over the rows that each end was fitted to."""
    return _in_chunks(sample, lambda U: _hurried(sample, U, steps), U)


def concentrate(
    sample: RegressionSample, U: np.ndarray, steps: int, *, farther: bool = False, tol: float = CONVERGED
) -> Ends:
    """At most ``steps`` concentration steps for every u, and the objectives at their ends. A step that gains less than
    ``tol``, as a share of the objective, is the last.

    With ``farther`` a step goes on in its direction, and back where that is no better: concentration errs on the short
    side, since it holds w while it moves u.
    """
    if not sample.many or (steps <= BRIEF and len(U) > 1):
        return _in_chunks(sample, lambda U: _together(sample, U, steps, float(farther), tol), U)
    ends = each(lambda u: _alone(sample, u, steps, farther, tol), U)
    return np.array([u for u, _ in ends]), np.array([value for _, value in ends])


def _in_chunks(sample: RegressionSample, task: Callable[[np.ndarray], Ends], U: np.ndarray) -> Ends:
    chunk = min(max(1, ENTRIES // sample.n), TOGETHER)
    parts = each(task, [U[b : b + chunk] for b in range(0, len(U), chunk)])
    return np.concatenate([U for U, _ in parts]), np.concatenate([value for _, value in parts])


def _hurried(sample: RegressionSample, U: np.ndarray, steps: int) -> Ends:
    r = sample.r
    for _ in range(steps):
        C = sample.trim(sample.losses(U))
        M = sample.moments(C)
        U = sample.solved(M)
    value = M[:, r, r] - np.einsum("bi,bi->b", M[:, :r, r], U)
    rounded = ~(value > LOST * M[:, r, r])  # a small difference of large sums: summed over the rows instead
    value[rounded] = np.einsum("bi,bi->b", C[rounded], sample.losses(U[rounded]))
    return U, value


def _together(sample: RegressionSample, U: np.ndarray, steps: int, stretch: float, tol: float) -> Ends:
    """A step of few rows goes on by ``stretch`` times its length: how many cross the threshold is chance."""
    best, value = U.copy(), np.full(len(U), np.inf)
    plain, ahead = U.copy(), np.zeros(len(U), dtype=bool)  # the step as it is, and who stands beyond it
    active, U = np.arange(len(U)), U.copy()
    for step in range(steps + 1):
        F = sample.losses(U[active])
        C = sample.trim(F)
        found = np.einsum("bi,bi->b", C, F)
        better = found < value[active] * (1 - CONVERGED)
        on = better & (found < value[active] * (1 - tol))
        gone, back = active[on], active[~better & ahead[active]]
        best[active[better]], value[active[better]] = U[active[better]], found[better]
        if step == steps or not len(gone) + len(back):
            break
        if len(gone):
            plain[gone] = sample.fit(C if len(gone) == len(C) else C[on])
            U[gone], ahead[gone] = plain[gone] + stretch * (plain[gone] - U[gone]), stretch > 0
        U[back], ahead[back] = plain[back], False
        active = np.concatenate([gone, back])
    return best, value


def _alone(sample: RegressionSample, u: np.ndarray, steps: int, farther: bool, tol: float) -> tuple[np.ndarray, float]:
    """One start on many rows: the threshold is looked for near the last one, and sums are those of what changed."""
    best, value, level, kept, plain = u, np.inf, None, None, u
    ahead = False
    for step in range(steps + 1):
        F = sample.loss(u)
        c, level = sample.kept(F, level)
        found = float(c @ F)
        better, on = found < value * (1 - CONVERGED), found < value * (1 - tol)
        if better:
            best, value = u, found
        if step == steps or not (on if better else ahead):
            break
        if better:
            kept = sample.summed(c) if kept is None else sample.moved(c, kept)
            plain = sample.solved(kept.M[None])[0]
            stretch = _stretch(sample, F, level) if farther else 1.0
            u, ahead = plain + (stretch - 1) * (plain - best), stretch > 1
        else:
            u, ahead = plain, False
    return best, value


def _stretch(sample: RegressionSample, F: np.ndarray, level: float) -> float:
    """How many times as long a step ought to be.

    Where |e| has the density f, the derivative of Σ wᵢeᵢqᵢ is −(h − θ f(θ)) times the mean of qqᵀ for a threshold θ:
    rows cross it as u moves. A step that holds w takes it for −h.
    """
    crossing = float(np.count_nonzero(np.abs(F - level) <= 2 * NEAR * level)) / (2 * NEAR)
    if not np.all(sample.m == 1):
        crossing *= sample.h / max(float(np.count_nonzero(F <= level)), 1.0)  # in units of mass
    return min(FARTHEST, 1 / max(1 - crossing / sample.h, 1 / FARTHEST))


FEW = 8  # times the rows that changed are at most as many as columns: then an update is the cheaper way
AGAIN = 20  # updates until all is computed anew: each adds a rounding of its own
CONDITION = 1e6  # of G up to which updates keep ten digits


@final
class Leverages:
    """G⁻¹ for G = Σ cᵢqᵢqᵢᵀ, and qᵢᵀG⁻¹qᵢ for every row of Q, at masses c that change little from call to call.

    >>> Q, c = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.ones(3)
    >>> Leverages(Q).at(c, Q.T @ Q)[1].round(6)
    array([0.833333, 0.333333, 0.833333])
    """

    def __init__(self, Q: np.ndarray) -> None:
        self._Q, self._c = Q, np.empty(0)
        self._updates = AGAIN

    def at(self, c: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(G⁻¹, leverages)."""
        change = c - self._c if len(self._c) else c
        rows = np.flatnonzero(change)
        if self._updates >= AGAIN or FEW * len(rows) > len(G):
            self._anew(G)
        elif len(rows):
            self._update(rows, change[rows])
        self._c = c
        return self._inverse, self._lever

    def _anew(self, G: np.ndarray) -> None:
        self._inverse = np.linalg.inv(G)
        self._lever = np.einsum("ij,ij->i", self._Q, self._Q @ self._inverse)
        fine = np.abs(G).sum(axis=0).max() * np.abs(self._inverse).sum(axis=0).max() < CONDITION
        self._updates = 0 if fine else AGAIN

    def _update(self, rows: np.ndarray, change: np.ndarray) -> None:
        """By the formula of Sherman, Morrison and Woodbury."""
        Z = self._Q[rows]
        B = self._inverse @ Z.T
        T = self._Q @ B
        S = np.diag(1.0 / change) + Z @ B
        self._lever = self._lever - np.einsum("ik,ik->i", T, np.linalg.solve(S, T.T).T)
        self._inverse = self._inverse - B @ np.linalg.solve(S, B.T)
        self._updates += 1


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
