"""The trimmed flat of given dimension and h, on data of any size: which rows to search on, and which method ends it.

- few entries: the distinct rows are sorted and written out: neither their order nor their repetition matters
- p ≤ 2000: searched on a sample, ended by exact concentration steps on all rows, which are read in pieces
- p > 2000: searched on a sample, ended by SMART on the Stiefel manifold, m updated between its runs
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from trimlearn._utils.threads import each
from trimlearn.losses import Subspace
from trimlearn.losses.exact import COLUMNS
from trimlearn.problem import Problem
from trimlearn.regularizers import Stiefel
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.subspace.flat import Fit, Flat, Points, best_flat, concentrate, explained, spectrum, weigh
from trimlearn.robust.subspace.starts import least_outlying, minima
from trimlearn.smart import svrg
from trimlearn.smart.draws import Draws, Stream
from trimlearn.smart.method import Method
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

__all__ = ["ENTRIES", "Search", "Span", "sample"]

ENTRIES = 4_000_000  # entries of X up to which the distinct rows are found and written out
SAMPLE = 600, 300  # rows that starts are tried on: for few columns, and for many
SAMPLE_ENTRIES = 100_000
LARGE_TOL = 1e-6  # a concentration step on large data must lower the objective by this share
HUGE = 1e100  # rows farther out are as far as can be: squares must not overflow
ENOUGH, MOST = 0.8, 10  # ROBPCA's (Hubert, Rousseeuw and Vanden Branden 2005)
FOLDS = 5  # in which rows are left out to judge them
CANDIDATES = 3  # minima of the sample that are compared on all rows
POWER_STEPS = 5  # with which a flat adapts to other weights where p is large
ROUNDS = 10  # updates of m between runs of SMART


@final
@dataclass(frozen=True)
class Span:
    """Rows D of weight s > 0 in coordinates of their own: aᵢ = center + basisᵀDᵢ. Distances are the same there.

    basis is None where the rows are no fewer than the columns and nothing would be saved.
    """

    D: np.ndarray
    s: np.ndarray
    center: np.ndarray
    basis: np.ndarray | None

    @classmethod
    def of(cls, A: np.ndarray, s: np.ndarray, m: np.ndarray | None) -> Span:
        """Around m, or around the median of every column, so that a row far out does not cost the others digits."""
        center = np.array([weighted_quantile(column, s, 0.5) for column in A.T]) if m is None else m
        D = np.clip(A - center, -HUGE, HUGE)
        if len(D) >= D.shape[1]:
            return cls(D, s, center, None)
        U, values, basis = np.linalg.svd(D, full_matrices=False)
        return cls(U * values, s, center, basis)

    def part(self, rows: np.ndarray, s: np.ndarray) -> Span:
        """Some of the rows, in as few coordinates as they need."""
        inner = Span.of(self.D[rows], s, np.zeros(self.D.shape[1]))
        basis = self.basis if inner.basis is None else inner.basis
        if self.basis is not None and inner.basis is not None:
            basis = inner.basis @ self.basis
        return Span(inner.D, s, self.center, basis)

    def coordinates(self, A: np.ndarray) -> np.ndarray:
        """Rows in these coordinates; exactly, if they lie in the span."""
        D = np.clip(A - self.center, -HUGE, HUGE)
        return D if self.basis is None else np.asarray(D @ self.basis.T)

    def outside(self, flat: Flat) -> Flat:
        """The flat in the coordinates of X."""
        if self.basis is None:
            return Flat(flat.U, self.center + flat.m)
        return Flat(self.basis.T @ flat.U, self.center + flat.m @ self.basis)

    def inside(self, flat: Flat) -> Flat:
        """The flat in coordinates of its own: the nearest one, should it not lie within the span."""
        if self.basis is None:
            return Flat(flat.U, flat.m - self.center)
        return Flat(np.linalg.qr(self.basis @ flat.U)[0], self.coordinates(flat.m))


def sample(n: int, p: int, k: int, s: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers drawn in proportion to s, and how often each was; all rows and s itself where they are few."""
    size = max(min(SAMPLE[0], max(SAMPLE[1], SAMPLE_ENTRIES // p)), 10 * (k + 1))
    if n <= size:
        return np.arange(n), s
    drawn = Draws(seed, 0, n, np.cumsum(s), Stream.START).rows(size)
    rows, times = np.unique(drawn, return_counts=True)
    return rows, times.astype(np.float64)


@final
class Search:
    """Trimmed flats of some points with weights s: through m, or through the trimmed mean where m is None."""

    def __init__(self, points: Points, s: np.ndarray, m: np.ndarray | None, seed: int) -> None:
        self.points, self.s, self.m, self.seed = points, s, m, seed
        self.free, self.S = m is None, float(s.sum())
        self.small = points.n * points.p <= ENTRIES
        self.all: Span | None = None  # the distinct rows
        self.inner = points  # all rows in as few coordinates as they need
        if self.small:
            A = points.around(np.zeros(points.p), slice(0, points.n))  # written out, in float64
            rows, masses, self.which = distinct_rows(A, s)
            self.all = Span.of(A[rows], masses, m)
            if self.all.basis is not None:
                self.inner = Points(self.all.coordinates(A))

    def sampled(self, k: int) -> Span:
        """The rows that starts are tried on."""
        if self.all is not None:
            n, p = self.all.D.shape
            rows, times = sample(n, p, k, self.all.s, self.seed)
            return self.all.part(rows, times)
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
            span = None if self.inner is self.points else self.all
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

    def fit(self, k: int, h: float, max_iter: int, method: Method | None = None) -> Fit:
        """The best flat of dimension k found for h."""
        span = self.sampled(k)
        h_sample = min(h / self.S, 1.0) * float(span.s.sum())
        found = minima(span.D, span.s, min(k, span.D.shape[1]), h_sample, self.free, self.seed)[:CANDIDATES]
        flats = [span.outside(fit.flat) for fit in found]
        return self.refine(flats, h, max_iter, method)

    def span(self) -> int:
        """How many axes the rows can vary along, at most."""
        return min(self.points.n, self.points.p) if self.all is None else int(self.all.D.shape[1])

    def useful(self) -> int:
        """How many dimensions a flat to trim by may have on a sample: as many as explain most of the central half.

        `ENOUGH` of the variance of the rows of least Stahel–Donoho outlyingness, at most `MOST` dimensions, as in
        ROBPCA; and no flat that goes through half of the rows, or is all of the space.
        """
        span = self.sampled(0)
        c = least_outlying(span.D, span.s, self.seed)
        m = np.average(span.D, axis=0, weights=c) if self.free else np.zeros(span.D.shape[1])
        values = np.linalg.svd(np.sqrt(c)[:, None] * (span.D - m), compute_uv=False) ** 2
        return int(max(0, min(explained(values, ENOUGH), MOST, self.points.p - 1, len(span.s) // 2 - 2)))

    def axes(self, c: np.ndarray, flat: Flat, share: float) -> int:
        """How many axes explain ``share`` of the variance of the rows weighted by c."""
        z = self.points.scores(self.settle(c, flat, self.span()))
        return explained(spectrum((z * c[:, None]).T @ z, z.shape[1])[0], share)

    def refine(self, flats: list[Flat], h: float, max_iter: int, method: Method | None = None) -> Fit:
        """From the best of some flats to a minimum."""
        if self.all is not None and method is None:
            return self._refine_small(self.all, flats, h, max_iter)
        flat = min((weigh(self.points, flat, self.s, h) for flat in flats), key=lambda fit: fit.objective).flat
        if method is None and self.points.p <= COLUMNS:
            return concentrate(self.points, flat, self.s, h, self.free, max_iter, LARGE_TOL)
        return self._smart(flat, h, method or svrg())

    def _refine_small(self, span: Span, flats: list[Flat], h: float, max_iter: int) -> Fit:
        inner = Points(span.D)
        fits = [concentrate(inner, span.inside(flat), span.s, h, self.free, max_iter) for flat in flats]
        best = min(fits, key=lambda fit: fit.objective)
        flat, w = span.outside(best.flat), np.append(best.w, 0.0)[self.which]
        return replace(best, flat=flat, w=w, distances2=self.points.distances2(flat))

    def _smart(self, flat: Flat, h: float, method: Method) -> Fit:
        """SMART for U and w, and m the mean for that w, in turn: each lowers the objective."""
        X: Any = self.points.storage.V
        fit, history = weigh(self.points, flat, self.s, h), []
        for _ in range(ROUNDS):
            before = fit
            loss = Subspace(X, flat.U.shape[1], center=fit.flat.m, start=fit.flat.U)
            problem = Problem(loss, CappedSimplex(h), Stiefel(), sample_weight=self.s)
            found = solve(problem, method, x0=fit.flat.U, w0=fit.w, seed=self.seed)
            U, w = np.linalg.qr(np.asarray(found.x, dtype=np.float64))[0], np.asarray(found.w, dtype=np.float64)
            m = self.points.mean(self.s * w) if self.free else fit.flat.m
            fit = weigh(self.points, Flat(U, m), self.s, h)
            history.append(fit.objective)
            if not self.free or not fit.objective < before.objective * (1 - LARGE_TOL):
                break
        best = min(before, fit, key=lambda one: one.objective)
        return replace(best, history=history, converged=found.status.converged)
