"""Where the rows of V live: dense, sparse, memory-mapped, on a device. The rest of trimlearn never asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import local
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from array_api_compat import device, is_numpy_array

from trimlearn._utils.arrays import Array, namespace, to_numpy
from trimlearn._utils.validation import is_sparse

Rows = slice | Array | None  # all rows, a slice of them, or a 1-D integer index array with entries in [0, n)

# Limits on memory, for rows held at a time, by a thread.
PIECE_BYTES = 1 << 20  # converted: 1 MB stays in the level-2 cache for the product that follows
GATHER_BYTES = 3 << 18  # gathered by index: 0.8 MB, for each thread; 250 rows of MNIST are enough for a product
SQUARE_BYTES = 1 << 17  # squared: 0.1 MB, of which there are a few copies in float64
ROUNDING = 1e-12  # share of a total that its rounding may be: √n·eps/2 at n = 10⁸ terms, and as much for the weights

BAD_ROWS = "rows must be integers in [0, {n}); turn a mask into its nonzero positions."


class Scratch(local):
    """What a thread keeps for itself, until it ends. A copy, or a pickle, starts empty."""

    def __init__(self) -> None:
        self.buffer: np.ndarray | None = None
        self.generation = 0  # counts the gathers that overwrote an earlier one

    def __reduce__(self) -> tuple[Any, ...]:
        return Scratch, ()


class Storage(ABC):
    """The data matrix V (n × p), read by rows and never copied as a whole.

    The working dtype is V's own when that is float32 or float64, else float32 for 8- and 16-bit types and float64
    for the rest; `like` is an empty array of that dtype in V's namespace and on V's device.
    """

    def __init__(self, V: Array, like: Array) -> None:
        self.V, self.like = V, like
        self.n, self.p = V.shape
        self.converts = bool(V.dtype != like.dtype)
        self.scratch = Scratch()

    @abstractmethod
    def fetch(self, rows: slice | Array) -> Array:
        """V[rows] in the working dtype, as an operand of ``@``: a view where it can be."""

    @abstractmethod
    def squares(self, rows: slice | Array, center: Array, scale: Array) -> tuple[Array, Array]:
        """(Q, q), in the dtype of ``center``, with ((v_ij − c_j)/s_j)² = Q_ij + q_j: a sparse V keeps Q sparse."""

    @abstractmethod
    def moments(self, rows: Array, share: Array, center: Array, scale: Array) -> tuple[Array, Array]:
        """Σ shareᵢ((v_ij − c_j)/s_j)² over ``rows`` for every column j, and the same of fourth powers."""

    @abstractmethod
    def written_out(self, rows: slice | Array) -> np.ndarray:
        """V[rows] as a new dense NumPy array in float64."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """What one fetched row takes, on average."""

    @final
    def cut(self, rows: slice | Array) -> list[slice | Array]:
        """``rows`` in pieces that may be fetched one at a time. What is no copy is not cut."""
        if not isinstance(rows, slice):
            step = self.gathered_at_a_time
            return [rows[i : i + step] for i in range(0, len(rows), step)] or [rows]
        return self.cut_slice(rows, PIECE_BYTES) if self.converts else [rows]

    @property
    def gathered_at_a_time(self) -> int:
        """How many rows a gather may hold."""
        return max(1, GATHER_BYTES // self.row_bytes)

    @final
    def cut_slice(self, rows: slice, size: int) -> list[slice | Array]:
        """A slice in pieces of about ``size`` bytes."""
        start, stop, stride = rows.indices(self.n)
        step = stride * max(1, size // self.row_bytes)
        return [slice(i, min(i + step, stop), stride) for i in range(start, stop, step)] or [rows]


class Dense(Storage):
    """Rows of a dense array, wherever it lies."""

    @final
    def squares(self, rows: slice | Array, center: Array, scale: Array) -> tuple[Array, Array]:
        xp = namespace(self.like)
        Q = ((xp.astype(self.fetch(rows), center.dtype) - center) / scale) ** 2
        return Q, xp.zeros_like(center)

    @final
    def moments(self, rows: Array, share: Array, center: Array, scale: Array) -> tuple[Array, Array]:
        Q, _ = self.squares(rows, center, scale)
        return share @ Q, share @ (Q * Q)

    @final
    def written_out(self, rows: slice | Array) -> np.ndarray:
        return np.array(to_numpy(self.fetch(rows)), dtype=np.float64)

    @property
    def row_bytes(self) -> int:
        return int(self.p * self.like.itemsize)


@final
class NumpyDense(Dense):
    """A NumPy array, in memory or memory-mapped."""

    def fetch(self, rows: slice | Array) -> Array:
        B = self.V[rows] if isinstance(rows, slice) else self._gather(rows)
        return B.astype(self.like.dtype, copy=False)

    def _gather(self, rows: Array) -> Array:
        rows = _check_index(rows, self.n)
        if not (self.V.flags.c_contiguous and self.V.flags.aligned):
            return self.V[rows]  # np.take would copy the whole of V first
        scratch = self.scratch
        if scratch.buffer is None or len(rows) > len(scratch.buffer):
            scratch.buffer = None  # free the old one before the new one is made
            scratch.buffer = np.empty((len(rows), self.p), dtype=self.V.dtype)
        scratch.generation += 1
        # Memory that is already mapped saves a page fault for every 4 kB; mode="clip" is the one that writes
        # straight to it (the entries were checked above).
        return np.take(self.V, rows, axis=0, out=scratch.buffer[: len(rows)], mode="clip")


@final
class DeviceDense(Dense):
    """A torch tensor, or any other array of the array API."""

    def fetch(self, rows: slice | Array) -> Array:
        xp = namespace(self.V)
        if isinstance(rows, slice):
            return xp.astype(self.V[rows], self.like.dtype, copy=False)
        if is_numpy_array(rows):
            rows = xp.asarray(_check_index(rows, self.n), device=device(self.V))
        elif not xp.isdtype(rows.dtype, "integral"):  # the entries are not looked at: that would wait for the device
            raise IndexError(BAD_ROWS.format(n=self.n))
        return xp.astype(xp.take(self.V, rows, axis=0), self.like.dtype, copy=False)


@final
class Csr(Storage):
    """A scipy CSR array."""

    def fetch(self, rows: slice | Array) -> Array:
        return self._raw(rows).astype(self.like.dtype, copy=False)

    def _raw(self, rows: slice | Array) -> Array:
        return self._view(rows) if isinstance(rows, slice) else self.V[_check_index(rows, self.n)]

    def _view(self, rows: slice) -> Array:
        """V[a:b] on V's own memory; scipy's slice is a copy."""
        start, stop, stride = rows.indices(self.n)
        if stride != 1 or stop <= start:
            return self.V[rows]
        first, last = self.V.indptr[start], self.V.indptr[stop]
        B: Array = sp.csr_array((stop - start, self.p), dtype=self.V.dtype)
        # Set one by one: the constructor copies what is less than half of a larger array.
        B.data, B.indices = self.V.data[first:last], self.V.indices[first:last]
        B.indptr = self.V.indptr[start : stop + 1] - first
        return B

    def squares(self, rows: slice | Array, center: Array, scale: Array) -> tuple[Array, Array]:
        Q = self._raw(rows).astype(center.dtype, copy=True)
        Q.sum_duplicates()  # v = v' + v'': the square of the sum
        j = Q.indices
        Q.data *= (Q.data - 2 * center[j]) / scale[j] ** 2
        return Q, (center / scale) ** 2

    def moments(self, rows: Array, share: Array, center: Array, scale: Array) -> tuple[Array, Array]:
        """Entry by entry, zeros apart: of v² − 2cv + c², let alone its square, a large offset leaves no digits."""
        Q = self._raw(rows).astype(center.dtype, copy=True)
        Q.sum_duplicates()
        there, total = Q.copy(), share.sum()
        there.data[:] = 1.0
        zeros = total - share @ there
        zeros = np.where(zeros > ROUNDING * total, zeros, 0.0)  # what is left of a full column
        Q.data = ((Q.data - center[Q.indices]) / scale[Q.indices]) ** 2
        q = (center / scale) ** 2
        second = share @ Q + zeros * q
        Q.data *= Q.data
        return second, share @ Q + zeros * q * q

    def written_out(self, rows: slice | Array) -> np.ndarray:
        return np.asarray(self.fetch(rows).toarray(), dtype=np.float64)

    @property
    def row_bytes(self) -> int:
        entry = self.like.itemsize + self.V.indices.itemsize
        return int(1 + self.V.nnz * entry // self.n)


def open_storage(V: Array) -> Storage:
    """The storage of a data matrix that `trimlearn._utils.validation.check_matrix` has passed."""
    if is_sparse(V):
        return Csr(V, _empty(V.data))
    return NumpyDense(V, _empty(V)) if is_numpy_array(V) else DeviceDense(V, _empty(V))


def _check_index(rows: Array, n: int) -> Array:
    """``rows`` as a NumPy index; IndexError for a mask, and for what NumPy would wrap around or clip."""
    rows = np.asarray(rows)
    if rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n):
        raise IndexError(BAD_ROWS.format(n=n))
    return rows.astype(np.intp, copy=False)


def _empty(a: Array) -> Array:
    """An empty array of the working dtype of ``a``."""
    xp = namespace(a)
    single = a.itemsize <= 2 or (a.itemsize == 4 and xp.isdtype(a.dtype, "real floating"))
    return xp.empty(0, dtype=xp.float32 if single else xp.float64, device=device(a))
