"""What iteration k of Algorithm 1 does: its moves, and the laws of jₖ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from math import ceil
from typing import Any, final

from trimlearn._utils.validation import is_integer, is_number
from trimlearn.smart.draws import Draws, drawn


class Move(Enum):
    """What iteration k does: jₖ = 1, jₖ = 2, or an evaluation that changes neither w nor y."""

    W = 1
    X = 2
    EVALUATE = 3


class JLaw(ABC):
    """The law of jₖ."""

    @abstractmethod
    def draw(self, draws: Draws, k: int) -> Move:
        """What iteration k does."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """q = P(jₖ = 1)."""

    def bind(self, n: int, b: int) -> JLaw:
        """The law for n rows and batches of b."""
        return self


@final
@dataclass(frozen=True)
class Coin(JLaw):
    """jₖ = 1 with probability q; with ``restart``, at every restart-th iteration for certain (Reddi et al. 2016).

    q may be left to the problem: None means 1 − (1−1/n)^b, the chance that a batch holds a given row, but at most ½;
    "1/n" is the theory's for SAGA, and "b/(n+b)" PAGE's.
    """

    q: float | str | None = None
    restart: int | None = None

    def bind(self, n: int, b: int) -> Coin:
        q: Any = self.q
        if q is None:
            q = min(float(drawn(n, b)), 0.5)
        elif isinstance(q, str):
            q = {"1/n": 1.0 / n, "b/(n+b)": b / (n + b)}.get(q, q)
        if not is_number(q) or not 0 < float(q) < 1:
            raise ValueError(f"q must be a number in (0, 1), got {self.q!r}: both w and x must have their turn.")
        if self.restart is not None and not (is_integer(self.restart) and self.restart >= 2):
            raise ValueError(f"restart must be an integer >= 2 or None, got {self.restart!r}.")
        return Coin(float(q), self.restart)

    @property
    def chance(self) -> float:
        assert isinstance(self.q, float), "bind the law first"
        return self.q

    def draw(self, draws: Draws, k: int) -> Move:
        heads = draws.uniform() < self.chance
        return Move.W if heads or (self.restart is not None and (k + 1) % self.restart == 0) else Move.X


@final
@dataclass(frozen=True)
class Cyclic(JLaw):
    """w, x, w, x, …"""

    chance = 0.5

    def draw(self, draws: Draws, k: int) -> Move:
        return Move.W if k % 2 == 0 else Move.X


@final
@dataclass(frozen=True)
class Every(JLaw):
    """x-steps only (q = 0), with an evaluation after every ``period`` of them; None means n draws."""

    period: int | None = None
    chance = 0.0

    def bind(self, n: int, b: int) -> Every:
        period = ceil(n / b) if self.period is None else self.period
        if not is_integer(period) or period < 1:
            raise ValueError(f"period must be an integer >= 1 or None, got {self.period!r}.")
        return Every(int(period))

    def draw(self, draws: Draws, k: int) -> Move:
        assert self.period is not None, "bind the law first"
        return Move.EVALUATE if (k + 1) % (self.period + 1) == 0 else Move.X
