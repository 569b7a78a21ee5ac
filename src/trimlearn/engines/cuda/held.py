"""Many rows in bfloat16 with labels: a row is read once, and held in shared memory until its gradient is added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch

from trimlearn.engines.cuda.fused import FusedRows, fused_rows
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.phis import Phi
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.engines.cuda.runtime import CudaKernel, has_compiler, kernel_of
from trimlearn.engines.cuda.shapes import LATENCY
from trimlearn.losses.base import PredictionLoss

__all__ = ["HeldRows", "Tile", "rows_on_device"]

Tensor = Any  # a torch.Tensor

HOPPER = (9, 0)  # the compute capability of the products that held.cu is written with: no other has them
MODES = {"write": 0, "subtract": 1, "read": 2}  # the numbers of MODE in held.cu
CLASSES = 16  # predictions that a product of tensor cores makes, each twice: once for either half of the model's bits
LEAST, MOST = 512, 896  # columns: with fewer Triton's kernels are as fast on an H200, with more registers run out
CHUNK = 512  # rows of which a program lists those that count
THREADS = 384  # three teams of four warps: one sums, one predicts, one copies
BLOCK = 8192  # bytes of 64 rows of 64 columns


def rows_on_device(loss: PredictionLoss, layout: MatrixLayout) -> TorchRows:
    """The sums over rows of a loss, by the fastest way there is for it."""
    rows = fused_rows(loss, layout)
    if isinstance(rows, FusedRows) and Tile.of(rows, "write") is not None:
        return HeldRows(loss, layout, rows.phi)
    return rows


@final
@dataclass(frozen=True)
class Tile:
    """How held.cu goes over rows of ``columns``: so many ``blocks`` of 64 rows and 64 columns lie in shared memory."""

    columns: int
    blocks: int
    table: str  # one of `MODES`

    @classmethod
    def of(cls, rows: FusedRows, table: str) -> Tile | None:
        """None where the kernel does not know the loss, the data, or the device."""
        V = rows.V
        fits = V.dtype == torch.bfloat16 and rows.phi.name == "labels" and rows.padded == CLASSES and rows.n > LATENCY
        if not (fits and has_compiler() and torch.cuda.get_device_capability(V.device) == HOPPER):
            return None
        if not LEAST <= rows.p <= MOST or rows.p % 8 or V.data_ptr() % 16:  # rows are copied 16 bytes at a time
            return None
        properties: Any = torch.cuda.get_device_properties(V.device)  # torch's types leave out what is asked for
        return cls.fitting(rows.p, table, properties.shared_memory_per_block_optin)

    @classmethod
    def fitting(cls, columns: int, table: str, memory: int) -> Tile | None:
        """The tile with most blocks that fits into so many bytes of shared memory; None where one row would not.

        >>> Tile.fitting(784, "write", 232_448), Tile.fitting(784, "write", 102_400)
        (Tile(columns=784, blocks=21, table='write'), None)
        """
        blocks = (memory - cls(columns, 0, table).shared) // (BLOCK + 16)
        return cls(columns, blocks, table) if blocks > -(-columns // 64) else None

    @property
    def listed(self) -> int:
        """The most rows that are listed: all are read for their losses, and few are drawn by a program."""
        return {"write": 0, "subtract": CHUNK, "read": 3 * CHUNK}[self.table]

    @property
    def shared(self) -> int:
        """Bytes of shared memory: blocks, each with two barriers; the model, residuals, the list of rows, and what is
        left."""
        model = 0 if self.table == "read" else -(-self.columns // 16) * 1024
        return self.blocks * (BLOCK + 16) + model + 8192 + 8 * self.listed + 1024 + 512


@final
class HeldRows(FusedRows):
    """Sums over many rows by held.cu; all others as before."""

    def __init__(self, loss: PredictionLoss, layout: MatrixLayout, phi: Phi) -> None:
        super().__init__(loss, layout, phi)
        self._programs = torch.cuda.get_device_properties(self.V.device).multi_processor_count
        self.apart = self._kernel("write") is None  # else losses and sums take one read

    def launch(self, table: str, X: Tensor, U: Tensor, c: Tensor, f: Tensor, m: int, *drawn: Tensor) -> int:
        kernel = self._kernel(table) if m > LATENCY and table in MODES else None
        if kernel is None:
            return super().launch(table, X, U, c, f, m, *drawn)
        model = self._models[0] if table == "read" else self._folded(X, 0)
        chunk = min(CHUNK, -(-m // self._programs))
        kernel(
            self._programs, THREADS, self.V, *model, self.phi.T, self.table, c, f,
            *(drawn or [self._nobody] * 5), *self._scratch_of(self._programs), m, chunk,
        )  # fmt: skip
        return self._programs

    def _kernel(self, table: str) -> CudaKernel | None:
        tile = Tile.of(self, table)
        if tile is None:
            return None
        sizes = (("P", tile.columns), ("K", self.layout.K), ("PX", self.layout.width), ("MODE", MODES[table]))
        shape = (("RING", tile.blocks), ("CH", tile.listed))
        return kernel_of("held.cu", "held", self.V.device.index, tile.shared, *sizes, *shape)
