"""Checkpoints of fits: a fit is the solves that it makes and the answers that it waits for, in the order it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn.checkpoint.run import UNREADABLE, Checkpoint, Clock, RunFile, packed, read_archive, unpacked
from trimlearn.engines.base import Engine
from trimlearn.smart.method import Record, Run, State

if TYPE_CHECKING:
    from trimlearn.problem import Problem

FORMAT = "trimlearn fit 1"  # what a file must say it is
EVEN = "even."  # before the name of an array whose entries are all the same: one of them, and how many there are


@final
@dataclass(frozen=True, eq=False)
class KnownPart:
    """What is known of one solve, or of one answer."""

    name: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]


@final
class FitCheckpoint:
    """A fit in one file: its parts are numbered as they come, which is the same in every fit with the same settings to
    the same data, and what the file holds of one is not done again. All else is done again, and gives the same.

    settings: what tells fits apart, beside the data.
    """

    def __init__(self, file: Checkpoint, settings: dict[str, str], resume: bool) -> None:
        self.file, self.settings, self.resume = file, settings, resume
        self.data: str | None = None  # what tells data apart, once they are known
        self.thread = get_ident()  # parts that other threads solve come in any order, and are not kept
        self._parts: list[KnownPart] = []
        self._next = 0

    def begin(self, data: str) -> None:
        """The fit is to these data: read what there is of it; ValueError where that is of another fit."""
        self.data = data
        if self.resume and self.file.there:
            self._read()
        else:
            self.write()

    def part(self, name: str) -> int:
        """The number of the next part; what was kept under another name was of another course of things."""
        at, self._next = self._next, self._next + 1
        if at < len(self._parts) and self._parts[at].name != name:
            del self._parts[at:]
        return at

    def known(self, at: int) -> KnownPart | None:
        """What is known of part number ``at``."""
        return self._parts[at] if at < len(self._parts) else None

    def keep(self, at: int, part: KnownPart) -> None:
        """This is known of part number ``at``, and nothing of later ones; written if it is time."""
        self._parts[at:] = [part]
        if self.file.due():
            self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; UserWarning, once a fit, where that fails."""
        parts = [{"name": part.name, "meta": part.meta} for part in self._parts]
        meta = {"format": FORMAT, "settings": self.settings, "data": self.data, "parts": parts}
        arrays = {f"{i}.{name}": a for i, part in enumerate(self._parts) for name, a in part.arrays.items()}
        self.file.write(meta, arrays)

    def _read(self) -> None:
        name = repr(str(self.file.file))
        try:
            meta, arrays = read_archive(self.file.file, FORMAT)
            settings, data = dict(meta["settings"]), meta["data"]
            parts = [KnownPart(str(part["name"]), dict(part["meta"]), {}) for part in meta["parts"]]
            for key, a in arrays.items():
                at, _, own = key.partition(".")
                parts[int(at)].arrays[own] = a
        except UNREADABLE as problem:
            raise ValueError(
                f"checkpoint {name} is damaged or not one of a fit; move it away, or give resume=False to overwrite "
                f"it ({type(problem).__name__})."
            ) from problem
        other = [key for key in {**settings, **self.settings} if settings.get(key) != self.settings.get(key)]
        if other:
            there, here = (kind.get(other[0], "nothing") for kind in (settings, self.settings))
            raise ValueError(
                f"checkpoint {name} belongs to another fit, with {other[0]}={there}, here {here}; give another path or "
                "resume=False."
            )
        if data != self.data:
            raise ValueError(
                f"checkpoint {name} belongs to a fit to other data; give another path, or resume=False to overwrite it."
            )
        self._parts = parts


_current: ContextVar[FitCheckpoint | None] = ContextVar("fit", default=None)


@contextmanager
def saved_fit(file: Checkpoint, settings: dict[str, str], resume: bool) -> Iterator[None]:
    """Save the solves that are made inside, and take what ``file`` holds of them; from `begin_fit` on."""
    token = _current.set(FitCheckpoint(file, settings, resume))
    try:
        with file.claimed():
            yield
    finally:
        _current.reset(token)


def _fit() -> FitCheckpoint | None:
    """The fit that is being saved, by this thread."""
    fit = _current.get()
    return None if fit is None or fit.thread != get_ident() else fit


def begin_fit(data: Callable[[], str]) -> None:
    """Inside of `saved_fit`, say once what tells the data from others; parts are saved from then on."""
    fit = _fit()
    if fit is not None and fit.data is None:
        fit.begin(data())


def remembered(name: str, answer: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """The arrays that ``answer`` gives, or has given before the fit was interrupted.

    Examples
    --------
    >>> remembered("mean", lambda: (np.ones(2),))
    (array([1., 1.]),)
    """
    fit = _fit()
    if fit is None or fit.data is None:
        return answer()
    at = fit.part(name)
    part = fit.known(at)
    if part is None:
        part = KnownPart(name, {}, {str(i): np.asarray(a) for i, a in enumerate(answer())})
        fit.keep(at, part)
    return tuple(part.arrays[str(i)] for i in range(len(part.arrays)))


def part_of_fit(run: Run, problem: Problem) -> RunFile | None:
    """Where a run is saved that is made inside of a fit; None: nowhere."""
    fit = _fit()
    if fit is None or fit.data is None:
        return None
    name = f"{run!r}, {type(problem.loss).__name__}, n={problem.n}, x={problem.loss.x_shape}, h={problem.r1.h:.9g}"
    return SavedPart(fit, fit.part(name), name)


@final
class SavedPart(RunFile):
    """A run that is one part of a fit. The fit knows the data: a part is told by its number and its settings."""

    def __init__(self, fit: FitCheckpoint, at: int, name: str) -> None:
        self.fit, self.at, self.name = fit, at, name

    @property
    def there(self) -> bool:
        return self.fit.known(self.at) is not None

    @property
    def ended(self) -> str | None:
        part = self.fit.known(self.at)
        return None if part is None else part.meta["ended"] or None

    def due(self) -> bool:
        return self.fit.file.due()

    def save(self, run: Callable[[], str], engine: Engine, state: State, history: list[Record], clock: Clock) -> None:
        if self.due():
            self._keep(packed(engine, state, history, clock), "")

    def end(self, engine: Engine, state: State, history: list[Record], clock: Clock, status: str) -> None:
        self._keep(packed(engine, state, history, clock), status)

    def _keep(self, run: tuple[dict[str, Any], dict[str, np.ndarray]], ended: str) -> None:
        meta, arrays = run
        self.fit.keep(self.at, KnownPart(self.name, {**meta, "ended": ended}, _folded(arrays)))

    def load(self, run: Callable[[], str], engine: Engine) -> tuple[State, list[Record], Clock]:
        part = self.fit.known(self.at)
        assert part is not None, "it was asked for"
        try:
            return unpacked(part.meta, _unfolded(part.arrays), engine)()
        except UNREADABLE as problem:
            raise ValueError(
                f"checkpoint {str(self.fit.file.file)!r} is damaged in part {self.at}; give resume=False to overwrite "
                f"it ({type(problem).__name__})."
            ) from problem


def _folded(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies; of weights that are all the same, one and their number."""
    found = {}
    for name, a in arrays.items():
        even = name == "w" and a.ndim == 1 and len(a) > 1 and bool(np.all(a == a[0]))
        found[EVEN * even + name] = np.array([a[0], len(a)], dtype=np.float64) if even else np.array(a)
    return found


def _unfolded(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The way back; an engine brings weights to its own dtype."""
    found = {name: a for name, a in arrays.items() if not name.startswith(EVEN)}
    if f"{EVEN}w" in arrays:
        value, n = arrays[f"{EVEN}w"]
        found["w"] = np.full(int(n), value)
    return found
