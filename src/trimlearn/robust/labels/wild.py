"""Wild cells: entries of a table so far from the others in their column that they are no measurement of anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trimlearn._utils.validation import is_sparse
from trimlearn.robust.labels.noise_model import Floats

__all__ = ["Reach", "reach"]

FACTOR = 20.0  # times the 90 % quantile of the deviations: 33 σ of normal columns, 1 in 10¹⁴ of exponential ones
SAMPLE = 4_000  # rows that quantiles are read off


@dataclass(frozen=True)
class Reach:
    """How far the columns of a table reach; what lies beyond is wild."""

    centre: Floats
    spread: Floats  # the 90 % quantile of |v − centre| among the entries that differ from it

    def rows(self, V: Any) -> np.ndarray:
        """Which rows have a wild cell."""
        if is_sparse(V):
            A = V.tocoo()
            wild = np.abs(A.data - self.centre[A.col]) > FACTOR * self.spread[A.col]
            return np.bincount(A.row[wild], minlength=V.shape[0]) > 0
        low, high = self._bounds()
        blocks = (V[i : i + SAMPLE] for i in range(0, V.shape[0], SAMPLE))
        return np.concatenate([np.any((block < low) | (block > high), axis=1) for block in blocks])

    def drawn_in(self, V: Any) -> Any:
        """A copy of V with wild cells at the bounds."""
        low, high = self._bounds()
        if is_sparse(V):
            A = V.copy()
            A.data = np.clip(A.data, low[A.indices], high[A.indices]).astype(V.dtype)
            return A
        return np.clip(V, low.astype(V.dtype), high.astype(V.dtype))

    def units(self, V: Any) -> Floats:
        """V about the centre, in units of the spread, wild cells at the bounds; dense."""
        A = np.asarray(V.toarray() if is_sparse(V) else V, dtype=np.float64)
        scale = np.where(self.spread > 0, self.spread, 1.0)
        return np.clip((A - self.centre) / scale, -FACTOR, FACTOR)

    def _bounds(self) -> tuple[Floats, Floats]:
        return self.centre - FACTOR * self.spread, self.centre + FACTOR * self.spread


def reach(V: Any, rows: Any = None) -> Reach:
    """The reach of the columns of V, dense or CSR, by their medians and quantiles over ``rows``, else over all or,
    where there are many, every so many. A sparse V has its centre at 0 and is never written out.

    >>> V = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [1e6]])
    >>> reach(V).rows(V).tolist()[-2:]
    [False, True]
    """
    sample = V[:: max(1, V.shape[0] // SAMPLE)] if rows is None else V[rows]
    if is_sparse(sample):
        A = sample.tocsc()
        columns = (A.data[A.indptr[j] : A.indptr[j + 1]] for j in range(A.shape[1]))
        return Reach(np.zeros(A.shape[1]), np.array([_quantile(np.abs(column)) for column in columns]))
    A = np.asarray(sample, dtype=np.float64)
    centre = np.median(A, axis=0)
    return Reach(centre, np.array([_quantile(column) for column in np.abs(A - centre).T]))


def _quantile(sizes: Floats) -> float:
    """The 90 % quantile of those that are not 0: a wild tenth of the rows does not move it."""
    sizes = sizes[sizes > 0]
    return float(np.quantile(sizes, 0.9, method="lower")) if len(sizes) else 0.0
