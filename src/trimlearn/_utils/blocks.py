"""Rows in blocks that lie together, all of one size up to one row: what a shuffled copy holds, and what is drawn."""

from __future__ import annotations

from math import ceil

import numpy as np

__all__ = ["block_starts", "blocks_for"]

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
