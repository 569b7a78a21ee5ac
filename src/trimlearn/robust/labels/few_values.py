"""Rows that agree in columns of few values: they are a cell.

Between two cells there is nothing, whatever the classes are: that predictions leave a gap there does not show that
classes lie apart, nor that they are clear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import is_sparse
from trimlearn.robust.distinct import taken_rows
from trimlearn.robust.labels.noise_em import Floats, Labels

# Of a column, the most values that count as few (a choice: grades and sizes have no more); and rows of a cell, on
# average, so that its most frequent class is seldom a matter of chance: 8 of 10 throws of a coin, one time in 18.
VALUES, MEMBERS_OF_CELL = 10, 10
TELLS = 0.1  # share of the variance of the labels that a column explains, from which it is asked: a correlation of 0.3
LOOKED_AT, COLUMNS = 2_000, 1_000  # rows, and columns beyond which nobody is asked: limits on time, 0.2 seconds


def cells_of(V: Any, labels: Labels, s: Floats) -> Labels:
    """For each row which cell it is in, −1 where nobody looked: rows are in one where they agree in the columns of few
    values that say most about the labels, as many columns as leave cells of some rows.

    >>> treated, age = np.arange(40) % 2, np.arange(40.0) ** 1.5
    >>> cells_of(np.column_stack([age, treated]), treated, np.ones(40))[:4]
    array([0, 1, 0, 1])
    """
    cells = np.full(len(labels), -1)
    rows = np.flatnonzero(s > 0)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), LOOKED_AT)).astype(np.int64)]
    if V.shape[1] > COLUMNS:
        return cells
    A = taken_rows(V, rows)
    A = A.toarray() if is_sparse(A) else to_numpy(A)
    Y = np.eye(int(labels.max()) + 1)[labels[rows]]
    Y -= Y.mean(axis=0)
    told = []
    for values in (np.unique(column, return_inverse=True)[1] for column in A.T):
        if 0 < values.max() < VALUES:
            indicators = np.eye(values.max() + 1)[values]
            within = indicators.T @ Y
            told.append((float(np.sum(within**2 / indicators.sum(axis=0)[:, None])), values))
    found = np.zeros(len(rows), dtype=np.int64)
    for explained, values in sorted(told, key=lambda pair: -pair[0]):
        finer = np.unique(found * VALUES + values, return_inverse=True)[1]
        if explained < TELLS * float(np.sum(Y**2)) or len(rows) < MEMBERS_OF_CELL * (finer.max() + 1):
            break
        found = finer
    cells[rows] = found
    return cells


def told_by(cells: Labels, classes: Labels) -> float:
    """By which share there are fewer errors if one guesses the class of a row by its cell (Goodman and Kruskal 1954,
    section 5.1: λ).

    >>> told_by(np.array([0, 0, 1, 1, -1]), np.array([0, 0, 1, 0, 1]))
    0.0
    >>> told_by(np.array([0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 0]))
    1.0
    """
    seen = cells >= 0
    if not seen.any():
        return 0.0
    counts = np.zeros((cells.max() + 1, classes.max() + 1))
    np.add.at(counts, (cells[seen], classes[seen]), 1)
    errors = seen.sum() - counts.sum(axis=0).max()
    return float((counts.max(axis=1).sum() - counts.sum(axis=0).max()) / max(errors, 1))
