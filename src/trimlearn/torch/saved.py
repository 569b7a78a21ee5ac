"""A fit on disk: what its stages need to go on, in one file without pickled objects."""

from __future__ import annotations

import os
import pickle
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, final

import torch
from torch import Tensor

from trimlearn._utils.files import replacing
from trimlearn._utils.warn import warn
from trimlearn.torch.recipe import Learner

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
        optimizer = learner.optimizer.state_dict()
        if last:  # of what is done, only what it leaves is asked for again
            optimizer = {**optimizer, "state": {}}
        scheduler = {} if learner.scheduler is None else learner.scheduler.state_dict()
        self.stages[name] = {
            "epochs": epochs,
            "ticks": learner.ticks,
            "module": {key: value.detach().cpu().clone() for key, value in learner.module.state_dict().items()},
            "optimizer": optimizer,
            "scheduler": {key: value for key, value in scheduler.items() if _is_plain(value)},
            "arrays": {key: value.cpu().clone() for key, value in arrays.items()},
        }
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


def _is_plain(value: Any) -> bool:
    """Whether it can be kept without pickling code: numbers, text, and lists and dicts of them."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Tensor))
