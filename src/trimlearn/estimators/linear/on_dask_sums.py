"""Sums over rows on the workers of a cluster, for the steps of `trimlearn.robust.streamed`."""

from __future__ import annotations

from math import inf
from typing import Any, NoReturn, final

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.robust.streamed import StreamedSum, WeighedSum
from trimlearn.robust.streamed_newton import Weigh


def _elsewhere(at: slice) -> NoReturn:
    raise TypeError("the weights of these rows lie on the workers; rows that go ahead are asked for theirs.")


@final
class TrimmedOnWorkers(StreamedSum):
    """The sum over the rows of an engine, whose r1 says what is kept."""

    weigh: Weigh = staticmethod(_elsewhere)

    def __init__(self, engine: DaskEngine) -> None:
        self.engine, self.loss = engine, engine.problem.loss
        self._slope, self._at = np.zeros(0), None

    def value(self, x: Array) -> float:
        value, self._slope = remembered("step", lambda: self._trimmed(x))
        return float(value)

    def slope(self) -> np.ndarray:
        return self._slope

    def weights(self, x: Array) -> Any:
        """The best weights of all rows at x, one for each."""
        if self._at is None or not np.array_equal(self._at, x):
            self._trimmed(x)
        return self.engine.weights

    def _trimmed(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        self.engine.evaluate(x)
        value, self._at = self.engine.reweigh(inf).value, x
        return np.array(value), to_numpy(self.engine.mean_duals()).astype(np.float64).ravel()


@final
class WeighedOnWorkers(WeighedSum):
    """The sum over the rows of an engine, all of which count; share: what they are of all."""

    weigh: Weigh = staticmethod(_elsewhere)

    def __init__(self, engine: DaskEngine, share: float) -> None:
        self.engine, self.loss, self.share = engine, engine.problem.loss, share

    def value_gradient(self, x: Array) -> tuple[float, np.ndarray]:
        value, gradient = remembered("gradient", lambda: self._weighed(x))
        return float(value), gradient

    def _weighed(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = self.engine.value_gradient(x)
        return np.array(self.share * value), self.share * to_numpy(gradient).astype(np.float64).ravel()


def like(loss: Any, x: Array) -> Array:
    """x in the dtype of the rows."""
    return np.asarray(x, to_numpy(loss.like).dtype)
