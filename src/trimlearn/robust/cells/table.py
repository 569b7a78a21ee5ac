"""A table of numbers, its wrong cells, and what was to be expected there, in the table's own units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.cells.fit import CellModel, fit_cells
from trimlearn.robust.cells.tails import adaptive_level
from trimlearn.robust.cells.transform import ColumnTransform
from trimlearn.robust.scale import Chi

__all__ = ["TableCells", "TableModel", "common_value", "why_left_out"]

BLOCK = (
    300_000  # cells judged at a time: 2 MB for each array, which stay in the cache; a million takes half as long again
)
FEW_VALUES = 4  # different values that a column must have: three make a category, as for DetectDeviatingCells
SOME = 1000  # values that are looked at first, to save time
FEWEST = 5  # values that differ from the commonest one: of fewer, none can be told to be odd
# Rows that a model is fitted to: more hardly change it, and all are judged by it. At most so many, and fewer where a
# round with n p³ operations would take more than half a second; but 10 for each column, and 200.
ROWS, WORK, EACH, LEAST = 10_000, 1e8, 10, 200

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class TableCells:
    """Of each cell: whether it deviates, what was expected, the score, and the row's own score; ``centre`` and
    ``sigma`` are what is expected of the transformed value, and the σ by which that is missed."""

    mask: Flags
    expected: Floats
    scores: Floats
    row_scores: Floats
    centre: Floats
    sigma: Floats


@final
@dataclass(frozen=True)
class TableModel:
    """How the columns are transformed, how the transformed ones hang together, and from which p-value on cells deviate.

    ``common``: the value that more than half of a column share, else NaN. It says nothing, and is left as it is.
    ``low``, ``high``: the range of the ordinary values, transformed, which no expectation leaves. ``rows``: how many it
    was fitted to.
    """

    columns: tuple[ColumnTransform, ...]
    common: Floats
    model: CellModel
    level: float
    low: Floats
    high: Floats
    settled: bool
    rows: int

    @classmethod
    def fit(cls, X: Floats, transform: bool = True, level: float | None = None) -> TableModel:
        """For X (n, p), NaN where a value is missing; every column has FEWEST values that are not its commonest."""
        common = np.array([common_value(x) for x in X.T])
        X = _sample(X)
        known = np.isfinite(X) & (X != common)
        columns = tuple(ColumnTransform.of(x[there], transform) for x, there in zip(X.T, known.T, strict=True))
        Z = _transformed(columns, np.where(known, X, np.nan))
        model, settled = fit_cells(Z)
        if level is None:
            level = adaptive_level(model.p_values(model.explain(Z).scores)[known])
        ordinary = np.where(known & ~model.explain(Z, level).mask, Z, np.nan)
        ordinary[:, ~np.isfinite(ordinary).any(axis=0)] = 0.0
        low, high = np.nanmin(ordinary, axis=0), np.nanmax(ordinary, axis=0)
        return cls(columns, common, model, level, low, high, settled, len(X))

    @property
    def threshold(self) -> float:
        """The score from which on cells deviate."""
        return Chi().upper(self.level)

    def judge(self, X: Floats) -> TableCells:
        """The cells of rows X; an infinite one deviates infinitely."""
        step = max(1, BLOCK // X.shape[1])
        first = self._judge(X[:step])
        if len(X) <= step:
            return first
        parts = {f.name: getattr(first, f.name) for f in fields(TableCells)}
        whole = {name: np.empty((len(X), *part.shape[1:]), part.dtype) for name, part in parts.items()}
        for start in range(0, len(X), step):
            part = first if start == 0 else self._judge(X[start : start + step])
            for name, values in whole.items():
                values[start : start + step] = getattr(part, name)
        return TableCells(**whole)

    def _judge(self, X: Floats) -> TableCells:
        known = np.isfinite(X) & (X != self.common)
        Z = _transformed(self.columns, np.where(known, X, np.nan))
        found = self.model.explain(Z, self.level, count_lost=False)
        inside = np.clip(found.expected, self.low, self.high)
        expected = np.column_stack([column.back(z) for column, z in zip(self.columns, inside.T, strict=True)])
        cutoffs = np.array([law.upper(self.level) for law in self.model.laws])
        scores = np.where(known, found.scores * self.threshold / cutoffs, 0.0)
        row_scores = self._row_scores(found.scores, known)
        infinite = np.isinf(X)
        scores[infinite] = X[infinite]
        return TableCells(
            found.mask | infinite,
            np.where(X == self.common, X, expected),
            np.where(np.isnan(X), 0.0, scores),
            row_scores,
            inside,
            found.sigma,
        )

    def _row_scores(self, scores: Floats, known: Flags) -> Floats:
        """How unlikely the cells of a row are taken together, none for more than 1: about standard normal.

        The mean of m values 1 − p of ordinary cells, about uniform, has the mean ½ and the variance 1/12m.
        """
        u = np.where(known, 1.0 - self.model.p_values(scores), 0.0)
        m = known.sum(axis=1)
        return np.asarray((u.sum(axis=1) - 0.5 * m) * np.sqrt(12.0 / np.maximum(m, 1)))


def common_value(x: Floats) -> float:
    """The value that more than half of the known entries share; NaN where there is none.

    >>> common_value(np.array([4.0, 4.0, 6.0, 4.0, np.nan])), common_value(np.array([1.0, 2.0]))
    (4.0, nan)
    """
    x = x[np.isfinite(x)]
    if not len(x):
        return np.nan
    middle = float(np.partition(x, len(x) // 2)[len(x) // 2])
    return middle if 2 * np.count_nonzero(x == middle) > len(x) else np.nan


def why_left_out(x: Floats) -> str:
    """Why no cell of a column can be told to be odd, "" where one can.

    >>> why_left_out(np.array([3.0, 3.0, np.nan])), why_left_out(np.arange(9.0))
    ('constant', '')
    """
    known = x[np.isfinite(x)]
    some = known[:: max(1, len(known) // SOME)]
    if np.count_nonzero(some != common_value(known)) >= FEWEST and len(np.unique(some)) > FEW_VALUES:
        return ""
    distinct = np.unique(known)
    if len(distinct) <= 1:
        return "constant" if len(distinct) else "no values"
    if len(distinct) < FEW_VALUES:
        return f"{len(distinct)} different values only"
    if np.count_nonzero(known != common_value(known)) < FEWEST:
        return f"fewer than {FEWEST} values apart from the commonest"
    return ""


def _sample(X: Floats) -> Floats:
    """Some of the rows where there are many, always the same ones."""
    n, p = X.shape
    rows = int(max(min(ROWS, WORK / p**3), EACH * p + LEAST))
    if n <= rows:
        return X
    return X[np.sort(np.random.Generator(np.random.Philox(key=0)).choice(n, rows, replace=False))]


def _transformed(columns: tuple[ColumnTransform, ...], X: Floats) -> Floats:
    return np.column_stack([column.into(x) for column, x in zip(columns, X.T, strict=True)])
