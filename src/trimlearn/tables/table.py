"""A table: what was written in each cell, and, once it has been understood, what that means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "category", "date", "text", "id", "constant", "empty"]


@final
@dataclass(frozen=True)
class Column:
    """What is known of a column.

    Parameters
    ----------
    name : str
        Its heading; a second column of the same heading is called "name (2)".
    kind : str
        "number", "category" (few different values, yes or no included), "date"; or what no model uses: "text" (many
        different values), "id" (names the rows), "constant", "empty".
    how : str
        How its cells were read, in a few words: "numbers with £ and thousands commas", "dates, day first".
    missing : int
        The cells without a value.
    unreadable : tuple of int
        The rows whose cell holds something that is not of this kind ("n/k" among numbers). They count as missing too.

    Examples
    --------
    >>> Column("Price", "number", "whole numbers with £ and thousands commas", missing=3).kind
    'number'
    """

    name: str
    kind: Kind
    how: str = ""
    missing: int = 0
    unreadable: tuple[int, ...] = ()


@final
@dataclass(frozen=True)
class Table:
    """A table that has been read.

    Parameters
    ----------
    frame : DataFrame
        The values: float64 with NaN for numbers, str with None for categories, texts and ids, datetime64 with NaT for
        dates. Rows are numbered from 0.
    written : DataFrame of str
        The cells as they were written, "" where nothing was; the same shape.
    columns : tuple of Column
        One for each column of ``frame``, in its order.
    source : str
        What the table is called: the name of its file.
    first_line : int
        What the user calls row 0: 2 where line 1 of a file holds the names, 0 for a DataFrame.
    fingerprint : str
        A hash of the names and the written cells: the same for the same table, however it is stored.
    notes : tuple of str
        Sentences on what was read differently from what is written.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables import read_table
    >>> table = read_table(pd.DataFrame({"price": ["£5", "£7.50"], "size": [3, 4]}))
    >>> table.of_kind("number"), table.written["price"].tolist(), table.frame["price"].tolist()
    (['price', 'size'], ['£5', '£7.50'], [5.0, 7.5])
    """

    frame: pd.DataFrame
    written: pd.DataFrame
    columns: tuple[Column, ...]
    source: str
    first_line: int
    fingerprint: str
    notes: tuple[str, ...] = ()

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The names of the columns of some kinds.

        Parameters
        ----------
        *kinds : str
            The kinds.

        Returns
        -------
        list of str
            Their names, in the order of the table.
        """
        return [column.name for column in self.columns if column.kind in kinds]


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
