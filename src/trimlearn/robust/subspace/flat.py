"""Affine subspaces, "flats" for short; the rows that they are fitted to, on data of any size; and their spectrum.

The principal components of a flat: its axes in order of their variance, and what these say about rows.

Trimmed flats: the numerics behind `trimlearn.estimators.TrimmedPCA`.

    minimise 1/S Σ sᵢwᵢ fᵢ(U, m),  fᵢ = ½‖(I − UUᵀ)(aᵢ − m)‖²,  over UᵀU = I, w in the capped simplex, and m if free.

For given w the best m is the weighted mean and the best U the leading eigenvectors of the weighted covariance; for a
given flat the best w keeps the h nearest rows. The two in turn are concentration steps (Rousseeuw and Van Driessen
1999); every one lowers the objective.

Rows in as few coordinates as they need, and which rows to search on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, log, pi
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from trimlearn._utils.arrays import sum64
from trimlearn._utils.threads import each, total
from trimlearn._utils.validation import is_sparse
from trimlearn.losses.base import weighted
from trimlearn.losses.storage import Csr, Storage, open_storage
from trimlearn.robust.order import weighted_quantile
from trimlearn.smart.draws import Draws, Stream
from trimlearn.weights import CappedSimplex

PIECE: Final = 1 << 19  # entries of X written out in float64 at a time, a limit on memory: 4 MiB


@final
@dataclass(frozen=True)
class Flat:
    """The affine subspace m + span U; U is p × k with orthonormal columns."""

    U: np.ndarray
    m: np.ndarray

    def completed(self, k: int) -> Flat:
        """With any directions added, where it has fewer than k."""
        p, has = self.U.shape
        if has >= k:
            return self
        more = np.linalg.qr(np.hstack([self.U, np.eye(p)]))[0][:, has:k]
        return Flat(np.hstack([self.U, more]), self.m)


@final
class Points:
    """The rows a₁ … aₙ of X: dense, memory-mapped or CSR. They are read piece by piece, and met in float64.

    scale: what each column is divided by, as it is read; a sparse X is copied for it.
    """

    def __init__(self, X: Any, scale: np.ndarray | None = None) -> None:
        if is_sparse(X):
            X = sp.csr_array(X)
            X, scale = X if scale is None else sp.csr_array(X * (1.0 / scale)), None
        self.storage: Storage = open_storage(X if is_sparse(X) else np.asarray(X))
        self.scale = scale
        self.n, self.p = self.storage.n, self.storage.p

    def pieces(self) -> list[slice]:
        """The rows in slices that may be written out."""
        step = max(1, PIECE // self.p)
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]

    def around(self, m: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """aᵢ − m for some rows, as a new array."""
        D = self.storage.written_out(rows)
        if self.scale is not None:
            D /= self.scale
        D -= m
        return D

    def scores(self, flat: Flat) -> np.ndarray:
        """Uᵀ(aᵢ − m): coordinates within the flat, n × k."""
        return self._concat(lambda rows: self._meet(flat, rows)[0])

    def distances2(self, flat: Flat) -> np.ndarray:
        """‖(I − UUᵀ)(aᵢ − m)‖²: squared orthogonal distances."""
        return self._concat(lambda rows: self._meet(flat, rows)[1])

    def both(self, flat: Flat) -> tuple[np.ndarray, np.ndarray]:
        """`scores` and `distances2` for one reading of X."""
        found = each(lambda rows: self._meet(flat, rows), self.pieces())
        return np.concatenate([z for z, _ in found]), np.concatenate([r for _, r in found])

    def _concat(self, task: Callable[[slice], np.ndarray]) -> np.ndarray:
        return np.concatenate(each(task, self.pieces()))

    def _meet(self, flat: Flat, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.storage, Csr):
            return _meet_sparse(self.storage, flat, rows)
        D = self.around(flat.m, rows)
        Z = D @ flat.U
        D -= Z @ flat.U.T  # the residual itself: ‖a‖² − ‖z‖² would lose what is small against ‖a‖²
        with np.errstate(over="ignore"):  # infinitely far: such a row is trimmed
            return Z, np.einsum("ij,ij->i", D, D)

    def moments(self, c: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ cᵢ(aᵢ − m)/Σcᵢ and Σ cᵢ(aᵢ − m)(aᵢ − m)ᵀ/Σcᵢ. Pieces without weight are not read."""
        share = c / c.sum()

        def term(rows: slice) -> np.ndarray:
            kept = np.flatnonzero(share[rows]) + rows.start
            return self._moments_of(kept if len(kept) < rows.stop - rows.start else rows, share, m)

        found = total(term, [rows for rows in self.pieces() if share[rows].any()], np.zeros((1 + self.p, self.p)))
        return found[0], found[1:]

    def _moments_of(self, rows: slice | np.ndarray, share: np.ndarray, m: np.ndarray) -> np.ndarray:
        c = share[rows]
        if isinstance(self.storage, Csr):
            B = self.storage.fetch(rows).astype(np.float64)
            mean, square = c @ B, (B.T @ (B * c[:, None])).toarray()
            square += np.outer(m, m) * c.sum() - np.outer(mean, m) - np.outer(m, mean)
            return np.vstack([mean - c.sum() * m, square])
        D = self.around(m, rows)
        mean = c @ D
        D *= np.sqrt(c)[:, None]
        return np.vstack([mean, D.T @ D])

    def pull(self, c: np.ndarray, flat: Flat) -> np.ndarray:
        """Σ cᵢ(aᵢ − m)zᵢᵀ/Σcᵢ with the scores z, p × k: a step of power iteration."""
        share = c / c.sum()

        def term(rows: slice) -> np.ndarray:
            if isinstance(self.storage, Csr):
                B = self.storage.fetch(rows).astype(np.float64)
                Z = share[rows][:, None] * (B @ flat.U - flat.m @ flat.U)
                return np.asarray(B.T @ Z - np.outer(flat.m, Z.sum(axis=0)))
            D = self.around(flat.m, rows)
            return np.asarray(D.T @ (share[rows][:, None] * (D @ flat.U)))

        return total(term, self.pieces(), np.zeros(flat.U.shape))

    def mean(self, c: np.ndarray) -> np.ndarray:
        """Σ cᵢaᵢ/Σcᵢ."""
        share, read = c / c.sum(), self.storage.fetch
        mean = total(lambda r: np.asarray(share[r] @ read(r).astype(np.float64)), self.pieces(), np.zeros(self.p))
        return mean if self.scale is None else mean / self.scale


def _meet_sparse(storage: Csr, flat: Flat, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Scores and squared distances without writing out or centring rows."""
    B = storage.fetch(rows).astype(np.float64)
    Z = B @ flat.U - flat.m @ flat.U
    Q, q = storage.squares(rows, flat.m, np.ones_like(flat.m))
    return Z, np.maximum(Q @ np.ones(storage.p) + q.sum() - np.sum(Z * Z, axis=1), 0.0)


def spectrum(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a covariance matrix, the largest first, and their eigenvectors as columns."""
    p = len(M)
    if k == 0:
        return np.empty(0), np.empty((p, 0))
    values, vectors = eigh(M, subset_by_index=(p - k, p - 1) if k < p else None, check_finite=False)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def dimensions_for(variances: np.ndarray, share: float) -> int:
    """How many of the variances, the largest first, make up ``share`` of their sum; of zeros, one."""
    parts = np.cumsum(variances) / max(float(variances.sum()), float(np.finfo(np.float64).tiny))
    return max(1, min(len(parts), 1 + int(np.searchsorted(parts, share, side="right"))))


@final
@dataclass(frozen=True)
class Components:
    """The principal axes of some rows within a flat, as columns, by decreasing variance.

    left: the rows' variance outside of the flat. freedom: what the sums of squares were divided by. distances: of all
    rows within the flat.
    """

    axes: np.ndarray
    variances: np.ndarray
    left: float
    freedom: float
    distances: np.ndarray

    @property
    def k(self) -> int:
        return len(self.variances)

    @property
    def ratios(self) -> np.ndarray:
        """The share of the rows' variance along each axis."""
        total = self.variances.sum() + self.left
        return self.variances / total if total > 0 else np.zeros(self.k)

    @property
    def singular_values(self) -> np.ndarray:
        return np.asarray(np.sqrt(self.variances * self.freedom))

    def noise(self, n: int, p: int) -> float:
        """The mean variance along the axes left out, of n rows with p features."""
        return self.left / (min(n, p) - self.k) if self.k < min(n, p) else 0.0


def principal_components(flat: Flat, c: np.ndarray, z: np.ndarray, d2: np.ndarray, *, determined: bool) -> Components:
    """Of the rows weighted by c, which have coordinates z within the flat and are √d2 from it.

    The largest entry of each axis is positive. determined: without the axes along which nothing varies.
    """
    W, k = float(c.sum()), flat.U.shape[1]
    freedom = W - 1.0 if W > 1 else W
    kept = c > 0
    variances, turn = spectrum((z[kept] * c[kept, None]).T @ z[kept] / freedom, k)
    if determined:
        k = max(1, int(np.count_nonzero(variances > max(z.shape) * np.finfo(np.float64).eps * variances[0])))
        variances, turn = variances[:k], turn[:, :k]
    axes = flat.U @ turn
    signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
    left = float(c[kept] @ d2[kept]) / freedom
    return Components(axes * signs, variances, left, freedom, mahalanobis(z @ turn, variances))


def mahalanobis(z: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """√Σ zⱼ²/λⱼ over the axes that have a variance λⱼ."""
    real = variances > np.finfo(np.float64).eps * variances.max(initial=0.0)
    with np.errstate(over="ignore"):  # infinitely far
        return np.asarray(np.linalg.norm(z[:, real] / np.sqrt(variances[real]), axis=1))


def log_likelihoods(z: np.ndarray, d2: np.ndarray, variances: np.ndarray, noise: float, p: int) -> np.ndarray:
    """Of rows with p features: normal, of these variances along the axes and ``noise`` along the others."""
    k = len(variances)
    least = np.finfo(np.float64).eps * float(variances.max()) + np.finfo(np.float64).tiny
    variances, noise = np.maximum(variances, least), max(noise, least)
    log_det = float(np.log(variances).sum()) + (p - k) * log(noise)
    outside = d2 / noise if p > k else 0.0
    inside = np.square(mahalanobis(z, variances))
    return np.asarray(-0.5 * (inside + outside + log_det + p * log(2 * pi)))


TOL: Final = 1e-10  # the least relative decrease worth another concentration step: F is known to 1e-12 or so
STEPS: Final = 100  # a limit on time: the slowest start of `benchmarks.calibration subspace` takes 26


def best_flat(points: Points, c: np.ndarray, k: int, m: np.ndarray, free: bool) -> Flat:
    """The flat of dimension k nearest to the rows weighted by c: through m, or, if that is free, through their mean."""
    d, M = points.moments(c, m)
    if free:
        m, M = m + d, M - np.outer(d, d)
    return Flat(spectrum(M, k)[1], m)


@final
@dataclass(frozen=True)
class TrimmedFlat:
    """A flat with the weights w that are best for it, and the squared distances of all rows."""

    flat: Flat
    w: np.ndarray
    distances2: np.ndarray
    objective: float
    history: tuple[float, ...] = ()  # the objective after every concentration step
    converged: bool = True


@final
@dataclass(frozen=True)
class FlatProblem:
    """The problem: flats for h of the points, which count s times, through a given m or, if that is free, any."""

    points: Points
    s: np.ndarray
    h: float
    free: bool

    def weigh(self, flat: Flat) -> TrimmedFlat:
        """The w-step: the h rows nearest to the flat."""
        d2 = self.points.distances2(flat)
        w = CappedSimplex(self.h).minimise(d2, self.s)
        return TrimmedFlat(flat, w, d2, 0.5 * sum64(weighted(d2, self.s * w)) / float(self.s.sum()))

    def next(self, fit: TrimmedFlat) -> Flat:
        """The best flat for the rows that a fit keeps."""
        return best_flat(self.points, self.s * fit.w, fit.flat.U.shape[1], fit.flat.m, self.free)

    def concentrate(self, flat: Flat, most: int = STEPS, tol: float = TOL) -> TrimmedFlat:
        """Concentration steps until the objective no longer falls, at most ``most``."""
        best = TrimmedFlat(flat, self.s, self.s, inf)
        history: list[float] = []
        while True:
            fit = self.weigh(flat)
            history.append(fit.objective)
            stalled = not fit.objective < best.objective * (1 - tol)
            best = fit if fit.objective <= best.objective else best
            if stalled or len(history) > most:
                return replace(best, history=tuple(history), converged=stalled)
            flat = self.next(fit)


# Rows that starts are tried on, for few columns and for many, and the entries between: a limit on time. A quarter of
# them, or twice as many, lead to objectives within 2e-6 (`benchmarks.calibration subspace`).
SAMPLE: Final = 600, 300
SAMPLE_ENTRIES: Final = 100_000  # 0.8 MB, which stay in a cache
PER_DIMENSION: Final = 10  # rows of the sample per dimension at least, so that half of them determine a flat
HUGE: Final = 1e100  # rows farther out are as far as can be: products of three such numbers are in range


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
    size = max(min(SAMPLE[0], max(SAMPLE[1], SAMPLE_ENTRIES // p)), PER_DIMENSION * (k + 1))
    if n <= size:
        return np.arange(n), s
    drawn = Draws(seed, 0, n, np.cumsum(s), Stream.START).rows(size)
    rows, times = np.unique(drawn, return_counts=True)
    return rows, times.astype(np.float64)
