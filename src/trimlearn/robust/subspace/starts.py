"""Where the concentration of a trimmed flat starts: the start decides which local minimum is found.

Robust principal components in several ways, a continuation in h from the plain ones, and flats through random minimal
subsets: the best of them are concentrated to convergence, and every minimum is given, the best first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from trimlearn._utils.threads import each
from trimlearn.robust.order import keep_smallest, weighted_quantile
from trimlearn.robust.subspace.concentrate import FlatProblem, TrimmedFlat, best_flat
from trimlearn.robust.subspace.flat import Flat
from trimlearn.smart.draws import Draws, Stream

__all__ = ["least_outlying", "minima"]

RANDOM: Final = 500, 20  # random subsets tried, at most as in FAST-MCD, and at least; between them as many as take
FLOPS: Final = 4e9  # operations in all, a limit on time: a second or two
HELD: Final = 4_000_000  # numbers that a batch of random subsets may hold, a limit on memory: 32 MB
CHEAP: Final = 3  # steps before random subsets are compared, one more than FAST-MCD's since they are not exact
KEEP: Final = 8  # of them concentrated to convergence; 1 to 24 find the same (`benchmarks.calibration subspace`)
DIRECTIONS: Final = 250  # of the Stahel–Donoho outlyingness, as in ROBPCA (Hubert et al. 2005)
STAGES: Final = 8  # of the continuation in h; 2 to 16 find the same (`benchmarks.calibration subspace`)
SAME: Final = 1e-6  # objectives this close are one minimum: concentration ends at 1e-10 of it
WEISZFELD: Final = 30  # its iterations, a limit on time: a start needs no digits


def minima(problem: FlatProblem, D: np.ndarray, k: int, seed: int) -> list[TrimmedFlat]:
    """The local minima of a problem, whose points are the rows of D, that the starts lead to; best first.

    The flats are of dimension k. They go through the origin, or anywhere if the problem leaves them free.
    """
    s, zero = problem.s, np.zeros(D.shape[1])
    flats = [best_flat(problem.points, c, k, zero, problem.free) for c in _robust_weights(D, s, seed)]
    flats += [_continued(problem, flats[0]), *_random_flats(problem, D, k, seed)]
    fits = sorted(each(problem.concentrate, flats), key=lambda fit: fit.objective)
    return [fit for i, fit in enumerate(fits) if i == 0 or fit.objective > fits[i - 1].objective * (1 + SAME)]


# ---- deterministic starts: principal components of robustly weighted rows ----


def _robust_weights(D: np.ndarray, s: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Plain PCA; spherical PCA (Locantore et al. 1999); the half nearest to the spatial median; and the half of least
    Stahel–Donoho outlyingness, as in ROBPCA (Hubert, Rousseeuw and Vanden Branden 2005)."""
    yield s
    distances = _distances(D, _spatial_median(D, s))
    yield s / distances**2
    yield s * (distances <= weighted_quantile(distances, s, 0.5))
    yield least_outlying(D, s, seed)


def least_outlying(D: np.ndarray, s: np.ndarray, seed: int) -> np.ndarray:
    """s on the half of the rows of least Stahel–Donoho outlyingness, 0 elsewhere."""
    outlying = _outlyingness(D, s, seed)
    return np.asarray(s * (outlying <= weighted_quantile(outlying, s, 0.5)))


def _distances(D: np.ndarray, m: np.ndarray) -> np.ndarray:
    """‖aᵢ − m‖, kept away from 0."""
    d = np.linalg.norm(D - m, axis=1)
    return np.asarray(np.maximum(d, 1e-6 * float(np.median(d)) + np.finfo(np.float64).tiny ** 0.25))


def _spatial_median(D: np.ndarray, s: np.ndarray) -> np.ndarray:
    """argmin Σ sᵢ‖aᵢ − m‖, nearly: Weiszfeld's iteration from the coordinatewise median."""
    m = np.array([weighted_quantile(column, s, 0.5) for column in D.T])
    for _ in range(WEISZFELD):
        m = np.average(D, axis=0, weights=s / _distances(D, m))
    return m


def _outlyingness(D: np.ndarray, s: np.ndarray, seed: int) -> np.ndarray:
    """max |vᵀa − med|/MAD over directions v through two rows."""
    ends = Draws(seed, 1, len(D), np.cumsum(s), Stream.START).rows(2 * DIRECTIONS).reshape(2, -1)
    worst = np.zeros(len(D))
    for v in D[ends[0]] - D[ends[1]]:
        t = D @ v
        t = np.abs(t - weighted_quantile(t, s, 0.5))
        mad = weighted_quantile(t, s, 0.5)
        if mad > 1e-12 * t.max(initial=0.0):  # else half of the rows lie in a hyperplane: no scale
            worst = np.maximum(worst, t / mad)
    return worst


def _continued(problem: FlatProblem, flat: Flat) -> Flat:
    """From the plain principal components, h lowered in stages."""
    for h in np.linspace(float(problem.s.sum()), problem.h, STAGES + 1)[1:]:
        flat = problem.next(replace(problem, h=float(h)).weigh(flat))
    return flat


# ---- random starts: flats through minimal subsets, many at a time ----


def _random_flats(problem: FlatProblem, D: np.ndarray, k: int, seed: int) -> list[Flat]:
    """The `KEEP` best of many flats through random minimal subsets, after a few cheap steps each."""
    n, p = D.shape
    count = int(np.clip(FLOPS / (40 * n * p * (k + 1)), min(RANDOM), max(RANDOM)))
    batch = max(1, HELD // (n * (k + 2) + p * k))
    found: list[tuple[float, Flat]] = []
    for first in range(0, count, batch):
        U, m = _elemental(D, k, problem.free, seed, range(first, min(first + batch, count)))
        for _ in range(CHEAP):
            F, U, m = _cheap_step(problem, D, U, m)
        found += [(float(F[b]), Flat(U[b], m[b])) for b in range(len(F))]
    return [flat for _, flat in sorted(found, key=lambda item: item[0])[:KEEP]]


def _elemental(D: np.ndarray, k: int, free: bool, seed: int, numbers: range) -> tuple[np.ndarray, np.ndarray]:
    """Flats (U, m), stacked, through k rows and the origin, or through k + 1 rows where m is free."""
    size = min(k + free, len(D))
    u = np.array([Draws(seed, 2 + b, len(D), stream=Stream.START).uniforms(len(D)) for b in numbers])
    drawn = np.argpartition(u, size - 1, axis=1)[:, :size]  # the rows of the least numbers, in their order
    A = D[np.take_along_axis(drawn, np.argsort(np.take_along_axis(u, drawn, axis=1), axis=1), axis=1)]
    m = A[:, 0] if free else np.zeros((len(A), D.shape[1]))
    edges = np.swapaxes(A[:, 1:] - A[:, :1] if free else A, 1, 2)
    fill = np.broadcast_to(np.eye(D.shape[1], k), (len(A), D.shape[1], k))
    return _orthonormal(np.concatenate([edges, fill], axis=2)[:, :, :k]), m


def _cheap_step(
    problem: FlatProblem, D: np.ndarray, U: np.ndarray, m: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A w-step and two power steps U ← orth(Σ c a aᵀ U), which lower the objective too, for all flats at once.

    Returns the objectives before, and the new (U, m). The matrix Σ c a aᵀ is never formed.
    """
    n, (B, p, k) = len(D), U.shape

    def products(U: np.ndarray) -> np.ndarray:
        return np.asarray((D @ np.moveaxis(U, 0, 1).reshape(p, B * k)).reshape(n, B, k))

    G = products(U)
    norms2 = np.sum(D * D, axis=1)[:, None] - 2 * (D @ m.T) + np.sum(m * m, axis=1)
    d2 = np.maximum(norms2 - np.sum((G - np.einsum("bp,bpk->bk", m, U)) ** 2, axis=2), 0.0)
    c = keep_smallest(d2.T, problem.s, problem.h).T
    if problem.free:
        m = (c.T @ D) / problem.h
    for again in (False, True):
        G = products(U) if again else G
        Z = c[:, :, None] * (G - np.einsum("bp,bpk->bk", m, U))
        P = (D.T @ Z.reshape(n, B * k)).reshape(p, B, k)
        U = _orthonormal(np.moveaxis(P, 1, 0))
    return np.sum(c * d2, axis=0), U, m


def _orthonormal(A: np.ndarray) -> np.ndarray:
    """Orthonormal bases of the column spaces of stacked matrices."""
    return A if A.shape[2] == 0 else np.linalg.qr(A)[0]
