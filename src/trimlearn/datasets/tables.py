"""Small tables: US Judges (bundled) and the classic data sets of robust statistics."""

from __future__ import annotations

import csv
import gzip
import io
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimlearn.datasets.locate import find_folder, missing

CLASSIC = "classic_robust"


@dataclass(frozen=True)
class NamedNumbers:
    """Numbers with names.

    Parameters
    ----------
    data : ndarray of shape (n, p)
        The numbers, one row for each example; NaN where one is missing.
    feature_names : tuple of str
        One name for each column.
    names : tuple of str
        One name for each row, or none at all.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> load_judges().source
    'New Haven Register, 14 January 1977'
    """

    data: NDArray[np.float64]
    feature_names: tuple[str, ...]
    names: tuple[str, ...]
    source: str


def load_judges() -> NamedNumbers:
    """Give US Judges: lawyers' ratings of 43 judges of the US Superior Court, 12 ratings each.

    It is the paper's example for trimmed PCA, and comes with the package.

    Returns
    -------
    NamedNumbers
        The ratings, from CONT to RTEN, with the judges' names.

    References
    ----------
    New Haven Register, 14 January 1977.

    Examples
    --------
    >>> judges = load_judges()
    >>> judges.data.shape, judges.names[0], judges.feature_names[:3]
    ((43, 12), 'AARONSON,L.H.', ('CONT', 'INTG', 'DMNR'))
    """
    text = (files("trimlearn.datasets") / "us_judge_ratings.csv").read_text(encoding="utf-8")
    return _table(text, names_column="judge", source="New Haven Register, 14 January 1977")


def load_classic(name: str, data_home: str | os.PathLike[str] | None = None) -> NamedNumbers:
    """Read a classic data set of robust statistics.

    Parameters
    ----------
    name : str
        The data set's name, such as "hbk", "stackloss" or "starsCYG": that of a file ``classic_robust/<name>.csv`` (or
        ``.csv.gz``).
    data_home : str or path, optional
        The folder that holds classic_robust/. Where it is not given, or has none, ``$TRIMLEARN_DATA`` is looked at, and
        then the user's cache.

    Returns
    -------
    NamedNumbers
        Its numeric columns; "NA" reads as NaN, and columns of words are left out. The rows are named by the column
        ``name`` where there is one.

    Examples
    --------
    >>> load_classic("hbk").feature_names  # doctest: +SKIP
    ('X1', 'X2', 'X3', 'Y')
    """
    folder = find_folder(CLASSIC, data_home, holding="*.csv*")
    if folder is None:
        raise missing(f"The data set {name!r}", CLASSIC, data_home)
    paths = {path.name.split(".csv")[0]: path for path in sorted(folder.glob("*.csv*"))}
    if name not in paths:
        raise ValueError(f"name must be one of {', '.join(paths)}; got {name!r}")
    return _table(_read_text(paths[name]), names_column="name", source=f"{CLASSIC}/{paths[name].name}")


def _read_text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")


def _table(text: str, names_column: str, source: str) -> NamedNumbers:
    """The numeric columns of a CSV text with a header line; ``names_column`` gives the row names."""
    header, *rows = csv.reader(io.StringIO(text))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    names = columns.pop(names_column, ())
    numeric = {key: column for key, values in columns.items() if (column := _numbers(values)) is not None}
    return NamedNumbers(np.column_stack(list(numeric.values())), tuple(numeric), names, source)


def _numbers(values: tuple[str, ...]) -> NDArray[np.float64] | None:
    """``values`` as numbers, "NA" as NaN; None where some are words."""
    try:
        return np.array([np.nan if value == "NA" else float(value) for value in values])
    except ValueError:
        return None
