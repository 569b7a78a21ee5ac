"""Minimum covariance determinant: over w in the capped simplex {0 ≤ w ≤ 1, Σ sᵢwᵢ = h}, minimise

    log det Σ(w),   Σ(w) = 1/h Σ sᵢwᵢ (aᵢ − μ)(aᵢ − μ)ᵀ,   μ = 1/h Σ sᵢwᵢaᵢ.

Concentration steps from random and deterministic starts, on nested subsets of the rows where there are many; with few
rows followed by exchanges of single rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor, inf
from typing import Final

import numpy as np

from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.scatter.factors import consistency
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.starts import deterministic
from trimlearn.robust.scatter.steps import FLOOR, STEPS, DeterminantProblem, Moments, Shrinkage, c_steps, exchanges
from trimlearn.robust.scatter.units import RobustUnits
from trimlearn.weights import CappedSimplex

__all__ = ["concentrated_scatter", "default_h", "mcd"]

GROUP: Final = 300  # rows in which a random start proves itself, as in FAST-MCD (Rousseeuw and Van Driessen 1999)
GROUPS: Final = 5  # such groups at most: FAST-MCD's
BEST: Final = 10  # starts that go on to the next, larger set of rows: FAST-MCD's
PER_FEATURE: Final = 10  # rows that a group has at least; twice as many find nothing better (`benchmarks.calibration`)
LAST: Final = 3  # starts tried on all rows; from 1 to 10 log det changes by 1e-4 (`benchmarks.calibration scatter`)
TRIED: Final = 2  # concentration steps before random starts are compared, as in FAST-MCD
CONDITION: Final = 50.0  # number that ρ aims at, as in MRCD (Boudt, Rousseeuw, Vanduffel and Verdonck 2020)
CAUTIOUS: Final = 0.1  # the ρ up to which the start that needs most decides, else their median: MRCD's
# A limit on time: so many random starts, or so many divided by the number of features where that is more. p + 1 rows
# are hardly ever all clean where p is large, and there the deterministic starts find the minimum.
FEWEST: Final = 50  # whatever the number of features
AFFORDABLE: Final = 5000  # divided by the number of features: with it 1,000 × 100 take six seconds


def default_h(total: float, p: int) -> float:
    """h of the highest breakdown, ⌊(n + p + 1)/2⌋; with few rows at most ¾n, so that something is trimmed at all.

    >>> default_h(75, 3), default_h(6, 4)
    (39.0, 4.5)
    """
    return min(float(floor((total + p + 1) / 2)), 0.75 * total)


def mcd(
    A: np.ndarray,
    s: np.ndarray,
    h: float,
    *,
    shrinkage: float | None = 0.0,
    centred: bool = False,
    starts: int = 500,
    seed: int = 0,
) -> ScatterFit:
    """The minimum covariance determinant of h of the rows of A (weights s; Σs = n).

    ``shrinkage``: ρ, or None to choose it so that K is well conditioned (MRCD). ``centred``: μ = 0 is known.
    ``starts``: random subsets of p + 1 rows, tried besides eight deterministic starts.

    >>> A = np.random.default_rng(0).standard_normal((90, 2))
    >>> A[60:] += 9.0
    >>> fit = mcd(A, np.ones(90), 46)
    >>> bool(np.all(fit.w[60:] == 0)), float(fit.w.sum())
    (True, 46.0)
    """
    first, weights, back = distinct_rows(A, s)
    rows, rng = A[first], np.random.default_rng(seed)
    units = RobustUnits.of(rows, weights, centred)
    problem = DeterminantProblem(units.into(rows), weights, h, centred=centred)
    pool, groups = _pool(problem, rng)
    fixed = _deterministic(pool)
    problem = replace(problem, shrinkage=_shrinkage(shrinkage, h / float(weights.sum()), fixed.S))
    pool = replace(pool, shrinkage=problem.shrinkage)
    found = [_random(pool.among(group), count, rng) for group in groups if (count := _affordable(pool, starts, groups))]
    if found:
        found = [_improve(pool, Moments.stacked(found), TRIED, BEST)]
    # Random starts look better after two steps than those that lead far: the deterministic ones need not compete.
    best = _improve(pool, Moments.stacked([fixed, *found]), STEPS, BEST)
    if len(groups) == 1:  # exchanges of single rows lead out of where C-steps end
        best = min((exchanges(problem, best.at([k])) for k in range(len(best.mu))), key=lambda item: item[0])[1]
    else:
        best = _improve(problem, best.at(slice(LAST)), 1, 1)
    fit = concentrated_scatter(ScatterFit(units, problem.shrinkage, weights, best), rows, weights, h, centred)
    return replace(fit, w=np.where(back >= 0, fit.w[back], 0.0))


def concentrated_scatter(fit: ScatterFit, A: np.ndarray, s: np.ndarray, h: float, centred: bool = False) -> ScatterFit:
    """Concentration steps from ``fit``, also for another h, until log det stops falling. Rows tied at the threshold
    share alike."""
    problem = DeterminantProblem(fit.units.into(A), s, h, fit.shrinkage, centred)
    w, at, history, converged = fit.w, fit.moments, [inf], False
    simplex, repeated = CappedSimplex(h), s if np.any(s != 1.0) else None
    for _ in range(STEPS):
        before = w, at
        w = simplex.minimise(at.squared_distances(problem.Z, fit.shrinkage)[0], repeated)
        at = problem.kept((s * w)[None])
        history.append(float(problem.log_det(at)[0]))
        if not history[-1] < history[-2] - 1e-12 * (1.0 + abs(history[-1])):  # rounding, at most
            converged = True
            if history[-1] > history[-2]:
                (w, at), history = before, history[:-1]
            break
    in_data_units = tuple(value + fit.units.log_det for value in history[1:])
    return ScatterFit(fit.units, fit.shrinkage, w, at, in_data_units, converged)


def _pool(problem: DeterminantProblem, rng: np.random.Generator) -> tuple[DeterminantProblem, list[np.ndarray]]:
    """The problem on the rows that starts are tried on, and the groups of these in which random ones prove themselves.

    The rows are put in the order of their classical distance, which affine maps, permutations and repetitions leave
    alone.
    """
    Z = problem.Z
    order = np.argsort(problem.kept(problem.s[None]).squared_distances(Z, Shrinkage())[0], kind="stable")
    group = max(GROUP, PER_FEATURE * Z.shape[1])
    if len(Z) <= 2 * group:
        return problem.among(order), [np.arange(len(Z))]
    pool = problem.among(order[rng.permutation(len(Z))[: GROUPS * group]])
    return pool, [np.arange(g, len(pool.Z), GROUPS) for g in range(GROUPS)]


def _deterministic(pool: DeterminantProblem) -> Moments:
    """Robust (μ, Σ) of the pool, each moved to the moments of its h best rows by way of its best half."""
    found = deterministic(pool.Z, pool.s, pool.centred)
    for h in (0.5 * float(pool.s.sum()), pool.h):
        found = pool.kept(replace(pool, h=h).nearest(found))
    return found


def _shrinkage(asked: float | None, share: float, S: np.ndarray) -> Shrinkage:
    """ρ as given, or by MRCD's rule: the largest the starts need to be well conditioned, unless they disagree."""
    if asked == 0.0:
        return Shrinkage()
    c = consistency(share, S.shape[1])
    if asked is not None:
        return Shrinkage(asked, c)
    deviation = np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), FLOOR))
    values = c * np.linalg.eigvalsh(S / (deviation[:, :, None] * deviation[:, None, :]))
    excess = np.maximum(values[:, -1] - CONDITION * values[:, 0], 0.0)
    needed = excess / (CONDITION - 1.0 + excess)
    rho = float(needed.max())
    return Shrinkage(rho if rho <= CAUTIOUS else max(CAUTIOUS, float(np.median(needed))), c)


def _affordable(pool: DeterminantProblem, starts: int, groups: list[np.ndarray]) -> int:
    """How many random starts in each group; none where p + 1 rows are too few, so that there is something to shrink."""
    return 0 if pool.shrinkage.rho else min(starts, max(FEWEST, AFFORDABLE // pool.Z.shape[1])) // len(groups)


def _random(group: DeterminantProblem, starts: int, rng: np.random.Generator) -> Moments:
    """The best of so many random subsets of p + 1 rows after a few concentration steps."""
    n, p = group.Z.shape
    size = min(p + 1, n)
    subsets = np.argpartition(rng.random((starts, n)), size - 1, axis=1)[:, :size]
    W = np.zeros((starts, n))
    np.put_along_axis(W, subsets, 1.0, axis=1)
    return _improve(group, group.kept(W), TRIED, BEST)


def _improve(problem: DeterminantProblem, starts: Moments, steps: int, best: int) -> Moments:
    """The ``best`` different ones of the starts after concentration steps."""
    log_det, found = c_steps(problem, starts, steps)
    _, first = np.unique(np.round(log_det, 7), return_index=True)  # ascending, equal ones once
    return found.at(first[:best])
