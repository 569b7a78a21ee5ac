"""Whether rows that a linear fit does not explain follow another rule, rather than none: misfit taken for bad rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.validation import is_sparse

__all__ = ["looks_like_misfit"]

ROWS = 1_000  # looked at, at most: a limit on time, 10⁶ distances
NEIGHBOURS = 5  # of which a row is predicted: few enough to be near, and enough to be more than one chance
FEWEST = 20  # rows on either side: of fewer, the share explained is too much chance
# Share of the variance that neighbours explain. Of bad rows anywhere it is negative, −1/5 on average, and within 0.3 of
# that from 30 rows on; of a parabola, of two lines and of a step that a line was fitted to it is 0.6 to 1.
EXPLAINED = 0.5
NEAR = 2.0  # cut-offs: gross errors lie beyond, and what continues the good rows begins within
SOME = 0.06  # share of the flagged rows that lie within: more than one or two that strayed
APART = 0.8  # the same as EXPLAINED of where flagged rows lie, if their residuals are far out: a step leaves no doubt
NEXT, REACH = 0.1, 0.4  # so many flagged rows lie next to good ones: within that share of the latter's usual distance


def looks_like_misfit(X: Any, scores: NDArray[np.float64], cutoff: float) -> bool:
    """Whether the rows beyond the cut-off go on where the others end, and their neighbours say where they are.

    scores: residuals in units of σ, with signs. Gross errors are apart from the good rows, either in their residuals
    or in X, and errors at random are no function of X. Neither holds for a curve that a line was fitted to, for the
    second of two lines that cross, for one side of a step and for errors that grow with X.

    >>> x = np.linspace(-1, 1, 101)
    >>> looks_like_misfit(x[:, None], 20 * x**2, cutoff=3.0)
    True
    >>> y = np.where(np.arange(101) % 3 > 0, 0.0, 20 + np.cos(99 * x))
    >>> looks_like_misfit(x[:, None], y, cutoff=3.0)
    False
    """
    chosen = np.linspace(0, len(scores) - 1, min(ROWS, len(scores))).round().astype(np.intp)
    r = np.asarray(scores, dtype=np.float64)[chosen]
    A = X[chosen]
    A = np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)
    flagged = np.abs(r) > cutoff
    if min(flagged.sum(), (~flagged).sum()) < FEWEST:
        return False
    D = _distances(A)
    where = _explained(D, flagged.astype(np.float64))
    if np.mean(np.abs(r[flagged]) < NEAR * cutoff) > SOME:
        size = _explained(D[np.ix_(flagged, flagged)], r[flagged])
        return bool(max(where, size, _linear(A[flagged], r[flagged])) > EXPLAINED)
    good = D[np.ix_(~flagged, ~flagged)]
    next_to = np.quantile(D[np.ix_(flagged, ~flagged)].min(axis=1), NEXT)
    return bool(where > APART and next_to <= REACH * np.median(good))


def _distances(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances between rows, in units of the spread of each column; inf on the diagonal."""
    A = A - np.median(A, axis=0)
    spread = np.median(np.abs(A), axis=0)
    spread = np.where(spread > 0, spread, A.std(axis=0))
    A = A / np.where(spread > 0, spread, 1.0)
    norms = np.sum(A**2, axis=1)
    D = np.maximum(norms[:, None] + norms - 2 * A @ A.T, 0.0)
    np.fill_diagonal(D, np.inf)
    return np.asarray(np.sqrt(D))


def _explained(D: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """1 − Σ(value − mean of its neighbours')²/Σ(value − mean)²; 0 where all are equal."""
    nearest = np.argpartition(D, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    total = float(np.sum((values - values.mean()) ** 2))
    left = float(np.sum((values - values[nearest].mean(axis=1)) ** 2))
    return 1 - left / total if total > 0 else 0.0


def _linear(A: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """The same of a linear fit, less what as many columns of noise explain; 0 where there are too few rows for one."""
    A = np.column_stack([np.ones(len(A)), A])
    freedom = len(A) - A.shape[1]
    total = float(np.sum((values - values.mean()) ** 2))
    if freedom < len(A) / 2 or total == 0:
        return 0.0
    r = values - A @ np.linalg.lstsq(A, values, rcond=None)[0]
    return float(1 - (r @ r) / freedom / (total / (len(A) - 1)))
