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

HOPPER = (9, 0)  # the compute capability that copies of whole rows into shared memory came with
MODES = {"write": 0, "subtract": 1, "read": 2}  # the numbers of MODE in held.cu
CLASSES = 16  # predictions that a tensor core makes at a time
CHUNK = 2048  # rows of which those that count are listed at a time: 16 KB of shared memory
ASKING = 32  # threads that ask for rows: a warp
WARPS = 8  # at most: each keeps its columns of the model and of the sums in its registers
STEPS = 8  # of 16 columns that a warp may have: 64 numbers of the model and 64 sums fill its registers
ROWS, HELD = (48, 32, 16), 2  # of a tile, the most that fit, and tiles held: best of four shapes on an H200


def rows_on_device(loss: PredictionLoss, layout: MatrixLayout) -> TorchRows:
    """The sums over rows of a loss, by the fastest way there is for it."""
    rows = fused_rows(loss, layout)
    if isinstance(rows, FusedRows) and Tile.of(rows) is not None:
        return HeldRows(loss, layout, rows.phi)
    return rows


@final
@dataclass(frozen=True)
class Tile:
    """How held.cu goes over rows of ``columns``: rows of a tile, and threads that compute."""

    columns: int
    rows: int
    threads: int

    @classmethod
    def of(cls, rows: FusedRows) -> Tile | None:
        """None where the kernel does not know the loss, the data, or the device."""
        V = rows.V
        fits = V.dtype == torch.bfloat16 and rows.phi.name == "labels" and rows.padded == CLASSES and rows.n > LATENCY
        if not (fits and has_compiler() and torch.cuda.get_device_capability(V.device) >= HOPPER):
            return None
        if rows.p % 8 or V.data_ptr() % 16:  # rows are copied 16 bytes at a time
            return None
        properties: Any = torch.cuda.get_device_properties(V.device)  # torch's types leave out what is asked for
        return cls.fitting(rows.p, properties.shared_memory_per_block_optin)

    @classmethod
    def fitting(cls, columns: int, memory: int) -> Tile | None:
        """The tile of most rows that fits into so many bytes of shared memory.

        >>> Tile.fitting(784, 232_448), Tile.fitting(5000, 232_448)
        (Tile(columns=784, rows=48, threads=224), None)
        """
        steps = -(-columns // 16)
        each = -(-steps // WARPS)
        if each > STEPS:
            return None
        threads = 32 * -(-steps // each)
        tiles = (cls(columns, rows, threads) for rows in ROWS if 4 * rows <= threads)
        return next((tile for tile in tiles if tile.shared <= memory), None)

    @property
    def shared(self) -> int:
        """Bytes of shared memory: rows, predictions of each warp, residuals, the list of rows, and what is left."""
        row = (2 * -(-self.columns // 16) + 1) * 16
        return self.rows * (HELD * row + self.threads // 32 * 80 + 96) + 8 * CHUNK + 128


@final
class HeldRows(FusedRows):
    """Sums over many rows by held.cu; all others as before."""

    def __init__(self, loss: PredictionLoss, layout: MatrixLayout, phi: Phi) -> None:
        super().__init__(loss, layout, phi)
        tile = Tile.of(self)
        assert tile is not None, "rows_on_device() sees to that"
        self._tile = tile
        self._programs = torch.cuda.get_device_properties(self.V.device).multi_processor_count
        self.apart = self._kernel("write") is None  # else losses and sums take one read

    def launch(self, table: str, X: Tensor, U: Tensor, c: Tensor, f: Tensor, m: int, *drawn: Tensor) -> int:
        kernel = self._kernel(table) if m > LATENCY and table in MODES else None
        if kernel is None:
            return super().launch(table, X, U, c, f, m, *drawn)
        model = self._models[0] if table == "read" else self._folded(X, 0)
        chunk = min(CHUNK, -(-m // self._programs))
        kernel(
            self._programs, self._tile.threads + ASKING, self.V, *model, self.phi.T, self.table, c, f,
            *(drawn or [self._nobody] * 5), *self._scratch_of(self._programs), m, self.layout.width, chunk,
        )  # fmt: skip
        return self._programs

    def _kernel(self, table: str) -> CudaKernel | None:
        tile, device = self._tile, self.V.device.index
        sizes = (("P", tile.columns), ("K", self.layout.K), ("MODE", MODES[table]))
        shape = (("BM", tile.rows), ("ST", HELD), ("CH", CHUNK))
        return kernel_of("held.cu", "held", device, tile.shared, *sizes, *shape)
