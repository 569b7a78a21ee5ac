"""The rows of a table that are most like a given one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimlearn.checks.numbers import days
from trimlearn.checks.spread import center_and_spread
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

Singles = NDArray[np.float32]

FAR = 3.0  # in robust σ: values further out are as far as that, so that no single cell decides who is near
LEVELS = 20  # categories of a column up to which matrix products of 0 and 1 beat comparisons
HALF = np.float32(0.5)  # of a squared distance of 1, as all are halved here
HELD = 2_000_000  # distances in memory at a time, 8 MB


def nearest_rows(
    table: Table, mended: pd.DataFrame, rows: Iterable[int], k: int = 3, target: str | None = None
) -> dict[int, tuple[int, ...]]:
    """The k rows nearest to each of these, nearest first.

    Numbers and dates differ by robust σ of their column, categories by 1 or 0; a missing value is taken for an ordinary
    one, the median. The target has no say: what it is in rows that are alike otherwise is what a reader wants to see.

    Parameters
    ----------
    table : Table
        Which columns are what.
    mended : DataFrame
        Its values, wrong cells missing.
    rows : iterable of int
        The rows whose neighbours are looked for.
    k : int, default=3
        How many.
    target : str or None, default=None
        A column that does not count.

    Returns
    -------
    dict of int to tuple of int
        For each of ``rows`` its neighbours, itself not among them; fewer than k where the table is shorter.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column, Table
    >>> frame = pd.DataFrame({"x": [1.0, 5.0, 1.1, 9.0, 5.2]})
    >>> table = Table(frame, frame.astype(str), (Column("x", "number"),), "made up", 0, "")
    >>> nearest_rows(table, frame, [0, 4], k=1)
    {0: (2,), 4: (1,)}
    """
    asked = np.array(sorted({int(i) for i in rows}), dtype=np.int64)
    n = len(mended)
    if k < 1 or n < 2 or not len(asked):
        return {int(i): () for i in asked}
    numbers, codes = _coordinates(table, mended, target)
    half = 0.5 * np.einsum("ij,ij->i", numbers, numbers)
    found: dict[int, tuple[int, ...]] = {}
    step = max(1, HELD // n)
    for start in range(0, len(asked), step):
        block = asked[start : start + step]
        distance = half - numbers[block] @ numbers.T  # half the squared distance, a constant of each row apart
        for code in codes:
            np.add(distance, HALF, out=distance, where=code[block][:, None] != code)
        distance[np.arange(len(block)), block] = np.inf
        found |= dict(zip(block.tolist(), _smallest(distance, min(k, n - 1)), strict=True))
    return found


def _smallest(distance: Singles, k: int) -> list[tuple[int, ...]]:
    """The k smallest of each row, the first ones of equals."""
    near = np.empty((len(distance), k), dtype=np.int64)
    for row, far in zip(near, distance, strict=True):  # a partition of values is much faster than one of places
        limit = np.partition(far, k - 1)[k - 1]
        close = np.flatnonzero(far <= limit)
        row[:] = close[np.argsort(far[close], kind="stable")[:k]]
    return [tuple(row) for row in near.tolist()]


def _coordinates(table: Table, mended: pd.DataFrame, target: str | None) -> tuple[Singles, Sequence[NDArray[np.int32]]]:
    """What Euclidean distances are taken of, (n, ·); and the categories with many values, as numbers."""
    columns: list[Singles] = []
    codes: list[NDArray[np.int32]] = []
    for name in table.of_kind("number", "date", "category"):
        if name == target:
            continue
        column = mended[name]
        if column.dtype.kind in "iufM":
            columns.append(_scaled(column)[:, None])
            continue
        code, levels = column.factorize()
        if len(levels) <= LEVELS:
            columns.append((code[:, None] == np.arange(len(levels))) * np.float32(np.sqrt(0.5)))
        else:
            codes.append(code.astype(np.int32))
    values = np.hstack(columns) if columns else np.zeros((len(mended), 0))
    return values.astype(np.float32), codes


def _scaled(column: pd.Series) -> Singles:
    """In robust σ about the median, at most FAR; missing values at the median."""
    x = days(column)
    center, sigma = center_and_spread(x)
    return np.asarray(np.clip(np.nan_to_num((x - center) / sigma), -FAR, FAR), dtype=np.float32)
