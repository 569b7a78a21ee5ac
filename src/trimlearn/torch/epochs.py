"""Epochs: x-steps on batches of the examples that count, and losses of all examples in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from trimlearn.torch.criterion import Criterion, forward
from trimlearn.torch.data import Batch, NumberedExamples
from trimlearn.torch.modes import evaluating
from trimlearn.torch.recipe import Learner
from trimlearn.torch.targets import Labels

Objective = Callable[[Any, Batch], Tensor]  # (output, batch) -> one loss per example, to be minimised

WIDER = 4  # times the batch of a step: evaluation keeps no graph, which takes most of the memory


@final
@dataclass(frozen=True)
class RowLosses:
    """Of the rows asked for: their losses (m,), and with labels those of every class (m, K)."""

    losses: np.ndarray
    classes: np.ndarray | None


@final
@dataclass(frozen=True)
class Epochs:
    """How batches are made and passed through a module."""

    examples: NumberedExamples
    criterion: Criterion
    labels: Labels | None
    batch_size: int
    accumulate: int
    precision: torch.dtype
    variance_reduced: bool
    seed: int

    def batches_in(self, rows: int) -> int:
        """How many steps an epoch over so many rows makes."""
        return -(-rows // (self.batch_size * self.accumulate))

    # -- x-steps ------------------------------------------------------------------------------------------------------

    def train(self, learner: Learner, rows: Tensor, w: Tensor, objective: Objective, scaler: Any = None) -> float:
        """One epoch over ``rows`` in a random order, each with its weight; the mean of the objective on the way."""
        module, optimizer = learner.module, learner.optimizer
        weighted = partial(self._weighted, w=w, objective=objective)
        anchor = _Anchor.at(self, module, rows, w, weighted) if self.variance_reduced else None
        groups = self._groups(rows[torch.randperm(len(rows))])
        total = torch.zeros((), device=self.examples.device)
        mean_weight = self._mass(w, rows) / len(rows)
        for k, batch in enumerate(self.examples.batches(groups)):
            parts = self._parts_of_step(k, len(groups))
            share = 1 / (mean_weight * parts * len(batch.rows))  # of a weighted loss in the mean over a step's batches
            value = weighted(module, batch)
            step = value * share
            (step if scaler is None else scaler.scale(step)).backward()
            if anchor is not None:
                anchor.correct(module, weighted(anchor.module, batch) * share, parts)
            total += value.detach()
            if (k + 1) % self.accumulate == 0 or k + 1 == len(groups):
                _step(optimizer, scaler)
                learner.tick(batch=True)
        mean = float(total) / (mean_weight * len(rows))
        learner.tick(False, mean)
        return mean

    def _weighted(self, module: nn.Module, batch: Batch, w: Tensor, objective: Objective) -> Tensor:
        """Σ wᵢfᵢ over the batch."""
        with self._autocast():
            output = forward(module, batch.x)
        return torch.dot(w[batch.rows], objective(output, batch).to(w.dtype))

    def _mass(self, w: Tensor, rows: Tensor) -> float:
        """Σ wᵢ over the rows; w is on the device, the rows are on the CPU."""
        return max(float(w[rows.to(w.device)].sum()), 1e-300)

    def _groups(self, order: Tensor) -> list[Tensor]:
        """Batches in this order. A last one of a single row joins the one before: batch norm has no variance of it."""
        groups = list(torch.split(order, self.batch_size))
        if len(groups) > 1 and len(groups[-1]) == 1:
            groups[-2:] = [torch.cat(groups[-2:])]
        return groups

    def _parts_of_step(self, k: int, count: int) -> int:
        """Of how many batches the step is made that batch k belongs to."""
        begin = k - k % self.accumulate
        return min(self.accumulate, count - begin)

    # -- evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self, module: nn.Module, rows: Tensor) -> RowLosses:
        """The losses of the rows in evaluation mode: no dropout, and batch norm by its running averages."""
        found, classes = [], []
        with evaluating(module):
            for batch in self.examples.batches(list(torch.split(rows, WIDER * self.batch_size))):
                with self._autocast():
                    output = forward(module, batch.x)
                if self.labels is None:
                    found.append(self.criterion.losses(output, batch.y, len(batch.rows)).double())
                else:
                    classes.append(self.criterion.class_losses(output, self.labels.values, batch.y).double())
        if self.labels is None:
            return RowLosses(torch.cat(found).cpu().numpy(), None)
        table = torch.cat(classes).cpu().numpy()
        return RowLosses(table[np.arange(len(table)), self.labels.codes[rows.numpy()]], table)

    # -- precision ----------------------------------------------------------------------------------------------------

    @property
    def _type(self) -> str:
        return self.examples.device.type

    def scaler(self) -> Any:
        """What keeps small gradients from vanishing in float16; None where they do not."""
        return torch.amp.GradScaler(self._type) if self.precision == torch.float16 else None

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self._type, dtype=self.precision)


@final
@dataclass
class _Anchor:
    """SMART's snapshot: an old x and the mean of the weighted gradients there, which reduce the variance of a step."""

    module: nn.Module
    mean: list[Tensor]

    @classmethod
    def at(cls, epochs: Epochs, module: nn.Module, rows: Tensor, w: Tensor, weighted: Callable[..., Tensor]) -> _Anchor:
        """At the module as it is: a pass over all rows that count."""
        old = deepcopy(module)
        parameters = [p for p in old.parameters() if p.requires_grad]
        mean = [torch.zeros_like(p) for p in parameters]
        mass = epochs._mass(w, rows)
        for batch in epochs.examples.batches(list(torch.split(rows, WIDER * epochs.batch_size))):
            gradients = torch.autograd.grad(weighted(old, batch) / mass, parameters, allow_unused=True)
            for total, g in zip(mean, gradients, strict=True):
                if g is not None:
                    total += g
        return cls(old, mean)

    def correct(self, module: nn.Module, value: Tensor, parts: int) -> None:
        """Take the gradient of a batch's value at the old x off the module's, and add the mean there."""
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        old = torch.autograd.grad(value, parameters, allow_unused=True)
        now = (p.grad for p in module.parameters() if p.requires_grad)
        used = [(a, b, mean) for a, b, mean in zip(now, old, self.mean, strict=True) if a is not None and b is not None]
        if used:
            grads, olds, means = (list(part) for part in zip(*used, strict=True))
            torch._foreach_add_(grads, means, alpha=1 / parts)
            torch._foreach_sub_(grads, olds)


def _step(optimizer: Any, scaler: Any) -> None:
    """One step with the gradients that were added up, which are gone afterwards."""
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    optimizer.zero_grad(set_to_none=True)


@contextmanager
def seeded(device: torch.device, *numbers: int) -> Iterator[None]:
    """Torch's random numbers as a function of these numbers; those of the user go on afterwards as if nothing was."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1))
        yield
