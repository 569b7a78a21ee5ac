"""Sums over rows, and steps, by the kernels of `trimlearn.engines.cuda.kernels`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.engines.cuda.drawing import Drawing
from trimlearn.engines.cuda.kernels.few import few_kernel
from trimlearn.engines.cuda.kernels.fold import fold_kernel
from trimlearn.engines.cuda.kernels.moments import largest_kernel, moments_kernel
from trimlearn.engines.cuda.kernels.moving import move_kernel
from trimlearn.engines.cuda.kernels.sweep import sweep_kernel
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.phis import Phi
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.engines.cuda.shapes import FOLDED, LATENCY, shape_of
from trimlearn.engines.cuda.steps import Steps
from trimlearn.losses.base import PredictionLoss
from trimlearn.smart.algorithm import Algorithm1

EXACT = (torch.bfloat16, torch.uint8, torch.int8)  # what bfloat16 holds as it is: 8 bits
STORED = (*EXACT, torch.float32, torch.float16)  # what the kernels read
COLUMN_PARTS = 528  # programs for each 128 columns: four for each of the 132 multiprocessors of an H200
SCRATCH = 1 << 28  # bytes of partial sums, at most: 256 MB, for models of up to 10⁶ numbers


class FusedRows(TorchRows):
    """Sums over rows by the kernels."""

    def __init__(self, loss: PredictionLoss, layout: MatrixLayout, phi: Phi) -> None:
        super().__init__(loss, layout)
        self.phi, linear = phi, loss.linear
        self.V: Tensor = linear.storage.V
        self._empty = self.like
        self.center = self._empty if linear.center is None else linear.center
        self.scale = self._empty if linear.scale is None else linear.scale
        self.padded = max(16, 1 << (loss.K - 1).bit_length())
        self._scratch: dict[int, tuple[Tensor, Tensor]] = {}
        self._nobody = torch.zeros(4, dtype=torch.int32, device=self.V.device)
        self._exact = self.V.dtype in EXACT
        self.apart = self._exact and self.n > LATENCY
        self._transform = {
            "INTERCEPT": linear.intercept,
            "CENTER": linear.center is not None,
            "SCALE": linear.scale is not None,
        }
        size = -(-self.p // FOLDED) * FOLDED, self.padded * (2 if self._exact else 1)
        dtype = torch.bfloat16 if self._exact else torch.float32
        self._models = [
            (torch.zeros(size, dtype=dtype, device=self.V.device), self.like.new_zeros(self.padded)) for _ in range(2)
        ]

    def evaluate(self, X: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        f = self.like.new_empty((self.n,))
        return f, self._all("write", X, c, f)

    def refresh(self, X: Tensor) -> Tensor:
        f = self.like.new_empty((self.n,))
        self.launch("predict", X, X, f, f, self.n)
        return f

    def pull(self, c: Tensor) -> Tensor:
        return self._all("read", self._empty, c, self._empty)

    def moments(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """In float32, of columns in units of their largest entry, so that no power is out of its range."""
        second, fourth = self.like.new_zeros((2, COLUMN_PARTS, self.layout.width))
        unit = torch.where(self._largest > 0, 1.0 / self._largest, 1.0).float()
        self._by_columns(moments_kernel, c, self.center, unit, second, fourth)
        scale = self.loss.linear.scale
        size = self._largest if scale is None else self._largest / scale
        sums = (part.sum(0, dtype=torch.float64)[: self.p] for part in (second, fourth))
        return next(sums) * size**2, next(sums) * size**4

    @cached_property
    def _largest(self) -> Tensor:
        """The largest |entry| of each column about its centre, in float64; found once."""
        found = self.like.new_zeros((COLUMN_PARTS, self.layout.width))
        self._by_columns(largest_kernel, self.center, found)
        return found.amax(0)[: self.p].double()

    def _by_columns(self, kernel: Any, *arguments: Tensor) -> None:
        """Run a kernel of `trimlearn.engines.cuda.kernels.moments`."""
        columns = 128
        kernel[(COLUMN_PARTS, -(-self.p // columns))](
            self.V, *arguments, self.n, self.p, self.layout.width, -(-self.n // COLUMN_PARTS),
            CENTER=self.loss.linear.center is not None, BM=32, BP=columns, num_warps=4,
        )  # fmt: skip

    def _all(self, table: str, X: Tensor, c: Tensor, f: Tensor) -> Tensor:
        return self._summed(self.launch(table, X, X, c, f, self.n))

    def curve(self, X: Tensor, U: Tensor, rows: Tensor, w: Tensor) -> Tensor:
        m = rows.shape[0]
        share = self.like.new_full((1,), 1.0 / m)
        drawn = (rows, self._nobody, share, self._nobody, self._nobody)
        return self._summed(self.launch("curve", X, U, w, self._empty, m, *drawn))

    def _summed(self, programs: int) -> Tensor:
        gradient = self.like.new_zeros(self.layout.shape)
        empty = self._empty
        self.add_up(programs, gradient, *[empty] * 8, self._nobody, self._nobody, MOVE=False)
        return gradient

    def launch(self, table: str, X: Tensor, U: Tensor, c: Tensor, f: Tensor, m: int, *drawn: Tensor) -> int:
        """Run the first kernel over m rows; returns how many programs left a sum. ``drawn``: see there."""
        shape, phi = shape_of(m, self.p, self.padded, table, self._exact), self.phi
        tiles: int = -(-m // shape.rows)
        programs: int = max(1, min(tiles, shape.programs, SCRATCH // (4 * self.layout.K * self.layout.width)))
        parts, sums = self._scratch_of(programs)
        again = programs < tiles and table != "predict"
        if again:
            parts.zero_()
            sums.zero_()
        rows = (
            self.V, phi.T, phi.A, phi.a, phi.b, self.table, c, f, *(drawn or [self._nobody] * 5), parts, sums,
            m, self.p, self.layout.width,
        )  # fmt: skip
        options: dict[str, Any] = {
            "K": self.layout.K, "KP": self.padded, "PHI": phi.name, "EXACT": self._exact, "DRAWN": bool(drawn),
            "TABLE": table, "BM": shape.rows, "BP": shape.columns, "num_warps": shape.warps,
            "num_stages": shape.stages,
        }  # fmt: skip
        if shape.kind == "few":
            few_kernel[(programs,)](
                X, U, self.center, self.scale, *rows, tiles, programs, **options, **self._transform,
                S=shape.slices, AGAIN=again,
            )  # fmt: skip
        else:
            model = self._models[0] if table == "read" else self._folded(X, 0)
            direction = self._folded(U, 1) if table == "curve" else model
            sweep_kernel[(programs,)](
                *model, *direction, *rows, tiles, programs, **options,
                WIDTH=self._models[0][0].shape[1], AGAIN=again, STAGES=shape.stages,
            )  # fmt: skip
        return programs

    def _folded(self, X: Tensor, slot: int) -> tuple[Tensor, Tensor]:
        """A model as the kernels for many rows take it, written to one of two places."""
        folded, base = self._models[slot]
        fold_kernel[(self.padded,)](
            X, self.center, self.scale, folded, base, self.p, self.layout.width,
            K=self.layout.K, KP=self.padded, EXACT=self._exact, **self._transform, BLOCK=1024,
        )  # fmt: skip
        return folded, base

    def add_up(self, programs: int, gradient: Tensor, *rest: Tensor, MOVE: bool) -> None:
        """Run the second kernel; ``rest``: see there."""
        parts, sums = self._scratch_of(programs)
        columns = 32
        move_kernel[(-(-self.layout.width // columns), self.layout.K)](
            parts, sums, self.center, self.scale, gradient, *rest,
            self.p, self.layout.width, programs,
            KP=self.padded, **self._transform, MOVE=MOVE, BN=128, BJ=columns, K=self.layout.K, num_warps=4,
        )  # fmt: skip

    def _scratch_of(self, programs: int) -> tuple[Tensor, Tensor]:
        """Partial sums of so many programs; the same memory for all of one number, as a graph remembers it."""
        if programs not in self._scratch:
            shape = (programs, *self.layout.shape)
            self._scratch[programs] = self.like.new_zeros(shape), self.like.new_zeros((programs, self.padded))
        return self._scratch[programs]


class FusedSteps(Steps):
    """Steps of two kernels, and rows drawn on the device."""

    rows: FusedRows

    def __init__(self, rows: TorchRows, layout: MatrixLayout, run: Algorithm1, w: Tensor, drawing: Drawing) -> None:
        super().__init__(rows, layout, run, w, drawing)
        self.stamps = torch.zeros(rows.n, dtype=torch.int32, device=w.device)
        self.tag = torch.ones(1, dtype=torch.int32, device=w.device)

    def step(self) -> None:
        rows = self.rows
        drawn = (self.drawn, self.notes, self.factor, self.stamps, self.tag)
        programs = rows.launch("subtract", self.X, self.X, self.w, self.w, self.b, *drawn)
        rows.add_up(
            programs, self.X, self.X, self.before, self.mean, self.inverse, self.l1, self.l2, self.gamma, self.momentum,
            self.notes, self.tag, MOVE=True,
        )  # fmt: skip
