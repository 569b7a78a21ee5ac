"""How a module is trained: its modes, its optimizer and scheduler, for the module itself and for fresh copies of it.

A fit on disk: what its stages need to go on, in one file without pickled objects.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau

from trimlearn._utils.files import replacing
from trimlearn._utils.warn import warn

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


FORMAT = "trimlearn torch 1"  # what a file must say it is
EVERY = 60.0  # seconds between two saves, the default of trimlearn.Checkpoint


@final
class SavedRun:
    """Saves stages after their epochs, and restores them in a later run of the same name.

    The file is torch's own, and is read with weights_only=True: it holds tensors, numbers and text, and can run no
    code. ``run`` says what is fitted to what: a file of another run is refused.
    """

    def __init__(self, path: Any, run: dict[str, Any], resume: bool, every: float) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path, got {type(path).__name__}.")
        self.file, self.run, self.every = Path(path), run, every
        folder = self.file.absolute().parent
        if self.file.is_dir() or not folder.is_dir():
            raise ValueError(f"checkpoint must be a file in an existing folder, got {str(self.file)!r}.")
        self.stages: dict[str, Any] = {}
        self.history: list[dict[str, Any]] = []
        self._last, self._warned = perf_counter(), False
        if resume and self.file.exists():
            self._read()

    def restore(self, name: str, learner: Learner, arrays: dict[str, Tensor]) -> int:
        """Put what was saved of the stage into the learner and the arrays; how many epochs of it are done."""
        if name not in self.stages:
            return 0
        there = self.stages[name]
        learner.module.load_state_dict(there["module"])
        learner.optimizer.load_state_dict(there["optimizer"])
        if learner.scheduler is not None:
            learner.scheduler.load_state_dict(there["scheduler"])
        for key, value in there["arrays"].items():
            arrays[key].copy_(value)
        learner.ticks = int(there["ticks"])
        return int(there["epochs"])

    def keep(
        self, name: str, epochs: int, last: bool, learner: Learner, arrays: dict[str, Tensor], history: list[Any]
    ) -> None:
        """Save the stage as it is, if it is its last epoch or if enough time has passed."""
        if not last and perf_counter() - self._last < self.every:
            return
        scheduler = {} if learner.scheduler is None else _plain(learner.scheduler.state_dict())
        self.stages[name] = {
            "epochs": epochs,
            "ticks": learner.ticks,
            "module": {key: value.detach().cpu().clone() for key, value in learner.module.state_dict().items()},
            "optimizer": learner.optimizer.state_dict(),
            "scheduler": scheduler,
            "arrays": {key: value.cpu().clone() for key, value in arrays.items()},
        }
        if last:  # of what is done, only what it leaves is asked for again
            self.stages[name] = {**self.stages[name], "optimizer": _without_state(self.stages[name]["optimizer"])}
        self.history = [asdict(record) for record in history]
        self._write()
        self._last = perf_counter()

    def _write(self) -> None:
        everything = {"format": FORMAT, "run": self.run, "stages": self.stages, "history": self.history}
        try:
            with replacing(self.file) as temporary:
                torch.save(everything, temporary)
        except OSError as problem:
            if not self._warned:
                warn(f"checkpoint {str(self.file)!r} could not be written ({problem}); the fit goes on.")
            self._warned = True

    def _read(self) -> None:
        try:
            there = torch.load(self.file, map_location="cpu", weights_only=True)
            if there["format"] != FORMAT:
                raise ValueError(there["format"])
            run, self.stages, self.history = there["run"], there["stages"], there["history"]
        except (OSError, EOFError, LookupError, TypeError, ValueError, RuntimeError, pickle.UnpicklingError) as problem:
            raise ValueError(
                f"checkpoint {str(self.file)!r} is damaged or not one of trim's; move it away, or give resume=False "
                f"to overwrite it ({type(problem).__name__})."
            ) from problem
        differ = [key for key in self.run if run.get(key) != self.run[key]]
        if differ:
            said = "; ".join(f"{key}: there {run.get(key)!r}, here {self.run[key]!r}" for key in differ[:3])
            raise ValueError(
                f"checkpoint {str(self.file)!r} belongs to another fit; give another path or resume=False ({said})."
            )


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """What of a scheduler's state can be kept without pickling code: numbers, text, and lists and dicts of them."""
    return {key: value for key, value in state.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Tensor))


def _without_state(optimizer: dict[str, Any]) -> dict[str, Any]:
    return {**optimizer, "state": {}}
