"""Distinct rows, hashes of rows, and folds dealt by them: what depends on the contents of rows alone depends neither on
their order nor on how they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import is_sparse

__all__ = ["Folds", "deal", "digest", "distinct_rows"]

CHUNK = 4096  # rows hashed at a time: some MB

Folds = NDArray[np.int64]


def distinct_rows(A: np.ndarray, s: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the distinct rows of A (n, p) with s > 0, in lexicographic order; the weight of all copies of
    each, in float64; and for every row of A its place among them, −1 where s = 0.

    >>> rows, weights, where = distinct_rows(np.array([[2.0], [1.0], [2.0]]))
    >>> rows, weights, where
    (array([1, 0]), array([1., 2.]), array([1, 0, 1]))
    """
    present = np.arange(len(A)) if s is None else np.flatnonzero(s > 0)
    B = A[present]
    order = np.argsort(B[:, 0], kind="stable")
    if np.any(np.diff(B[order, 0]) == 0):  # else the first column decides, in a fraction of the time
        order = np.lexsort(B.T[::-1])
    B = B[order]
    new = np.append(True, np.any(B[1:] != B[:-1], axis=1)) if len(B) else np.empty(0, dtype=bool)
    place = np.cumsum(new) - 1
    where = np.full(len(A), -1)
    where[present[order]] = place
    return present[order][new], np.bincount(place, None if s is None else s[present[order]]).astype(np.float64), where


def deal(V: Any, labels: NDArray[np.int64], s: NDArray[np.float64], folds: int) -> Folds:
    """A fold for each row: even within every class, by the contents of the row alone. So equal rows share a fold, and
    neither the order of the rows nor those of weight 0 matter.

    >>> V = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> fold = deal(V, np.zeros(4, dtype=int), np.ones(4), folds=3)
    >>> bool(fold[0] == fold[2]), len(set(fold))
    (True, 3)
    """
    digests = digest(V)
    fold = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels[s > 0]):
        rows = np.flatnonzero((labels == label) & (s > 0))
        values, rank = np.unique(digests[rows], return_inverse=True)
        fold[rows] = (rank + int(values[0] % np.uint64(folds))) % folds
    return fold


def digest(V: Any) -> NDArray[np.uint64]:
    """A number per row that only its values decide: Σⱼ aⱼ·bits(v_ij) modulo 2⁶⁴, odd aⱼ drawn once. A zero adds
    nothing, so that sparse rows and dense ones agree."""
    a = np.random.default_rng(0).integers(1 << 63, size=V.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if is_sparse(V):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_bits(V.data) * a[V.indices], dtype=np.uint64)])
        return np.asarray(total[V.indptr[1:]] - total[V.indptr[:-1]])
    return np.concatenate([_bits(to_numpy(V[i : i + CHUNK])) @ a for i in range(0, V.shape[0], CHUNK)])


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """The bits of float64, mixed: 0 for 0.0, also for -0.0."""
    return (values.astype(np.float64) + 0.0).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)
