"""The fastest way there is on a device: kernels in CUDA C, Triton's kernels, or torch's products."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.engines.cuda.drawing import Drawing, KernelDrawing
from trimlearn.engines.cuda.fused import STORED, FusedRows, FusedSteps
from trimlearn.engines.cuda.held import HeldRows, HeldSteps, Tile
from trimlearn.engines.cuda.kernels.drawing import draw_kernel
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.phis import phi_of
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.engines.cuda.select import CountedSelection, Selection
from trimlearn.engines.cuda.shapes import LATENCY
from trimlearn.engines.cuda.steps import Steps
from trimlearn.losses.base import PredictionLoss
from trimlearn.smart.algorithm import Algorithm1

MOST_CLASSES = 64  # predictions of a row that the kernels were tried with on a device


@cache
def has_triton() -> bool:
    """Whether Triton's kernels can be compiled: torch brings it along on Linux."""
    return find_spec("triton") is not None


def rows_on_device(loss: PredictionLoss, layout: MatrixLayout) -> TorchRows:
    """The sums over rows of a loss."""
    V = loss.linear.storage.V
    fits = V.device.type == "cuda" and V.dtype in STORED and loss.like.dtype == torch.float32 and loss.K <= MOST_CLASSES
    phi = phi_of(loss) if fits and has_triton() else None
    if phi is None:
        return TorchRows(loss, layout)
    rows = FusedRows(loss, layout, phi)
    return rows if Tile.of(rows, "write") is None else HeldRows(loss, layout, phi)


def steps_on_device(rows: TorchRows, layout: MatrixLayout, run: Algorithm1, w: Tensor, drawing: Drawing) -> Steps:
    """The steps of a run over those rows."""
    if isinstance(rows, HeldRows) and run.b > LATENCY and None not in rows.walkers:
        return HeldSteps(rows, layout, run, w, drawing)
    return (FusedSteps if isinstance(rows, FusedRows) else Steps)(rows, layout, run, w, drawing)


def drawing_on_device(n: int, cumulative: np.ndarray | None, device: torch.device) -> Drawing:
    """Draws on the device, where there is a kernel for that."""
    if device.type != "cuda" or not has_triton():
        return Drawing(n, cumulative, device)
    return KernelDrawing(n, cumulative, device, draw_kernel)


def selection_on_device(f: Tensor, w: Tensor, s: Tensor | None, S: float) -> Selection:
    """The search for the h smallest losses, by counting where there is a kernel for that."""
    fits = f.device.type == "cuda" and f.dtype == torch.float32 and s is None and has_triton()
    return CountedSelection(f, w, S) if fits else Selection(f, w, s, S)
