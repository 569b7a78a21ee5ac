"""What a long fit is doing, where that is asked for: a bar by rich, lines where rich is not installed; on stderr."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, final

from trimlearn.smart.method import Record


class Display(ABC):
    """Where progress is shown: the stage a fit has reached, and the passes of a solve within it."""

    @abstractmethod
    def stage(self, sentence: str) -> None:
        """What is being done now."""

    @abstractmethod
    def passes(self, record: Record, most: float) -> None:
        """How far a solve has come, of at most so many passes."""


@final
class Lines(Display):
    """One line for everything that happens."""

    def stage(self, sentence: str) -> None:
        print(sentence, file=sys.stderr)

    def passes(self, record: Record, most: float) -> None:
        measures = f"stationarity x {record.stationarity_x:.1e} w {record.stationarity_w:.1e}, h = {record.h:.1f}"
        print(f"pass {record.passes:7.1f}  F = {record.objective:.6g}, {measures}", file=sys.stderr)


@final
class Bar(Display):
    """A bar by rich, which moves while a solve counts its passes."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=None, detail="")

    def stage(self, sentence: str) -> None:
        self.bar.update(self.task, description=sentence, detail="")

    def passes(self, record: Record, most: float) -> None:
        detail = f"{record.passes:.0f}/{most:.0f} passes, F = {record.objective:.4g}"
        self.bar.update(self.task, total=most, completed=record.passes, detail=detail)


_display: ContextVar[Display | None] = ContextVar("display", default=None)


@contextmanager
def watching(wanted: Any, name: str = "") -> Iterator[None]:
    """Show what happens inside, if ``wanted``; inside another one, which shows it already, nothing new is opened."""
    if not wanted or _display.get() is not None:
        yield
        return
    with _opened() as display:
        token = _display.set(display)
        try:
            stage(name)
            yield
        finally:
            _display.reset(token)


@contextmanager
def _opened() -> Iterator[Display]:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column
    except ImportError:
        yield Lines()
        return
    columns = (  # within 80 characters, of which the time and the bar keep theirs
        TimeElapsedColumn(Column(no_wrap=True, min_width=7)),
        BarColumn(10, table_column=Column(min_width=10)),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield Bar(bar)


def stage(sentence: str) -> None:
    """Say what is being done now, to whom it may concern: nobody, outside of `watching`."""
    display = _display.get()
    if display is not None and sentence:
        display.stage(sentence)


def show(record: Record, most: float) -> None:
    """Say how far a solve has come, of at most so many passes, to the same."""
    display = _display.get()
    if display is not None:
        display.passes(record, most)
