"""Rows in blocks that lie together: what a shuffled copy holds, and what is drawn; and some rows that stand for all."""

from __future__ import annotations

from math import ceil

import numpy as np

PER_BATCH = 8  # blocks that make up a batch of n^(2/3) rows: a choice between long reads and many independent draws


def blocks_for(n: int) -> int:
    """How many blocks n rows are dealt into: as many as make ⌈n^(2/3)⌉ rows eight blocks.

    >>> blocks_for(8_000_000), blocks_for(5)
    (1600, 5)
    """
    batch: int = ceil(round(n ** (2 / 3), 9))
    return max(1, min(n, round(PER_BATCH * n / batch)))


def block_starts(n: int, blocks: int) -> np.ndarray:
    """Where the blocks begin, and n: the first n mod ``blocks`` of them are one row longer.

    >>> block_starts(7, 3)
    array([0, 3, 5, 7])
    """
    number = np.arange(blocks + 1, dtype=np.int64)
    return number * (n // blocks) + np.minimum(number, n % blocks)


def rows_apart(n: int, m: int, seed: int) -> np.ndarray:
    """The numbers of m of n rows drawn without replacement, in order, or of all: the same ones wherever rows lie.

    >>> rows_apart(5, 9, seed=0), len(np.unique(rows_apart(1000, 10, seed=0)))
    (array([0, 1, 2, 3, 4]), 10)
    """
    if m >= n:
        return np.arange(n)
    draw = np.random.Generator(np.random.Philox(key=seed))
    return np.sort(draw.choice(n, m, replace=False, shuffle=False))


def slices_apart(n: int, m: int, count: int) -> list[slice]:
    """About m of n rows, in ``count`` slices at equal distances; all in one where m is n or more.

    >>> slices_apart(100, 4, 2), slices_apart(3, 4, 2)
    ([slice(0, 2, None), slice(98, 100, None)], [slice(0, 3, None)])
    """
    if m >= n:
        return [slice(0, n)]
    count = max(1, min(count, m))
    each = m // count
    starts = np.linspace(0, n - each, count).astype(np.int64).tolist()
    return [slice(start, start + each) for start in starts]


def taken(a: np.ndarray, slices: list[slice]) -> np.ndarray:
    """Those rows of an array, one below the other; a view of it where it is one slice."""
    return a[slices[0]] if len(slices) == 1 else np.concatenate([a[at] for at in slices])
