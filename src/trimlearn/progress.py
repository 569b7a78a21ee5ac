"""A progress bar, where one is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trimlearn.smart.method import Record

__all__ = ["progress_bar"]

Show = Callable[[Record], None]


@contextmanager
def progress_bar(wanted: bool, max_passes: float) -> Iterator[Show]:
    """A function that shows a record: a bar by rich, lines on stderr where rich is not installed, or nothing."""
    if not wanted:
        yield lambda record: None
        return
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda record: print(f"pass {record.passes:7.1f}  {_sentence(record)}", file=sys.stderr)
        return
    columns = (
        TextColumn("{task.completed:.0f}/{task.total:.0f} passes"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=max_passes)
        yield lambda record: bar.update(task, completed=record.passes, description=_sentence(record))


def _sentence(record: Record) -> str:
    return (
        f"F = {record.objective:.6g}, stationarity x {record.stationarity_x:.1e} w {record.stationarity_w:.1e}, "
        f"h = {record.h:.1f}"
    )
