"""Rows that are there more than once: copies of one observation, or observations of their own?

Every copy of an example bears its label, so that many of them prove no more than one does: a sample drawn with
replacement, or a table that was joined badly, would else accuse the labels that it repeats. Where features have few
values, equal rows are different examples, and some of them bear different labels: each is an observation then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.distinct import GOLDEN, Hashes
from trimlearn.robust.labels.noise_em import Floats


def are_observations(hashes: Hashes, targets: NDArray[Any], s: Floats) -> bool:
    """Whether rows that are there s times, a whole number, are so many observations: some that are equal, by their
    hashes, bear different labels, or other targets.

    >>> hashes = np.array([7, 7, 8], dtype=np.uint64)
    >>> are_observations(hashes, np.array([0, 1, 1]), np.array([5.0, 2.0, 1.0]))
    True
    >>> are_observations(hashes + np.arange(3, dtype=np.uint64), np.array([0, 1, 1]), np.array([5.0, 2.0, 1.0]))
    False
    """
    if not np.all(s == np.floor(s)) or not s.max() > 1:
        return False
    there = np.flatnonzero(s > 0)
    order = there[np.argsort(hashes[there], kind="stable")]
    same = hashes[order[1:]] == hashes[order[:-1]]
    return bool(np.any(same & (targets[order[1:]] != targets[order[:-1]])))


def apart(hashes: Hashes, copies: NDArray[np.int64]) -> Hashes:
    """Hashes of rows that were written out, copies[i] being the row that the i-th is a copy of, in order: copies of a
    row differ.

    >>> len(set(apart(np.array([7, 8], dtype=np.uint64), np.array([0, 0, 0, 1])).tolist()))
    4
    """
    number = np.arange(len(copies)) - np.searchsorted(copies, copies)
    return np.asarray(hashes[copies] + number.astype(np.uint64) * GOLDEN)


def kish_weights(s: Floats) -> Floats:
    """The weights s as if their sum were the number of observations that are worth as much (Kish 1965, section 8.2):
    (Σs)²/Σs², so that all rows twice are no more than once.

    >>> kish_weights(np.array([2.0, 2.0, 2.0])), float(kish_weights(np.array([3.0, 1.0, 1.0, 1.0])).sum())
    (array([1., 1., 1.]), 3.0)
    """
    return np.asarray(s * (s.sum() / np.square(s).sum()))
