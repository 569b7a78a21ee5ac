"""Many fits to one small sample at once: batched least squares, and trimming.

A batch of B starts is a matrix of masses C (B, n), C[b, i] = sᵢwᵢ, or of coefficients U (B, r).

Starts that do not rely on luck: subsets cut along the directions in which rows pull the fit.

With 40 % of bad rows and 20 features, two random subsets in 100,000 are clean. Where bad rows act together they show as
one end of a direction of the design, and the rows without that end are a good start.

D. Peña and V. Yohai (1999), A fast procedure for outlier diagnostics in large regression problems, JASA 94.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import final

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf

from trimlearn.robust.order import hth_smallest, keep_smallest, keep_up_to, medians

PRODUCTS = 500_000  # entries of all zᵢzᵢᵀ up to which they are held: 4 MB, beyond which sums by rows are as fast
PIECE = 400_000  # entries of the rows gathered at a time: 3 MB stay in the cache
RIDGE = 1e-12  # share of the mean curvature that is added, 4,500 eps, so that a singular subset has a fit too
FEW = 4  # times the rows that changed are at most as many as there are: then changes are the shorter sum, gathered too
BRACKET = 0.1  # of the last threshold: within it lie a tenth of the rows, and as a rule the next threshold
BRACKETED = 1_000  # rows from which on that pays
SINGLE = 32  # unknowns from which on systems are solved one by one: below, a call takes longer than its arithmetic


@final
class RegressionSample:
    """Rows Q (n, r) with targets t and masses m (their sample weights; None for all ones), of which h are kept."""

    def __init__(self, Q: np.ndarray, t: np.ndarray, m: np.ndarray | None, h: float) -> None:
        self.Q, self.t, self.h = Q, t, h
        self.n, self.r = Q.shape
        self.m = np.ones(self.n) if m is None else m
        self._s = None if np.all(self.m == 1) else self.m
        self._Z = np.column_stack([Q, t])
        self._energy = np.einsum("ij,ij->i", self._Z, self._Z)
        self._left, self._right = np.triu_indices(self.r + 1)

    # --- batches ------------------------------------------------------------------------------------------------------

    def fit(self, C: np.ndarray) -> np.ndarray:
        """argmin_u Σᵢ C[b, i](tᵢ − Qᵢu)² for every b, by the normal equations."""
        if self.many:  # one by one, while the moments are in the cache
            return np.concatenate([self.solved(self._moment(c)[None]) for c in C])
        return self.solved(self.moments(C))

    def solved(self, M: np.ndarray) -> np.ndarray:
        """The coefficients of least squares for each of the moments M (B, r + 1, r + 1)."""
        return _solve(M[:, : self.r, : self.r], M[:, : self.r, self.r])

    @property
    def many(self) -> bool:
        """Whether there are too many rows for the products of all to be held."""
        return bool(self.n * len(self._left) > PRODUCTS)

    def moments(self, C: np.ndarray) -> np.ndarray:
        """Σᵢ C[b, i] zᵢzᵢᵀ for zᵢ = (Qᵢ, tᵢ) and every b."""
        if self.many:
            return np.stack([self._moment(c) for c in C])
        entries = C @ self._products
        M = np.empty((len(C), self.r + 1, self.r + 1))
        M[:, self._left, self._right] = entries
        M[:, self._right, self._left] = entries
        return M

    @cached_property
    def _products(self) -> np.ndarray:
        """The entries of every zᵢzᵢᵀ on and above its diagonal: with them the moments of all starts are one product."""
        return np.asarray(self._Z[:, self._left] * self._Z[:, self._right])

    def _moment(self, c: np.ndarray) -> np.ndarray:
        """The same for one start, a piece of its rows at a time."""
        rows, M = np.flatnonzero(c), np.zeros((self.r + 1, self.r + 1))
        step = max(1, PIECE // (self.r + 1))
        for first in range(0, len(rows), step):
            piece = rows[first : first + step]
            Z, mass = self._Z.take(piece, axis=0), c[piece]  # a fifth of the time of self._Z[piece]
            if np.any(mass != 1):
                Z *= np.sqrt(mass)[:, None]
            M += Z.T @ Z  # of one matrix: BLAS computes half of it
        return M

    def summed(self, c: np.ndarray) -> Sum:
        """The moments of masses c."""
        M = self._moment(c)
        return Sum(c, M, float(np.trace(M)))

    def moved(self, c: np.ndarray, last: Sum) -> Sum:
        """The moments of masses c from the last ones: by the rows that came and went, if these are few.

        Not where less stays than went since all rows were summed, as with one far out: a small difference of large sums
        is rounding.
        """
        change = c - last.c
        rows = np.flatnonzero(change)
        change, energy = change[rows], self._energy[rows]
        largest = max(last.largest, float(np.trace(last.M) + np.maximum(change, 0) @ energy))
        if FEW * len(rows) > np.count_nonzero(c) or not float(np.trace(last.M) + change @ energy) >= largest / 2:
            return self.summed(c)
        Z = self._Z.take(rows, axis=0)
        return Sum(c, last.M + (Z * change[:, None]).T @ Z, largest)

    def losses(self, U: np.ndarray) -> np.ndarray:
        """(tᵢ − Qᵢu)² for every u of the batch and every row."""
        F = U @ self.Q.T
        np.subtract(self.t, F, out=F)
        return np.asarray(np.multiply(F, F, out=F))

    def loss(self, u: np.ndarray) -> np.ndarray:
        """The same for one u, in one array: a page of fresh memory costs as much as the sums in it."""
        e = self.residuals(u)
        return np.asarray(np.multiply(e, e, out=e))

    def residuals(self, u: np.ndarray) -> np.ndarray:
        """tᵢ − Qᵢu for one u."""
        e = self.Q @ u
        return np.asarray(np.subtract(self.t, e, out=e))

    def trim(self, F: np.ndarray) -> np.ndarray:
        """The masses C = m·w of the best w for the losses of every start."""
        return keep_smallest(F, self._s, self.h)

    def kept(self, F: np.ndarray, near: float | None = None) -> tuple[np.ndarray, float]:
        """The same for one start, with losses F (n,), and the largest loss that is kept. near: where that may be."""
        if near is None or self.n < BRACKETED or self.h >= self.m.sum():
            level = float(hth_smallest(F[None], self._s, self.h)[0, 0])
        else:
            level = self._level(F, near)
        return keep_up_to(F[None], self._s, self.h, np.array([[level]]))[0], level

    def _level(self, F: np.ndarray, near: float) -> float:
        """The largest loss that is kept, from the rows about ``near`` if it is there: ten times as fast."""
        below, beyond = F < near * (1 - BRACKET), F > near * (1 + BRACKET)
        rows = np.flatnonzero(~(below | beyond))
        left = self.h - (float(np.count_nonzero(below)) if self._s is None else float(self.m @ below))
        m = None if self._s is None else self.m[rows]
        if not 0 < left <= (len(rows) if m is None else m.sum()):
            return float(hth_smallest(F[None], self._s, self.h)[0, 0])
        return float(hth_smallest(F[None, rows], m, left)[0, 0])

    # --- subsets ------------------------------------------------------------------------------------------------------

    def subsets(self, count: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """The row numbers of ``count`` random subsets of ``size`` rows, or of all subsets where there are no more."""
        size = min(size, self.n)
        if comb(self.n, size) <= count:
            return np.array(list(combinations(range(self.n), size)))
        rows = rng.integers(0, self.n - np.arange(size), (count, size))  # the k-th of those not yet drawn
        for k in range(1, size):
            for drawn in np.sort(rows[:, :k], axis=1).T:
                rows[:, k] += rows[:, k] >= drawn
        return rows

    def fit_subsets(self, rows: np.ndarray, t: np.ndarray | None = None) -> np.ndarray:
        """Least squares on each of the subsets, with their own targets (subsets, size) if given."""
        E, t = self.Q[rows], self.t[rows] if t is None else t
        return _solve(np.swapaxes(E, 1, 2) @ E, np.einsum("bki,bk->bi", E, t))

    def gram(self, c: np.ndarray) -> np.ndarray:
        """Σ cᵢqᵢqᵢᵀ."""
        return self._moment(c)[: self.r, : self.r]


@final
@dataclass(frozen=True)
class Sum:
    """Masses c, the moments M = Σ cᵢzᵢzᵢᵀ, and the largest trace of moments since all rows were summed."""

    c: np.ndarray
    M: np.ndarray
    largest: float


def ridged(G: np.ndarray) -> np.ndarray:
    """Positive semidefinite matrices (…, r, r) with a trace of a ridge, so that each has an inverse."""
    ridged = G.copy()
    diagonal = np.einsum("...ii->...i", ridged)  # a view
    curvature = diagonal.sum(axis=-1, keepdims=True) / max(G.shape[-1], 1)
    diagonal += np.where(curvature > 0, RIDGE * curvature, 1.0)
    return ridged


def _solve(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    unknowns = G.shape[1]
    if len(G) > (min(2, unknowns) if unknowns < SINGLE else unknowns):
        return np.asarray(np.linalg.solve(ridged(G), g[:, :, None])[:, :, 0])
    return np.stack([_solve_one(H, b) for H, b in zip(G, g, strict=True)])


def _solve_one(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    """By Cholesky's factors: half of the arithmetic, and of one small system a quarter of the time."""
    H = np.array(G, order="F")  # as `ridged` has it, in fewer calls
    curvature = float(np.trace(G)) / max(len(G), 1)
    H.reshape(-1, order="F")[:: len(G) + 1] += RIDGE * curvature if curvature > 0 else 1.0
    _, u, failed = dposv(H, g, overwrite_a=True)
    return np.asarray(np.linalg.solve(ridged(G), g) if failed else u)


DIRECTIONS = 20  # as many are cut along, the most influential ones: see python -m benchmarks.calibration lts
STEPS = 10  # reweighted steps towards the least absolute deviations: a start, which concentration takes further
NEAR = 9.0  # times the median squared residual: rows within 3 medians of |e|, which is 2 σ of a normal error
LEVER = 1 - 1e-3  # leverage of a row taken at most: the fit goes through it, and e/(1 − lever) is rounding
UNSEEN = 1e-9  # eigenvalue, relative to the largest, of a direction that no kept row sees: far above its rounding, eps
SEES = 1e-6  # size, for Q of unit scale, from which a row sees a direction: far above rounding, far below 1


def directed_starts(sample: RegressionSample) -> np.ndarray:
    """Fits (B, r) to subsets cut along the axes of Q and of sensitivity, to central rows, and with the l1 norm."""
    lengths = np.einsum("ij,ij->i", sample.Q, sample.Q)
    ordered = np.sort(lengths)
    central = [sample.m * (lengths <= ordered[int(share * (sample.n - 1))]) for share in (0.25, 0.5, 0.75)]
    every = np.broadcast_to(sample.m, (1, sample.n))
    C = np.vstack([every, *central, _cuts(sample, sample.Q[:, :DIRECTIONS]), _sensitive(sample, every[0])])
    U = sample.fit(C)
    return np.vstack([U, _absolute(sample, C[:4])])


def sensitive_starts(sample: RegressionSample, U: np.ndarray) -> np.ndarray:
    """The same from what each u of U explains: rows far from it are left out before sensitivities are taken."""
    C = [sample.m * (F <= NEAR * medians(F)) for F in sample.losses(U)]
    return sample.fit(np.vstack([_sensitive(sample, c) for c in C]))


def absolute_start(sample: RegressionSample) -> np.ndarray:
    """The fit (1, r) of least absolute deviations to all rows."""
    return _absolute(sample, sample.m[None])


def completed(sample: RegressionSample, U: np.ndarray) -> np.ndarray:
    """U with the directions that no kept row sees (a rare level of a factor) fitted to the rows that see them.

    A start from a small sample knows nothing of them, and concentration never would: their rows stay far and trimmed.
    """
    if sample.many:
        M = np.stack([sample.moments(sample.trim(sample.losses(u[None])))[0] for u in U])
    else:
        M = sample.moments(sample.trim(sample.losses(U)))
    ends = U.copy()
    for b, G in enumerate(M[:, : sample.r, : sample.r]):
        unseen = _unseen(G)
        if unseen.size:
            ends[b] = _completed(sample, U[b], unseen)
    return ends


def _unseen(G: np.ndarray) -> np.ndarray:
    """The directions (r, some) that rows with the moments G do not see: none, as a rule, and then Cholesky's factors of
    what is left beyond the limit say so in a twentieth of the time that eigenvalues take."""
    limit = UNSEEN * float(np.trace(G))  # no less than UNSEEN times the largest eigenvalue
    if not dpotrf(G - limit * np.eye(len(G)), overwrite_a=True)[1]:
        return np.empty((len(G), 0))
    values, V = np.linalg.eigh(G)
    return np.asarray(V[:, values <= UNSEEN * values[-1]])


def _completed(sample: RegressionSample, u: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    P = sample.Q @ unseen
    rows = np.flatnonzero(np.any(np.abs(P) > SEES, axis=1))
    if not len(rows):
        return u
    e = (sample.t - sample.Q @ u)[rows]
    return np.asarray(u + unseen @ absolute_start(RegressionSample(P[rows], e, sample.m[rows], sample.h))[0])


def _sensitive(sample: RegressionSample, c: np.ndarray) -> np.ndarray:
    """Masses cut along the principal sensitivity components of the rows with masses c.

    Leaving row j out moves the fitted values by hᵢⱼeⱼ/(1 − hⱼⱼ); their principal components are Qv for the
    eigenvectors v of Σⱼ (eⱼ/(1 − hⱼⱼ))² qⱼqⱼᵀ in coordinates in which the rows are orthonormal.
    """
    u = sample.fit(c[None])[0]
    G = ridged(sample.gram(c))
    Q = np.linalg.solve(np.linalg.cholesky(G), sample.Q.T).T
    lever = np.minimum(np.einsum("ij,ij->i", Q, Q) * c, LEVER)
    e = sample.t - sample.Q @ u
    pull = c * (e / (1 - lever)) ** 2
    V = np.linalg.eigh((Q * pull[:, None]).T @ Q)[1]
    return _cuts(sample, np.column_stack([Q @ V[:, -DIRECTIONS:], e])) * (c > 0)


def _cuts(sample: RegressionSample, Z: np.ndarray) -> np.ndarray:
    """For every column of Z the masses of its lower half, its upper half and its middle half, (3·columns, n)."""
    middle = medians(Z)
    far = np.abs(Z - middle)
    halves = np.stack([Z <= middle, Z >= middle, far <= medians(far)])
    return np.asarray(halves.transpose(0, 2, 1).reshape(-1, sample.n) * sample.m)


def _absolute(sample: RegressionSample, C: np.ndarray) -> np.ndarray:
    """Least absolute deviations over the rows with masses C, by reweighting."""
    U = sample.fit(C)
    for _ in range(STEPS):
        E = np.sqrt(sample.losses(U))
        floor = 1e-6 * E.mean(axis=1, keepdims=True) + 1e-300
        U = sample.fit(C / np.maximum(E, floor))
    return U
