"""Many rows in bfloat16 with labels: a row is read once, and held in shared memory until its gradient is added."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.engines.cuda.drawing import Drawing
from trimlearn.engines.cuda.fused import FusedRows, FusedSteps
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.phis import Phi
from trimlearn.engines.cuda.runtime import CudaKernel, has_compiler, kernel_of
from trimlearn.engines.cuda.shapes import LATENCY
from trimlearn.losses.base import PredictionLoss
from trimlearn.smart.algorithm import Algorithm1

HOPPER = (9, 0)  # the compute capability of the products that held.cu is written with: no other has them
MODES = {"write": 0, "steps": 1, "read": 2}  # the numbers of MODE in held.cu
CLASSES = 16  # predictions that a product of tensor cores makes, each twice: once for either half of the model's bits
LEAST, MOST = 512, 896  # columns: with fewer Triton's kernels are as fast on an H200, with more registers run out
CHUNK = 512  # rows of which a program lists those that count
THREADS = 384  # three teams of four warps: one sums, one predicts, one copies
SPAN = 64  # columns that a program of held.cu moves at a time
LISTERS = 1024  # threads of drawn.cu
BLOCK = 8192  # bytes of 64 rows of 64 columns


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
        """The most rows that are listed: all are read for their losses, and those drawn are listed before."""
        return 3 * CHUNK if self.table == "read" else 0

    @property
    def shared(self) -> int:
        """Bytes of shared memory: blocks, each with two barriers; the model, residuals, the list of rows, halves of
        sums, and what is left."""
        model = 0 if self.table == "read" else -(-self.columns // 16) * 1024
        halves = 16 * SPAN if self.table == "steps" else 0
        return self.blocks * (BLOCK + 16) + model + 8192 + 8 * self.listed + halves + 1024 + 512


@final
class HeldRows(FusedRows):
    """Sums over many rows by held.cu; all others as before."""

    def __init__(self, loss: PredictionLoss, layout: MatrixLayout, phi: Phi) -> None:
        super().__init__(loss, layout, phi)
        self.programs = torch.cuda.get_device_properties(self.V.device).multi_processor_count
        self.apart = self.kernel("write") is None  # else losses and sums take one read
        spans = -(-(self.p + 1) // SPAN)
        self._bases = self.like.new_zeros(self.layout.K * spans * 2)
        self._arrived = self._nobody.new_zeros(64)

    def launch(self, table: str, X: Tensor, U: Tensor, c: Tensor, f: Tensor, m: int, *drawn: Tensor) -> int:
        kernel = self.kernel(table) if m > LATENCY and table in MODES else None
        if kernel is None:
            return super().launch(table, X, U, c, f, m, *drawn)
        model = self._models[0] if table == "read" else self._folded(X, 0)
        chunk, nobody = min(CHUNK, -(-m // self.programs)), [self._nobody]
        kernel(
            self.programs, THREADS, self.V, *model, self.phi.T, self.table, c, f, *nobody * 5,
            *self._scratch_of(self.programs), m, chunk, 0, *nobody * 13,
        )  # fmt: skip
        return self.programs

    def kernel(self, table: str) -> CudaKernel | None:
        """held.cu for one of `MODES`; None where it cannot be compiled, or does not know the rows."""
        tile = Tile.of(self, table)
        if tile is None:
            return None
        sizes = (("P", tile.columns), ("K", self.layout.K), ("PX", self.layout.width), ("MODE", MODES[table]))
        shape = (("RING", tile.blocks), ("CH", tile.listed), ("PROGRAMS", self.programs))
        layer = ((name, int(there)) for name, there in self._transform.items())
        return kernel_of("held.cu", "held", self.V.device.index, tile.shared, *sizes, *shape, *layer)

    @cached_property
    def walkers(self) -> tuple[CudaKernel | None, CudaKernel | None]:
        """What lists the rows that count, and what goes over them; None where it cannot be compiled."""
        return kernel_of("drawn.cu", "drawn", self.V.device.index, 0), self.kernel("steps")

    def walk(self, steps: HeldSteps, count: int) -> None:
        """The first ``count`` steps drawn, in two launches."""
        listing, kernel = self.walkers
        assert listing is not None, "steps_on_device() sees to that"
        assert kernel is not None, "likewise"
        drawn = (steps.drawn, steps.w, steps.factor, steps.counts, steps.notes)
        listing(count, LISTERS, *drawn, self._arrived, steps.b)
        kernel(
            self.programs, THREADS, self.V, *self._models[0], self.phi.T, self.table, steps.w, self._nobody,
            steps.drawn, steps.notes, steps.factor, steps.stamps, steps.tag, *self._scratch_of(self.programs),
            steps.b, 0, count, steps.counts, steps.X, steps.before, steps.mean, steps.inverse, steps.l1, steps.l2,
            steps.gamma, steps.momentum, self.center, self.scale, self._bases, self._arrived, together=True,
        )  # fmt: skip


@final
class HeldSteps(FusedSteps):
    """Steps of one kernel for all of a stretch."""

    rows: HeldRows

    def __init__(self, rows: HeldRows, layout: MatrixLayout, run: Algorithm1, w: Tensor, drawing: Drawing) -> None:
        super().__init__(rows, layout, run, w, drawing)
        self.counts = torch.zeros(self.capacity, dtype=torch.int32, device=w.device)

    def walk(self, count: int) -> None:
        self.rows.walk(self, count)
