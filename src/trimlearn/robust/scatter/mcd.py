"""Minimum covariance determinant: over w in the capped simplex {0 ≤ w ≤ 1, Σ sᵢwᵢ = h}, minimise

    log det Σ(w),   Σ(w) = 1/h Σ sᵢwᵢ (aᵢ − μ)(aᵢ − μ)ᵀ,   μ = 1/h Σ sᵢwᵢaᵢ.

Concentration steps from random and deterministic starts, on nested subsets of the rows where there are many; with few
rows followed by exchanges of single rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.order import keep_smallest
from trimlearn.robust.scatter.factors import consistency
from trimlearn.robust.scatter.starts import deterministic, median_and_scale
from trimlearn.robust.scatter.steps import (
    FLOOR,
    STEPS,
    Shape,
    c_steps,
    exchanges,
    moments,
    squared_distances,
)
from trimlearn.weights import CappedSimplex

__all__ = ["Fit", "Frame", "concentrate", "default_h", "mcd"]

Floats = NDArray[np.float64]

GROUP: Final = 300  # rows in which a random start proves itself (FAST-MCD's nmini)
GROUPS: Final = 5
BEST: Final = 10  # starts that go on to the next, larger set of rows
LAST: Final = 3  # starts that are tried on all rows
CONDITION: Final = 50.0  # MRCD: the condition number ρ aims at


@dataclass(frozen=True)
class Frame:
    """The coordinates Z = (A − centre) / scale: feature by feature, robust."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, A: Floats, s: Floats, centred: bool) -> Frame:
        centre, scale = median_and_scale(A, s, centred)
        return cls(centre, np.where(scale > 0, scale, 1.0))

    def into(self, A: Floats) -> Floats:
        return np.asarray((A - self.centre) / self.scale)

    @property
    def log_det(self) -> float:
        """What log det of a covariance gains on the way back to the units of the data."""
        return 2.0 * float(np.sum(np.log(self.scale)))


@dataclass(frozen=True)
class Fit:
    """Weights w, and the moments of the rows they keep in the coordinates ``frame``."""

    frame: Frame
    shape: Shape
    w: Floats  # (n,)
    mu: Floats  # (p,)
    S: Floats  # (p, p), divided by Σ sᵢwᵢ
    history: tuple[float, ...] = ()  # log det K(S) after each concentration step, in the units of the data
    converged: bool = True

    @classmethod
    def of(cls, frame: Frame, shape: Shape, A: Floats, s: Floats, w: Floats, centred: bool) -> Fit:
        """The moments of the rows of A that w keeps."""
        mu, S = moments(frame.into(A), (s * w)[None], centred)
        return cls(frame, shape, w, mu[0], S[0])

    @property
    def location(self) -> Floats:
        return np.asarray(self.frame.centre + self.frame.scale * self.mu)

    @property
    def covariance(self) -> Floats:
        """K(S) in the units of the data; singular where the kept rows lie on a hyperplane."""
        K = self.shape.rho * np.eye(len(self.mu)) + (1.0 - self.shape.rho) * self.shape.c * self.S
        return np.asarray(K * np.outer(self.frame.scale, self.frame.scale))

    @property
    def rank(self) -> int:
        """In how many directions K varies."""
        values = self.shape.eigen(self.S)[0]
        return int(np.count_nonzero(values > FLOOR))

    @property
    def log_det(self) -> float:
        """log det K(S) in the units of the data, eigenvalues at least FLOOR."""
        return float(np.sum(np.log(self.shape.eigen(self.S)[0]))) + self.frame.log_det

    @property
    def whitening(self) -> Floats:
        """T with ‖(a − location)T‖² the squared distance of a; TTᵀ is the inverse of the regular covariance."""
        values, vectors = self.shape.eigen(self.S)
        return np.asarray(vectors / np.sqrt(values) / self.frame.scale[:, None])

    def squared_distances(self, A: Floats) -> Floats:
        """d² of every row of A."""
        values, vectors = self.shape.eigen(self.S)
        return np.asarray(squared_distances(self.frame.into(A), self.mu[None], values[None], vectors[None])[0])

    def scaled(self, factor: float) -> Fit:
        """The same with c, and for ρ = 0 with the covariance, ``factor`` times as large."""
        return replace(self, shape=Shape(self.shape.rho, self.shape.c * factor))


def default_h(total: float, p: int) -> float:
    """h of the highest breakdown, ⌊(n + p + 1)/2⌋; with few rows at most ¾n, so that something is trimmed at all.

    >>> default_h(75, 3), default_h(6, 4)
    (39.0, 4.5)
    """
    return min(float(floor((total + p + 1) / 2)), 0.75 * total)


def mcd(
    A: Floats,
    s: Floats,
    h: float,
    *,
    shrinkage: float | None = 0.0,
    centred: bool = False,
    starts: int = 500,
    seed: int = 0,
) -> Fit:
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
    rows = A[first]
    frame = Frame.of(rows, weights, centred)
    search = _Search(frame.into(rows), weights, h, centred, starts, seed)
    shape = search.shape(shrinkage)
    mu, S = search.best(shape)
    fit = _settle(Fit(frame, shape, weights, mu, S), search.Z, weights, h, centred)
    return replace(fit, w=np.where(back >= 0, fit.w[back], 0.0))


def concentrate(fit: Fit, A: Floats, s: Floats, h: float, centred: bool = False) -> Fit:
    """Concentration steps from ``fit`` for another h, or other rows."""
    return _settle(fit, fit.frame.into(A), s, h, centred)


def _settle(fit: Fit, Z: Floats, s: Floats, h: float, centred: bool) -> Fit:
    """Concentration steps until log det stops falling. Rows tied at the threshold share alike."""
    shape, w, mu, S = fit.shape, fit.w, fit.mu, fit.S
    simplex, history, converged = CappedSimplex(h), [inf], False
    repeated = s if np.any(s != 1.0) else None
    for _ in range(STEPS):
        before = (w, mu, S)
        values, vectors = shape.eigen(S)
        w = simplex.minimise(squared_distances(Z, mu[None], values[None], vectors[None])[0], repeated)
        mu, S = (m[0] for m in moments(Z, (s * w)[None], centred))
        history.append(float(np.sum(np.log(shape.eigen(S)[0]))))
        if not history[-1] < history[-2] - 1e-12 * (1.0 + abs(history[-1])):
            converged = True
            if history[-1] > history[-2]:  # rounding
                (w, mu, S), history = before, history[:-1]
            break
    return Fit(fit.frame, shape, w, mu, S, tuple(value + fit.frame.log_det for value in history[1:]), converged)


class _Search:
    """Where to start: random and deterministic starts, on nested subsets of the rows when there are many."""

    def __init__(self, Z: Floats, s: Floats, h: float, centred: bool, starts: int, seed: int) -> None:
        self.Z, self.s, self.h, self.centred, self.starts = Z, s, h, centred, starts
        self.share = h / float(s.sum())
        self.rng = np.random.default_rng(seed)
        group = max(GROUP, 10 * Z.shape[1])
        order = self._invariant_order()
        if len(Z) > 2 * group:
            size = min(len(Z), GROUPS * group)
            order = order[self.rng.permutation(len(Z))[:size]]
            self.groups = [order[g::GROUPS] for g in range(GROUPS)]
        else:
            self.groups = [order]
        self.pool = order
        self.fixed = self._deterministic()

    def _invariant_order(self) -> NDArray[np.intp]:
        """The rows by their classical distance: an order that affine maps, permutations and repetitions leave alone."""
        mu, S = moments(self.Z, self.s[None], self.centred)
        return np.argsort(squared_distances(self.Z, mu, *Shape().eigen(S))[0], kind="stable")

    def _deterministic(self) -> tuple[Floats, Floats]:
        """Robust (μ, Σ) of the pool, each moved to the moments of its h best rows by way of its best half."""
        Z, s = self.Z[self.pool], self.s[self.pool]
        mu, S = deterministic(Z, s, self.centred)
        for h in (0.5 * float(s.sum()), self.share * float(s.sum())):
            mu, S = moments(Z, keep_smallest(squared_distances(Z, mu, *Shape().eigen(S)), s, h), self.centred)
        return mu, S

    def shape(self, shrinkage: float | None) -> Shape:
        """ρ as given, or by MRCD's rule: the largest the starts need to be well conditioned, unless they disagree."""
        if shrinkage == 0.0:
            return Shape()
        c = consistency(self.share, self.Z.shape[1])
        if shrinkage is not None:
            return Shape(shrinkage, c)
        deviation = np.sqrt(np.maximum(np.diagonal(self.fixed[1], axis1=1, axis2=2), FLOOR))
        values = c * np.linalg.eigvalsh(self.fixed[1] / (deviation[:, :, None] * deviation[:, None, :]))
        excess = np.maximum(values[:, -1] - CONDITION * values[:, 0], 0.0)
        needed = excess / (CONDITION - 1.0 + excess)
        rho = float(needed.max())
        return Shape(rho if rho <= 0.1 else max(0.1, float(np.median(needed))), c)

    def best(self, shape: Shape) -> tuple[Floats, Floats]:
        """(μ, S) of the most promising start for all rows."""
        starts = self._affordable(shape) // len(self.groups)
        found = [self._random(rows, starts, shape) for rows in self.groups if starts]
        if found:
            mu, S = (np.concatenate(stacks) for stacks in zip(*found, strict=True))
            found = [self._improve(self.pool, mu, S, shape, 2, BEST)]
        # Random starts look better after two steps than those that lead far: the deterministic ones need not compete.
        mu, S = (np.concatenate(stacks) for stacks in zip(self.fixed, *found, strict=True))
        mu, S = self._improve(self.pool, mu, S, shape, STEPS, BEST)
        if len(self.groups) == 1:
            return self._exchange(mu, S, shape)
        mu, S = self._improve(np.arange(len(self.Z)), mu[:LAST], S[:LAST], shape, 1, 1)
        return mu[0], S[0]

    def _exchange(self, mu: Floats, S: Floats, shape: Shape) -> tuple[Floats, Floats]:
        """The best (μ, S) after exchanges of one kept row for another, which lead out of where C-steps end."""
        found = [exchanges(self.Z, self.s, self.h, m, C, shape, self.centred) for m, C in zip(mu, S, strict=True)]
        return min(found, key=lambda item: item[0])[1:]

    def _affordable(self, shape: Shape) -> int:
        """How many random starts: p + 1 rows are hardly ever all clean where p is large, and too few to shrink."""
        return 0 if shape.rho else min(self.starts, max(50, 5000 // self.Z.shape[1]))

    def _random(self, rows: NDArray[np.intp], starts: int, shape: Shape) -> tuple[Floats, Floats]:
        """The best of so many random subsets of p + 1 rows after two concentration steps."""
        size = min(self.Z.shape[1] + 1, len(rows))
        subsets = np.argpartition(self.rng.random((starts, len(rows))), size - 1, axis=1)[:, :size]
        W = np.zeros((starts, len(rows)))
        np.put_along_axis(W, subsets, 1.0, axis=1)
        return self._improve(rows, *moments(self.Z[rows], W, self.centred), shape, 2, BEST)

    def _improve(
        self, rows: NDArray[np.intp], mu: Floats, S: Floats, shape: Shape, steps: int, best: int
    ) -> tuple[Floats, Floats]:
        """The ``best`` different ones of the starts (μ, S), after concentration steps on ``rows``."""
        Z, s = self.Z[rows], self.s[rows]
        log_det, mu, S = c_steps(Z, s, self.share * float(s.sum()), mu, S, shape, self.centred, steps)
        _, first = np.unique(np.round(log_det, 7), return_index=True)  # ascending, equal ones once
        return mu[first[:best]], S[first[:best]]
