"""Bounds of the columns of a table: entries so far from the others in their column that they measure nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import is_sparse
from trimlearn.robust.labels.noise_em import Floats

# Times the 90 % quantile of the deviations from the median, where no clean column reaches: 33 σ of a normal one, and
# exceeded by 5·10⁻¹⁵ of the entries of an exponential one (quantile ln 5, median ln 2).
FACTOR = 20.0
SAMPLE = 4_000  # rows that quantiles are read off: then the share of rows below one is known to ½ %, in milliseconds


@dataclass(frozen=True)
class ColumnBounds:
    """The middle of every column, and how far its entries usually lie from it; the bounds are `FACTOR` as far away."""

    centre: Floats
    spread: Floats  # the 90 % quantile of |v − centre| among the entries that differ from it

    def rows_beyond(self, V: Any) -> np.ndarray:
        """Which rows have an entry beyond the bounds."""
        if is_sparse(V):
            A = V.tocoo()
            beyond = np.abs(A.data - self.centre[A.col]) > FACTOR * self.spread[A.col]
            return np.bincount(A.row[beyond], minlength=V.shape[0]) > 0
        xp, beyond = namespace(V), np.zeros(V.shape[0], dtype=bool)
        low, high = (asarray_like(bound, V) for bound in self._bounds())
        for i in range(0, V.shape[0], SAMPLE):
            block = V[i : i + SAMPLE]
            # a third of the time, mostly all
            if xp.any(xp.min(block, axis=0) < low) or xp.any(xp.max(block, axis=0) > high):
                beyond[i : i + SAMPLE] = to_numpy(xp.any((block < low) | (block > high), axis=1))
        return beyond

    def clip(self, V: Any) -> Any:
        """A copy of V with what is beyond the bounds set to them."""
        low, high = self._bounds()
        if is_sparse(V):
            A = V.copy()
            A.data = np.clip(A.data, low[A.indices], high[A.indices]).astype(V.dtype)
            return A
        clip = namespace(V).clip if is_torch_array(V) else np.clip
        return clip(V, asarray_like(low, V), asarray_like(high, V))

    @property
    def unit(self) -> Floats:
        """The spread, 1 where there is none."""
        return np.where(self.spread > 0, self.spread, 1.0)

    def standardise(self, V: Array) -> Array:
        """V, dense, about the centre, in units of the spread, clipped to the bounds; in float64 unless V is shorter."""
        xp = namespace(V)
        short = V.itemsize <= 4 and xp.isdtype(V.dtype, "real floating")
        A = xp.astype(V, xp.float32 if short else xp.float64, copy=False)
        centre, unit = (asarray_like(a, A) for a in (self.centre, self.unit))
        return xp.clip((A - centre) / unit, -FACTOR, FACTOR)

    def _bounds(self) -> tuple[Floats, Floats]:
        return self.centre - FACTOR * self.spread, self.centre + FACTOR * self.spread


def column_bounds(V: Any, rows: Any = None) -> ColumnBounds:
    """The bounds of the columns of V, dense or CSR, by their medians and quantiles over ``rows``, else over all or,
    where there are many, every so many. A sparse V has its centre at 0 and is never written out.

    >>> V = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [1e6]])
    >>> column_bounds(V).rows_beyond(V).tolist()[-2:]
    [False, True]
    """
    sample = V[:: max(1, V.shape[0] // SAMPLE)] if rows is None else V[rows]
    if is_sparse(sample):
        A = sample.tocsc()
        columns = (A.data[A.indptr[j] : A.indptr[j + 1]] for j in range(A.shape[1]))
        return ColumnBounds(np.zeros(A.shape[1]), np.array([_quantile(np.abs(column)) for column in columns]))
    if is_torch_array(sample):
        return _bounds_there(sample)
    A = np.asarray(sample, dtype=np.float64)
    centre = np.median(A, axis=0)
    return ColumnBounds(centre, np.array([_quantile(column) for column in np.abs(A - centre).T]))


def _bounds_there(sample: Array) -> ColumnBounds:
    """The same numbers where a tensor lies: it sorts all columns at once."""
    xp, n = namespace(sample), sample.shape[0]
    A = xp.astype(sample, xp.float64)
    ordered = xp.sort(A, axis=0)
    centre = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    sizes = xp.sort(xp.abs(A - centre), axis=0)
    none = xp.sum(sizes <= 0, axis=0)
    place = none + xp.astype(0.9 * xp.astype(n - none - 1, xp.float64), xp.int64)
    spread = sizes[xp.clip(place, 0, n - 1), xp.arange(sample.shape[1], device=sample.device)]
    return ColumnBounds(to_numpy(centre), to_numpy(spread))


def _quantile(sizes: Floats) -> float:
    """The 90 % quantile of those that are not 0: a tenth of the rows, however far away, does not move it."""
    sizes = sizes[sizes > 0]
    place = int(0.9 * (len(sizes) - 1))
    return float(np.partition(sizes, place)[place]) if len(sizes) else 0.0
