"""How the kernels go over rows: what was found best on an H200, for MNIST and for 10⁷ rows of as many columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import final

LATENCY = 4096  # rows up to which a step waits for its programs, and not for memory
FOLDED = 256  # a multiple of the columns of any tile: so many rows a model ends at, with zeros


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
