"""Where each row goes in a shuffled copy: rows are dealt like cards into blocks that each look like all of the data.

They are taken in decks. Each deck is shuffled by the seed and its own number, and dealt one row to each block in turn.
So every block holds as many rows of each deck as any other, up to one; which ones is chance. Rows that make one deck
are parted uniformly at random. Nothing of the size of the data is needed to know where a row went, and any deck is
known without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.blocks import block_starts, blocks_for
from trimlearn._utils.threads import each

if TYPE_CHECKING:
    pass

Deck = tuple[slice, np.ndarray, np.ndarray]  # its rows, their order in the copy, and their places, which increase
DECK_BYTES = 1 << 25  # of rows shuffled together: a limit on memory, two times 34 MB
DECK_ROWS = 1 << 20  # of them at most: a limit on memory, 8 MB of row numbers


@final
@dataclass(frozen=True)
class Deal:
    """Which place each of n rows has in the copy, a pure function of (n, blocks, seed, deck).

    >>> deal = Deal(5, 2, seed=0, deck=3)
    >>> deal.restored(deal.dealt(np.arange(5)))
    array([0, 1, 2, 3, 4])
    """

    n: int
    blocks: int
    seed: int
    deck: int

    def decks(self) -> Iterator[Deck]:
        """All decks in order."""
        return map(self._deck, range(-(-self.n // self.deck)))

    def _deck(self, number: int) -> Deck:
        start, stop = number * self.deck, min((number + 1) * self.deck, self.n)
        draw = np.random.Generator(np.random.Philox(key=self.seed, counter=number << 64))
        row = draw.permutation(stop - start)
        turn = np.arange(start, stop)
        block = turn % self.blocks
        narrow = block.astype(np.uint16) if self.blocks <= 1 << 16 else block  # sorted by digits, ten times faster
        order = np.argsort(narrow, kind="stable")
        return slice(start, stop), row[order], (block_starts(self.n, self.blocks)[block] + turn // self.blocks)[order]

    def restored(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for every place, in the order of the rows."""
        out = np.empty_like(values)

        def part(number: int) -> None:
            rows, order, places = self._deck(number)
            out[rows.start + order] = values[places]

        each(part, range(-(-self.n // self.deck)))
        return out

    def dealt(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for every row, in the order of the places."""
        out = np.empty_like(values)
        for rows, order, places in self.decks():
            out[places] = values[rows][order]
        return out

    def runs(self, places: np.ndarray) -> list[tuple[int, int, int]]:
        """Increasing places as runs (start, stop, place): places[start:stop] follow one another from ``place`` on."""
        edges = np.flatnonzero(np.diff(places) != 1) + 1
        bounds = [0, *edges.tolist(), len(places)]
        return [(a, b, int(places[a])) for a, b in pairwise(bounds)]


def deal_for(n: int, row_bytes: int, seed: int) -> Deal:
    """How n rows of so many bytes are dealt."""
    return Deal(n, blocks_for(n), int(seed), max(1, min(DECK_ROWS, DECK_BYTES // max(1, row_bytes))))
