"""Batches in which a loss is not finite: in the gradient of a network, 0 times NaN is NaN."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def spoilt(total: Tensor) -> bool:
    """Whether the gradient of ``total`` by some parameter is not finite. It costs a backward pass.

    >>> x = torch.tensor([1.0, torch.nan])
    >>> w = torch.ones(1, requires_grad=True)
    >>> spoilt((w * x)[:1].sum()), spoilt((w * x[:1]).sum())
    (True, False)
    """
    leaves = _leaves(total)
    if not leaves:
        return False
    try:
        slopes = torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
    except RuntimeError:  # a graph that can be walked once only, as compiled ones may be: nothing is known
        return True
    return not all(slope is None or bool(torch.isfinite(slope).all()) for slope in slopes)


def without_gradient(total: Tensor) -> Tensor:
    """The same number with gradients 0, which still reach every parameter: processes that train together wait for them.

    >>> w = torch.ones(1, requires_grad=True)
    >>> without_gradient((3 * w).sum()).backward()
    >>> w.grad
    tensor([0.])
    """
    value = total.detach()
    for leaf in _leaves(total):
        value = value + (torch.zeros_like(leaf) * leaf).sum().to(value.device, value.dtype)
    return value


def _leaves(total: Tensor) -> list[Tensor]:
    """The tensors whose gradients a backward pass adds to."""
    found, seen = [], set()
    waiting: list[Any] = [total.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "torch::autograd::AccumulateGrad":
            found.append(node.variable)
        waiting += [before for before, _ in node.next_functions]
    return found
