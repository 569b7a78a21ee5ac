"""Peak memory of a task: what the process holds of its own, pages of mapped files not counted."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Generic, TypeVar

__all__ = ["Measured", "measure"]

STATUS = Path("/proc/self/status")
EVERY = 0.005  # seconds between two looks
MIB = 2**20

T = TypeVar("T")


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What a task returned, its seconds, and the most MiB it held beyond what was held before (None: no Linux)."""

    value: T
    seconds: float
    mib: float | None


def measure(task: Callable[[], T]) -> Measured[T]:
    """Run it, with another thread looking at the memory all the while."""
    watch = _Watch()
    _return_what_is_free()
    with watch:
        begin = perf_counter()
        value = task()
        seconds = perf_counter() - begin
    return Measured(value, seconds, watch.mib)


def _return_what_is_free() -> None:
    """To the system: else the next task would find, and not be charged for, what the last one left in the heap."""
    gc.collect()
    with suppress(OSError, AttributeError):  # glibc's own
        ctypes.CDLL(None).malloc_trim(0)


class _Watch:
    """Looks at RssAnon: tracemalloc would miss what is allocated outside Python, ru_maxrss count the mapped files."""

    def __enter__(self) -> None:
        self._before = self._most = _anonymous()
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def mib(self) -> float | None:
        if self._most is None or self._before is None:
            return None
        return (self._most - self._before) / MIB

    def _look(self) -> None:
        while self._most is not None:
            self._most = max(self._most, _anonymous() or 0)
            if self._done.wait(EVERY):
                break


def _anonymous() -> int | None:
    """Bytes of the process that no file stands behind."""
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return None
