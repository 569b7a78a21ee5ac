"""Two copies of a module, each trained on one half of the examples and asked about the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import nn

from trimlearn.torch.epochs import Epochs, Objective, RowLosses
from trimlearn.torch.recipe import LearnerRecipe
from trimlearn.torch.stages import EpochPlan, TrainingRun

FOLDS = 2  # the least: a judge per half, and an epoch of both together costs no more than one over all examples
Planner = Callable[[nn.Module, np.ndarray], Callable[[int], EpochPlan]]  # (module, its rows) -> what epoch e minimises


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
            self.run.run(name.format(g + 1), learner, self.count, planner(learner.module, rows), plain=True)
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
