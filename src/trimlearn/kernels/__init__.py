"""Steps in which every row is read once: predict, residual and gradient fused, compiled by numba where it is installed.

Without numba, and for data or losses that no kernel knows, everything goes on by matrix products, with the same
iterates up to rounding. Pieces and their order are fixed by the data: the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, final

import numpy as np
from array_api_compat import is_numpy_array

from trimlearn._utils.arrays import Array
from trimlearn._utils.threads import total
from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.storage import Csr, NumpyDense

__all__ = ["Fused", "fused", "why_not"]

WORTH = 2_000_000  # numbers in V from which on a kernel is used: a pass takes a millisecond, loading one a few hundred
PIECE_BYTES = 1 << 20  # of V that a thread takes at a time, at least: less than a level-2 cache
PER_SUM = 8  # times what a piece's own sum takes, at least: else adding those up is what takes the time
FEWEST = 64  # rows in a piece


@cache
def _compiled(storage: str) -> ModuleType | str:
    """The module of kernels for a storage; a sentence where numba is not to be had."""
    if find_spec("numba") is None:
        return "numba is not installed (the extra trimlearn[fast])"
    try:
        return import_module(f"trimlearn.kernels.{storage}")
    except (ImportError, RuntimeError) as error:  # too old for this NumPy; or no folder that its cache may be in
        return f"numba does not load ({error})"


def fused(loss: Loss) -> Fused | None:
    """The fused steps of a loss; None where there are none, or it is too small to be worth loading them."""
    found = _kernels(loss)
    return Fused(loss, found) if isinstance(loss, PredictionLoss) and isinstance(found, ModuleType) else None


def why_not(loss: Loss) -> str | None:
    """Why a loss that is worth fused steps has none; None where it has, or nobody would expect any."""
    found = _kernels(loss)
    return found if isinstance(found, str) else None


def _kernels(loss: Loss) -> ModuleType | str | None:
    if not isinstance(loss, PredictionLoss) or loss.n * loss.linear.p < WORTH:
        return None
    storage = loss.linear.storage
    if loss.compiled() is None or not is_numpy_array(loss.like):
        return None
    if isinstance(storage, NumpyDense) and storage.V.flags.c_contiguous and storage.V.flags.aligned:
        return _compiled("dense")
    return _compiled("csr") if isinstance(storage, Csr) else None


@final
class Fused:
    """The fused steps of one loss."""

    def __init__(self, loss: PredictionLoss, kernels: Any) -> None:
        self._loss, self._rows, self._kernels = loss, loss.compiled(), kernels
        storage = loss.linear.storage
        self._sparse = isinstance(storage, Csr)
        self._V = (storage.V.data, storage.V.indices, storage.V.indptr) if self._sparse else (np.asarray(storage.V),)
        own = loss.linear.p * loss.K * loss.like.itemsize
        self._step = max(FEWEST, max(PIECE_BYTES, PER_SUM * own) // storage.row_bytes)

    def difference(self, x: Array, c: Array, index: np.ndarray, table: np.ndarray) -> tuple[Array, np.ndarray]:
        """Σ cᵢ Aᵢᵀ(∇φᵢ(zᵢ) − tableᵢ) over the rows ``index``, and their residuals ∇φᵢ(zᵢ)."""
        new = np.empty((len(index), self._loss.K), table.dtype)
        W, offset = self._model(x)

        def part(at: slice, G: np.ndarray, r: np.ndarray) -> None:
            self._kernels.difference(*self._V, index[at], W, offset, self._rows, table, c[at], new[at], G, r)

        return self._gradient(len(index), part), new

    def evaluate(self, x: Array, c: Array, table: np.ndarray) -> tuple[np.ndarray, Array]:
        """φᵢ(zᵢ) of all rows, and Σ cᵢ Aᵢᵀ∇φᵢ(zᵢ); table ← ∇φᵢ(zᵢ)."""
        f = np.empty(self._loss.n, table.dtype)
        W, offset = self._model(x)

        def part(at: slice, G: np.ndarray, sums: np.ndarray) -> None:
            self._kernels.evaluate(*self._V, at.start, W, offset, self._rows, c[at], f[at], table[at], G, sums)

        return f, self._gradient(len(f), part)

    def _model(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        """W and offset as the kernels want them, Z = V W + offset."""
        W, offset = self._loss.linear.fold(x)
        W = np.ascontiguousarray(W if self._sparse else W.T)
        return W, np.zeros(self._loss.K, W.dtype) if offset is None else np.ascontiguousarray(offset)

    def _gradient(self, m: int, part: Callable[[slice, np.ndarray, np.ndarray], None]) -> Array:
        """The sum of what ``part`` adds for each piece of m rows, in their order."""
        linear = self._loss.linear
        p, K = linear.p, self._loss.K

        def piece(at: slice) -> _Sums:
            sums = _Sums(np.zeros((p, K) if self._sparse else (K, p), linear.like.dtype), np.zeros(K))
            part(at, sums.G, sums.r)
            return sums

        pieces = (slice(i, min(i + self._step, m)) for i in range(0, m, self._step))
        zero = _Sums(np.zeros((), linear.like.dtype), np.zeros(K))
        found = total(piece, pieces, zero)
        return linear.unfold_sums(found.G.T if self._sparse else found.G, found.r)


@final
@dataclass(frozen=True)
class _Sums:
    """Σ rᵢvᵢᵀ and Σ rᵢ over some rows."""

    G: np.ndarray
    r: np.ndarray

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.G + other.G, self.r + other.r)
