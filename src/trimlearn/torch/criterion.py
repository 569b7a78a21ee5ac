"""What the user's loss says: one number per example, and, where targets are labels, one for every class.

A loss of labels is read as a likelihood, p(label) ∝ exp(−loss): for cross-entropy that is what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from trimlearn.torch.short_rows import log_softmax

LossFunction = Callable[[Any, Any], Tensor]

CLOSE = 1e-4  # relative: a loss that agrees with cross-entropy this well in float32 is cross-entropy


def forward(module: nn.Module, x: Any) -> Any:
    """module(x); a tuple is its arguments, a mapping its arguments by name."""
    if isinstance(x, Mapping):
        return module(**x)
    return module(*x) if isinstance(x, (tuple, list)) else module(x)


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
        return self.check(self.loss_fn(output, y), n)

    @staticmethod
    def check(f: Any, n: int) -> Tensor:
        """What loss_fn returned for n examples, one number for each."""
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
        losses: Tensor = f
        return losses

    def class_losses(self, output: Tensor, values: Tensor, like: Tensor) -> Tensor:
        """The loss that each example would have with each of the labels, (n, K)."""
        if self.cross_entropy:
            return -log_softmax(output.float())
        n = len(like)
        each = [self.losses(output, value.to(like).expand(like.shape), n) for value in values]
        return torch.stack(each, dim=1)

    def learn_form(self, output: Any, values: Tensor, like: Tensor) -> None:
        """See whether the loss is cross-entropy, whose classes cost no more than one."""
        K = len(values)
        numbered = not values.is_floating_point() and torch.equal(values, torch.arange(K).to(values.dtype))
        one_hot = values.ndim == 2 and torch.equal(values, torch.eye(K, dtype=values.dtype))
        if not (numbered or one_hot) or not isinstance(output, Tensor) or output.shape != (len(like), len(values)):
            return
        ours = -log_softmax(output.float())
        theirs = self.class_losses(output[:8], values, like[:8])
        self.cross_entropy = bool(torch.allclose(ours[:8], theirs.float(), rtol=CLOSE, atol=CLOSE))
