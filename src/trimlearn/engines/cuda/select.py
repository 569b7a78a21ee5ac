"""The best weights for the losses on a device, τ = ∞: those of the h smallest, found without waiting in between."""

from __future__ import annotations

import torch

from trimlearn._utils.arrays import Array, Tensor
from trimlearn._utils.graphs import Replay
from trimlearn.engines.cuda.kernels.selection import count_kernel, weigh_kernel
from trimlearn.losses.base import weighted
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet
from trimlearn.weights.simplex import ROUNDING, snap_h

BLOCK = 1024  # numbers that a program reads at a time: eight for each of its threads
PROGRAMS = 528  # at most: four for each of the 132 multiprocessors of an H200
TURNS = 4  # of eight bits each: those of a float32


class Selection:
    """The weights of `trimlearn.weights.CappedSimplex.minimise`, and what they make of the mean loss."""

    def __init__(self, f: Tensor, w: Tensor, s: Tensor | None, S: float) -> None:
        self._f, self._w, self._s, self._S = f, w, s, S
        self._h = torch.zeros(1, dtype=torch.float64, device=f.device)
        self._best = torch.zeros_like(w)
        self._search = Replay(type(self)._find, self, f.device)

    @staticmethod
    def knows(r1: WeightSet) -> bool:
        """Whether this is such a set; one that keeps every row is."""
        return isinstance(r1, (CappedSimplex, AllOnes))

    def look(self, r1: WeightSet) -> tuple[float, float]:
        """The mean of w·f at the best weights, and at those there are."""
        self._h.fill_(self._weight(r1))
        value, before = self._search().tolist()
        return value / self._S, before / self._S

    def take(self, r1: WeightSet) -> tuple[float, float]:
        """The same, and w ← the best weights."""
        found = self.look(r1)
        self._w.copy_(self._best)
        return found

    def spread(self, r1: WeightSet) -> None:
        """w ← the same for every row, as `trimlearn.weights.CappedSimplex.start` has it."""
        self._w.fill_(self._weight(r1) / self._S)
        if self._s is not None:
            self._w.mul_(self._s > 0)

    def _weight(self, r1: WeightSet) -> float:
        """Σ sᵢwᵢ in the set."""
        return self._S if isinstance(r1, AllOnes) else snap_h(r1.h, self._S)

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


class CountedSelection(Selection):
    """The same by `trimlearn.engines.cuda.kernels.selection`, which sorts nothing: float32, and no sample weights."""

    def __init__(self, f: Tensor, w: Tensor, S: float) -> None:
        super().__init__(f, w, None, S)
        self._counts = torch.zeros((TURNS, 256), dtype=torch.int32, device=f.device)
        self._programs = min(PROGRAMS, -(-f.shape[0] // BLOCK))
        self._totals = torch.zeros((2, self._programs), dtype=torch.float64, device=f.device)

    def _find(self) -> Tensor:
        n, grid = self._f.shape[0], (self._programs,)
        self._counts.zero_()
        for turn in range(TURNS):
            count_kernel[grid](self._f, self._h, self._counts, n, TURN=turn, BLOCK=BLOCK)
        weigh_kernel[grid](self._f, self._w, self._h, self._counts, self._best, self._totals, n, BLOCK=BLOCK)
        return self._totals.sum(1)


def _total(f: Tensor, w: Tensor, s: Tensor | None) -> Array:
    return weighted(f, w if s is None else w * s).sum(dtype=torch.float64)
