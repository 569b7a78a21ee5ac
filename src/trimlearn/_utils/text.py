"""Tables in plain text and in Markdown: the one place where cells become columns; numbers of things; settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex


def described(thing: Any) -> str:
    """The class of a thing and its settings, the same in every process: what a checkpoint tells runs apart by.

    >>> described(type("Knob", (), {"__init__": lambda self: setattr(self, "turns", 3)})())
    'Knob(turns=3)'
    """
    return f"{type(thing).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(thing).items())})"


def plural(count: SupportsIndex, one: str, many: str = "") -> str:
    """A number and what it counts; ``many``: of more than one, where that is not ``one`` with an s.

    >>> plural(1, "row"), plural(1200, "row"), plural(0, "row was", "rows were")
    ('1 row', '1,200 rows', '0 rows were')
    """
    return f"{count.__index__():,} {one if count == 1 else many or one + 's'}"


def and_list(words: Sequence[str], more: int = 0, what: str = "") -> str:
    """Words as people list them.

    >>> and_list(["a"]), and_list(["a", "b", "c"]), and_list(["a", "b"], more=5, what="rows")
    ('a', 'a, b and c', 'a, b and 5 more rows')
    """
    words = [*words, f"{more} more {what}".strip()] if more > 0 else list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


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
