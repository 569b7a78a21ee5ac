"""Training and evaluation mode of a module, part by part: whatever is done to it, each part gets its own back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """All of the module in evaluation mode, and without gradients.

    >>> module = nn.Sequential(nn.BatchNorm1d(1).eval(), nn.Dropout())
    >>> with evaluating(module):
    ...     [part.training for part in module.modules()]
    [False, False, False]
    >>> [part.training for part in module.modules()]
    [True, False, True]
    """
    with _kept(module), torch.no_grad():
        module.eval()
        yield


@contextmanager
def training(module: nn.Module) -> Iterator[None]:
    """Ready to be trained: a module in evaluation mode is set to training; of one in training mode, the parts that are
    in evaluation mode stay so, for they are frozen."""
    if torch.is_inference_mode_enabled():
        raise RuntimeError("a module cannot be trained under torch.inference_mode(): call trim outside of it.")
    with _kept(module), torch.enable_grad():
        if not module.training:
            module.train()
        yield


@contextmanager
def _kept(module: nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
