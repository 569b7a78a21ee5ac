"""Rows that are in a table twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimlearn.checks.findings import DuplicateRows
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["find_duplicates"]


def find_duplicates(table: Table, mended: pd.DataFrame, target: str | None = None) -> tuple[DuplicateRows, ...]:
    """Groups of rows that are the same but for their ids."""
    frame = table.frame.drop(columns=table.of_kind("id"))
    groups = frame.groupby(list(frame.columns), dropna=False, sort=False).indices if len(frame.columns) else {}
    return tuple(DuplicateRows(tuple(map(int, rows)), "exact") for rows in groups.values() if len(rows) > 1)
