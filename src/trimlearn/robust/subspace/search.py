"""The trimmed flat of given dimension and h, on data of any size: which rows to search on, and which method ends it.

- few entries: the distinct rows are sorted and written out: neither their order nor their repetition matters
- p ≤ 2000: searched on a sample, ended by exact concentration steps on all rows, which are read in pieces
- p > 2000: searched on a sample, ended by SMART on the Stiefel manifold, m updated between its runs
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, final

import numpy as np

from trimlearn._utils.threads import each
from trimlearn.losses import Subspace
from trimlearn.losses.exact import COLUMNS
from trimlearn.problem import Problem
from trimlearn.regularizers import Stiefel
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.subspace.concentrate import STEPS, FlatProblem, TrimmedFlat, best_flat
from trimlearn.robust.subspace.flat import Flat, Points, dimensions_for, spectrum
from trimlearn.robust.subspace.span import Span, sample
from trimlearn.robust.subspace.starts import least_outlying, minima
from trimlearn.smart import svrg
from trimlearn.smart.method import Method
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

__all__ = ["ENTRIES", "FlatSearch"]

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

    def without(self, rows: np.ndarray) -> FlatSearch:
        """The same search among the other rows: those of the mask count nothing."""
        return FlatSearch(self.points, self.s * ~rows, self.m, self.seed, self.max_iter, self.method)

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
