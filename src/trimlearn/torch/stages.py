"""A fit in stages of epochs: what each leaves as a record, and what a run needs to go on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import nan
from time import perf_counter
from typing import Any, final
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from trimlearn.progress import stage as announce
from trimlearn.torch.epochs import Epochs, Objective, seeded
from trimlearn.torch.recipe import Learner
from trimlearn.torch.saved import SavedRun

# The fall in the later half of a fit over that in the earlier. An exponential decay that is cut after a part a of what
# is to be learnt has √(1 − a): a fifth has been learnt at most where it is above
STEADY = 0.9  # a choice
MATERIAL = 0.05  # share of the loss below which its fall is no reason to train on: a choice
FEWEST = 4  # epochs from which on two halves can be compared: two in each


@final
@dataclass(frozen=True)
class EpochRecord:
    """One line of a fit's history: what an epoch has done.

    Parameters
    ----------
    stage : str
        What the epoch was for: "fold 1 of 2" and the like for models that judge rows they have not seen, "fit" for the
        module itself.
    epoch : int
        Its number within the stage, from 1 on.
    objective : float
        The weighted mean of the losses it minimised, as they were met.
    h : float
        The weight of the rows that count.
    rate : float
        The learning rate of its last step.
    seconds : float
        Since the beginning of the fit.

    Examples
    --------
    >>> EpochRecord("fit", 1, 0.25, 90.0, 1e-3, 0.5).h
    90.0
    """

    stage: str
    epoch: int
    objective: float
    h: float
    rate: float
    seconds: float = nan


def still_falling(history: list[EpochRecord]) -> bool:
    """Whether the loss of the fit fell nearly as much in its later half as in its earlier one, in terms of learning
    rates added up: what the module says about its examples is then not what it would say in the end.

    >>> falling = [EpochRecord("fit", k, 10.0 - k, 90.0, 1e-3) for k in range(1, 9)]
    >>> learnt = [EpochRecord("fit", k, 10.0 * 0.3**k, 90.0, 1e-3) for k in range(1, 9)]
    >>> still_falling(falling), still_falling(learnt)
    (True, False)
    """
    fit = [record for record in history if record.stage == "fit"]
    if len(fit) < FEWEST:
        return False
    rates, losses = (np.array([getattr(record, name) for record in fit]) for name in ("rate", "objective"))
    taken = np.cumsum(rates) - 0.5 * rates  # as losses are those met in the course of an epoch
    middle = float(np.interp(0.5 * (taken[0] + taken[-1]), taken, losses))
    first, second = losses[0] - middle, middle - losses[-1]
    return bool(second > STEADY * first and first + second > MATERIAL * abs(losses[0]))


@final
@dataclass(frozen=True)
class EpochPlan:
    """What an epoch minimises: Σ wᵢ·objectiveᵢ over these rows."""

    rows: Tensor
    w: Tensor
    objective: Objective

    @classmethod
    def of(cls, epochs: Epochs, rows: np.ndarray, weights: np.ndarray, objective: Objective) -> EpochPlan:
        """Of these rows those that count, each with its weight."""
        examples, numbers = epochs.examples, torch.as_tensor(rows)
        w = torch.zeros(examples.n, device=examples.device)
        w[numbers.to(w.device)] = torch.as_tensor(weights, dtype=w.dtype, device=w.device)
        return cls(numbers[torch.as_tensor(weights > 0)], w, objective)


@final
@dataclass
class TrainingRun:
    """One fit: its stages one after the other, its history, and its file."""

    epochs: Epochs
    callback: Callable[[EpochRecord], Any] | None = None
    saved: SavedRun | None = None
    history: list[EpochRecord] = field(default_factory=list)
    stopped: bool = False

    def __post_init__(self) -> None:
        self._begin = perf_counter()
        if self.saved is not None:
            self.history += [EpochRecord(**record) for record in self.saved.history]
            self._begin -= self.history[-1].seconds if self.history else 0.0

    def run(
        self,
        name: str,
        learner: Learner,
        count: int,
        plan: Callable[[int], EpochPlan],
        arrays: dict[str, Tensor] | None = None,
        plain: bool = False,
    ) -> None:
        """All ``count`` epochs of this stage that are left to do.

        plan: what epoch e minimises, w-steps included. It remembers things in ``arrays`` only, which are saved and
        restored. plain: whether gradients are, whatever was asked for: a judge need not be exact.
        """
        arrays = arrays or {}
        first = 0 if self.saved is None else self.saved.restore(name, learner, arrays)
        epochs = replace(self.epochs, variance_reduced=False) if plain else self.epochs
        scaler = epochs.scaler()
        for epoch in range(first, count):
            if self.stopped:
                return
            # By the name: a fit is the same whether or not there were judges before.
            with seeded(epochs.examples.device, epochs.seed, crc32(name.encode()), epoch):
                minimised = plan(epoch)
                objective = epochs.train(learner, minimised.rows, minimised.w, minimised.objective, scaler)
            h = float(minimised.w[minimised.rows.to(minimised.w.device)].sum())
            rate = float(learner.optimizer.param_groups[0]["lr"])
            record = EpochRecord(name, epoch + 1, objective, h, rate, perf_counter() - self._begin)
            self.history.append(record)
            announce(f"{name}: epoch {epoch + 1}/{count}, mean loss {objective:.4g}")
            if self.callback is not None and self.callback(record):
                self.stopped = True
            if self.saved is not None:
                self.saved.keep(name, epoch + 1, epoch + 1 == count, learner, arrays, self.history)
