"""How a module is trained: its optimizer and scheduler, for the module itself and for fresh copies of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

from torch import nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

__all__ = ["Learner", "Recipe"]

RATE = 1e-3  # Adam's own default (Kingma and Ba 2015)


@final
@dataclass
class Learner:
    """A module and what trains it."""

    module: nn.Module
    optimizer: Optimizer
    scheduler: Any  # an LRScheduler, or one by its methods
    every_batch: bool  # whether the scheduler steps after every batch, or after every epoch


@final
class Recipe:
    """Makes learners. ``optimizer``: None for Adam whose rate falls to 0 along a cosine, a function of the parameters,
    or an Optimizer of the module's own parameters; ``scheduler``: a function of the optimizer, or one of that
    Optimizer."""

    def __init__(
        self,
        module: nn.Module,
        optimizer: Optimizer | Callable[[Any], Optimizer] | None,
        scheduler: LRScheduler | Callable[[Optimizer], Any] | None,
        every_batch: bool,
    ) -> None:
        _check(module, optimizer, scheduler)
        self.own = (module, optimizer, scheduler)
        self.every_batch = every_batch
        # One copy of all three: in it the optimizer still has the parameters of its module, before any step.
        self.pristine = deepcopy(self.own)

    def learner(self, steps: int, *, own: bool = False, begin: nn.Module | None = None) -> Learner:
        """The user's own module, or a fresh copy as it was at the start, or as ``begin`` is; ``steps`` to be made."""
        module, optimizer, scheduler = self.own if own else deepcopy(self.pristine)
        if begin is not None:
            module.load_state_dict(begin.state_dict())
        every_batch = self.every_batch
        if not isinstance(optimizer, Optimizer):
            made = [p for p in module.parameters() if p.requires_grad]
            if optimizer is None:
                optimizer = Adam(made, RATE)
                if scheduler is None:
                    scheduler, every_batch = CosineAnnealingLR(optimizer, max(1, steps)), True
            else:
                optimizer = optimizer(made)
        if scheduler is not None and not isinstance(scheduler, LRScheduler) and not _steps(scheduler):
            scheduler = scheduler(optimizer)
        return Learner(module, optimizer, scheduler, every_batch)


def _steps(scheduler: Any) -> bool:
    return callable(getattr(scheduler, "step", None))


def _check(module: Any, optimizer: Any, scheduler: Any) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}.")
    own = {id(p) for p in module.parameters()}
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("module has no parameters to fit: none of them requires a gradient.")
    if optimizer is None and isinstance(scheduler, LRScheduler):
        raise ValueError("scheduler belongs to an optimizer: give that one as optimizer= too.")
    if isinstance(optimizer, Optimizer):
        theirs = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not theirs <= own:
            raise ValueError("optimizer holds parameters that are not the module's: make it of module.parameters().")
        if isinstance(scheduler, LRScheduler) and scheduler.optimizer is not optimizer:
            raise ValueError("scheduler is of another optimizer than the one given.")
    elif optimizer is not None and not callable(optimizer):
        raise TypeError(
            "optimizer must be a torch Optimizer or a function of the parameters, such as "
            f"lambda p: torch.optim.SGD(p, lr=0.1), got {type(optimizer).__name__}."
        )
