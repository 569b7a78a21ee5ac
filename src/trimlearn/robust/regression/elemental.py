"""Many fits to one small sample at once: batched least squares, trimming, concentration steps and exchanges.

A batch of B starts is a matrix of masses C (B, n), C[b, i] = sᵢwᵢ, or of coefficients U (B, r).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import final

import numpy as np
from scipy.linalg.lapack import dposv

from trimlearn._utils.threads import each
from trimlearn.robust.order import keep_smallest
from trimlearn.robust.regression.leverage import Leverages

__all__ = ["RegressionSample", "ridged"]

ENTRIES = 1_000_000  # of the largest array held at a time, a limit on memory: 8 MB
PRODUCTS = 4_000_000  # entries of all zᵢzᵢᵀ up to which they are held, a limit on memory: 32 MB
PIECE = 400_000  # entries of the rows gathered at a time: 3 MB stay in the cache
PAIRED = 300  # rows on either side of the threshold tried in pairs: see python -m benchmarks.calibration lts
SETTLED = 100  # concentration steps after an exchange at most, a limit on time: a few are enough
EXACT = 1e-24  # mean squared residual, for targets of scale 1, below which a fit is exact: (4,500 eps)²
CONVERGED = 1e-12  # relative decrease that is none: a sum of 4,500 squares is rounded by as much
RIDGE = 1e-12  # share of the mean curvature that is added, 4,500 eps, so that a singular subset has a fit too
FEW = 4  # times the rows that changed are at most as many as there are: then changes are the shorter sum, gathered too
SINGLE = 1  # systems up to the number of their unknowns are solved one by one: a call costs a microsecond
GAIN = 1e-10  # relative decrease of an exchange that counts: a hundred times CONVERGED, for it is a difference of sums


@final
class RegressionSample:
    """Rows Q (n, r) with targets t and masses m (their sample weights; None for all ones), of which h are kept."""

    def __init__(self, Q: np.ndarray, t: np.ndarray, m: np.ndarray | None, h: float) -> None:
        self.Q, self.t, self.h = Q, t, h
        self.n, self.r = Q.shape
        self.m = np.ones(self.n) if m is None else m
        self._Z = np.column_stack([Q, t])
        self._energy = np.einsum("ij,ij->i", self._Z, self._Z)
        self._left, self._right = np.triu_indices(self.r + 1)

    # --- batches ------------------------------------------------------------------------------------------------------

    def fit(self, C: np.ndarray) -> np.ndarray:
        """argmin_u Σᵢ C[b, i](tᵢ − Qᵢu)² for every b, by the normal equations."""
        return self._solved(self._moments(C))

    def _solved(self, M: np.ndarray) -> np.ndarray:
        """The coefficients of least squares for each of the moments M (B, r + 1, r + 1)."""
        return _solve(M[:, : self.r, : self.r], M[:, : self.r, self.r])

    @property
    def many(self) -> bool:
        """Whether there are too many rows for the products of all to be held."""
        return bool(self.n * len(self._left) > PRODUCTS)

    def _moments(self, C: np.ndarray) -> np.ndarray:
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
            Z, mass = self._Z[piece], c[piece]
            if np.any(mass != 1):
                Z *= np.sqrt(mass)[:, None]
            M += Z.T @ Z  # of one matrix: BLAS computes half of it
        return M

    def _summed(self, c: np.ndarray) -> _Sum:
        M = self._moment(c)
        return _Sum(c, M, float(np.trace(M)))

    def _moved(self, c: np.ndarray, last: _Sum) -> _Sum:
        """The moments of masses c from the last ones: by the rows that came and went, if these are few.

        Not where less stays than went since all rows were summed, as with one far out: a small difference of large sums
        is rounding.
        """
        change = c - last.c
        rows = np.flatnonzero(change)
        change, energy = change[rows], self._energy[rows]
        largest = max(last.largest, float(np.trace(last.M) + np.maximum(change, 0) @ energy))
        if FEW * len(rows) > np.count_nonzero(c) or not float(np.trace(last.M) + change @ energy) >= largest / 2:
            return self._summed(c)
        Z = self._Z[rows]
        return _Sum(c, last.M + (Z * change[:, None]).T @ Z, largest)

    def losses(self, U: np.ndarray) -> np.ndarray:
        """(tᵢ − Qᵢu)² for every u of the batch and every row."""
        F = self.t - U @ self.Q.T
        return np.asarray(F * F)

    def trim(self, F: np.ndarray) -> np.ndarray:
        """The masses C = m·w of the best w for the losses of every start."""
        return keep_smallest(F, self.m, self.h)

    def concentrate(self, U: np.ndarray, steps: int, stretch: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """At most ``steps`` concentration steps for every u, in chunks: (U, objectives).

        With ``stretch`` > 0 a step goes on as much farther in its direction, and back where that is no better:
        concentration errs on the short side, by about half on large data, since it holds w while it moves u.
        """
        chunk = min(max(1, ENTRIES // self.n), 128)
        parts = each(lambda b: self._concentrate(U[b : b + chunk], steps, stretch), range(0, len(U), chunk))
        return np.concatenate([U for U, _ in parts]), np.concatenate([value for _, value in parts])

    def _concentrate(self, U: np.ndarray, steps: int, stretch: float) -> tuple[np.ndarray, np.ndarray]:
        best, value = U.copy(), np.full(len(U), np.inf)
        plain, ahead = U.copy(), np.zeros(len(U), dtype=bool)  # the step as it is, and who stands beyond it
        held: dict[int, _Sum] = {}
        active, U = np.arange(len(U)), U.copy()
        for step in range(steps + 1):
            F = self.losses(U[active])
            C = self.trim(F)
            found = np.einsum("bi,bi->b", C, F)
            better = found < value[active] * (1 - CONVERGED)
            gone, back = active[better], active[~better & ahead[active]]
            best[gone], value[gone] = U[gone], found[better]
            if step == steps or not len(gone) + len(back):
                break
            if len(gone):
                plain[gone] = self._refit(C[better], gone, held)
                U[gone], ahead[gone] = plain[gone] + stretch * (plain[gone] - U[gone]), stretch > 0
            U[back], ahead[back] = plain[back], False
            active = np.concatenate([gone, back])
        return best, value

    def _refit(self, C: np.ndarray, starts: np.ndarray, held: dict[int, _Sum]) -> np.ndarray:
        """`fit` for these starts; of many rows by what changed since the moments that are ``held``."""
        if not self.many:
            return self.fit(C)
        for c, start in zip(C, starts.tolist(), strict=True):
            held[start] = self._moved(c.copy(), held[start]) if start in held else self._summed(c.copy())
        return self._solved(np.stack([held[start].M for start in starts.tolist()]))

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

    # --- one start ----------------------------------------------------------------------------------------------------

    def exchange(self, u: np.ndarray, rounds: int) -> tuple[np.ndarray, float]:
        """Leave fixed points of concentration: the best exchange of mass between two rows, then concentration again.

        Hawkins (1994), the feasible solution algorithm. With residuals e, G = Σ cᵢqᵢqᵢᵀ and hᵢⱼ = qᵢᵀG⁻¹qⱼ, moving mass
        δ from row i to row j lowers the minimum over u by
        [(1/δ + hⱼⱼ)eᵢ² − 2hᵢⱼeᵢeⱼ − (1/δ − hᵢᵢ)eⱼ²] / [(1/δ − hᵢᵢ)(1/δ + hⱼⱼ) + hᵢⱼ²].
        """
        end = self._settled(self._summed(self.trim(self.losses(u[None]))[0]))
        leverages = Leverages(self.Q)
        for _ in range(rounds):
            moved = self._best_exchange(end, leverages) if end.value > EXACT * self.h else None
            if moved is None:
                break
            found = self._settled(self._moved(moved, end.kept))
            if not found.value < end.value * (1 - GAIN):
                break
            end = found
        return end.u, end.value

    def _settled(self, kept: _Sum) -> _End:
        """Where concentration ends from the rows that are kept first."""
        best = self._ended(np.zeros(self.r), kept, np.inf)
        for _ in range(SETTLED):
            u = best.refit
            F = self.losses(u[None])
            c = self.trim(F)[0]
            value = float(c @ F[0])
            if not value < best.value * (1 - CONVERGED):
                break
            best = self._ended(u, self._moved(c, best.kept), value)
        return best

    def _ended(self, u: np.ndarray, kept: _Sum, value: float) -> _End:
        return _End(u, kept, value, self._solved(kept.M[None])[0])

    def _best_exchange(self, end: _End, leverages: Leverages) -> np.ndarray | None:
        """The masses after the exchange that lowers the objective most; None where none does."""
        C, M = end.kept.c, end.kept.M
        e = self.t - self.Q @ end.refit
        inverse, lever = leverages.at(C, ridged(M[: self.r, : self.r]))
        give = _first(np.where(C > 0, -(e**2) / np.maximum(1 - C * lever, GAIN), np.inf))
        take = _first(np.where(C < self.m, e**2 / (1 + self.m * lever), np.inf))
        if not len(take):
            return None
        a, b, delta, gain = self._best_pair(C, e, lever, inverse, give, take)
        if not gain > GAIN * float(C @ e**2):
            return None
        moved = C.copy()
        moved[a] -= delta
        moved[b] += delta
        return moved

    def _best_pair(
        self, C: np.ndarray, e: np.ndarray, lever: np.ndarray, inverse: np.ndarray, give: np.ndarray, take: np.ndarray
    ) -> tuple[int, int, float, float]:
        """The rows i and j, the mass δ that goes from one to the other, and what that lowers the minimum by."""
        free = (self.m - C)[take]
        whole = bool(np.all(C[give] == C[give[0]]) and np.all(free == C[give[0]]))  # as without sample weights and ties
        delta = C[give[:1], None] if whole else np.minimum.outer(C[give], free)
        per = 1.0 / delta
        cross = (self.Q[give] @ inverse) @ self.Q[take].T
        out, into, least = per - lever[give, None], per + lever[take], GAIN * per
        gain = into * (e[give] ** 2)[:, None]
        gain -= out * e[take] ** 2
        each_other = 2 * cross  # in place from here on: these are the largest arrays
        each_other *= e[give, None]
        each_other *= e[take]
        gain -= each_other
        cross *= cross
        cross += np.maximum(out, least) * into
        gain /= cross
        np.copyto(gain, -np.inf, where=~(out > least))
        a, b = np.unravel_index(int(np.argmax(gain)), gain.shape)
        moves = delta[0, 0] if whole else delta[a, b]
        return int(give[a]), int(take[b]), float(moves), float(gain[a, b])


@final
@dataclass(frozen=True)
class _Sum:
    """Masses c, the moments M = Σ cᵢzᵢzᵢᵀ, and the largest trace of moments since all rows were summed."""

    c: np.ndarray
    M: np.ndarray
    largest: float


@final
@dataclass(frozen=True)
class _End:
    """Where concentration ended: coefficients u, the rows that they keep, the objective."""

    u: np.ndarray
    kept: _Sum
    value: float
    refit: np.ndarray  # the coefficients of least squares on those rows


def _first(key: np.ndarray) -> np.ndarray:
    """The rows of the least finite keys, at most PAIRED of them."""
    rows = np.argpartition(key, PAIRED)[:PAIRED] if len(key) > PAIRED else np.arange(len(key))
    return np.asarray(rows[np.isfinite(key[rows])])


def ridged(G: np.ndarray) -> np.ndarray:
    """Positive semidefinite matrices (…, r, r) with a trace of a ridge, so that each has an inverse."""
    ridged = G.copy()
    diagonal = np.einsum("...ii->...i", ridged)  # a view
    curvature = diagonal.sum(axis=-1, keepdims=True) / max(G.shape[-1], 1)
    diagonal += np.where(curvature > 0, RIDGE * curvature, 1.0)
    return ridged


def _solve(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    if len(G) * SINGLE > G.shape[1]:
        return np.asarray(np.linalg.solve(ridged(G), g[:, :, None])[:, :, 0])
    return np.stack([_solve_one(H, b) for H, b in zip(G, g, strict=True)])


def _solve_one(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    """By Cholesky's factors: half of the arithmetic, and of one small system a quarter of the time."""
    _, u, failed = dposv(ridged(G).T, g, overwrite_a=True)
    return np.asarray(np.linalg.solve(ridged(G), g) if failed else u)
