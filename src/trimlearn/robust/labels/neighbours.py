"""The labels of the nearest neighbours, by matrix products, where the rows lie."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_numpy_array

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy

__all__ = ["neighbour_votes"]

BLOCK, DEVICE_BLOCK = 128, 8_192  # rows whose distances are held at a time: 2 MB, a core's cache; and 131 MB
GROUP = 16  # distances of which the least is looked at first: to select among these takes a sixteenth of the time


def neighbour_votes(F: Array, seen: np.ndarray, votes: np.ndarray, k: int) -> np.ndarray:
    """For every row of F the sum of the ``votes`` (m, K) of its k nearest among the rows ``seen``, itself excepted.

    Of what is equally near, or nearly so, all count: the k nearest are what lies within the k-th smallest of the
    least distances of groups of rows, which is seldom one more.

    >>> F = np.array([[0.0], [1.0], [2.5], [9.0]])
    >>> neighbour_votes(F, np.arange(4), np.eye(4), 1).argmax(axis=1)
    array([1, 0, 1, 2])
    """
    xp, m = namespace(F), len(seen)
    size = max(1, min(GROUP, m // (GROUP * k)))  # so many more groups than neighbours that few hold two of them
    padding = -m % size
    R = xp.take(F, index_like(seen, F), axis=0)
    R = xp.concat([R, asarray_like(np.zeros((padding, R.shape[1])), F)])
    squares = xp.sum(R * R, axis=1)
    squares[m:] = np.inf
    votes = asarray_like(np.vstack([votes, np.zeros((padding, votes.shape[1]))]), F)
    place = np.full(F.shape[0], -1)
    place[seen] = np.arange(m)
    found, block = [], BLOCK if is_numpy_array(F) else DEVICE_BLOCK
    for i in range(0, F.shape[0], block):
        D = squares - 2 * (F[i : i + block, :] @ R.T)  # the squared distance, less what a row of F adds to all
        own = place[i : i + block]
        among = np.flatnonzero(own >= 0)
        D[index_like(among, F), index_like(own[among], F)] = np.inf
        least = xp.min(xp.reshape(D, (D.shape[0], size, -1)), axis=1)
        near = D <= _kth(least, k)
        found.append(xp.astype(near, F.dtype) @ votes)
    return np.asarray(to_numpy(xp.concat(found)), dtype=np.float64)


def _kth(a: Array, k: int) -> Array:
    """The k-th smallest number of every row, as a column."""
    if is_numpy_array(a):
        return np.partition(a, k - 1, axis=1)[:, k - 1 : k]
    return namespace(a).sort(a, axis=1)[:, k - 1 : k]
