"""Trimming by losses alone: w-steps that keep the smallest ones, h falling from all to what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import nn

from trimlearn._utils.warn import warn
from trimlearn.robust.verdict import Verdict
from trimlearn.torch.epochs import Epochs, Objective
from trimlearn.torch.halves import Halves
from trimlearn.torch.level import LossScale, judge_losses
from trimlearn.torch.stages import Plan
from trimlearn.weights import CappedSimplex, GroupCappedSimplex, WeightSet

__all__ = ["Trimming", "judge_examples", "warn_of_invalid", "weight_set"]

FALLING = 0.5  # of the epochs, in which h falls to its target: then as many are left to settle
HALF = 0.5  # of the examples that a wary model trusts: most are good, or nothing can be done
CENTRAL = 0.75  # of the losses, by the mean of which models are compared: a quarter may be bad, and is left out
BETTER = 0.8  # of the other's mean loss: a wary model must explain the central examples so much better to be asked


def weight_set(h: float, groups: np.ndarray | None) -> WeightSet:
    """The weights that keep h: of all, or of every group its share."""
    return CappedSimplex(h) if groups is None else GroupCappedSimplex(groups, h)


@final
@dataclass(frozen=True)
class Trimming:
    """Plans of epochs that keep a share of the rows: the loss of all of them in evaluation mode, then the smallest."""

    epochs: Epochs
    objective: Objective
    share: float
    count: int
    groups: np.ndarray | None = None  # one number per row of the dataset

    def plan(self, module: nn.Module, rows: np.ndarray) -> Callable[[int], Plan]:
        """What epoch e minimises: all rows in the first one."""
        examples, numbers = self.epochs.examples, torch.as_tensor(rows)

        def at(epoch: int) -> Plan:
            fallen = min(1.0, epoch / max(1, round(FALLING * self.count)))
            share = 1 - fallen * (1 - self.share)
            weights = np.ones(len(rows))
            if share < 1:
                weights = self.weights(self.epochs.evaluate(module, numbers).losses, rows, share)
            w = torch.zeros(examples.n, device=examples.device)
            w[numbers.to(w.device)] = torch.as_tensor(weights, dtype=w.dtype, device=w.device)
            return Plan(numbers[torch.as_tensor(weights > 0)], w, self.objective)

        return at

    def weights(self, losses: np.ndarray, rows: np.ndarray, share: float | None = None) -> np.ndarray:
        """The w-step: the share of the rows with the smallest losses."""
        if not np.any(np.isfinite(losses)):
            raise ValueError(
                "no example has a finite loss any more: the fit diverged. Give an optimizer with a lower learning rate."
            )
        h = (self.share if share is None else share) * len(rows)
        groups = None if self.groups is None else self.groups[rows]
        w = np.asarray(weight_set(h, groups).minimise(losses), dtype=np.float64)
        return np.where(np.isfinite(losses), w, 0.0)


def judge_examples(halves: Halves, objective: Objective) -> tuple[Verdict, LossScale, np.ndarray]:
    """Which examples do not belong, by models that have not seen them; and their losses.

    Models that trust all examples judge, or, where they explain the central ones so much better that the others must
    have been led astray, models that trust the better half.
    """
    epochs = halves.run.epochs
    everything = Trimming(epochs, objective, 1.0, halves.count)
    models = halves.train("judge {} of 2", everything.plan)
    losses = halves.evaluate(models).losses
    wary = Trimming(epochs, objective, HALF, halves.count)
    others = halves.train("judge {} of 2, wary", wary.plan)
    theirs = halves.evaluate(others).losses
    if _central(theirs) < BETTER * _central(losses):
        losses = theirs
    return *judge_losses(losses), losses


def _central(f: np.ndarray) -> float:
    """The mean of the smaller losses, from the least that is possible on: they may be negative."""
    f = np.sort(np.where(np.isfinite(f), f, np.inf))
    kept = f[: max(1, int(CENTRAL * len(f)))]
    return float(np.mean(kept - min(0.0, float(kept[0]))))


def warn_of_invalid(invalid: int, n: int, trimmed: float) -> None:
    """Say that examples without a finite loss were left out, and whether there are more of them than were expected."""
    if invalid == n:
        raise ValueError(
            "no example has a finite loss: look for NaN in the inputs, the targets or the module's parameters."
        )
    if invalid > trimmed:
        warn(
            f"{invalid} of {n} examples have no finite loss and are left out; they count among the trimmed ones, "
            "and are more of them than contamination allows."
        )
    elif invalid:
        warn(f"{invalid} of {n} examples have no finite loss; they are trimmed first.")
