"""Cells that are wrong: numbers that do not fit to the others in their row."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimlearn.checks.findings import CellFindings, WrongCell
from trimlearn.estimators.cells import CellwiseOutliers
from trimlearn.inference.probability import row_probabilities
from trimlearn.robust.scale import Chi
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["find_cells"]


def find_cells(
    table: Table, *, exclude: Sequence[str] = (), keep: Iterable[tuple[int, str]] = (), seed: int = 0
) -> CellFindings:
    """The cells of the numeric columns that deviate."""
    names = [name for name in table.of_kind("number") if name not in exclude]
    mended = table.frame.copy()
    if not names or len(mended) < 2:
        return CellFindings((), mended, {})
    kept = set(keep)
    X = table.frame[names]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = CellwiseOutliers().fit(X)
    scores = model.cell_scores_
    probability = row_probabilities(Chi().survival(np.abs(scores)).ravel()).reshape(scores.shape)
    expected = model.expected_.to_numpy(dtype=np.float64)
    cells = []
    for i, j in np.argwhere(model.cell_mask_).tolist():
        if (i, names[j]) in kept:
            continue
        cells.append(
            WrongCell(i, names[j], float(X.iloc[i, j]), float(expected[i, j]), float(scores[i, j]), float(probability[i, j]))
        )
        mended.iloc[i, mended.columns.get_loc(names[j])] = np.nan
    return CellFindings(tuple(cells), mended, {}, tuple(str(w.message) for w in caught))
