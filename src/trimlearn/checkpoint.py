"""Checkpoints: what a run needs to go on as if it had never stopped, in one .npz file without pickle."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from time import perf_counter
from typing import Any
from zipfile import BadZipFile

import numpy as np

from trimlearn.arrays import asarray_like, to_numpy
from trimlearn.engines.base import Counts, Engine
from trimlearn.files import replacing
from trimlearn.smart.method import Record, State

__all__ = ["Checkpoint"]

FORMAT = "trimlearn checkpoint 1"


@dataclass
class Checkpoint:
    """Where and how often to save. A run resumes from the file if it is there, and only if it is the same run.

    Saved right after a w-step, at most once in ``every`` seconds: f and y are then functions of (w, x) and need no
    space. For the same number of BLAS threads a resumed run gives, bit for bit, what an undisturbed one gives.
    """

    path: Path
    every: float = 60.0
    _last: float = field(default_factory=perf_counter, repr=False)

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"checkpoint must be a file in an existing folder, got {str(self.path)!r}.")
        if not self.every >= 0:
            raise ValueError(f"every must be a number of seconds >= 0, got {self.every!r}.")

    def due(self) -> bool:
        """Whether ``every`` seconds have passed since the last one."""
        return perf_counter() - self._last >= self.every

    def save(self, run: str, engine: Engine, state: State, history: list[Record], seconds: float) -> None:
        """Write the file, whole or not at all."""
        numbers, arrays = _split(state)
        meta = {
            "format": FORMAT,
            "run": run,
            "state": numbers,
            "h": engine.r1.h,
            "counts": asdict(engine.counts),
            "history": [asdict(record) for record in history],
            "seconds": seconds,
        }
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
            np.savez(file, allow_pickle=False, meta=text, w=to_numpy(engine.weights), **arrays)
        self._last = perf_counter()

    def load(self, run: str, engine: Engine) -> tuple[State, list[Record], float]:
        """The state, the history and the seconds used so far; puts w, h and the counts into the engine."""
        meta, arrays = self._read()
        if meta["run"] != run:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another run; give another path or resume=False.\n"
                f"  there: {meta['run']}\n  here:  {run}"
            )
        like = engine.problem.loss.like
        engine.set_weights(arrays.pop("w"))
        engine.r1 = engine.problem.r1 if meta["h"] == engine.problem.r1.h else engine.problem.r1.at_h(meta["h"])
        engine.counts = Counts(**meta["counts"])
        metric = {
            k.removeprefix("metric."): asarray_like(v, like) for k, v in arrays.items() if k.startswith("metric.")
        }
        rest = {k: asarray_like(v, like) for k, v in arrays.items() if not k.startswith("metric.")}
        return State(**meta["state"], **rest, metric=metric), [Record(**r) for r in meta["history"]], meta["seconds"]

    def _read(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            meta = json.loads(arrays.pop("meta").tobytes())
            if meta["format"] != FORMAT:
                raise KeyError(meta["format"])
        except (OSError, EOFError, KeyError, ValueError, BadZipFile) as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is damaged or not a trimlearn checkpoint; move it away or "
                f"give resume=False to overwrite it ({type(error).__name__})."
            ) from error
        return meta, arrays


def _split(state: State) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The state's numbers and its arrays. The mean of y is left out: it is recomputed. So is the record."""
    numbers: dict[str, Any] = {}
    arrays = {f"metric.{name}": to_numpy(value) for name, value in state.metric.items()}
    for name in (f.name for f in fields(state) if f.name not in ("metric", "record", "y_mean")):
        value = getattr(state, name)
        if isinstance(value, (bool, int, float)):
            numbers[name] = value
        elif value is not None:
            arrays[name] = to_numpy(value)
    return numbers, arrays
