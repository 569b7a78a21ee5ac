"""How x lies on a device: a matrix with one row per prediction, its rows padded, the intercept in column p.

How the kernels go over rows: what was found best on an H200, for MNIST and for 10⁷ rows of as many columns.

What the kernels know of a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np
import torch

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.losses import compiled
from trimlearn.losses.base import PredictionLoss
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


@final
@dataclass(frozen=True)
class Shape:
    """How a kernel goes over rows: rows and columns of a tile, warps, programs at most; what else its kind needs."""

    kind: str  # "few" or "sweep"
    rows: int
    columns: int
    warps: int
    programs: int
    stages: int = 1
    slices: int = 1


FEW = Shape("few", 16, 128, 4, 528, slices=4)  # measured on an H200: 20 µs a step of 1,533 × 784, K = 10
MANY = Shape("sweep", 64, 64, 4, 264, stages=4)  # likewise: 0.22 ms for 60,000
PREDICTED = Shape("sweep", 128, 64, 4, 528, stages=4)  # V in 8 or 16 bits: 1.2 reads of all rows for their losses
SUMMED = Shape("sweep", 256, 64, 4, 264, stages=3)  # then 1.2 reads for the sum, and 77 µs a step of 46,416 rows
LATENCY = 4096  # rows up to which a step waits for its programs, and not for memory
FOLDED = 256  # a multiple of the columns of any tile: so many rows a model ends at, with zeros


@cache
def shape_of(m: int, p: int, padded: int, table: str, exact: bool) -> Shape:
    """The shape for m rows of p columns and ``padded`` predictions, 16 or 32 or 64; ``table``: what is done with them,
    see `trimlearn.engines.cuda.kernels.tile`; ``exact``: whether bfloat16 holds the data.

    >>> shape_of(1000, 784, 16, "subtract", True).kind, shape_of(10**6, 784, 16, "write", False).kind
    ('few', 'sweep')
    >>> shape_of(10**6, 784, 16, "read", True).rows, shape_of(10**6, 784, 64, "read", True).rows
    (256, 64)
    """
    if m <= LATENCY and table != "predict":
        return few(p, padded)
    if exact:
        shape = PREDICTED if table == "predict" else SUMMED
        rows = max(32, shape.rows * 16 // padded)
    else:
        shape, rows = MANY, MANY.rows
    return replace(shape, rows=rows, stages=max(2, shape.stages * 16 // padded))


def few(p: int, padded: int) -> Shape:
    """The shape for few rows of p columns: no more of them at a time than there are, or than shared memory holds beside
    as many of the model, each twice, for products as precise as float32.

    >>> few(30, 16).columns, few(200, 16).columns, few(5000, 16).columns, few(5000, 64).columns
    (16, 64, 128, 32)
    """
    width = max(16, -(-p // FEW.slices))
    most = FEW.columns * (FEW.rows + 16) // (FEW.rows + padded)
    return replace(FEW, columns=min(1 << (most.bit_length() - 1), 1 << (width - 1).bit_length()))


Tensor = Any  # a torch.Tensor


@final
@dataclass(frozen=True)
class Phi:
    """What a kernel has to know of φ: its name, a tensor or two of numbers for each row, two numbers."""

    name: str
    T: Tensor
    A: Tensor
    a: float = 0.0
    b: float = 0.0


PHIS: dict[type, Callable[[Any], Phi]] = {  # by what `trimlearn.losses.compiled` calls them
    compiled.LabelRows: lambda rows: Phi("labels", rows.t, rows.t),
    compiled.SoftLabelRows: lambda rows: Phi("soft", rows.t, rows.saturated),
    compiled.MislabelledRows: lambda rows: Phi("mislabelled", rows.t, rows.log_T.contiguous()),
    compiled.LogisticRows: lambda rows: Phi("logistic", rows.t, rows.saturated),
    compiled.CountRows: lambda rows: Phi("counts", rows.t, torch.stack([rows.log_t, rows.constant], 1), rows.cap),
    compiled.AmountRows: lambda rows: Phi("amounts", rows.t, torch.stack([rows.log_t, rows.constant], 1), rows.cap),
    compiled.SquareRows: lambda rows: Phi("squares", rows.t, rows.t),
    compiled.HuberRows: lambda rows: Phi("huber", rows.t, rows.t, rows.delta),
    compiled.StudentRows: lambda rows: Phi("student", rows.t, rows.t, rows.nu, rows.width),
    compiled.SmoothRows: lambda rows: Phi("smooth", rows.t, rows.t, rows.eps),
}


def phi_of(loss: PredictionLoss) -> Phi | None:
    """φ as the kernels know it; None where they do not."""
    rows = loss.compiled()
    if isinstance(rows, compiled.MislabelledRows) and loss.linear.K is None:  # two classes that share a prediction
        return None
    make = PHIS.get(type(rows))
    return None if make is None else make(rows)
