"""What the user's loss says: one number per example, and, where targets are labels, one for every class.

A loss of labels is read as a likelihood, p(label) ∝ exp(−loss): for cross-entropy that is what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from trimlearn.torch.short_rows import log_softmax

__all__ = ["Criterion", "Labels", "find_labels", "forward"]

LossFunction = Callable[[Any, Any], Tensor]

CLOSE = 1e-4  # relative: a loss that agrees with cross-entropy this well in float32 is cross-entropy
MOST_CLASSES = 1_000  # a limit on memory: n × K numbers are kept, 0.5 GB for 60,000 examples


def forward(module: nn.Module, x: Any) -> Any:
    """module(x); a tuple is its arguments, a mapping its arguments by name."""
    if isinstance(x, Mapping):
        return module(**x)
    return module(*x) if isinstance(x, (tuple, list)) else module(x)


@final
class Labels:
    """The labels of all examples: their numbers 0 … K − 1, and what targets they stand for."""

    def __init__(self, codes: np.ndarray, values: Tensor, given: np.ndarray) -> None:
        self.codes = codes  # (n,) int64
        self.values = values  # (K,) targets as the loss is given them
        self.given = given  # (n,) targets as they were given, numbers

    @property
    def K(self) -> int:
        """How many classes there are."""
        return len(self.values)


@final
class Criterion:
    """The loss of each example by the user's own function, and of each class where there are labels."""

    def __init__(self, loss_fn: LossFunction) -> None:
        if not callable(loss_fn):
            raise TypeError(f"loss_fn must be callable as loss_fn(output, target), got {type(loss_fn).__name__}.")
        self.loss_fn = loss_fn
        self.cross_entropy = False  # whether the loss of every class is −log_softmax(output)

    def losses(self, output: Any, y: Any, n: int) -> Tensor:
        """One loss per example; an error that names the fix where there is one for all."""
        f = self.loss_fn(output, y)
        if not isinstance(f, Tensor):
            raise TypeError(f"loss_fn must return a tensor with one loss per example, got {type(f).__name__}.")
        if f.ndim == 0 or f.shape[0] != n:
            raise ValueError(
                f"loss_fn must return one loss per example, {n} here, got "
                f"{'a single number' if f.ndim == 0 else f'the shape {tuple(f.shape)}'}: give reduction='none'."
            )
        if f.ndim > 1:
            if f.numel() != n:
                raise ValueError(
                    f"loss_fn must return one loss per example, got the shape {tuple(f.shape)}: take the mean over "
                    "all but the first dimension, as in lambda out, y: mse(out, y).flatten(1).mean(1)."
                )
            f = f.reshape(n)
        return f

    def class_losses(self, output: Tensor, values: Tensor, like: Tensor) -> Tensor:
        """The loss that each example would have with each of the labels, (n, K)."""
        if self.cross_entropy:
            return -log_softmax(output.float())
        n = len(like)
        each = [self.losses(output, value.to(like).expand(like.shape), n) for value in values]
        return torch.stack(each, dim=1)

    def learn_form(self, output: Any, values: Tensor, like: Tensor) -> None:
        """See whether the loss is cross-entropy, whose classes cost no more than one."""
        whole = values.dtype.is_floating_point is False and bool(torch.equal(values, torch.arange(len(values))))
        if not whole or not isinstance(output, Tensor) or output.shape != (len(like), len(values)):
            return
        ours = -log_softmax(output.float())
        theirs = self.class_losses(output[:8], values, like[:8])
        self.cross_entropy = bool(torch.allclose(ours[:8], theirs.float(), rtol=CLOSE, atol=CLOSE))


def find_labels(targets: Any, output: Any, wanted: bool | None) -> Labels | None:
    """The labels among the targets, None where these are no labels.

    Labels are integers, one per example, for an output with a column for every class; or 0 and 1 for an output with one
    number per example. ``wanted``: what the user says about it, None for nothing.
    """
    if wanted is False:
        return None
    columns = _columns(output)
    plain = isinstance(targets, Tensor) and targets.reshape(len(targets), -1).shape[1] == 1 and columns is not None
    given = targets.reshape(len(targets)).numpy() if plain else np.zeros(0)
    whole = plain and bool(np.all(given == np.round(given))) and bool(np.all(given >= 0))
    labels = None
    if whole and columns is not None and columns > 1 and given.dtype.kind in "iu" and given.max() < columns:
        labels = Labels(given.astype(np.int64), torch.arange(columns, dtype=targets.dtype), given)
    elif whole and columns == 1 and set(np.unique(given).tolist()) == {0.0, 1.0}:
        labels = Labels(given.astype(np.int64), torch.tensor([0, 1], dtype=targets.dtype), given)
    if labels is not None and (labels.K > MOST_CLASSES or len(np.unique(labels.codes)) < 2):
        labels = None
    if labels is None and wanted:
        raise ValueError(
            "labels=True, but the targets are no labels: they must be integers from 0 on with an output of a column "
            "for every class, or 0 and 1 with an output of one number per example, and hold two classes at least."
        )
    return labels


def _columns(output: Any) -> int | None:
    """How many numbers there are per example, if output is a tensor of one or two dimensions."""
    if not isinstance(output, Tensor) or output.ndim not in (1, 2):
        return None
    return 1 if output.ndim == 1 else int(output.shape[1])
