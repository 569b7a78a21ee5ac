"""The distinct rows of a table: what depends on them alone depends neither on order nor on repetition."""

from __future__ import annotations

import numpy as np

__all__ = ["distinct_rows"]


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
