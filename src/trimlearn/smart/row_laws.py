"""The laws of Iₖ and Dₖ, the rows that an x-step of Algorithm 1 estimates by, and those whose duals it renews."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, inf
from typing import final

import numpy as np

from trimlearn._utils.blocks import block_starts, blocks_for
from trimlearn._utils.validation import is_integer, is_number
from trimlearn.smart.draws import Draws, Stream, drawn

RowNumbers = slice | np.ndarray  # an int64 index array, or slice(None) for every row as they lie in memory


class RowLaw(ABC):
    """A law of Iₖ or Dₖ."""

    @abstractmethod
    def draw(self, draws: Draws) -> RowNumbers:
        """The rows."""

    def numbers(self, n: int, k: int) -> int:
        """How many random numbers that takes at iteration k."""
        return 0

    @abstractmethod
    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        """ρᵢ = P(i ∈ Dₖ), with b the size of Iₖ: one number, or one per row where sample weights s tell rows apart."""

    def bind(self, n: int) -> RowLaw:
        """The law for n rows."""
        return self

    def sized(self, b: int, n: int) -> RowLaw:
        """A law of about b rows that reads as this one does: by which curvature is probed."""
        return WithReplacement(b)


@final
@dataclass(frozen=True)
class WithReplacement(RowLaw):
    """b rows, uniformly with replacement; b = None means ⌈n^power⌉. With ``growth``, b(1 + growth·k) at iteration k."""

    b: int | None = None
    power: float = 2 / 3
    growth: float = 0.0

    def bind(self, n: int) -> WithReplacement:
        if not is_number(self.growth) or not 0 <= self.growth < inf:
            raise ValueError(f"growth must be a number >= 0, got {self.growth!r}.")
        if self.b is None:
            return WithReplacement(min(n, ceil(round(n**self.power, 9))), self.power, self.growth)
        if not is_integer(self.b) or not 1 <= self.b <= n:
            raise ValueError(f"b must be an integer from 1 to n = {n}, got {self.b!r}.")
        return self

    def draw(self, draws: Draws) -> RowNumbers:
        return draws.rows(self.numbers(draws.n, draws.k))

    def numbers(self, n: int, k: int) -> int:
        return min(n, ceil(self._size * (1 + self.growth * k)))

    @property
    def _size(self) -> int:
        assert self.b is not None, "bind the law first"
        return int(self.b)

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return drawn(n, self._size, s)


@final
@dataclass(frozen=True)
class Blocks(RowLaw):
    """Whole blocks of rows that lie together, uniformly with replacement, about b rows in all; None: ⌈n^(2/3)⌉.

    For data that are read from a disk, in random order (`trimlearn.streams` deals them). Every row has the same chance
    to be in a block drawn, so that estimates of gradients are unbiased whatever the order; but rows of a block come
    together, and Theorem 1, which asks for independent rows, does not speak of them. Blocks are of one size up to one
    row: of the longer ones the row that was hit is left out, each with the same chance.
    """

    b: int | None = None
    blocks: int | None = None  # how many there are; None: as many as make ⌈n^(2/3)⌉ rows eight blocks

    def bind(self, n: int) -> Blocks:
        if self.blocks is not None and (not is_integer(self.blocks) or not 1 <= self.blocks <= n):
            raise ValueError(f"blocks must be an integer from 1 to n = {n}, got {self.blocks!r}.")
        blocks = blocks_for(n) if self.blocks is None else int(self.blocks)
        b = WithReplacement(self.b).bind(n).b
        assert b is not None, "bound"
        size = n // blocks
        return Blocks(max(1, round(b / size)) * size, blocks)

    def draw(self, draws: Draws) -> RowNumbers:
        n = draws.n
        hit, starts = draws.uniforms(self.numbers(n, draws.k)), block_starts(n, self._blocks)
        row = np.minimum((hit * n).astype(np.int64), n - 1)
        block = np.searchsorted(starts, row, side="right") - 1
        size = n // self._blocks
        rows = starts[block][:, None] + np.arange(size)
        longer = starts[block + 1] - starts[block] > size
        return np.asarray(rows + (longer[:, None] & (rows >= row[:, None]))).ravel()

    def numbers(self, n: int, k: int) -> int:
        assert self.b is not None, "bind the law first"
        return self.b // (n // self._blocks)

    @property
    def _blocks(self) -> int:
        assert self.blocks is not None, "bind the law first"
        return self.blocks

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return float(1 - (1 - (n // self._blocks) / n) ** self.numbers(n, 0))

    def sized(self, b: int, n: int) -> RowLaw:
        return Blocks(b, self.blocks).bind(n)


@final
@dataclass(frozen=True)
class Everything(RowLaw):
    """All rows."""

    def draw(self, draws: Draws) -> RowNumbers:
        return slice(None)

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return 1.0


@final
@dataclass(frozen=True)
class Nothing(RowLaw):
    """No row."""

    def draw(self, draws: Draws) -> RowNumbers:
        return np.empty(0, dtype=np.int64)

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return 0.0


@final
@dataclass(frozen=True)
class Same(RowLaw):
    """Dₖ = Iₖ."""

    def draw(self, draws: Draws) -> RowNumbers:
        raise ValueError("Same() takes the rows of Iₖ and draws none; use it as the law of Dₖ.")

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return drawn(n, b, s)


@final
@dataclass(frozen=True)
class Independent(RowLaw):
    """Every row by its own coin: P(i ∈ Dₖ) = ``probability``, whatever Iₖ."""

    probability: float

    def bind(self, n: int) -> Independent:
        if not is_number(self.probability) or not 0 <= self.probability <= 1:
            raise ValueError(f"probability must be a number in [0, 1], got {self.probability!r}.")
        return self

    def draw(self, draws: Draws) -> RowNumbers:
        return np.flatnonzero(draws.uniforms(draws.n) < self.probability)

    def numbers(self, n: int, k: int) -> int:
        return n

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return self.probability


@final
@dataclass(frozen=True)
class Recipe:
    """Some rows of iteration k, not drawn yet: whoever holds examples finds the row numbers alone, at any time."""

    law: RowLaw
    seed: int = 0
    k: int = 0
    stream: Stream = Stream.ITERATION
    skip: int = 0  # numbers of the stream that others have taken before

    @classmethod
    def of(cls, law: RowLaw, draws: Draws, batch: Recipe | None = None) -> Recipe:
        """How the next rows are found, by the law; ``batch`` is Iₖ where Dₖ is asked for. Nothing is drawn here."""
        if isinstance(law, Same):
            assert batch is not None, "Same() is a law of Dₖ"
            return batch
        skip = draws.used if batch is None else batch.skip + batch.law.numbers(draws.n, draws.k)
        return cls(law, draws.seed, draws.k, draws.stream, skip)

    def rows(self, n: int, cumulative: np.ndarray | None = None) -> RowNumbers:
        """The row numbers among n examples; ``cumulative``: the sums s₁, s₁ + s₂, … of sample weights, if there are.

        >>> Recipe(WithReplacement(4), seed=0, k=5, skip=1).rows(10)
        array([4, 7, 5, 8])
        """
        if isinstance(self.law, Everything):
            return slice(None)
        draws = Draws(self.seed, self.k, n, cumulative, self.stream)
        draws.uniforms(self.skip)
        return self.law.draw(draws)


ALL = Recipe(Everything())  # every row


@final
@dataclass(frozen=True, eq=False)
class GivenRows(RowLaw):
    """The rows given, in every iteration: for trials and timings."""

    given: np.ndarray

    def draw(self, draws: Draws) -> RowNumbers:
        return self.given

    def rho(self, n: int, b: int, s: np.ndarray | None = None) -> float | np.ndarray:
        return np.isin(np.arange(n), self.given).astype(np.float64)
