"""A table that has been read: what was written in each cell, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Kind", "Table"]

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
