"""Where each row goes in a shuffled copy: dealt like cards into blocks that each look like all of the data.

The rows are taken in decks of a million. Each deck is shuffled by the seed and its own number, and dealt one row to each
block in turn. So every block holds as many rows of each deck as any other, up to one; which ones is chance. Of fewer
than a million rows it is a uniform random partition. Nothing of the size of the data is needed to know where a row went,
and any deck is known without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np

__all__ = ["Deal", "block_starts", "blocks_for"]

DECK = 1 << 20  # rows shuffled together: a limit on memory, 8 MB of row numbers
PER_BATCH = 8  # blocks that make up a batch of n^(2/3) rows: a choice between long reads and few independent draws


def blocks_for(n: int) -> int:
    """How many blocks n rows are dealt into: as many as make ⌈n^(2/3)⌉ rows eight blocks.

    >>> blocks_for(8_000_000), blocks_for(5)
    (1600, 5)
    """
    return max(1, min(n, round(PER_BATCH * n / ceil(round(n ** (2 / 3), 9)))))


def block_starts(n: int, blocks: int) -> np.ndarray:
    """Where the blocks begin, and n: the first n mod ``blocks`` of them are one row longer.

    >>> block_starts(7, 3)
    array([0, 3, 5, 7])
    """
    number = np.arange(blocks + 1, dtype=np.int64)
    return number * (n // blocks) + np.minimum(number, n % blocks)


@final
@dataclass(frozen=True)
class Deal:
    """Which place each of n rows has in the copy, a pure function of (n, blocks, seed).

    >>> deal = Deal(5, 2, seed=0)
    >>> sorted(deal.places(0, 5).tolist())
    [0, 1, 2, 3, 4]
    """

    n: int
    blocks: int
    seed: int

    def places(self, start: int, stop: int) -> np.ndarray:
        """The places of rows ``start`` to ``stop`` − 1, which lie in one deck."""
        deck = start // DECK
        first, last = deck * DECK, min(self.n, (deck + 1) * DECK)
        turn = first + self._shuffled(deck, last - first)[start - first : stop - first]
        block, depth = turn % self.blocks, turn // self.blocks
        return block * (self.n // self.blocks) + np.minimum(block, self.n % self.blocks) + depth

    def decks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The rows of every deck, and their places."""
        for start in range(0, self.n, DECK):
            at = slice(start, min(start + DECK, self.n))
            yield at, self.places(at.start, at.stop)

    def restored(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """``values``, one for every place, in the order of the rows."""
        out = np.empty_like(values) if out is None else out
        for at, places in self.decks():
            out[at] = values[places]
        return out

    def dealt(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for every row, in the order of the places."""
        out = np.empty_like(values)
        for at, places in self.decks():
            out[places] = values[at]
        return out

    def _shuffled(self, deck: int, size: int) -> np.ndarray:
        known: Any = self.__dict__.get("_last")
        if known is None or known[0] != deck:
            draw = np.random.Generator(np.random.Philox(key=self.seed, counter=(deck << 64)))
            known = (deck, draw.permutation(size))
            self.__dict__["_last"] = known  # rows come in order: one deck is asked for many times
        return known[1]  # type: ignore[no-any-return]
