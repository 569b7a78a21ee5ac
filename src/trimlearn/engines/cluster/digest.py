"""What tells the rows of a cluster from others: a number for each of them, added up, whatever shard it lies in."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from trimlearn._utils.validation import is_sparse
from trimlearn.engines.cluster.rows import ShardRows

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
