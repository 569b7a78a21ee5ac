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

__all__ = ["Table", "load_classic", "load_judges"]

CLASSIC = "classic_robust"


@dataclass(frozen=True)
class Table:
    """Numbers with names: ``data`` (n, p) float64, one name per column, and one per row or none at all."""

    data: NDArray[np.float64]
    feature_names: tuple[str, ...]
    names: tuple[str, ...]
    source: str


def load_judges() -> Table:
    """US Judges: lawyers' ratings of 43 judges of the US Superior Court, 12 ratings each, CONT to RTEN.

    The paper's example for trimmed PCA. Source: New Haven Register, 14 January 1977.

    >>> judges = load_judges()
    >>> judges.data.shape, judges.names[0], judges.feature_names[:3]
    ((43, 12), 'AARONSON,L.H.', ('CONT', 'INTG', 'DMNR'))
    """
    text = (files("trimlearn.datasets") / "us_judge_ratings.csv").read_text(encoding="utf-8")
    return _table(text, names_column="judge", source="New Haven Register, 14 January 1977")


def load_classic(name: str, data_home: str | os.PathLike[str] | None = None) -> Table:
    """A classic data set of robust statistics by name: "hbk", "stackloss", "starsCYG", ...

    The numeric columns of ``classic_robust/<name>.csv`` (or ``.csv.gz``), looked up in ``data_home``, then
    ``$TRIMLEARN_DATA``, then the user's cache. "NA" reads as NaN; columns of words are left out. ``names`` is the
    column ``name`` where there is one, else empty.

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


def _table(text: str, names_column: str, source: str) -> Table:
    """The numeric columns of a CSV text with a header line; ``names_column`` gives the row names."""
    header, *rows = csv.reader(io.StringIO(text))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    names = columns.pop(names_column, ())
    numeric = {key: column for key, values in columns.items() if (column := _numbers(values)) is not None}
    return Table(np.column_stack(list(numeric.values())), tuple(numeric), names, source)


def _numbers(values: tuple[str, ...]) -> NDArray[np.float64] | None:
    """``values`` as numbers, "NA" as NaN; None where some are words."""
    try:
        return np.array([np.nan if value == "NA" else float(value) for value in values])
    except ValueError:
        return None
