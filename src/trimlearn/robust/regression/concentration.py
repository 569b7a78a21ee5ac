"""Concentration steps, the best w for u and the best u for w in turn: of many starts, or of one on many rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trimlearn._utils.threads import each
from trimlearn.robust.regression.elemental import RegressionSample

__all__ = ["CONVERGED", "Ends", "concentrate", "hurried"]

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
