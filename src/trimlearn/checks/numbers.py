"""The numbers and dates of a table as one matrix, for what judges them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.checks.missing_codes import missing_codes
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

DAY = 86_400.0  # seconds: the definition


@final
@dataclass(frozen=True)
class Code:
    """A cell that holds a code for a missing value."""

    row: int
    column: int
    value: float


@final
@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers and dates, dates as days since 1970. ``X`` (n, p): NaN where a value is missing or a code for
    missing; the latter are ``codes``."""

    names: tuple[str, ...]
    dates: Flags
    X: Floats
    codes: tuple[Code, ...]

    @classmethod
    def of(cls, table: Table, exclude: Sequence[str] = ()) -> NumberColumns:
        """Those of a table, some columns left out."""
        names = tuple(name for name in table.of_kind("number", "date") if name not in exclude)
        dates = np.array([table.frame[name].dtype.kind == "M" for name in names], dtype=bool)
        X = np.empty((len(table.frame), len(names)))
        codes: list[Code] = []
        for j, name in enumerate(names):
            X[:, j] = days(table.frame[name])
            coded = np.isin(X[:, j], missing_codes(X[:, j], bool(dates[j])))
            codes += [Code(int(i), j, float(X[i, j])) for i in np.flatnonzero(coded)]
            X[coded, j] = np.nan
        return cls(names, dates, X, tuple(codes))

    def shown(self, j: int, value: float) -> float | str:
        """A value of column j as people know it: a date as text."""
        if not self.dates[j]:
            return float(value)
        return str(np.datetime64(round(value), "D")) if np.isfinite(value) else ""


def days(column: pd.Series) -> Floats:
    """Numbers as they are, dates as days since 1970; NaN where there is none."""
    if column.dtype.kind != "M":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    stamps = column.to_numpy(dtype="datetime64[s]")
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / DAY)
