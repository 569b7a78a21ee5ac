"""Where the weights of a shard come from: a few numbers and arrays of x's size, from which they are made again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, to_numpy
from trimlearn.engines.levels import Level
from trimlearn.engines.local import LocalEngine
from trimlearn.weights.base import where_present


class Weighing(ABC):
    """How the rows of a shard got their weights."""

    @abstractmethod
    def weigh(self, engine: LocalEngine, lo: int) -> np.ndarray:
        """The weights of the rows of ``engine``, before which ``lo`` others stand."""

    @abstractmethod
    def saved(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of it."""


@final
@dataclass(frozen=True)
class Even(Weighing):
    """The same weight for every row: the centre of r1."""

    weight: float

    def weigh(self, engine: LocalEngine, lo: int) -> np.ndarray:
        return np.asarray(where_present(np.full(engine.problem.n, self.weight), engine.problem.s))

    def saved(self) -> dict[str, np.ndarray]:
        return {"w.even": np.array(self.weight)}


@final
@dataclass(frozen=True, eq=False)
class Listed(Weighing):
    """Weights that were given one by one, for all rows of all shards."""

    w: np.ndarray

    def weigh(self, engine: LocalEngine, lo: int) -> np.ndarray:
        return self.w[lo : lo + engine.problem.n]

    def saved(self) -> dict[str, np.ndarray]:
        return {"w": self.w}


@final
@dataclass(frozen=True, eq=False)
class Chosen(Weighing):
    """The best weights at x: those of a w-step with τ = ∞."""

    x: Array
    level: Level

    def weigh(self, engine: LocalEngine, lo: int) -> np.ndarray:
        engine.evaluate(self.x)
        return self.level.weights(to_numpy(engine.losses), engine.problem.s)

    def saved(self) -> dict[str, np.ndarray]:
        return {"w.x": to_numpy(self.x), "w.level": np.array([self.level.theta, self.level.share])}


def saved_weighing(arrays: dict[str, np.ndarray], like: Array) -> Weighing:
    """What was saved of one."""
    if "w.even" in arrays:
        return Even(float(arrays.pop("w.even")))
    if "w" in arrays:
        return Listed(arrays.pop("w"))
    return Chosen(asarray_like(arrays.pop("w.x"), like), Level(*arrays.pop("w.level").tolist()))
