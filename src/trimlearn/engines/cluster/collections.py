"""Dask's arrays and data frames, cut into one shard for each worker: nothing of them is computed here.

What tells the rows of a cluster from others: a number for each of them, added up, whatever shard it lies in.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from trimlearn._utils.validation import is_collection, is_sparse
from trimlearn.engines.cluster.rows import Placed, ShardRows, assemble
from trimlearn.engines.cluster.workers import Workers


def place_collections(workers: Workers, X: Any, y: Any, s: Any = None) -> Placed:
    """The rows of X with targets y and sample weights s, on the workers, in order."""
    parts, sizes = _parts(X, "X")
    columns = {name: _beside(value, X, len(parts), sizes, name) for name, value in (("y", y), ("sample_weight", s))}
    cuts = _cuts(sizes if sizes is not None else [1] * len(parts), min(len(workers.addresses), len(parts)))
    bounds = list(pairwise(cuts))
    args = [tuple(None if part is None else part[a:b] for part in (parts, *columns.values())) for a, b in bounds]
    blocks = workers.compute(assemble, args, "rows")
    names = [f"partition {a}" if b == a + 1 else f"partitions {a} to {b - 1}" for a, b in bounds]
    return Placed.of(workers, blocks, names, lazy=True)


def _parts(X: Any, name: str) -> tuple[list[Any], list[int] | None]:
    """The pieces of a collection, by rows, and how many rows each has where that is known."""
    if not is_collection(X):
        raise ValueError(f"{name} must be a Dask collection where X is one, got {type(X).__name__}.")
    if hasattr(X, "chunks"):
        if X.ndim not in (1, 2):
            raise ValueError(f"{name} must have one or two dimensions, got {X.ndim}.")
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        known = None if any(np.isnan(size) for size in X.chunks[0]) else [int(size) for size in X.chunks[0]]
        return list(X.to_delayed().ravel()), known
    return list(X.to_delayed()), None


def _beside(value: Any, X: Any, count: int, sizes: list[int] | None, name: str) -> list[Any] | None:
    """The pieces of y or s, cut as X is."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) and sizes is not None:
        from dask import array

        if value.shape[:1] != (sum(sizes),):
            raise ValueError(f"{name} has {len(value)} rows and X {sum(sizes)}; give one for each.")
        whole: Any = array
        value = whole.from_array(value, chunks=(tuple(sizes), *value.shape[1:]))
    parts, found = _parts(value, name)
    if sizes is not None and found is not None:
        if sum(found) != sum(sizes):
            raise ValueError(f"{name} has {sum(found)} rows and X {sum(sizes)}; give one for each.")
        if found != sizes:
            parts, _ = _parts(value.rechunk({0: tuple(sizes)}), name)
    if len(parts) != count:
        raise ValueError(
            f"{name} has {len(parts)} partitions and X {count}: cut both alike, or call compute_chunk_sizes() on both."
        )
    return parts


def _cuts(sizes: list[int], count: int) -> list[int]:
    """Where to cut pieces of these sizes into ``count`` groups of about as many rows, each of one piece at least."""
    ends, total = np.cumsum(sizes), sum(sizes)
    cuts = [0]
    for i in range(1, count):
        at = int(np.searchsorted(ends, total * i / count - 1e-9)) + 1
        cuts.append(min(max(at, cuts[-1] + 1), len(sizes) - (count - i)))
    return [*cuts, len(sizes)]


# The multipliers of splitmix64 and its step, by which neighbours become far apart (Steele, Lea and Flood 2014).
STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
PIECE = 1 << 16  # numbers looked at in one go: half a MB stays in a level-2 cache


def digest(block: ShardRows, lo: int) -> int:
    """The sum of a number for each row of the block, before which ``lo`` others stand, modulo 2⁶⁴."""
    n, p = block.V.shape
    own = _mixed(_columns(block.t) + np.uint64(1))
    if block.s is not None:
        own = _mixed(own + _columns(block.s))
    step, total = max(1, PIECE // max(p, 1)), 0
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        number = np.arange(lo + rows.start, lo + rows.stop, dtype=np.uint64)
        found = _mixed(own[rows] + _rows(block.V[rows]) + _mixed(number * STEP))
        total += int(found.sum(dtype=np.uint64))
    return total % (1 << 64)


def _mixed(z: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits, each bit a function of all: the end of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))


def _rows(V: Any) -> np.ndarray:
    """One number for each row of a matrix."""
    if not is_sparse(V):
        return _columns(np.ascontiguousarray(V))
    entries = _mixed(_bits(V.data) + _mixed(V.indices.astype(np.uint64) * STEP))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return np.asarray(sums[V.indptr[1:]] - sums[V.indptr[:-1]])


def _columns(A: np.ndarray) -> np.ndarray:
    """One number for each row of an array."""
    A = A.reshape(len(A), -1)
    each = _mixed(np.arange(1, A.shape[1] + 1, dtype=np.uint64) * STEP)
    return np.asarray(_mixed(_bits(A) + each).sum(axis=1, dtype=np.uint64))


def _bits(A: np.ndarray) -> np.ndarray:
    """Entries as whole numbers: their bits, or of text a checksum."""
    if A.dtype.kind in "biuf":
        return A.view(f"u{A.dtype.itemsize}").astype(np.uint64)
    labels, at = np.unique(A.astype(str), return_inverse=True)
    return np.array([crc32(str(label).encode()) for label in labels], dtype=np.uint64)[at].reshape(A.shape)
