"""Hessian products over rows that were drawn: the same rows for several directions, as a probe asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from trimlearn._utils.arrays import Tensor
from trimlearn._utils.graphs import Replay
from trimlearn.engines.cuda.drawing import Drawing
from trimlearn.engines.cuda.exchange import Exchange
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.smart.row_laws import Recipe, WithReplacement


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
