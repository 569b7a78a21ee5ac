"""What commands print, and what they check before they start."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trimlearn._utils.text import grid
from trimlearn.checks.options import OptionError

FILE_WIDTH = 160  # columns of a table that goes into a file or a pipe


def check_folder(out: Path) -> None:
    """Raise where nothing can be written into the folder ``out``: before the work, not after it."""
    if out.exists() and not out.is_dir():
        raise OptionError(f"--out must be a folder, {out} is a file")
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK):
        raise PermissionError(f"--out {out}: nothing may be written to {there}")


def progress() -> Callable[[str], None]:
    """A function that writes a sentence to stderr, with the seconds since now before it."""
    begun = time.perf_counter()
    return lambda sentence: print(f"[{time.perf_counter() - begun:6.1f} s] {sentence}", file=sys.stderr, flush=True)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table by rich where it is installed, in plain text where not."""
    if importlib.util.find_spec("rich"):
        from rich import box
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        print(title)  # as rich's own title it would be folded to the table's width
        table = Table(*header, box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*map(escape, row))  # a file may be called photo[1].jpg
        Console(width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)
        return
    print(title, *grid([header, *rows], left=range(len(header))), "", sep="\n")
