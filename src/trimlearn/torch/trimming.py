"""Trimming by losses alone: w-steps that keep the smallest ones, h falling from all to what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trimlearn.torch.epochs import Epochs, Objective
from trimlearn.torch.stages import EpochPlan
from trimlearn.weights import CappedSimplex, GroupCappedSimplex, WeightSet

Floats = NDArray[np.float64]

EVERY = 2  # epochs from one late w-step to the next: it takes a third of one
FALLING = 0.5  # of the epochs, in which h falls to its target: then as many are left to settle


def weight_set(h: float, groups: np.ndarray | None) -> WeightSet:
    """The weights that keep h: of all, or of every group its share."""
    return CappedSimplex(h) if groups is None else GroupCappedSimplex(groups, h)


@final
@dataclass(frozen=True)
class TrimmedEpochs:
    """Plans of epochs that keep a share of the rows: the loss of all of them in evaluation mode, then the smallest."""

    epochs: Epochs
    objective: Objective
    share: float
    count: int
    groups: np.ndarray | None = None  # one number per row of the dataset

    def plan(self, module: nn.Module, rows: np.ndarray) -> Callable[[int], EpochPlan]:
        """What epoch e minimises: all rows in the first one."""

        def at(epoch: int) -> EpochPlan:
            fallen = min(1.0, epoch / max(1, round(FALLING * self.count)))
            share = 1 - fallen * (1 - self.share)
            return self._plan(rows, self.step(module, rows, share) if share < 1 else np.ones(len(rows)))

        return at

    def settle(self, module: nn.Module, rows: np.ndarray, w: Tensor) -> Callable[[int], EpochPlan]:
        """From weights w of the rows, which are changed in place: w-steps once the module has learnt from them."""
        late = range(ceil(FALLING * self.count), self.count, EVERY)

        def at(epoch: int) -> EpochPlan:
            if epoch in late:
                w.copy_(torch.as_tensor(self.step(module, rows)))
            return self._plan(rows, w.numpy())

        return at

    def _plan(self, rows: np.ndarray, weights: np.ndarray) -> EpochPlan:
        return EpochPlan.of(self.epochs, rows, weights, self.objective)

    def step(self, module: nn.Module, rows: np.ndarray, share: float | None = None) -> np.ndarray:
        """The w-step: the losses of all rows in evaluation mode, and the weights that keep the smallest."""
        return self.weights(self.epochs.evaluate(module, torch.as_tensor(rows)).losses, rows, share)

    def weights(self, losses: np.ndarray, rows: np.ndarray, share: float | None = None) -> np.ndarray:
        """1 for the share of the rows with the smallest losses."""
        if not np.any(np.isfinite(losses)):
            raise ValueError(
                "no example has a finite loss any more: the fit diverged. Give an optimizer with a lower learning rate."
            )
        h = (self.share if share is None else share) * len(rows)
        groups = None if self.groups is None else self.groups[rows]
        w = np.asarray(weight_set(h, groups).minimise(losses), dtype=np.float64)
        return np.where(np.isfinite(losses), w, 0.0)
