"""Which cells of a row explain that it is far from a centre, given a covariance.

Of a row z (about the centre) with the cells O not set aside, g = Σ_OO⁻¹ z_O and the diagonal of P = Σ_OO⁻¹ say all:
cell j of O is off what the others expect by gⱼ/Pⱼⱼ, with the variance 1/Pⱼⱼ; and without it, the squared distance of
the row falls by gⱼ²/Pⱼⱼ. So the cell that is furthest off is the one that explains most of the distance. It is set
aside, and so on, until no cell is far off: a sparse explanation of the distance. Setting a cell aside is one rank-one
update.

J. Raymaekers and P. J. Rousseeuw (2021), Handling cellwise outliers by sparse regression and robust covariance, Journal
of Data Science, Statistics, and Visualisation 1: they follow the path of least angle regression for the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimlearn.robust.scale import Chi

__all__ = ["Cells", "conditional", "deviating_cells", "explain"]

CUTOFF = Chi().upper(0.01)  # of |score|: customary in the papers on cells, 1 % of the clean ones are beyond
HELD = 4_000_000  # numbers in the matrices of a block of rows: a limit on memory, 32 MB
WILD = Chi().upper(0.001)  # in σ of a column by itself: 1 in 1000 clean cells, which come back where they fit
HALF = 0.5  # of the cells of a row: where more of them deviate, it is the row that does
LARGEST = 1e100  # of a score: its square is in range, and so are the products of two

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Cells:
    """Of each cell (n, p): whether it deviates, what the others in its row expect, and (value − expected)/its σ.

    Missing cells have a score of 0 and do not deviate. ``aside``: deviating or missing, those that no other cell's
    expectation uses. ``trusted`` (n,): rows of which at most half of the cells are set aside for deviating. ``lost``
    (p, p): Σ over the trusted rows of the covariance that the cells aside have given the others.
    """

    mask: Flags
    expected: Floats
    scores: Floats
    aside: Flags
    trusted: Flags
    lost: Floats


def deviating_cells(X: ArrayLike, center: ArrayLike, covariance: ArrayLike, cutoff: float = CUTOFF) -> Cells:
    """The cells of rows that do not fit to the others in their row, if rows have this centre and covariance.

    X: (n, p), NaN where a value is missing. A covariance that is singular is taken for the nearest regular one.

    >>> covariance = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> cells = deviating_cells([[2.0, 2.1, 0.5], [2.0, -3.0, 0.5]], np.zeros(3), covariance)
    >>> cells.mask.astype(int).tolist(), cells.expected[1].round(2).tolist()
    ([[0, 0, 0], [0, 1, 0]], [0.0, 1.8, 0.0])
    """
    Sigma, mu = np.asarray(covariance, dtype=np.float64), np.asarray(center, dtype=np.float64)
    unit = np.sqrt(np.diag(Sigma))
    unit = np.where(unit > 0, unit, 1.0)
    Z = (np.asarray(X, dtype=np.float64) - mu) / unit
    found = explain(Z, *regular(Sigma / np.outer(unit, unit)), np.ones(len(mu)), np.full(len(mu), cutoff))
    return Cells(
        found.mask,
        mu + unit * found.expected,
        found.scores,
        found.aside,
        found.trusted,
        found.lost * np.outer(unit, unit),
    )


def regular(R: Floats, least: float = 1e-8) -> tuple[Floats, Floats]:
    """A correlation matrix with its eigenvalues lifted to ``least``, and its inverse."""
    values, V = np.linalg.eigh(0.5 * (R + R.T))
    values = np.maximum(values, least)
    return (V * values) @ V.T, (V / values) @ V.T


def explain(Z: Floats, Sigma: Floats, P: Floats, unit: Floats, cutoff: Floats) -> Cells:
    """As `deviating_cells`, of rows about their centre, P = Σ⁻¹; ``unit``: by how much the σ of a column is larger.

    Cells that are far out by themselves are set aside first: two wrong neighbours make the right cell between them
    look worst. Then those that turn out to be as the others expect come back, and the others are judged once more.
    """
    observed = np.isfinite(Z)
    Z = np.where(observed, np.clip(Z, -LARGEST, LARGEST), 0.0)
    wild = np.abs(Z) > WILD * np.sqrt(np.diag(Sigma))
    first = _judged(Z, observed, observed & wild, Sigma, P, unit, cutoff)
    changed = np.any(first.aside != (first.mask | ~observed), axis=1)
    if not np.any(changed):
        return first
    return _judged(Z, observed, first.mask, Sigma, P, unit, cutoff)


def _judged(
    Z: Floats, observed: Flags, suspected: Flags, Sigma: Floats, P: Floats, unit: Floats, cutoff: Floats
) -> Cells:
    """The cells that deviate if those suspected are set aside to begin with."""
    G, diagonal = Z @ P, np.tile(np.diag(P), (len(Z), 1))
    lost, trusted = np.zeros_like(Sigma), np.ones(len(Z), dtype=bool)
    aside = ~observed | suspected
    far = aside.any(axis=1) | (np.abs(G) > cutoff * unit * np.sqrt(diagonal)).any(axis=1)
    expected = Z - G / diagonal
    variance = 1.0 / diagonal
    step = max(1, HELD // P.size)
    chosen = np.flatnonzero(far)
    for start in range(0, len(chosen), step):
        rows = chosen[start : start + step]
        block = _Block(np.where(aside[rows], 0.0, Z[rows]), P, aside[rows])
        block.set_aside(cutoff * unit)
        expected[rows], variance[rows] = block.expected(Z[rows], Sigma)
        aside[rows] = block.aside
        trusted[rows] = (block.aside & observed[rows]).sum(axis=1) <= HALF * observed[rows].sum(axis=1)
        few = trusted[rows]
        lost += few.sum() * Sigma - Sigma @ block.P[few].sum(axis=0) @ Sigma
    scores = np.where(observed, (Z - expected) / (unit * np.sqrt(variance)), 0.0)
    return Cells(aside & observed & (np.abs(scores) > cutoff), expected, scores, aside, trusted, lost)


def conditional(Z: Floats, aside: Flags, P: Floats) -> tuple[Floats, Floats]:
    """g = Σ_OO⁻¹z_O and the diagonal of Σ_OO⁻¹, 0 and 1 for the cells aside."""
    Z = np.where(aside, 0.0, Z)
    G, diagonal = Z @ P, np.tile(np.diag(P), (len(Z), 1))
    chosen, step = np.flatnonzero(aside.any(axis=1)), max(1, HELD // P.size)
    for start in range(0, len(chosen), step):
        rows = chosen[start : start + step]
        block = _Block(Z[rows], P, aside[rows])
        G[rows], diagonal[rows] = block.G, np.where(block.aside, 1.0, np.einsum("ijj->ij", block.P))
    return G, diagonal


@final
class _Block:
    """Rows side by side, each with the inverse of its own Σ_OO in P (m, p, p), 0 in the rows and columns aside."""

    def __init__(self, Z: Floats, P: Floats, aside: Flags) -> None:
        self.Z, self.aside = Z, aside.copy()
        self.P = np.tile(P, (len(Z), 1, 1))
        for j in np.flatnonzero(aside.any(axis=0)):
            self._without(np.flatnonzero(aside[:, j]), int(j))
        self.G = np.einsum("ijk,ik->ij", self.P, Z)

    def _without(self, rows: NDArray[np.intp], j: int | NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Set a cell aside in each of the rows; Σ_OO⁻¹ loses its column u, uuᵀ/uⱼ. Gives u and uⱼ."""
        u = self.P[rows, :, j]
        pivot = self.P[rows, j, j]
        self.P[rows] -= u[:, :, None] * (u / pivot[:, None])[:, None, :]
        self.P[rows, :, j] = 0.0
        self.P[rows, j, :] = 0.0
        return u, pivot

    def set_aside(self, cutoff: Floats) -> None:
        """The cell that is furthest off, in every row where one is beyond the cut-off, until none is."""
        limit = self.Z.shape[1] - 1
        while True:
            size = np.einsum("ijj->ij", self.P)
            off = np.abs(self.G) / (cutoff * np.sqrt(np.where(self.aside, 1.0, size)))
            off[self.aside] = 0.0
            worst = off.argmax(axis=1)
            rows = np.flatnonzero((off.max(axis=1) > 1.0) & (self.aside.sum(axis=1) < limit))
            if not len(rows):
                return
            j = worst[rows]
            u, pivot = self._without(rows, j)
            self.G[rows] -= u * (self.G[rows, j] / pivot)[:, None]
            self.G[rows, j] = 0.0
            self.aside[rows, j] = True

    def expected(self, Z: Floats, Sigma: Floats) -> tuple[Floats, Floats]:
        """Of each cell given the others in O: its expectation, and its variance."""
        size = np.where(self.aside, 1.0, np.einsum("ijj->ij", self.P))
        i, j = np.nonzero(self.aside)
        known = self.G @ Sigma
        expected, variance = Z - self.G / size, 1.0 / size
        expected[i, j] = known[i, j]
        columns = Sigma[j]
        explained = np.array([c @ self.P[k] @ c for k, c in zip(i, columns, strict=True)])
        variance[i, j] = np.maximum(np.diag(Sigma)[j] - explained, 1e-12) if len(i) else 0.0
        return expected, variance
