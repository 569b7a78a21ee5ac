"""Least median of squares on a sample: shortest halves along the intercept, and Chebyshev fits to the rows kept.

P. Rousseeuw (1984), Least median of squares regression, JASA 79.
"""

from __future__ import annotations

import numpy as np

from trimlearn.robust.order import hth_smallest, shortest_interval
from trimlearn.robust.regression.elemental import RegressionSample

__all__ = ["minimax_ends", "minimax_starts"]

FOLLOWED = 10  # best starts followed to the end, as FAST-LTS does (Rousseeuw and Van Driessen 2006)
ROUNDS = 30  # alternations of rows and fit at most, a limit on time: they end where the criterion no longer falls
TIED = 1e-9  # relative difference of two values of the criterion that is rounding


def minimax_starts(sample: RegressionSample, count: int, rng: np.random.Generator) -> np.ndarray:
    """Chebyshev fits to random subsets of r + 1 rows: the optimum is one of them (Stromberg 1993).

    The residuals e of least squares on r + 1 rows span what those rows leave of r dimensions, so that the Chebyshev
    fit has residuals z·sign(e) with z = Σe²/Σ|e|.
    """
    rows = sample.subsets(count, sample.r + 1, rng)
    e = sample.t[rows] - np.einsum("bki,bi->bk", sample.Q[rows], sample.fit_subsets(rows))
    z = (e**2).sum(axis=1) / np.maximum(np.abs(e).sum(axis=1), np.finfo(np.float64).tiny)
    return sample.fit_subsets(rows, sample.t[rows] - z[:, None] * np.sign(e))


def minimax_ends(sample: RegressionSample, U: np.ndarray) -> np.ndarray:
    """The best ends reached from the starts U, best first: u with a small weighted h-th smallest |tᵢ − Qᵢu|."""
    ones = np.linalg.lstsq(sample.Q, np.ones(sample.n), rcond=None)[0]
    shift = ones if np.allclose(sample.Q @ ones, 1.0, rtol=0, atol=1e-9) else None
    placed = sorted((_placed(sample, u, shift) for u in U), key=lambda end: end[1])
    ends = [_followed(sample, u, value, shift) for u, value in placed[:FOLLOWED]]
    return np.array([u for u, _ in sorted(ends, key=lambda end: end[1])])


def _placed(sample: RegressionSample, u: np.ndarray, shift: np.ndarray | None) -> tuple[np.ndarray, float]:
    """u with the best intercept, the middle of the shortest interval with residuals of mass h; its half-length."""
    e = sample.t - sample.Q @ u
    if shift is None:
        return u, float(hth_smallest(np.abs(e)[None], sample.m, sample.h)[0, 0])
    low, high = shortest_interval(e, sample.m, sample.h)
    return u + (low + high) / 2 * shift, (high - low) / 2


def _followed(
    sample: RegressionSample, u: np.ndarray, value: float, shift: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Concentration for this criterion: the best rows for u, the least largest residual over these rows, in turn."""
    for _ in range(ROUNDS):
        kept = np.abs(sample.t - sample.Q @ u) <= value * (1 + TIED)
        moved, found = _placed(sample, _chebyshev(sample.Q[kept], sample.t[kept], u), shift)
        if not found < value * (1 - TIED):
            break
        u, value = moved, found
    return u, value


def _chebyshev(Q: np.ndarray, t: np.ndarray, u: np.ndarray) -> np.ndarray:
    """argmin_u maxᵢ |tᵢ − Qᵢu|, from the rows that are worst so far; more of them until no other is worse."""
    from scipy.optimize import linprog

    size = 5 * (Q.shape[1] + 1)
    rows = np.argsort(-np.abs(t - Q @ u), kind="stable")[:size]
    while True:
        ones = np.ones((len(rows), 1))
        A = np.block([[Q[rows], -ones], [-Q[rows], -ones]])
        found = linprog(np.append(np.zeros(Q.shape[1]), 1.0), A, np.append(t[rows], -t[rows]), bounds=(None, None))
        if found.x is None:  # pragma: no cover - a bounded, feasible program
            return u
        e = np.abs(t - Q @ found.x[:-1])
        worse = np.argsort(-e, kind="stable")[:size]
        worse = np.setdiff1d(worse[e[worse] > found.x[-1] * (1 + 1e-7) + 1e-12], rows)
        if not len(worse):
            return np.asarray(found.x[:-1])
        rows = np.append(rows, worse)
