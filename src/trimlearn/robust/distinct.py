"""Distinct rows, hashes of rows, and folds made from them: what depends on the contents of rows alone depends neither
on their order nor on how they are stored."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from array_api_compat import is_torch_array
from numpy.typing import NDArray
from scipy.sparse import issparse

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.validation import is_sparse

CHUNK = 512  # rows hashed at a time: 512 × 1,000 numbers are 4 MB, and what stays in a cache takes a third of the time
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, odd: Knuth's multiplicative hashing (1973, 6.4)
THERE = 8_192  # rows of a tensor hashed at a time: 65 MB of 1,000 columns

Folds = NDArray[np.int64]  # for each row the number of the model that judges it and is not fitted on it
Hashes = NDArray[np.uint64]


def distinct_rows(A: np.ndarray, s: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of the distinct rows of A (n, p) with s > 0, in lexicographic order; the weight of all copies of
    each, in float64; and for every row of A its place among them, −1 where s = 0.

    >>> rows, weights, where = distinct_rows(np.array([[2.0], [1.0], [2.0]]))
    >>> rows, weights, where
    (array([1, 0]), array([1., 2.]), array([1, 0, 1]))
    """
    present = np.arange(len(A)) if s is None else np.flatnonzero(s > 0)
    B = A if s is None else A.take(present, axis=0)
    first = np.ascontiguousarray(B[:, 0])
    order = np.argsort(first)
    first, new = first[order], np.ones(len(B), dtype=bool)
    if np.any(first[1:] == first[:-1]):  # else the first column decides, in a fraction of the time
        order = np.lexsort(B.T[::-1])
        B = B.take(order, axis=0)
        new[1:] = np.any(B[1:] != B[:-1], axis=1)
    place = np.cumsum(new) - 1
    where = np.full(len(A), -1)
    where[present[order]] = place
    return present[order][new], np.bincount(place, None if s is None else s[present[order]]).astype(np.float64), where


def taken_rows(V: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of V, dense, on a device or not, or CSR, as V is."""
    return V[rows] if is_sparse(V) else namespace(V).take(V, index_like(rows, V), axis=0)


def content_folds(
    hashes: Hashes, groups: NDArray[np.int64], s: NDArray[np.float64], folds: int, *, even: bool = False
) -> Folds:
    """A fold for each row: even within every group (class), by the contents of the row alone. So equal rows share a
    fold, and neither the order of the rows nor those of weight s = 0 matter.

    even: folds are equally large over all groups, too; the fold is −1 for rows of weight 0, and for a group of fewer
    distinct rows than there are folds.

    >>> V = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> fold = content_folds(row_hashes(V), np.zeros(4, dtype=int), np.ones(4), folds=3)
    >>> bool(fold[0] == fold[2]), len(set(fold))
    (True, 3)
    """
    fold = np.full(len(groups), -1 if even else 0)
    before = 0
    for group in np.unique(groups[s > 0]):
        rows = np.flatnonzero((groups == group) & (s > 0))
        values, rank = np.unique(hashes[rows], return_inverse=True)
        if even and len(values) < folds:
            continue
        first = before if even else int(values[0] % np.uint64(folds))
        fold[rows] = (rank + first) % folds
        before += len(values)
    return fold


def row_hashes(V: Any) -> Hashes:
    """A number per row of a matrix of numbers that only its values decide: Σⱼ aⱼ·bits(v_ij) modulo 2⁶⁴, odd aⱼ drawn
    once. A zero adds nothing, so that sparse rows and dense ones agree."""
    a = _odd(V.shape[1])
    if is_sparse(V):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_bits(V.data) * a[V.indices], dtype=np.uint64)])
        return np.asarray(total[V.indptr[1:]] - total[V.indptr[:-1]])
    if is_torch_array(V):
        return _hashed_there(V, a)
    return np.concatenate([_bits(to_numpy(V[i : i + CHUNK])) @ a for i in range(0, V.shape[0], CHUNK)])


@lru_cache(maxsize=8)
def _odd(p: int) -> Hashes:
    """The aⱼ, drawn once."""
    return np.random.default_rng(0).integers(1 << 63, size=p, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _hashed_there(V: Array, a: Hashes) -> Hashes:
    """The same where a tensor lies. Torch has no products of unsigned numbers: those of signed ones have the same bits,
    and 11 zeros are put in front by hand."""
    xp, bits = namespace(V), 53
    golden, odd = int(GOLDEN.view(np.int64)), asarray_like(a.view(np.int64), V, xp.int64)

    def hashed(block: Array) -> Array:
        mixed = (xp.astype(block, xp.float64) + 0.0).view(xp.int64) * golden >> (64 - bits) & ((1 << bits) - 1)
        return xp.sum(mixed * odd, axis=1)

    return to_numpy(xp.concat([hashed(V[i : i + THERE]) for i in range(0, V.shape[0], THERE)])).view(np.uint64)


def _bits(values: NDArray[Any]) -> Hashes:
    """The bits of float64, mixed: 0 for 0.0, also for -0.0."""
    return (values.astype(np.float64) + 0.0).view(np.uint64) * GOLDEN >> np.uint64(11)


def content_hashes(X: Any, y: NDArray[Any], seed: int) -> Hashes:
    """The same for rows (X, y) of anything, texts and objects too, and other numbers for another seed: a hundred times
    slower than `row_hashes`, which folds of matrices are made from.

    >>> h = content_hashes(["yes", "no", "yes"], np.array([1, 1, 1]), seed=0)
    >>> bool(h[0] == h[2]), bool(h[0] == h[1])
    (True, False)
    """
    if issparse(X):
        A: Any = X
        A = A.sorted_indices()
        pieces = zip(A.indptr, A.indptr[1:], strict=False)
        content = (_bytes(A.indices[a:b]) + _bytes(A.data[a:b]) for a, b in pieces)
    else:
        content = (_bytes(row) for row in np.asarray(X))
    salt = str(seed).encode()[-16:]
    digests = (blake2b(x + _bytes(target), digest_size=8, salt=salt) for x, target in zip(content, y, strict=True))
    return np.fromiter((int.from_bytes(d.digest(), "little") for d in digests), dtype=np.uint64, count=len(y))


def _bytes(values: Any) -> bytes:
    """Numbers as float64, with one zero; anything else by how it prints."""
    a = np.asarray(values)
    return (a.astype(np.float64) + 0.0).tobytes() if a.dtype.kind in "biuf" else repr(a.tolist()).encode()
