"""Checkpoints: what a run needs to go on as if it had never stopped, in one .npz file without pickle."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from time import perf_counter
from typing import Any
from zipfile import BadZipFile
from zlib import error

import numpy as np

from trimlearn._utils.arrays import asarray_like, namespace, to_numpy
from trimlearn._utils.files import inode, lock, replacing
from trimlearn._utils.validation import is_number
from trimlearn._utils.warn import warn
from trimlearn.engines.base import Counts, Engine
from trimlearn.smart.method import MetricMemory, Record, State

FORMAT = "trimlearn checkpoint 2"  # what a file must say it is
METRIC = "metric."  # before the names of the arrays that a metric has learned
# What reading a file raises that is not what it should be.
UNREADABLE = (OSError, EOFError, LookupError, TypeError, ValueError, BadZipFile, error)


@dataclass(frozen=True)
class Clock:
    """What a run had used: seconds, and the passes of its start."""

    seconds: float
    start_passes: float


class RunFile(ABC):
    """Where a run of the driver is saved: in a file of its own, or as a part of a fit's."""

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether there is something to go on from."""

    @property
    def ended(self) -> str | None:
        """The status that the run which is there has ended with; None: it has not."""
        return None

    def claimed(self) -> AbstractContextManager[None]:
        """Hold the place against other runs; ValueError where one has it."""
        return nullcontext()

    @abstractmethod
    def due(self) -> bool:
        """Whether it is time to save."""

    @abstractmethod
    def save(self, run: Callable[[], str], engine: Engine, state: State, history: list[Record], clock: Clock) -> None:
        """Save a run by its name, if it is worth it."""

    def end(  # noqa: B027
        self, engine: Engine, state: State, history: list[Record], clock: Clock, status: str
    ) -> None:
        """The run has ended with this status: keep that, where it may be asked for again. In a file of its own it is
        not: the same run comes to its end from the last save."""

    @abstractmethod
    def load(self, run: Callable[[], str], engine: Engine) -> tuple[State, list[Record], Clock]:
        """The state, the history and the clock of the run of that name; puts w, h and the counts into the engine."""


@dataclass
class Checkpoint(RunFile):
    """Where and how often to save a run, which resumes from the file if it is there, and only if it is the same run.

    A run is saved right after a w-step: f and y are then functions of (w, x) and need no space. For the same number of
    BLAS threads a resumed run gives, bit for bit, what an undisturbed one gives. While a run goes on, the file is its
    own: another that is to save there is refused. A file that cannot be written, because the disk is full, say, is a
    warning, and the run goes on.

    Parameters
    ----------
    path : str or path
        The file.
    every : float
        The seconds between two saves, at least.

    Examples
    --------
    >>> Checkpoint("fit.npz", every=600)
    Checkpoint(path='fit.npz', every=600)
    """

    path: str | os.PathLike[str]
    every: float = 60.0
    _last: float = field(default_factory=perf_counter, init=False, repr=False)
    _held: int | None = field(default=None, init=False, repr=False)  # a descriptor: the lock on what stands there
    _there: tuple[int, int] | None = field(default=None, init=False, repr=False)  # device and inode of that
    _warned: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise ValueError(f"checkpoint must be a path, got {self.path!r}.")
        self.file = Path(self.path)
        folder = self.file.absolute().parent
        if self.file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise ValueError(
                f"checkpoint must be a file in an existing folder one may write to, got {str(self.file)!r}."
            )
        if not is_number(self.every) or not self.every >= 0:
            raise ValueError(f"every must be a number of seconds >= 0, got {self.every!r}.")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the file against other runs; ValueError where one has it."""
        try:
            self._held = lock(self.file)
        except BlockingIOError as problem:
            raise ValueError(
                f"checkpoint {str(self.file)!r} is in use: another run saves there now; give each run its own path."
            ) from problem
        self._there, self._warned = inode(self.file), False
        try:
            yield
        finally:
            self._release()

    def due(self) -> bool:
        """Whether ``every`` seconds have passed since the last one."""
        return perf_counter() - self._last >= self.every

    def save(self, run: Callable[[], str], engine: Engine, state: State, history: list[Record], clock: Clock) -> None:
        meta, arrays = packed(engine, state, history, clock)
        self.write({"format": FORMAT, "run": run(), **meta}, arrays)

    @property
    def there(self) -> bool:
        return self.file.exists()

    def write(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """These as the file, whole or not at all; UserWarning, once a run, where that fails."""
        try:
            self._write(meta, **arrays)
        except OSError as problem:
            if not self._warned:
                warn(
                    f"checkpoint {str(self.file)!r} could not be written ({problem}); the run goes on, and tries again "
                    f"every {self.every:g} seconds."
                )
            self._warned = True
        self._last = perf_counter()

    def _write(self, meta: dict[str, Any], **arrays: np.ndarray) -> None:
        with ExitStack() as undo:
            with replacing(self.file) as temporary:
                with temporary.open("wb") as file:
                    text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
                    everything: dict[str, Any] = {"meta": text, **arrays}
                    np.savez(file, **everything)
                if inode(self.file) not in (None, self._there):
                    raise ValueError(
                        f"checkpoint {str(self.file)!r} was written by another run meanwhile, and is left as it is; "
                        "give each run its own path."
                    )
                # A lock is on the file, not on its name: the new one must be ours before it takes the old one's place.
                held, there = lock(temporary), inode(temporary)
                if held is not None:
                    undo.callback(os.close, held)
            undo.pop_all()
        self._release()
        self._held, self._there = held, there

    def _release(self) -> None:
        if self._held is not None:
            os.close(self._held)
        self._held = None

    def load(self, run: Callable[[], str], engine: Engine) -> tuple[State, list[Record], Clock]:
        try:
            meta, arrays = read_archive(self.file, FORMAT)
            there, put = str(meta["run"]), unpacked(meta, arrays, engine)
        except UNREADABLE as problem:
            raise ValueError(
                f"checkpoint {str(self.file)!r} is damaged or not a trimlearn checkpoint; move it away, or give "
                f"resume=False to overwrite it ({type(problem).__name__})."
            ) from problem
        if there != run():
            raise ValueError(
                f"checkpoint {str(self.file)!r} belongs to another run; give another path or resume=False.\n"
                f"  there: {there}\n  here:  {run()}"
            )
        return put()


def packed(
    engine: Engine, state: State, history: list[Record], clock: Clock
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A run as numbers and arrays."""
    numbers, arrays = _split(state)
    meta = {
        "state": numbers,
        "h": engine.r1.h,
        "counts": asdict(engine.counts),
        "history": [asdict(record) for record in history],
        "clock": asdict(clock),
    }
    return meta, {**engine.saved_weights(), **arrays}


def unpacked(
    meta: dict[str, Any], arrays: dict[str, np.ndarray], engine: Engine
) -> Callable[[], tuple[State, list[Record], Clock]]:
    """What `packed` has made, and found to be whole: a call puts w, h and the counts into the engine, and gives the
    rest. It raises what is in `UNREADABLE` otherwise."""
    h, like = float(meta["h"]), engine.problem.loss.like
    w = engine.read_weights(arrays)
    # A metric may be wider than x: its dtype is the one it was saved in.
    metric = {
        f.name: asarray_like(v, like, getattr(namespace(like), v.dtype.name))
        for f in fields(MetricMemory)
        if (v := arrays.pop(METRIC + f.name, None)) is not None
    }
    models = {name: asarray_like(a, like) for name, a in arrays.items()}
    state = State(**meta["state"], **models, metric=MetricMemory(**metric))
    counts, history = Counts(**meta["counts"]), [Record(**record) for record in meta["history"]]
    clock = Clock(**meta["clock"])

    def put() -> tuple[State, list[Record], Clock]:
        engine.set_weights(w)
        engine.r1 = engine.problem.r1 if h == engine.problem.r1.h else engine.problem.r1.at_h(h)
        engine.counts = counts
        return state, history, clock

    return put


def read_archive(path: Path, form: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file of this format holds: the numbers and the arrays."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    meta = json.loads(arrays.pop("meta").tobytes())
    if meta["format"] != form:
        raise ValueError(meta["format"])
    return meta, arrays


def _split(state: State) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The state's numbers and its arrays, without the record, which is the last one of the history."""
    numbers: dict[str, Any] = {}
    arrays = {METRIC + name: to_numpy(value) for name, value in vars(state.metric).items() if value is not None}
    for name in (f.name for f in fields(state) if f.name not in ("metric", "record")):
        value = getattr(state, name)
        if isinstance(value, (bool, int, float)):
            numbers[name] = value
        elif value is not None:
            arrays[name] = to_numpy(value)
    return numbers, arrays
