"""The random numbers of Algorithm 1 as a pure function of (seed, k).

A counter-based generator (Philox, key = seed, counter = k) makes iteration k's numbers without those before it: every
engine, with any number of workers, sees the same draws, and resuming needs only k. What they stand for: rows in
`trimlearn.smart.row_laws`, and moves in `trimlearn.smart.move_laws`.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from math import prod
from typing import final

import numpy as np


class Stream(Enum):
    """What the numbers are for: Algorithm 1's own draws must not depend on what else is drawn in iteration k."""

    ITERATION = 0
    PROBE = 1
    OUTPUT = 2
    START = 3


@final
class Draws:
    """The random numbers of iteration k, and the rows they stand for (row i with probability sᵢ/S)."""

    def __init__(
        self, seed: int, k: int, n: int, cumulative: np.ndarray | None = None, stream: Stream | None = None
    ) -> None:
        # The counter's first word counts the blocks that iteration k consumes, its second is k, its third the stream.
        word = (stream or Stream.ITERATION).value
        self._uniform = np.random.Generator(np.random.Philox(key=seed, counter=(word << 128) + (k << 64))).random
        self.seed, self.k, self.n, self.stream = seed, k, n, stream or Stream.ITERATION
        self.used = 0  # how many numbers have been taken so far
        self._behind = 0  # of which the generator here does not know
        self._cumulative = cumulative

    def uniform(self) -> float:
        """One number, uniform on [0, 1)."""
        return float(self.uniforms(1)[0])

    def uniforms(self, m: int) -> np.ndarray:
        """m numbers, uniform on [0, 1)."""
        self._uniform(self._behind)
        self._behind = 0
        self.used += m
        return np.asarray(self._uniform(m))

    def rows(self, b: int) -> np.ndarray:
        """b row numbers, with replacement. Whole-number weights give the rows that repeating them would give."""
        u = self.uniforms(b)
        if self._cumulative is None:
            return np.asarray(np.minimum((u * self.n).astype(np.int64), self.n - 1))
        total = self._cumulative[-1]
        return np.asarray(np.minimum(np.searchsorted(self._cumulative, u * total, side="right"), self.n - 1))

    def normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Standard normal numbers (Box and Muller, as only uniforms are drawn)."""
        found, taken = normals(self.seed, self.k, self.stream, self.used, shape), 2 * prod(shape)
        self.used += taken
        self._behind += taken
        return found


@lru_cache(maxsize=2)
def normals(seed: int, k: int, stream: Stream, skip: int, shape: tuple[int, ...]) -> np.ndarray:
    """What `Draws.normal` gives after ``skip`` numbers. Remembered: an engine may draw it before it is asked for."""
    u = Draws(seed, k, 1, None, stream).uniforms(skip + 2 * prod(shape))[skip:].reshape(2, *shape)
    found = np.asarray(np.sqrt(-2.0 * np.log1p(-u[0])) * np.cos(2.0 * np.pi * u[1]))
    found.flags.writeable = False
    return found


def drawn(n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
    """1 − (1 − sᵢ/S)^b: the chance that one of b draws with replacement is row i; a number where all sᵢ are equal.

    >>> round(drawn(10, 2), 2), drawn(3, 2, np.array([1.0, 1.0, 2.0]))
    (0.19, array([0.4375, 0.4375, 0.75  ]))
    """
    with np.errstate(divide="ignore"):  # a row that is all there is: log 0 = −inf, and the chance is 1
        chance = -np.expm1(b * np.log1p(-(1.0 / n if s is None else s / s.sum())))
    return float(chance) if s is None else chance
