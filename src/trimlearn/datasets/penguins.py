"""Penguins with dirt on them: a table as people have it, to try ``trimlearn check`` on."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DirtyTable:
    """A table of which it is known what is wrong.

    Parameters
    ----------
    path : Path
        The file, a CSV.
    target : str
        The column that holds labels, some of them wrong.
    wrong_labels : dict from int to str
        Rows whose label is wrong, counted from 0, and what it was.
    wrong_cells : dict from (int, str) to str
        Row and column of each wrong number, and what it was.
    twice : tuple of int
        Two rows that are one bird, entered twice.
    source : str
        Where the clean table comes from.

    Examples
    --------
    >>> load_penguins_dirty().target
    'species'
    """

    path: Path
    target: str
    wrong_labels: dict[int, str]
    wrong_cells: dict[tuple[int, str], str]
    twice: tuple[int, int]
    source: str

    def rows(self) -> list[dict[str, str]]:
        """Give the rows as they are written, a dict from column to text each.

        Returns
        -------
        list of dict
            One for each row.

        Examples
        --------
        >>> load_penguins_dirty().rows()[0]["body mass"]
        '3,475 g'
        """
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def frame(self) -> pd.DataFrame:
        """Give the table as a DataFrame of what is written; nothing is made of it yet.

        Returns
        -------
        DataFrame
            Text in every cell.

        Examples
        --------
        >>> load_penguins_dirty().frame().shape
        (201, 11)
        """
        import pandas as pd

        return pd.DataFrame(self.rows())


def load_penguins_dirty() -> DirtyTable:
    """Give 200 penguins of three species, with wrong labels, wrong numbers and one bird entered twice.

    The clean table is that of the Palmer penguins; the dirt was laid on by a script (`benchmarks/penguins.py` in the
    repository). It comes with the package.

    Returns
    -------
    DirtyTable
        The file, and what is wrong in it.

    References
    ----------
    K. B. Gorman, T. D. Williams and W. R. Fraser (2014), Ecological sexual dimorphism and environmental variability
    within a community of Antarctic penguins (genus Pygoscelis), PLoS ONE 9.

    Examples
    --------
    >>> penguins = load_penguins_dirty()
    >>> len(penguins.rows()), len(penguins.wrong_labels), len(penguins.wrong_cells)
    (201, 14, 24)
    """
    folder = Path(str(files("trimlearn.datasets")))
    truth: dict[str, Any] = json.loads((folder / "penguins_truth.json").read_text(encoding="utf-8"))
    return DirtyTable(
        path=folder / "penguins_dirty.csv",
        target="species",
        wrong_labels=dict(truth["labels"]),
        wrong_cells={(row, column): was for row, column, was, how in truth["cells"]},
        twice=(truth["twice"][0], truth["twice"][1]),
        source="Palmer penguins, Gorman, Williams and Fraser (2014), CC0",
    )
