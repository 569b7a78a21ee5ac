"""The best weights for the losses on a device, τ = ∞: those of the h smallest, found without waiting in between."""

from __future__ import annotations

from typing import Any, final

import torch

from trimlearn._utils.arrays import Array
from trimlearn.engines.cuda.graphs import Replay
from trimlearn.losses.base import weighted
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet
from trimlearn.weights.simplex import ROUNDING, snap_h

__all__ = ["Selection"]

Tensor = Any  # a torch.Tensor: losses are written for arrays of any kind, which have no static type


@final
class Selection:
    """The weights of `trimlearn.weights.CappedSimplex.minimise`, and what they make of the mean loss."""

    def __init__(self, f: Tensor, w: Tensor, s: Tensor | None, S: float) -> None:
        self._f, self._w, self._s, self._S = f, w, s, S
        self._h = torch.zeros(1, dtype=torch.float64, device=f.device)
        self._best = torch.zeros_like(w)
        self._search = Replay(Selection._find, self, f.device)

    @staticmethod
    def knows(r1: WeightSet) -> bool:
        """Whether this is such a set; one that keeps every row is."""
        return isinstance(r1, (CappedSimplex, AllOnes))

    def look(self, r1: WeightSet) -> tuple[float, float]:
        """The mean of w·f at the best weights, and at those there are."""
        h = self._S if isinstance(r1, AllOnes) else snap_h(r1.h, self._S)
        self._h.fill_(h)
        value, before = self._search().tolist()
        return value / self._S, before / self._S

    def take(self, r1: WeightSet) -> tuple[float, float]:
        """The same, and w ← the best weights."""
        found = self.look(r1)
        self._w.copy_(self._best)
        return found

    def _find(self) -> Tensor:
        f, s, h = self._f, self._s, self._h
        f = torch.where(torch.isnan(f), torch.inf, f)
        order = f.sort()
        if s is None:
            position = torch.ceil(h).long() - 1
        else:
            held = s[order.indices].double().cumsum(0)
            position = (held < h - ROUNDING * held[-1:]).sum()[None].clamp(max=f.shape[0] - 1)
        threshold = order.values.index_select(0, position)
        below, tied = f < threshold, f == threshold
        unit = torch.ones_like(f, dtype=torch.float64) if s is None else s.double()
        share = ((h - (unit * below).sum()) / (unit * tied).sum()).clamp(0.0, 1.0).to(f.dtype)
        best = torch.where(tied, share, below.to(f.dtype))
        best = torch.where(h >= self._S, torch.ones_like(best), best)  # every row is kept
        if s is not None:
            best = torch.where(s > 0, best, torch.zeros_like(best))
        self._best.copy_(best)
        return torch.stack([_total(self._f, self._best, s), _total(self._f, self._w, s)])


def _total(f: Tensor, w: Tensor, s: Tensor | None) -> Array:
    return weighted(f, w if s is None else w * s).sum(dtype=torch.float64)
