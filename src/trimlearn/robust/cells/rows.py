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
from numpy.typing import NDArray

from trimlearn.robust.scale import Chi

__all__ = ["JudgedCells", "conditional", "explain"]

CUTOFF = Chi().upper(0.01)  # of |score|: customary in the papers on cells, 1 % of the clean ones are beyond
HELD = 8_000_000  # numbers that a block of rows takes if half of its cells are set aside: a limit on memory, 32 MB
WILD = Chi().upper(0.001)  # in σ of a column by itself: 1 in 1000 clean cells, which come back where they fit
LEAST = 1e-12  # of a variance, beside that of the column: less is rounding
HALF = 0.5  # of the cells of a row: where more of them deviate, it is the row that does
LARGEST = 1e100  # of a score: its square is in range, and so are the products of two

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class JudgedCells:
    """Of each cell (n, p): whether it deviates, what the others in its row expect, and (value − expected)/its σ.

    Missing cells have a score of 0 and do not deviate. ``aside``: deviating or missing, those that no other cell's
    expectation uses. ``trusted`` (n,): rows of which at most half of the cells are set aside for deviating. ``lost``
    (p, p): Σ over the trusted rows of the covariance that the cells aside have given the others. ``sigma`` (n, p): the
    σ by which the scores are divided.
    """

    mask: Flags
    expected: Floats
    scores: Floats
    aside: Flags
    trusted: Flags
    lost: Floats
    sigma: Floats


def explain(Z: Floats, Sigma: Floats, P: Floats, unit: Floats, cutoff: Floats, count_lost: bool = True) -> JudgedCells:
    """The cells of rows Z, about their centre, that do not fit to the others in their row; NaN where one is missing.

    Sigma: the covariance, P its inverse; ``unit``: by how much the σ of a column given all others is larger than that
    of the model.

    Cells that are far out by themselves are set aside first: two wrong neighbours make the right cell between them
    look worst. But several cells far out may agree with each other: where no cell deviates if none is set aside to
    begin with, that is believed. Then those that turn out to be as the others expect come back, and the others are
    judged once more.
    count_lost: whether ``lost`` is wanted, which only a fit needs.
    """
    observed = np.isfinite(Z)
    Z = np.where(observed, np.clip(Z, -LARGEST, LARGEST), 0.0)
    wild = np.abs(Z) > WILD * np.sqrt(np.diag(Sigma))
    first = _judged(Z, observed, observed & wild, Sigma, P, unit, cutoff, count_lost)
    suspected = first.mask.copy()
    several = np.flatnonzero(np.count_nonzero(suspected, axis=1) > 1)
    if len(several):
        none = np.zeros((len(several), Z.shape[1]), dtype=bool)
        other = _judged(Z[several], observed[several], none, Sigma, P, unit, cutoff, False).mask
        suspected[several[~other.any(axis=1)]] = False
    if np.array_equal(first.aside, suspected | ~observed):
        return first
    return _judged(Z, observed, suspected, Sigma, P, unit, cutoff, count_lost)


def _judged(
    Z: Floats,
    observed: Flags,
    suspected: Flags,
    Sigma: Floats,
    P: Floats,
    unit: Floats,
    cutoff: Floats,
    count_lost: bool,
) -> JudgedCells:
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
        block.set_aside(cutoff, unit)
        expected[rows], variance[rows] = block.expected(Z[rows], Sigma)
        aside[rows] = block.aside
        trusted[rows] = (block.aside & observed[rows]).sum(axis=1) <= HALF * observed[rows].sum(axis=1)
        if count_lost:
            lost += block.lost(trusted[rows], Sigma)
    sigma = _missed_by(variance, P, unit)
    scores = np.where(observed, (Z - expected) / sigma, 0.0)
    return JudgedCells(aside & observed & (np.abs(scores) > cutoff), expected, scores, aside, trusted, lost, sigma)


def _missed_by(variance: Floats, P: Floats, unit: Floats) -> Floats:
    """The σ by which cells are missed that have this variance given some of the others.

    Given all others it is ``unit`` times that of the model. Where columns are copies of one another a unit may be a
    thousandth, but what a cell varies by more when its copy is set aside has nothing to do with that.
    """
    least = 1.0 / np.diag(P)
    return np.asarray(np.sqrt(unit**2 * least + np.maximum(unit, 1.0) ** 2 * np.maximum(variance - least, 0.0)))


def conditional(Z: Floats, aside: Flags, P: Floats) -> tuple[Floats, Floats]:
    """g = Σ_OO⁻¹z_O and the diagonal of Σ_OO⁻¹, 0 and 1 for the cells aside."""
    Z = np.where(aside, 0.0, Z)
    G, diagonal = Z @ P, np.tile(np.diag(P), (len(Z), 1))
    chosen, step = np.flatnonzero(aside.any(axis=1)), max(1, HELD // P.size)
    for start in range(0, len(chosen), step):
        rows = chosen[start : start + step]
        block = _Block(Z[rows], P, aside[rows])
        G[rows], diagonal[rows] = block.G, block.diagonal
    return G, diagonal


@final
class _Block:
    """Rows side by side, each with cells of its own aside.

    Σ_OO⁻¹ of a row, 0 in the rows and columns aside, is P − Σ vvᵀ: with each cell j that is set aside it loses uuᵀ/uⱼ,
    u its column j, so that v = u/√uⱼ. It is never made: G = Σ_OO⁻¹z, its diagonal D and the list V of the v, (m, p) for
    each step, 0 for rows that had no cell to set aside in it, are enough.
    """

    def __init__(self, Z: Floats, P: Floats, aside: Flags) -> None:
        self.P, self.aside = P, aside.copy()
        self.V: list[Floats] = []
        self.G, self.D = Z @ P, np.tile(np.diag(P), (len(Z), 1))
        counts = np.cumsum(aside, axis=1)
        for k in range(1, int(counts[:, -1].max(initial=0)) + 1):
            rows = np.flatnonzero(counts[:, -1] >= k)
            self._without(rows, (counts[rows] >= k).argmax(axis=1))

    def _without(self, rows: NDArray[np.intp], j: NDArray[np.intp]) -> None:
        """Set one cell aside in each of the rows."""
        u = self.P[j]
        for v in self.V:
            u = u - v[rows] * v[rows, j][:, None]
        pivot = np.sqrt(np.maximum(u[np.arange(len(rows)), j], np.finfo(np.float64).tiny))[:, None]
        u = u / pivot
        self.G[rows] -= u * (self.G[rows, j][:, None] / pivot)
        self.D[rows] -= u**2
        self.G[rows, j], self.D[rows, j], self.aside[rows, j] = 0.0, 1.0, True
        new = np.zeros_like(self.G)
        new[rows] = u
        self.V.append(new)

    @property
    def diagonal(self) -> Floats:
        """Of Σ_OO⁻¹, 1 for the cells aside."""
        return np.where(self.aside, 1.0, np.maximum(self.D, LEAST * np.diag(self.P)))

    def set_aside(self, cutoff: Floats, unit: Floats) -> None:
        """In every row where cells are beyond the cut-off the one that explains most of the distance, until none is.

        Of two copies that differ either may be wrong: which one, the little tells that is left.
        """
        limit = self.aside.shape[1] - 1
        while True:
            variance = 1.0 / self.diagonal
            off = np.where(self.aside, 0.0, np.abs(self.G) * variance / (cutoff * _missed_by(variance, self.P, unit)))
            rows = np.flatnonzero((off.max(axis=1) > 1.0) & (self.aside.sum(axis=1) < limit))
            if not len(rows):
                return
            explained = np.where(off > 1.0, self.G**2 * variance, 0.0)[rows]
            self._without(rows, explained.argmax(axis=1))

    def expected(self, Z: Floats, Sigma: Floats) -> tuple[Floats, Floats]:
        """Of each cell given the others in O: its expectation, and its variance.

        Of a cell j aside that is Σⱼⱼ − Σⱼ(P − Σ vvᵀ)Σⱼ = Σ(vᵀΣⱼ)², since PΣⱼ is the j-th unit vector.
        """
        size = self.diagonal
        left = np.zeros_like(Z)
        for v in self.V:
            left += (v @ Sigma) ** 2
        expected = np.where(self.aside, self.G @ Sigma, Z - self.G / size)
        return expected, np.where(self.aside, np.maximum(left, LEAST * np.diag(Sigma)), 1.0 / size)

    def lost(self, rows: Flags, Sigma: Floats) -> Floats:
        """Σ over the rows of the covariance of the cells aside given the others: Σ − Σ Σ_OO⁻¹ Σ = Σ (vᵀΣ)ᵀ(vᵀΣ)."""
        total = np.zeros_like(Sigma)
        for v in self.V:
            w = v[rows] @ Sigma
            total += w.T @ w
        return total
