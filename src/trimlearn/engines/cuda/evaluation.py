"""All rows at one x: their losses, the table of their residuals, and the mean of their gradients."""

from __future__ import annotations

from math import isfinite
from typing import final

import torch

from trimlearn._utils.arrays import Array, Tensor, sum64
from trimlearn._utils.graphs import Replay
from trimlearn.engines.cuda.exchange import Exchange
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.losses.base import weighted


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
        self._whole = Replay(lambda me: me._rows.pull(me.shares()), self, w.device)
        self._corrected = Replay(lambda me: me._sum + me._rows.pull(me.shares() - me._counted), self, w.device)

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
