"""Cells that models of the target had better not see: more of them than are shown to people."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.estimators.cells import CellwiseOutliers

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.tables.table import Table

LEAST_ROWS = 20  # of a column, for its cells to be judged
CELLS = 1_000_000  # that are judged, a limit on time: in larger tables boosting bears the doubtful ones that are left


def without_doubtful(table: Table, mended: pd.DataFrame, target: str) -> pd.DataFrame:
    """The frame with doubtful numbers as NaN too.

    A right value that is taken for missing costs a model little, a wrong one that is believed costs it much. People are
    shown only those cells that are probably wrong; here each counts that the rest of its row does not explain. A number
    that is far out together with its target is explained by that, and kept: without it the target would look wrong.
    """
    names = [name for name in table.of_kind("number") if name != target]
    if len(mended) < LEAST_ROWS or len(names) * len(mended) > CELLS:
        return mended
    names = [name for name in names if mended[name].nunique() > 2]
    if not names:
        return mended
    X = _finite(mended[names])
    doubtful = _doubtful(X, _finite(mended[[target]]) if target in table.of_kind("number") else None)
    return mended.assign(**{name: np.where(doubtful[:, j], np.nan, X[:, j]) for j, name in enumerate(names)})


def _finite(frame: pd.DataFrame) -> Floats:
    X = np.array(frame, dtype=np.float64)
    X[~np.isfinite(X)] = np.nan
    return X


def _doubtful(X: Floats, target: Floats | None) -> Flags:
    """The cells that the rest of their row does not explain, nor with the target.

    Two models say so, as one cannot: where the target is known from the features to a hair (a body mass index), a model
    of both knows them too well without it, and a tenth of the right ones were doubted.
    """
    doubtful = _deviating(X)
    if target is not None and doubtful.any():
        doubtful &= _deviating(np.column_stack([X, target]))[:, :-1]
    return doubtful


def _deviating(X: Floats) -> Flags:
    """The cells that their row does not explain; none where columns cannot be judged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was said when cells were judged, and only models see what is left out
        try:
            return np.asarray(CellwiseOutliers().fit(X).cell_mask_)
        except ValueError:  # no column has enough different values: no more is known than before
            return np.zeros(X.shape, dtype=bool)
