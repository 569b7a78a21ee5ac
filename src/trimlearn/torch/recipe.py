"""How a module is trained: its optimizer and scheduler, for the module itself and for fresh copies of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, final

from torch import nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau

ROUNDING = 1e-6  # of a count of steps: a third of them three times is one
RATE = 1e-3  # Adam's own default (Kingma and Ba 2015)


@final
@dataclass
class Learner:
    """A module and what trains it."""

    module: nn.Module
    optimizer: Optimizer
    scheduler: Any  # an LRScheduler, or one by its methods
    every_batch: bool  # whether the scheduler steps after every batch, or after every epoch
    pace: float = 1.0  # its steps for each of them: a judge goes through the whole schedule, in less time
    ticks: int = 0  # batches or epochs so far

    def tick(self, batch: bool, mean: float = 0.0) -> None:
        """What the scheduler does after a batch, or after an epoch of this mean objective."""
        if self.scheduler is None or batch is not self.every_batch:
            return
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(mean)
            return
        due = int((self.ticks + 1) * self.pace + ROUNDING) - int(self.ticks * self.pace + ROUNDING)
        self.ticks += 1
        for _ in range(due):
            self.scheduler.step()


@final
class LearnerRecipe:
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

    def learner(self, steps: int, *, own: bool = False, begin: nn.Module | None = None, pace: float = 1.0) -> Learner:
        """The user's own module, or a fresh copy as it was at the start, or as ``begin`` is; ``steps`` to be made."""
        module, optimizer, scheduler = self.own if own else deepcopy(self.pristine)
        if begin is not None:
            module.load_state_dict(begin.state_dict())
        if isinstance(optimizer, Optimizer) and isinstance(scheduler, LRScheduler) and not own:
            _watched(optimizer)
        every_batch = self.every_batch
        if not isinstance(optimizer, Optimizer):
            made = [p for p in module.parameters() if p.requires_grad]
            if optimizer is None:
                fused = all(p.device.type in ("cpu", "cuda") for p in made)  # one kernel, not a dozen per parameter
                optimizer = Adam(made, RATE, fused=fused)
                if scheduler is None:
                    scheduler, every_batch, pace = CosineAnnealingLR(optimizer, max(1, steps)), True, 1.0
            else:
                optimizer = optimizer(made)
                _check_step(optimizer)
        if scheduler is not None and not isinstance(scheduler, LRScheduler) and not _steps(scheduler):
            scheduler = scheduler(optimizer)
        return Learner(module, optimizer, scheduler, every_batch, pace)


def _watched(optimizer: Optimizer) -> None:
    """Make a copied optimizer one that its scheduler knows to watch: a copy loses what the scheduler did to `step`."""
    step = optimizer.step

    @wraps(step)
    def watched(*args: Any, **options: Any) -> Any:
        optimizer._opt_called = True  # type: ignore[attr-defined]
        return step(*args, **options)

    watched._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = watched  # type: ignore[method-assign]


def _steps(scheduler: Any) -> bool:
    return callable(getattr(scheduler, "step", None))


def _check_step(optimizer: Any) -> None:
    """TypeError for what is no optimizer, and for one whose steps evaluate the loss themselves."""
    if not _steps(optimizer):
        raise TypeError(f"optimizer must make a torch Optimizer of the parameters, got a {type(optimizer).__name__}.")
    closure = signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is Parameter.empty:
        raise TypeError(
            f"optimizer must make its steps of gradients alone, and {type(optimizer).__name__} evaluates the loss "
            "several times a step: use Adam or SGD, or trimlearn.torch.TorchLoss with trimlearn.solve."
        )


def _check(module: nn.Module, optimizer: Any, scheduler: Any) -> None:
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
        _check_step(optimizer)
    elif optimizer is not None and not callable(optimizer):
        raise TypeError(
            "optimizer must be a torch Optimizer or a function of the parameters, such as "
            f"lambda p: torch.optim.SGD(p, lr=0.1), got {type(optimizer).__name__}."
        )
