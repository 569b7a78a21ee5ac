"""The arguments of `trim` that are numbers and choices, checked; and what they mean for a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.data import TensorDataset

from trimlearn._utils.validation import check_choice, check_count, is_integer, is_number
from trimlearn._utils.warn import warn
from trimlearn.checkpoint import Checkpoint
from trimlearn.torch.criterion import Criterion
from trimlearn.torch.data import NumberedExamples
from trimlearn.torch.epochs import Epochs
from trimlearn.torch.saved import EVERY, SavedRun
from trimlearn.torch.targets import Labels

BATCHES = 128  # of an epoch: with as many, its steps see the data often enough, and a batch is large enough to average
BATCH = (16, 256)  # the least and the most examples of a batch: smaller ones waste time, larger ones steps
STEPS = 2_000  # that a fit makes at least: Adam at its own rate moves a weight by 1 in a thousand of them
EPOCHS = (12, 100)  # the least and the most: large data need few, and small ones are soon known by heart
# Those of ``torch.autocast``, by the names that PyTorch has for them; float32 is none.
AUTOCAST = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@final
@dataclass(frozen=True)
class Settings:
    """As given."""

    contamination: float | str
    epochs: int | str
    batch_size: int | str
    accumulate: int
    gradient: str
    precision: str
    scheduler_every: str
    seed: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if value != "auto":
                if isinstance(value, str):
                    raise ValueError(f"{name} must be 'auto' or a whole number >= 1, got {value!r}.")
                check_count(value, name)
        check_count(self.accumulate, "accumulate")
        check_choice(self.gradient, ("plain", "variance-reduced"), "gradient")
        check_choice(self.precision, tuple(AUTOCAST), "precision")
        check_choice(self.scheduler_every, ("epoch", "batch"), "scheduler_every")
        if not is_integer(self.seed) or self.seed < 0:
            raise ValueError(f"seed must be a whole number >= 0, got {self.seed!r}.")
        if self.gradient == "variance-reduced" and self.precision == "float16":
            raise ValueError("gradient='variance-reduced' needs precision='float32' or 'bfloat16'.")
        if isinstance(self.contamination, str) and self.contamination != "auto":
            raise ValueError(f"contamination must be 'auto', a share or a number, got {self.contamination!r}.")

    def level(self, n: int) -> float | None:
        """The share to trim of n examples; None: to be estimated."""
        c = self.contamination
        if c == "auto":
            return None
        if is_integer(c) and 0 <= c < n:  # type: ignore[operator]
            return float(c) / n
        if is_number(c) and not is_integer(c) and 0 <= c < 1:  # type: ignore[operator]
            return float(c)
        raise ValueError(
            f"contamination must be 'auto', a share in [0, 1), or a number of examples below {n}, got {c!r}."
        )

    def groups(self, groups: Any, n: int) -> np.ndarray | None:
        """The number of each example's group."""
        if groups is None:
            return None
        if self.contamination == "auto":
            raise ValueError("groups need a known contamination, which each of them is trimmed by: give a share.")
        given = np.asarray(groups.detach().cpu() if isinstance(groups, Tensor) else groups)
        if given.shape != (n,):
            raise ValueError(f"groups must hold one entry per example, {n}, got the shape {given.shape}.")
        return np.unique(given, return_inverse=True)[1]

    def epochs_on(
        self, examples: NumberedExamples, criterion: Criterion, labels: Labels | None, module: nn.Module
    ) -> Epochs:
        """How passes over these examples are made."""
        reduced = self.gradient == "variance-reduced"
        if reduced and (why := _noise_of(module, examples)):
            warn(
                f"gradient='variance-reduced' is void with {why}: the gradient of an example is another one each time. "
                "Plain stochastic gradients are used."
            )
            reduced = False
        batch = self.batch_size
        if batch == "auto":
            batch = int(np.clip(2 ** round(np.log2(max(1.0, examples.n / BATCHES))), *BATCH))
        precision = AUTOCAST[self.precision]
        return Epochs(examples, criterion, labels, int(batch), self.accumulate, precision, reduced, int(self.seed))

    def count(self, n: int, epochs: Epochs) -> int:
        """How many epochs there are."""
        if self.epochs == "auto":
            return int(np.clip(ceil(STEPS / epochs.batches_in(n)), *EPOCHS))
        return int(self.epochs)

    def saved_run(self, path: Any, resume: bool, module: nn.Module, examples: NumberedExamples) -> SavedRun | None:
        """The file, if there is to be one; it knows the module by its parameters, and the data by their number."""
        if path is None:
            return None
        shapes = "; ".join(f"{name} {tuple(p.shape)}" for name, p in module.named_parameters())
        numbers = {name: str(value) for name, value in vars(self).items()}
        every = path.every if isinstance(path, Checkpoint) else EVERY
        file = path.path if isinstance(path, Checkpoint) else path
        return SavedRun(file, {"module": shapes, "examples": examples.n, **numbers}, resume, every)


def module_device(module: nn.Module, device: Any, dataset: Any) -> torch.device:
    """Where to compute: as asked for, else where the module is."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}.")
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError("module must be the module itself, not a scripted or traced one, which cannot be copied whole.")
    if device is not None:
        return torch.device(device)
    devices = {p.device for p in module.parameters()}
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        raise ValueError(f"module is spread over {names}: give device= to bring it together.")
    where = devices.pop() if devices else torch.device("cpu")
    tensors = dataset.tensors if isinstance(dataset, TensorDataset) else dataset
    parts = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
    there = {part.device for part in parts if isinstance(part, Tensor)}
    if there and torch.device("cpu") not in there and where not in there:
        raise ValueError(
            f"module is on {where} and the data on {there.pop()}: give device=, or bring them together by module.to()."
        )
    return where


def dtype_of(module: nn.Module) -> torch.dtype:
    """The type in which the module computes: that of its first parameters."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.get_default_dtype())


def _noise_of(module: nn.Module, examples: NumberedExamples) -> str:
    """What makes the gradient of an example random, in words; empty if nothing does."""
    kinds = [
        ("dropout", any(isinstance(part, _DropoutNd) and part.p > 0 for part in module.modules())),
        ("batch norm", any(isinstance(part, _BatchNorm) for part in module.modules())),
        ("random augmentation", examples.random),
    ]
    return " and ".join(name for name, there in kinds if there)
