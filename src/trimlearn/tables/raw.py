"""A table before anything is known of its columns: strings, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

__all__ = ["Raw", "arrow", "pandas", "shown_words"]


@final
@dataclass
class Raw:
    """The cells of a table as strings.

    ``columns`` holds one Arrow array of strings (large_string, "" where nothing was) for each name. ``typed`` holds the
    values of columns that their source had typed: float64 for numbers, bool, datetime64, or "category". ``semicolons``
    says whether these separate the fields: then a comma is likely to be the decimal sign.
    """

    names: list[str]
    columns: list[Any]
    source: str
    first_line: int
    notes: list[str] = field(default_factory=list)
    typed: dict[int, Any] = field(default_factory=dict)
    semicolons: bool = False

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def pandas() -> Any:
    """The module pandas, or an ImportError that says how to get it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError('tables need pandas: pip install "trimlearn[check]".') from error
    return pd


def arrow() -> Any:
    """The module pyarrow, with its functions on arrays; or an ImportError that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
    except ImportError as error:
        raise ImportError('tables need pyarrow: pip install "trimlearn[check]".') from error
    return pa


def shown_words(words: list[str], most: int = 3) -> str:
    """A few of them in quotation marks, each on one line and short.

    >>> shown_words(["n/k", "?", "x" * 40, "y"])
    '"n/k", "?", "xxxxxxxxxxxxxxxxxxxxxxxxxxx…", …'
    """
    short = [word if len(word) <= 28 else word[:27] + "…" for word in (" ".join(w.split()) for w in words[:most])]
    return ", ".join(f'"{word}"' for word in short) + (", …" if len(words) > most else "")
