"""Rows in as few coordinates as they need, and which rows to search on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.subspace.flat import Flat
from trimlearn.smart.draws import Draws, Stream

__all__ = ["HUGE", "Span", "sample"]

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
