"""Hessian products over rows that were drawn: the same rows for several directions, as a probe asks for them.

Models on their way to a device, and sums on their way back.

All rows at one x: their losses, the table of their residuals, and the mean of their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any, final

import numpy as np
import torch

from trimlearn._utils.arrays import Array, asarray_like, namespace, sum64
from trimlearn._utils.graphs import Replay
from trimlearn.engines.cuda.coins import Drawing
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.losses.base import weighted
from trimlearn.smart.row_laws import Recipe, WithReplacement


@final
class Exchange:
    """Buffers for x and a direction u on the device, and for one matrix on the way back.

    ``like`` is an array of the kind that x is outside, ``there`` a tensor of the kind it is on the device.
    """

    def __init__(self, layout: MatrixLayout, like: Array, there: Tensor) -> None:
        self.layout, self._like, self._there = layout, like, there
        pinned = there.device.type == "cuda"
        self._host = torch.zeros((3, *layout.shape), dtype=there.dtype, pin_memory=pinned)
        self._arrays = self._host.numpy()
        self.x, self.u = there.new_zeros((2, *layout.shape))
        self._last: Array = None

    def send(self, x: Array) -> None:
        """x to the device."""
        self._put(x, 0, self.x)
        self._last = x

    def send_both(self, x: Array, u: Array) -> None:
        """x and u; x is not sent again where it is the array sent last: those of a run are never written to."""
        if x is not self._last:
            self.send(x)
        self._put(u, 1, self.u)

    def fetch(self, matrix: Tensor) -> Array:
        """A matrix on the device as an array in the shape of x: this waits for the device."""
        self._host[2].copy_(matrix)
        return asarray_like(np.array(self.layout.x(self._arrays[2])), self._like)

    def tensor(self, a: Any) -> Tensor:
        """Any array as a tensor there."""
        return asarray_like(a, self._there)

    def array(self, a: Any) -> Array:
        """Any tensor as an array of the kind that x is: a copy."""
        return asarray_like(a.clone(), self._like)

    def array64(self, a: np.ndarray) -> Array:
        """The same in float64."""
        return asarray_like(a, self._like, namespace(self._like).float64)

    def _put(self, x: Array, i: int, to: Tensor) -> None:
        self.layout.put(x, self._arrays[i])
        to.copy_(self._host[i], non_blocking=True)


Tensor = Any  # a torch.Tensor


@final
@dataclass(frozen=True)
class Probed:
    """Some rows: the product with the Hessian over them, distinct rows of positive weight, draws of weight 0."""

    recipe: Recipe
    product: Callable[[], Tensor]
    evaluated: int
    skipped: int


@final
class Products:
    """The products at the x, and with the u, that were sent last."""

    def __init__(self, rows: TorchRows, sent: Exchange, w: Tensor, drawing: Drawing) -> None:
        self._rows, self._sent, self._w, self._drawing = rows, sent, w, drawing
        self._buffers: dict[int, tuple[Tensor, Replay[Products], Replay[Products]]] = {}  # for so many draws
        self._last: Probed | None = None

    def of(self, batch: Recipe) -> Probed:
        """The products over the rows of ``batch``, which are drawn if they are not those of the last call."""
        if self._last is None or self._last.recipe is not batch:
            self._last = self._drawn(batch)
        return self._last

    def _drawn(self, batch: Recipe) -> Probed:
        n, fixed = self._drawing.n, isinstance(batch.law, WithReplacement)
        rows = None if fixed else np.asarray(batch.rows(n, self._drawing.cumulative), dtype=np.int32)
        m = batch.law.numbers(n, batch.k) if rows is None else len(rows)
        buffer, product, count = self._of_size(m)
        if rows is None:
            self._drawing.fill(buffer, batch)
        else:
            buffer[0] = torch.from_numpy(rows)
        evaluated, hit = count().tolist()
        return Probed(batch, product, evaluated, m - hit)

    def _of_size(self, m: int) -> tuple[Tensor, Replay[Products], Replay[Products]]:
        if m not in self._buffers:
            device = self._w.device
            rows = torch.zeros((1, m), dtype=torch.int32, device=device)
            product = Replay(lambda me: me._rows.curve(me._sent.x, me._sent.u, rows[0], me._w), self, device)
            self._buffers[m] = rows, product, Replay(lambda me: me._count(rows[0]), self, device)
        return self._buffers[m]

    def _count(self, rows: Tensor) -> Tensor:
        """The distinct rows of positive weight, and the draws of positive weight."""
        rows = rows.sort().values.long()
        alive = self._w.index_select(0, rows) > 0
        first = torch.ones_like(alive)
        first[1:] = rows[1:] != rows[:-1]
        return torch.stack([(alive & first).sum(), alive.sum()])


@final
class EvaluatedRows:
    """Weights w, losses f and sample weights s of total S, and what is known of the x last evaluated."""

    def __init__(self, rows: TorchRows, exchange: Exchange, w: Tensor, s: Tensor | None, S: float) -> None:
        self._rows, self._exchange, self._S = rows, exchange, S
        self.w, self.s, self.f = w, s, torch.zeros_like(w)
        self._sum = w.new_zeros(rows.layout.shape)  # Σ cᵢAᵢᵀ∇φᵢ there,
        self._counted = torch.zeros_like(w)  # with these c
        self._current = False  # whether that sum is known, and the table still that of this x
        self._evaluate = Replay(EvaluatedRows._at_x, self, w.device)
        self._whole = Replay(EvaluatedRows._pulled, self, w.device)
        self._corrected = Replay(EvaluatedRows._pulled_where_changed, self, w.device)

    def shares(self) -> Tensor:
        """sᵢwᵢ/S: what a row counts in the mean."""
        return (self.w if self.s is None else self.w * self.s) / self._S

    def take(self, x: Array) -> float:
        """f and the table ← those at x; 1/S Σ sᵢwᵢfᵢ."""
        self._exchange.send(x)
        self._current = not self._rows.apart
        return float(self._evaluate()) / self._S

    def mean(self) -> Array:
        """Σ shareᵢAᵢᵀtableᵢ, with the weights as they are now."""
        if self._current:  # only rows whose weight has changed since are read again
            mean = self._exchange.fetch(self._corrected())
            if isfinite(sum64(mean)):  # a row that overflowed and has weight 0 by now would spoil the sum
                return mean
        return self._exchange.fetch(self._whole())

    def table_changed(self) -> None:
        """Some rows of the table are of another x."""
        self._current = False

    def _at_x(self) -> Tensor:
        if self._rows.apart:
            f = self._rows.refresh(self._exchange.x)
        else:
            self._counted.copy_(self.shares())
            f, gradient = self._rows.evaluate(self._exchange.x, self._counted)
            self._sum.copy_(gradient)
        self.f.copy_(f)
        return weighted(f, self.w if self.s is None else self.w * self.s).sum(dtype=torch.float64)

    def _pulled(self) -> Tensor:
        return self._rows.pull(self.shares())

    def _pulled_where_changed(self) -> Tensor:
        return self._sum + self._rows.pull(self.shares() - self._counted)
