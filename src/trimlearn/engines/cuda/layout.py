"""How x lies on a device: a matrix with one row per prediction, its rows padded, the intercept in column p."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.losses.linear import Linear

PAD = 16  # numbers: rows that begin at multiples of 64 bytes are loaded 16 bytes a thread


@final
class MatrixLayout:
    """The matrix (K, width) of an x of the shape that ``linear`` has."""

    def __init__(self, linear: Linear) -> None:
        self._shape, self._transpose = linear.x_shape, linear.transpose
        self.K = linear.K or 1
        self.size = linear.p + linear.intercept
        self.width = -(-(linear.p + 1) // PAD) * PAD

    @property
    def shape(self) -> tuple[int, int]:
        """That of the matrix."""
        return self.K, self.width

    def put(self, x: Array, out: np.ndarray) -> None:
        """Write x into ``out``, whose padding is left alone."""
        out[:, : self.size] = self._matrix(to_numpy(x))

    def written(self, x: Array) -> np.ndarray:
        """x, or what broadcasts to it, as a new matrix in float64, 0 in the padding."""
        out = np.zeros(self.shape)
        self.put(np.broadcast_to(to_numpy(x), self._shape), out)
        return out

    def broadcasting(self, columns: np.ndarray, intercept: float) -> np.ndarray:
        """A number per column of V, and that of the intercept, as an array that broadcasts to x."""
        columns = np.append(columns, [intercept] * (self.size - len(columns)))
        if len(self._shape) == 1:
            return columns
        return columns[None, :] if self._transpose else columns[:, None]

    def x(self, matrix: Array) -> Array:
        """The x that lies in ``matrix``, a view of it."""
        inner: Any = matrix[:, : self.size]
        if len(self._shape) == 1:
            return inner[0]
        return inner if self._transpose else inner.T

    def _matrix(self, x: np.ndarray) -> np.ndarray:
        if x.ndim == 1:
            return x[None]
        return x if self._transpose else x.T
