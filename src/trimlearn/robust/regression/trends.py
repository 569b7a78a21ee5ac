"""Whether the residuals of the rows kept depend on where a row lies: a curve, or errors that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from trimlearn._utils.validation import is_sparse
from trimlearn.robust.scale import TINY

__all__ = ["bends", "widens"]

ROWS = 2_000  # looked at, at most: a limit on time
SPARE = 5  # rows for each coefficient: with fewer, the residuals are no longer those of the errors (a choice)
LEVEL = 1e-3  # of each test, over all that are made: of a thousand clean tables one is called curved (a choice)
PLAIN = 0.02  # share of the residuals' variance that a bend explains, at least: less is no harm (a choice)
SAME = 1e-8  # of the length of a square, below which the other columns hold it: that of a column of two values

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def bends(X: Any, fitted: Floats, r: Floats, on: Bools) -> bool:
    """Whether residuals r of the rows ``on`` follow the square of the prediction, or of a column (Ramsey 1969).

    The squares are asked one at a time, and the standard error allows for errors of any size in each row (White 1980;
    MacKinnon and White's HC3 of 1985).

    References: J. B. Ramsey (1969), Tests for specification errors, JRSS B 31. H. White (1980), A
    heteroskedasticity-consistent covariance matrix, Econometrica 48.

    >>> x, noise = np.linspace(-1, 1, 101), np.sin(np.arange(101.0) ** 2)
    >>> bends(x[:, None], x, x**2 - 1 / 3 + 0.1 * noise, np.full(101, True))
    True
    >>> bends(x[:, None], x, 0.1 * noise, np.full(101, True))
    False
    """
    found = _chosen(X, fitted, r, on)
    if found is None:
        return False
    A, z, r = found
    Q = np.linalg.qr(np.column_stack([np.ones(len(A)), A]))[0]
    hat = np.einsum("ij,ij->i", Q, Q)
    r = r - Q @ (Q.T @ r)
    total = float(r @ r)
    for column in (z, *A.T):
        square = (column - column.mean()) ** 2
        u = square - Q @ (Q.T @ square)
        length = float(u @ u)
        if length <= SAME * float(square @ square) or total == 0:
            continue
        left = (r - (u @ r) / length * u) / np.maximum(1 - hat - u**2 / length, 1 / len(A))
        t = abs(float(u @ r)) / float(np.linalg.norm(u * left))
        odds = 2 * stdtr(len(A) - Q.shape[1] - 1, -t)
        if odds < LEVEL / (1 + A.shape[1]) and float(u @ r) ** 2 / length > PLAIN * total:
            return True
    return False


def widens(X: Any, fitted: Floats, r: Floats, on: Bools) -> bool:
    """Whether the size of the residuals grows or falls with the prediction (Glejser 1969, by ranks).

    >>> x, noise = np.linspace(0, 1, 101), np.sin(np.arange(101.0) ** 2)
    >>> widens(x[:, None], x, x * noise, np.full(101, True)), widens(x[:, None], x, noise, np.full(101, True))
    (True, False)
    """
    found = _chosen(X, fitted, r, on)
    if found is None:
        return False
    _, z, r = found
    places, sizes = (np.argsort(np.argsort(v, kind="stable")) for v in (z, np.abs(r)))
    rho = float(np.corrcoef(places, sizes)[0, 1])
    freedom = len(z) - 2
    return bool(2 * stdtr(freedom, -abs(rho) * np.sqrt(freedom / max(1 - rho**2, 1e-12))) < LEVEL)


def _chosen(X: Any, fitted: Floats, r: Floats, on: Bools) -> tuple[Floats, Floats, Floats] | None:
    """Some of the rows ``on``: features, predictions and residuals; None where they are too few."""
    rows = np.flatnonzero(on & np.isfinite(r))
    rows = rows[np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).round().astype(np.intp)]
    if len(rows) < SPARE * (X.shape[1] + 1):
        return None
    A = X[rows]
    A = np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)
    z, left = (np.asarray(v, dtype=np.float64)[rows] for v in (fitted, r))
    A, z, left = (v / np.maximum(np.abs(v).max(axis=0, initial=0.0), TINY) for v in (A, z, left))  # squares are finite
    return A, z, left
