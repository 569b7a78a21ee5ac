"""Concentration steps of many starts at once. A start is a row of W (K, n), which holds sᵢwᵢ: a step of all of them is
a few products. With d²ᵢ the squared distance of row i under (μ, Σ), giving h units of weight to the smallest d² lowers
log det Σ (Rousseeuw and Van Driessen 1999, FAST-MCD).

Two things keep Σ regular, in coordinates Z in which every feature has robust scale 1:
- eigenvalues are at least FLOOR. The step is then exact for min log det Σ + tr(Σ⁻¹S) over Σ ⪰ FLOOR·I, and h rows on
  a hyperplane are found and reported, not divided by zero.
- K = ρI + (1 − ρ)cS in place of S, with a share ρ > 0 for few rows (Boudt, Rousseeuw, Vanduffel and Verdonck 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, NamedTuple, final

import numpy as np

from trimlearn.robust.order import keep_smallest

__all__ = ["FLOOR", "STEPS", "DeterminantProblem", "Moments", "Shrinkage", "c_steps", "exchanges"]

# Of a variance, where a feature's robust scale is 1: 1e-7 of the scale. The rounding error of an entry of a covariance,
# eps, is a forty-fifth of it.
FLOOR: Final = 1e-14
STEPS: Final = 200  # a limit on time: the slowest start of `benchmarks.calibration scatter` takes 24
NEAR: Final = 50  # rows on either side of the threshold that may be exchanged: a limit on time, 2,500 pairs a step
CHUNK: Final = 1 << 21  # numbers in a temporary, a limit on memory: 16 MB
FALL: Final = 1e-10  # of log det, relative in the determinant: less is rounding, and no reason for another step


@final
@dataclass(frozen=True)
class Shrinkage:
    """How a covariance S of kept rows becomes the regular K(S) = ρI + (1 − ρ)cS, eigenvalues at least FLOOR."""

    rho: float = 0.0
    c: float = 1.0

    def eigen(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues of K(S), ascending, and the eigenvectors; S may be a stack."""
        values, vectors = np.linalg.eigh(S)
        return np.maximum(self.rho + (1.0 - self.rho) * self.c * values, FLOOR), vectors


class Moments(NamedTuple):
    """Means μ (K, p) and covariances S (K, p, p) of the rows that K starts keep."""

    mu: np.ndarray
    S: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, W: np.ndarray, centred: bool = False) -> Moments:
        """Of the rows of Z weighted by W (K, n); μ = 0 where they are ``centred``."""
        if len(W) == 1:  # a step over all rows: those without weight need not be touched
            kept = np.flatnonzero(W[0])
            Z, W = Z[kept], W[:, kept]
        K, (n, p) = len(W), Z.shape
        h = W.sum(axis=1)
        mu = np.zeros((K, p)) if centred else W @ Z / h[:, None]
        S = np.empty((K, p, p))
        for part in _parts(K, n * p):
            X = Z - mu[part, None]
            S[part] = (X * W[part, :, None]).transpose(0, 2, 1) @ X
        return cls(mu, S / h[:, None, None])

    @classmethod
    def stacked(cls, parts: list[Moments]) -> Moments:
        """Those of all the starts in the parts."""
        return cls(*(np.concatenate(stacks) for stacks in zip(*parts, strict=True)))

    def at(self, which: Any) -> Moments:
        """Those of some of the starts."""
        return Moments(self.mu[which], self.S[which])

    def squared_distances(self, Z: np.ndarray, shrinkage: Shrinkage) -> np.ndarray:
        """(K, n): d² of every row of Z."""
        (K, p), n = self.mu.shape, len(Z)
        D = np.empty((K, n))
        values, vectors = shrinkage.eigen(self.S)
        T = vectors / np.sqrt(values)[:, None, :]
        for part in _parts(K, n * p):
            X = Z @ T[part] - self.mu[part, None] @ T[part]
            np.einsum("knp,knp->kn", X, X, out=D[part])
        return D


@final
@dataclass(frozen=True)
class DeterminantProblem:
    """The problem: of the rows Z, which count s times, those of weight h whose K(S) has the least determinant."""

    Z: np.ndarray
    s: np.ndarray
    h: float
    shrinkage: Shrinkage = Shrinkage()
    centred: bool = False  # whether μ = 0 is known

    def among(self, rows: np.ndarray) -> DeterminantProblem:
        """The same problem for some of the rows, of which the same share is kept."""
        s = self.s[rows]
        return replace(self, Z=self.Z[rows], s=s, h=self.h / float(self.s.sum()) * float(s.sum()))

    def nearest(self, at: Moments) -> np.ndarray:
        """(K, n): sᵢwᵢ of the w that keeps the h nearest rows of every start."""
        return keep_smallest(at.squared_distances(self.Z, self.shrinkage), self.s, self.h)

    def kept(self, W: np.ndarray) -> Moments:
        """The moments of the rows weighted by W."""
        return Moments.of(self.Z, W, self.centred)

    def log_det(self, at: Moments) -> np.ndarray:
        """log det K(S) of every start."""
        return np.asarray(np.sum(np.log(self.shrinkage.eigen(at.S)[0]), axis=-1))


def c_steps(problem: DeterminantProblem, starts: Moments, steps: int) -> tuple[np.ndarray, Moments]:
    """log det and moments after ``steps`` concentration steps. Starts that have settled wait for the others."""
    log_det = np.full(len(starts.mu), inf)
    mu, S = starts.mu.copy(), starts.S.copy()
    moving = np.arange(len(mu))
    for _ in range(steps):
        new = problem.kept(problem.nearest(Moments(mu[moving], S[moving])))
        mu[moving], S[moving] = new
        before, log_det[moving] = log_det[moving], problem.log_det(new)
        moving = moving[log_det[moving] < before - FALL]
        if len(moving) == 0:
            break
    return log_det, Moments(mu, S)


def exchanges(problem: DeterminantProblem, start: Moments) -> tuple[float, Moments]:
    """Exchange a kept row for one left out while log det falls (Hawkins 1994), with C-steps in between.

    With Q = hK/((1 − ρ)c), u = aⱼ − μ coming and v = aᵢ − μ going, both of mass m, the new Q is Q + [u v]M[u v]ᵀ,
    M = m[[1 − m/h, m/h], [m/h, −1 − m/h]]: its determinant is det(I + M[u v]ᵀQ⁻¹[u v]) times the old one.
    """
    best, log_det, shrinkage = start, inf, problem.shrinkage
    for _ in range(STEPS):
        new, found = c_steps(problem, start, STEPS)
        if not new[0] < log_det - FALL:
            break
        log_det, best = float(new[0]), found
        values, vectors = shrinkage.eigen(best.S[0])
        T = vectors / np.sqrt(values * problem.h / ((1.0 - shrinkage.rho) * shrinkage.c))
        W = problem.nearest(best)
        i, j, factor = _best_exchange(problem, (problem.Z - best.mu) @ T, W[0])
        if not factor < 1.0 - FALL:
            break
        W[0, j], W[0, i] = W[0, i], W[0, j]
        start = problem.kept(W)
    return log_det, best


def _best_exchange(problem: DeterminantProblem, X: np.ndarray, W: np.ndarray) -> tuple[int, int, float]:
    """Rows i kept and j left out, of equal mass, whose exchange lowers det Q the most, and by what. Here Q = I."""
    s, size = problem.s, np.einsum("np,np->n", X, X)
    order = np.argsort(size, kind="stable")
    kept, out = order[(W == s)[order]][-NEAR:], order[(W == 0)[order]][:NEAR]
    if len(kept) == 0 or len(out) == 0:
        return 0, 0, 1.0
    m = s[kept][:, None]
    t = 0.0 if problem.centred else m / problem.h
    vv, uu, uv = size[kept][:, None], size[out][None], X[kept] @ X[out].T
    one, two = 1.0 + m * ((1.0 - t) * uu + t * uv), 1.0 + m * (t * uv - (1.0 + t) * vv)
    factor = one * two - m * m * ((1.0 - t) * uv + t * vv) * (t * uu - (1.0 + t) * uv)
    factor = np.where(s[out][None] == m, factor, 1.0)
    best = int(np.argmin(factor))
    return int(kept[best // len(out)]), int(out[best % len(out)]), float(factor.flat[best])


def _parts(K: int, size: int) -> list[slice]:
    step = max(1, CHUNK // size)
    return [slice(i, i + step) for i in range(0, K, step)]
