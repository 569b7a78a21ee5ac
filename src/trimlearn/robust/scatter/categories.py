"""Which features can have a robust distance: those that are no category.

Where more than half of the rows share one value of a feature, the half of least determinant is made of such rows: the
feature has no scatter there, and every other row is as good as infinitely far. Dummies of categories, flags and
amounts that mostly are zero do that without a row being wrong. Robust distances are those of the other features (as of
M. Hubert and P. J. Rousseeuw 1997, Robust regression with both continuous and binary regressors).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimlearn.robust.order import weighted_medians

__all__ = ["without_scatter"]

# Of the rows, that may differ from the common value and still be errors, all of them: a share of bad rows below which
# nothing is said elsewhere, as in `trimlearn.estimators.detector`.
RARE: Final = 0.1


def without_scatter(X: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The mask of the features that are categories, or as good as that, by the rows of X, which count s times.

    More than half of the values are equal, and the others are many (more than a tenth) or repeat themselves. A feature
    from which few rows differ, each by a value of its own, is no category: these rows may be wrong. Nor is a constant.

    >>> x = np.random.default_rng(0).normal(size=100)
    >>> flag, slip, amount = x > 1.5, np.where(x > 1.5, x, 0.0), np.where(x > 0.5, x, 0.0)
    >>> without_scatter(np.column_stack([x, flag, slip, amount, np.ones(100)]), np.ones(100))
    array([False,  True, False,  True, False])
    """
    common = weighted_medians(X, s)
    alike, total = s @ (X == common), float(s.sum())
    found = np.zeros(X.shape[1], dtype=bool)
    for j in np.flatnonzero((alike > 0.5 * total) & (alike < total)):
        others = X[(X[:, j] != common[j]) & (s > 0), j]
        found[j] = total - alike[j] > RARE * total or 2 * len(np.unique(others)) <= len(others)
    return found
