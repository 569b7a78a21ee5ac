"""A fit in stages of epochs: what each leaves as a record, and what a run needs to go on where it stopped.

The judges of a fit are two copies of a module, each trained on one half of the examples and asked about the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from time import perf_counter
from typing import Any, final
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from trimlearn.progress import stage as announce
from trimlearn.torch.epochs import Epochs, Objective, RowLosses, seeded
from trimlearn.torch.recipe import Learner, LearnerRecipe, SavedRun

__all__ = ["FOLDS", "EpochPlan", "EpochRecord", "Halves", "Stage", "TrainingRun", "steady", "still_falling"]

# The fall in the later half of a fit over that in the earlier. An exponential decay that is cut after a part a of what
# is to be learnt has √(1 − a): a fifth has been learnt at most where it is above
STEADY = 0.9  # a choice
MATERIAL = 0.05  # share of the loss below which its fall is no reason to train on: a choice
FEWEST = 4  # epochs from which on two halves can be compared: two in each
FOLDS = 2  # the least: a judge per half, and an epoch of both together costs no more than one over all examples


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


Planner = Callable[[nn.Module, np.ndarray], Callable[[int], EpochPlan]]  # (module, its rows) -> what epoch e minimises


@final
@dataclass
class Stage:
    """Some epochs of one learner. ``plan``: what epoch e minimises, w-steps included. It remembers things in ``arrays``
    only, which are saved and restored."""

    name: str
    learner: Learner
    count: int
    plan: Callable[[int], EpochPlan]
    arrays: dict[str, Tensor] = field(default_factory=dict)
    plain: bool = False  # whether gradients are, whatever was asked for: a judge need not be exact


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

    def run(self, stage: Stage) -> None:
        """All epochs of the stage that are left to do."""
        first = 0 if self.saved is None else self.saved.restore(stage.name, stage.learner, stage.arrays)
        scaler = self.epochs.scaler()
        epochs = replace(self.epochs, variance_reduced=False) if stage.plain else self.epochs
        for epoch in range(first, stage.count):
            if self.stopped:
                return
            # By the name: a fit is the same whether or not there were judges before.
            with seeded(self.epochs.examples.device, self.epochs.seed, crc32(stage.name.encode()), epoch):
                plan = stage.plan(epoch)
                objective = epochs.train(stage.learner, plan.rows, plan.w, plan.objective, scaler)
            self._record(stage, epoch, objective, float(plan.w[plan.rows.to(plan.w.device)].sum()))

    def _record(self, stage: Stage, epoch: int, objective: float, h: float) -> None:
        rate = float(stage.learner.optimizer.param_groups[0]["lr"])
        record = EpochRecord(stage.name, epoch + 1, objective, h, rate, perf_counter() - self._begin)
        self.history.append(record)
        announce(f"{stage.name}: epoch {epoch + 1}/{stage.count}, mean loss {objective:.4g}")
        if self.callback is not None and self.callback(record):
            self.stopped = True
        if self.saved is not None:
            self.saved.keep(stage.name, epoch + 1, epoch + 1 == stage.count, stage.learner, stage.arrays, self.history)


@final
@dataclass
class Halves:
    """The rows that are there, split in two, every one of the ``strata`` evenly."""

    run: TrainingRun
    recipe: LearnerRecipe
    rows: np.ndarray
    strata: np.ndarray | None  # one number per row, labels
    count: int  # epochs of a training
    full: int  # epochs of the fit itself, to whose end a scheduler of the user's goes

    @cached_property
    def fold(self) -> np.ndarray:
        """The half of every row."""
        n = len(self.rows)
        chance = np.random.default_rng(self.run.epochs.seed).permutation(n)
        order = np.argsort(chance) if self.strata is None else np.lexsort((chance, self.strata))
        fold = np.empty(n, dtype=np.int64)
        fold[order] = np.arange(n) % FOLDS
        return fold

    def train(self, name: str, planner: Planner, begin: list[nn.Module] | None = None) -> list[nn.Module]:
        """A module for each half, trained on the other one, from the start or from those of ``begin``."""
        models = []
        for g in range(FOLDS):
            rows = self.rows[self.fold != g]
            steps = self.count * self.run.epochs.batches_in(len(rows))
            whole = self.full * self.run.epochs.batches_in(len(self.rows))
            pace = whole / steps if self.recipe.every_batch else self.full / self.count
            learner = self.recipe.learner(steps, begin=None if begin is None else begin[g], pace=pace)
            self.run.run(Stage(name.format(g + 1), learner, self.count, planner(learner.module, rows), plain=True))
            models.append(learner.module)
        return models

    def evaluate(self, models: list[nn.Module]) -> RowLosses:
        """Every row by the module that has not seen it."""
        parts = [self.run.epochs.evaluate(m, torch.as_tensor(self.rows[self.fold == g])) for g, m in enumerate(models)]
        order = np.argsort(np.concatenate([np.flatnonzero(self.fold == g) for g in range(FOLDS)]))
        classes = [part.classes for part in parts if part.classes is not None]
        return RowLosses(
            np.concatenate([part.losses for part in parts])[order],
            np.concatenate(classes)[order] if classes else None,
        )


def steady(epochs: Epochs, objective: Objective, weights: np.ndarray | None = None) -> Planner:
    """The same objective in every epoch, each example with its weight; None: all alike."""
    w = np.ones(epochs.examples.n) if weights is None else weights

    def planner(module: nn.Module, rows: np.ndarray) -> Callable[[int], EpochPlan]:
        plan = EpochPlan.of(epochs, rows, w[rows], objective)
        return lambda epoch: plan

    return planner
