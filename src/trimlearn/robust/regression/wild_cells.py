"""Values that stand for what is missing: the same number in several rows of a feature, far from all its others."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.validation import is_sparse

ROWS: Final = 3  # that hold the value, at least: two rows may be alike by chance (a choice)
FAR: Final = 10.0  # median absolute deviations from the median, at least: a column of three values has none (a choice)
# Of the way back to the median, on which no other value lies. A code is chosen to be unlike all values; the largest of
# a long tail has others on half of the way (a choice).
GAP: Final = 0.75


def wild_values(X: Any) -> dict[int, float]:
    """The columns of a dense X that hold such a value, and the value; the largest or the smallest of the column.

    >>> x = np.arange(40.0)
    >>> wild_values(np.column_stack([x, np.where(x % 10 == 3, 9999.0, x), np.where(x == 3, 9999.0, x)]))
    {1: 9999.0}
    """
    if is_sparse(X):  # most entries are 0: nothing is far
        return {}
    found: dict[int, float] = {}
    for value in (X.max(axis=0), X.min(axis=0)):
        often = np.count_nonzero(X == value, axis=0) >= ROWS
        found |= {int(j): float(value[j]) for j in np.flatnonzero(often) if _is_wild(X[:, j], value[j])}
    return dict(sorted(found.items()))


def _is_wild(column: NDArray[np.floating], value: float) -> bool:
    middle = np.median(column)
    others = np.abs(column[column != value] - value)
    spread, way = np.median(np.abs(column - middle)), abs(value - middle)
    return bool(spread > 0 and way > FAR * spread and others.min(initial=way) > GAP * way)
