"""Tables in plain text and Markdown, and pandas where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["find_pandas", "grid", "markdown"]


def find_pandas() -> Any:
    """The module, imported when it is asked for; None where it is not installed."""
    return import_module("pandas") if find_spec("pandas") else None


def grid(lines: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Cells in columns, aligned to the right but for the columns ``left``.

    >>> grid([("", "p"), ("age", "0.1")], left=[0])
    ['       p', 'age  0.1']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    align = [str.ljust if j in left else str.rjust for j in range(len(widths))]
    return ["  ".join(f(cell, w) for f, cell, w in zip(align, line, widths, strict=True)).rstrip() for line in lines]


def markdown(lines: Sequence[Sequence[str]]) -> list[str]:
    """The same as a Markdown table; the first line is its head.

    >>> markdown([("row", "kind"), ("3", "a|b")])
    ['| row | kind |', '|---|---|', '| 3 | a\\\\|b |']
    """
    head, *body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return [head, "|" + "---|" * len(lines[0]), *body]
