"""The trimmed flat of given dimension and h, on data of any size: which rows to search on, and which method ends it.

- few entries: the distinct rows are sorted and written out: neither their order nor their repetition matters
- p ≤ 2000: searched on a sample, ended by exact concentration steps on all rows, which are read in pieces
- p > 2000: searched on a sample, ended by SMART on the Stiefel manifold, m updated between its runs

Where the concentration of a trimmed flat starts: the start decides which local minimum is found.

Robust principal components in several ways, a continuation in h from the plain ones, and flats through random minimal
subsets: the best of them are concentrated to convergence, and every minimum is given, the best first.

In which units features are compared by a distance from a subspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, final

import numpy as np

from trimlearn._utils.threads import each, total
from trimlearn._utils.validation import is_sparse
from trimlearn.losses import Subspace
from trimlearn.losses.exact import COLUMNS
from trimlearn.problem import Problem
from trimlearn.regularizers import Stiefel
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.order import keep_smallest, weighted_medians, weighted_quantile
from trimlearn.robust.scatter.units import EQUAL, MAD
from trimlearn.robust.subspace.flat import (
    STEPS,
    Flat,
    FlatProblem,
    Points,
    Span,
    TrimmedFlat,
    best_flat,
    dimensions_for,
    sample,
    spectrum,
)
from trimlearn.smart import svrg
from trimlearn.smart.draws import Draws, Stream
from trimlearn.smart.method import Method
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

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


ENTRIES: Final = 4_000_000  # of X, up to which the distinct rows are found and written out, a limit on memory: 32 MB
LARGE_TOL: Final = 1e-6  # the least relative decrease worth another reading of large data
ENOUGH, MOST = 0.8, 10  # ROBPCA's share of variance and of dimensions (Hubert, Rousseeuw and Vanden Branden 2005)
# The share where every feature has the same variance: 80 % of it then take most of the directions, and leave anomalies
# nothing to stand out from (`benchmarks peers anomalies`: wine has an AUROC of 0.96 with a half, of 0.30 with 80 %).
ENOUGH_SCALED: Final = 0.5
FOLDS: Final = 5  # in which rows are left out to judge them: as many as in scikit-learn's cross-validation
CANDIDATES: Final = 3  # minima of the sample tried on all rows; 8 gain 4e-6 of F (`benchmarks.calibration subspace`)
POWER_STEPS: Final = 5  # adapt a flat to other weights up to an angle of 1e-6 (`benchmarks.calibration subspace`)
ROUNDS: Final = 10  # updates of m between runs of SMART, a limit on time: they end once F no longer falls


@final
class FlatSearch:
    """Trimmed flats of some points with weights s: through m, or through the trimmed mean where m is None.

    max_iter: concentration steps at most. method: how to end the search, None to choose it by the size of the data.
    """

    def __init__(
        self,
        points: Points,
        s: np.ndarray,
        m: np.ndarray | None,
        seed: int,
        max_iter: int = STEPS,
        method: Method | None = None,
    ) -> None:
        self.points, self.s, self.m, self.seed = points, s, m, seed
        self.max_iter, self.method = max_iter, method
        self.free, self.S = m is None, float(s.sum())
        self.small = points.n * points.p <= ENTRIES
        self.distinct: Span | None = None  # the distinct rows
        self.inner = points  # all rows in as few coordinates as they need
        if self.small:
            A = points.around(np.zeros(points.p), slice(0, points.n))  # written out, in float64
            rows, masses, self.which = distinct_rows(A, s)
            self.distinct = Span.of(A[rows], masses, m)
            if self.distinct.basis is not None:
                self.inner = Points(self.distinct.coordinates(A))

    def sampled(self, k: int) -> Span:
        """The rows that starts are tried on."""
        if self.distinct is not None:
            n, p = self.distinct.D.shape
            rows, times = sample(n, p, k, self.distinct.s, self.seed)
            return self.distinct.part(rows, times)
        rows, times = sample(self.points.n, self.points.p, k, self.s, self.seed)
        return Span.of(self.points.around(np.zeros(self.points.p), rows), times, self.m)

    def typical2(self, flat: Flat) -> np.ndarray:
        """‖aᵢ − m‖² of a sample of the rows."""
        span = self.sampled(0)
        return np.asarray(np.sum((span.D - span.coordinates(flat.m)) ** 2, axis=1))

    def settle(self, c: np.ndarray, flat: Flat, k: int | None = None) -> Flat:
        """The flat, of the same dimension or of dimension k, that is best for the rows weighted by c."""
        k = flat.U.shape[1] if k is None else k
        if self.inner.p <= COLUMNS:
            span = None if self.inner is self.points else self.distinct
            m = flat.m if span is None else span.coordinates(flat.m)
            best = best_flat(self.inner, c, min(k, self.inner.p), m, self.free)
            return best if span is None else span.outside(best)
        if k != flat.U.shape[1]:
            raise ValueError(f"n_components must be an integer for X of shape {self.points.n, self.points.p}.")
        m = self.points.mean(c) if self.free else flat.m
        for _ in range(POWER_STEPS):
            flat = Flat(np.linalg.qr(self.points.pull(c, Flat(flat.U, m)))[0], m)
        return flat

    def refitted(self, c: np.ndarray, flat: Flat, distances2: np.ndarray) -> np.ndarray:
        """The squared distances, for rows with c > 0 to a flat that was fitted without them.

        A row that helped to fit the flat lies nearer to it than one that did not. The rows are left out in `FOLDS`
        parts, evenly by distance; equal rows are left out together. For small data.
        """
        kept = np.flatnonzero(c)
        which = np.unique(self.which[kept], return_inverse=True)[1]
        nearest = np.empty(which.max() + 1)
        nearest[which] = distances2[kept]
        fold = np.argsort(np.argsort(nearest))[which] % FOLDS

        def without(out: np.ndarray) -> np.ndarray:
            rest = np.array(c)
            rest[out] = 0.0
            return Points(self.points.around(np.zeros(self.points.p), out)).distances2(self.settle(rest, flat))

        found = np.array(distances2)
        parts = [kept[fold == part] for part in range(fold.max() + 1)]
        if len(parts) > 1:
            for out, values in zip(parts, each(without, parts), strict=True):
                found[out] = values
        return found

    def fit(self, k: int, h: float) -> TrimmedFlat:
        """The best flat of dimension k found for h."""
        span = self.sampled(k)
        problem = FlatProblem(Points(span.D), span.s, min(h / self.S, 1.0) * float(span.s.sum()), self.free)
        found = minima(problem, span.D, min(k, span.D.shape[1]), self.seed)[:CANDIDATES]
        return self.refine([span.outside(fit.flat) for fit in found], h)

    def dimensions(self) -> int:
        """How many axes the rows can vary along, at most."""
        return min(self.points.n, self.points.p) if self.distinct is None else int(self.distinct.D.shape[1])

    def useful(self) -> int:
        """How many dimensions a flat to trim by may have on a sample: as many as explain most of the central half.

        `ENOUGH` of the variance (where features are scaled `ENOUGH_SCALED`) of the rows of least Stahel–Donoho
        outlyingness, at most `MOST` dimensions, as in ROBPCA; and no flat that goes through half of the
        rows, or is all of the space.
        """
        enough = ENOUGH if self.points.scale is None else ENOUGH_SCALED
        span = self.sampled(0)
        c = least_outlying(span.D, span.s, self.seed)
        m = np.average(span.D, axis=0, weights=c) if self.free else np.zeros(span.D.shape[1])
        values = np.linalg.svd(np.sqrt(c)[:, None] * (span.D - m), compute_uv=False) ** 2
        return int(max(0, min(dimensions_for(values, enough), MOST, self.points.p - 1, len(span.s) // 2 - 2)))

    def axes(self, c: np.ndarray, flat: Flat, share: float) -> int:
        """How many axes explain ``share`` of the variance of the rows weighted by c."""
        z = self.points.scores(self.settle(c, flat, self.dimensions()))
        return dimensions_for(spectrum((z * c[:, None]).T @ z, z.shape[1])[0], share)

    def refine(self, flats: list[Flat], h: float) -> TrimmedFlat:
        """From the best of some flats to a minimum."""
        if self.distinct is not None and self.method is None:
            return self._refine_distinct(self.distinct, flats, h)
        problem = FlatProblem(self.points, self.s, h, self.free)
        best = min((problem.weigh(flat) for flat in flats), key=lambda fit: fit.objective)
        if self.method is None and self.points.p <= COLUMNS:
            return problem.concentrate(best.flat, self.max_iter, LARGE_TOL)
        return self._smart(problem, best.flat, self.method or svrg())

    def _refine_distinct(self, span: Span, flats: list[Flat], h: float) -> TrimmedFlat:
        problem = FlatProblem(Points(span.D), span.s, h, self.free)
        fits = [problem.concentrate(span.inside(flat), self.max_iter) for flat in flats]
        best = min(fits, key=lambda fit: fit.objective)
        flat, w = span.outside(best.flat), np.append(best.w, 0.0)[self.which]
        return replace(best, flat=flat, w=w, distances2=self.points.distances2(flat))

    def _smart(self, problem: FlatProblem, flat: Flat, method: Method) -> TrimmedFlat:
        """SMART for U and w, and m the mean for that w, in turn: each lowers the objective."""
        X: Any = self.points.storage.V
        if self.points.scale is not None:
            X = np.asarray(X / self.points.scale, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
        fit, history = problem.weigh(flat), []
        for _ in range(ROUNDS):
            before = fit
            loss = Subspace(X, flat.U.shape[1], center=fit.flat.m, start=fit.flat.U)
            smart = Problem(loss, CappedSimplex(problem.h), Stiefel(), sample_weight=self.s)
            found = solve(smart, method, x0=fit.flat.U, w0=fit.w, seed=self.seed)
            U, w = np.linalg.qr(np.asarray(found.x, dtype=np.float64))[0], np.asarray(found.w, dtype=np.float64)
            m = self.points.mean(self.s * w) if self.free else fit.flat.m
            fit = problem.weigh(Flat(U, m))
            history.append(fit.objective)
            if not self.free or not fit.objective < before.objective * (1 - LARGE_TOL):
                break
        best = min(before, fit, key=lambda one: one.objective)
        return replace(best, history=tuple(history), converged=found.status.converged)


SCALES: Final = "auto", "mad", "std"  # what users may ask for, beside None
# How many times the largest scale is the smallest where features have units of their own. Of the fourteen tables of
# `benchmarks peers anomalies` six lie below 5 and eight above 11: these have several units, or counts and shares.
UNLIKE: Final = 10.0


def feature_scales(points: Points, s: np.ndarray, asked: str | None, seed: int) -> np.ndarray | None:
    """What each feature is divided by; None where features are taken as they are.

    "mad": the median absolute deviation from the median, made consistent for normal features; the standard deviation
    where more than half of the values are equal (a rare event, a flag), and 1 for a constant. "std": the standard
    deviation. "auto": "mad" where features seem to have units of their own: their scales differ more than `UNLIKE`
    times, and they are fewer than the rows (else they are the channels of a spectrum), dense, and not very many.
    """
    n, p = points.n, points.p
    if asked is None or (asked == "auto" and (p >= n or p > COLUMNS or is_sparse(points.storage.V))):
        return None
    if asked == "std":
        return _positive(_deviations(points, s))
    rows, times = (np.arange(n), s) if n * p <= ENTRIES else sample(n, p, 0, s, seed)
    A, times = points.around(np.zeros(p), rows[times > 0]), times[times > 0]
    away = np.abs(A - weighted_medians(A, times))
    scale = MAD * weighted_medians(away, times)
    flat = scale <= EQUAL * away.max(axis=0, initial=0.0)
    varied = scale[~flat]
    if asked == "auto" and (varied.size < 2 or varied.max() <= UNLIKE * varied.min()):
        return None
    return _positive(np.where(flat, _deviations(points, s), scale))


def _deviations(points: Points, s: np.ndarray) -> np.ndarray:
    """The standard deviation of every feature; 0 where that is the rounding of a constant."""
    share, center = s / s.sum(), points.mean(s)

    def squares(rows: slice) -> np.ndarray:
        return np.asarray(share[rows] @ np.square(points.around(center, rows)))

    with np.errstate(over="ignore"):
        found = np.sqrt(total(squares, points.pieces(), np.zeros(points.p)))
    return np.where(found > EQUAL * np.abs(center), found, 0.0)


def _positive(scale: np.ndarray) -> np.ndarray:
    return np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
