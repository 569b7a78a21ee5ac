"""Some rows of a loss as a loss of their own."""

from __future__ import annotations

from copy import copy
from typing import final

import numpy as np
from array_api_compat import is_numpy_array

from trimlearn._utils.arrays import Array
from trimlearn.losses.base import Loss, PredictionLoss, select
from trimlearn.losses.storage import Csr, NumpyDense, Rows, open_storage

SEEN = 50  # rows in which every column has to vary: a coefficient that fewer settle may be far off


@final
class SampledRows(PredictionLoss):
    """The losses of some rows of another one: the same φ of the same predictions, with the rows of V copied."""

    def __init__(self, loss: PredictionLoss, rows: np.ndarray) -> None:
        linear = copy(loss.linear)
        linear.storage = open_storage(loss.linear.storage.V[rows])
        linear.n = len(rows)
        super().__init__(linear)
        self._loss, self._rows = loss, rows

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        return self._loss.evaluate(z, select(self._rows, rows))

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return self._loss.phi_hessp(z, u, select(self._rows, rows))

    def curvature_bound(self) -> float | Array:
        bound = self._loss.curvature_bound()
        return bound if isinstance(bound, float) else bound[self._rows]

    def start(self) -> Array:
        return self._loss.start()

    @property
    def informative(self) -> bool:
        """Whether every column varies in some of the rows: one that is seldom other than 0 may not."""
        V = self.linear.storage.V
        if isinstance(self.linear.storage, Csr):
            other = np.bincount(V.indices[V.data != 0], minlength=V.shape[1])
        else:
            middle = np.partition(V, self.n // 2, axis=0)[self.n // 2]  # a value that most rows have is the median
            other = (V != middle).sum(axis=0)
        return bool(np.all(other >= SEEN))


def can_sample(loss: Loss) -> bool:
    """Whether single rows of this loss are quick to come by: arrays in this process, in memory or mapped, and CSR."""
    return (
        isinstance(loss, PredictionLoss)
        and is_numpy_array(loss.like)
        and isinstance(loss.linear.storage, NumpyDense | Csr)
    )
