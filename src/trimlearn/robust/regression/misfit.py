"""Whether the model, rather than some of the rows, is at fault: residuals that depend on where a row lies.

Of the rows that are flagged, it is asked whether they follow a rule of their own; of the others, whether they bend
along the fit, or are larger at one end of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import rankdata

from trimlearn._utils.validation import is_sparse
from trimlearn.robust.scale import TINY

ROWS = 2_000  # looked at, at most: a limit on time, and enough for any share of variance
NEIGHBOURS = 2  # on either side along a feature, of which a row is predicted: more would blur the edge of small regions
FEWEST = 8  # rows on either side: of fewer, a region of their own is chance too often (1 in 70 along a feature)
# Share of the variance that a feature explains. Of bad rows anywhere, neighbours explain −1/4 on average, within 0.2 of
# that from 50 rows on; of the two sides of a step, and of two lines, they explain 0.7 to 1. Of the size of the flagged
# residuals, they explain 0.8 for a curve or a step; 0.2 where x and y are both replaced by ten times as much noise.
EXPLAINED = 0.5
# Of the quartiles' distance: the gap between good rows and flagged ones, at most, where the one go on as the others
# end. In 40 rows of a step it is 0.1; a cluster at 4 σ leaves 0.6.
GAP = 0.25
# Rows within so many cut-offs are near, and of the rows of a curve more than this share is. A block of gross errors, as
# of a sensor that fails for some time, has none; from the last share on it may be one side of a step (choices).
NEAR, SOME, STEP = 2.0, 0.06, 0.3
# The window, a share of the rows, that is laid over an edge and inside a region of flagged rows; the former may be that
# much wider. Choices: for a curve the two are alike, a cluster 6 σ away leaves a window several times as wide.
WINDOW, WIDER = 0.04, 3.0
SPARE = 5  # rows for each coefficient: with fewer, the residuals are no longer those of the errors (a choice)
LEVEL = 1e-3  # of each test, over all that are made: of a thousand clean tables one is called curved (a choice)
PLAIN = 0.02  # share of the residuals' variance that a bend explains, at least: less is no harm (a choice)
# Level of the test for other slopes, one for all of them, which errors of one size nearly never reach; and the share of
# a slope by which least squares has another (choices).
SELDOM, OTHER = 1e-2, 0.1
SAME = 1e-8  # of the length of a square, below which the other columns hold it: that of a column of two values

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def looks_like_misfit(X: Any, y: Any, scores: Floats, cutoff: float) -> bool:
    """Whether the rows beyond the cut-off have a region of X that begins where the others end, or a line of their own.

    scores: residuals in units of σ, with signs. Errors at random are no function of X; gross errors at leverage points
    lie apart in X, and their y has nothing to do with it. Neither holds for a curve or a step that a line was fitted
    to, nor for the second of two lines. The regions looked at are those along one feature.

    >>> x = np.linspace(-1, 1, 101)
    >>> looks_like_misfit(x[:, None], 20 * x**2, 20 * x**2, cutoff=3.0)
    True
    >>> y = np.where(np.arange(101) % 3 > 0, 0.0, 20 + np.cos(99 * x))
    >>> looks_like_misfit(x[:, None], y, y, cutoff=3.0)
    False
    """
    chosen = np.linspace(0, len(scores) - 1, min(ROWS, len(scores))).round().astype(np.intp)
    r, y = (np.asarray(v, dtype=np.float64)[chosen] for v in (scores, y))
    A = X[chosen]
    A = np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)
    flagged = np.abs(r) > cutoff
    if min(flagged.sum(), (~flagged).sum()) < FEWEST:
        return False
    continues = np.mean(np.abs(r[flagged]) < NEAR * cutoff) > SOME or flagged.mean() > STEP
    if continues and any(_is_region(column, r, flagged) for column in A.T):
        return True
    ranks = rankdata(A[flagged], axis=0)
    return all(_by_line(ranks, rankdata(values[flagged])) > EXPLAINED for values in (y, r))


def _is_region(column: Floats, r: Floats, flagged: Bools) -> bool:
    """Whether who is flagged, and by how much, depends on where a row is along this feature, and there is no gap
    between the two."""
    order = np.argsort(column, kind="stable")
    at, r, off = column[order], r[order], flagged[order].astype(np.float64)
    near = _neighbours(off)
    if 1 - np.sum((off - near) ** 2) / np.sum((off - off.mean()) ** 2) <= EXPLAINED:
        return False
    if 1 - off @ np.abs(r - _neighbours(r)) / (off @ np.abs(r)) <= EXPLAINED:
        return False
    most = near + off / (2 * NEIGHBOURS) > 0.5  # a single row among many of the other kind has no edges
    edges = np.flatnonzero(most[1:] != most[:-1])
    if not edges.size or _in_valleys(at, most, edges):
        return False
    return bool(np.median(np.diff(at)[edges]) <= GAP * np.subtract(*np.quantile(at[off == 0], (0.75, 0.25))))


def _in_valleys(at: Floats, flagged: Bools, edges: NDArray[np.intp]) -> bool:
    """Whether rows are sparse at the edges, compared with regions of flagged rows: then these are clusters apart."""
    half = max(3, round(WINDOW * len(at) / 2))
    rows = np.arange(half - 1, len(at) - half)
    width = at[rows + half] - at[rows - half + 1]
    within = np.convolve(flagged, np.ones(2 * half), "valid") == 2 * half
    on = np.isin(rows, edges)
    return bool(within.any() and on.any() and np.median(width[on]) > WIDER * width[within].mean())


def _neighbours(values: Floats) -> Floats:
    """The mean of those before and after each of the values."""
    window = np.ones(2 * NEIGHBOURS + 1)
    window[NEIGHBOURS] = 0.0
    return np.asarray(np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same"))


def _by_line(A: Floats, values: Floats) -> float:
    """The share of the variance that a linear fit explains, less what as many columns of noise explain; 0 where there
    are too few rows for one.

    It is asked of ranks: a line from a cluster to a single row far away explains nearly all of the variance.
    """
    A = np.column_stack([np.ones(len(A)), A])
    freedom = len(A) - A.shape[1]
    total = float(np.sum((values - values.mean()) ** 2))
    if freedom < len(A) / 2 or total == 0:
        return 0.0
    r = values - A @ np.linalg.lstsq(A, values, rcond=None)[0]
    return float(1 - (r @ r) / freedom / (total / (len(A) - 1)))


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
    Q = _basis(A)
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
    """Whether the size of the residuals grows or falls with the prediction, with a feature, or with the distance from a
    feature's middle (Glejser 1969, by ranks).

    >>> x, noise = np.linspace(0, 1, 101), np.sin(np.arange(101.0) ** 2)
    >>> widens(x[:, None], x, x * noise, np.full(101, True)), widens(x[:, None], x, noise, np.full(101, True))
    (True, False)
    >>> widens(x[:, None], noise, (x - 0.5) * noise, np.full(101, True))
    True
    """
    found = _chosen(X, fitted, r, on)
    if found is None:
        return False
    A, z, r = found
    places = rankdata(np.column_stack([z, A, np.abs(A - np.median(A, axis=0))]), axis=0)
    places -= places.mean(axis=0)
    hat = np.sum(_basis(A) ** 2, axis=1)  # rows far out are fitted more closely
    sizes = rankdata(np.abs(r) / np.sqrt(np.maximum(1 - hat, 1 / len(A))))
    lengths = np.linalg.norm(places, axis=0)
    rho = (sizes - sizes.mean()) @ places / (np.maximum(lengths, TINY) * sizes.std() * np.sqrt(len(z)) + TINY)
    freedom = len(z) - 2
    odds = 2 * stdtr(freedom, -np.abs(rho) * np.sqrt(freedom / np.maximum(1 - rho**2, 1e-12)))
    return bool(odds.min() < LEVEL / len(odds))


def drifts(X: Any, fitted: Floats, r: Floats, on: Bools, s: Floats | None = None) -> bool:
    """Whether residuals r of the rows ``on``, which count s times, rise or fall with the prediction, so that least
    squares has other slopes.

    Both fits estimate the same slopes unless the law of the errors changes with the prediction, and least squares is
    the one that does so whatever that law is (Hausman 1978, Econometrica 46). The standard error is that of `bends`.

    >>> x = np.linspace(-1, 1, 101)
    >>> drifts(x[:, None], x, 0.5 * x + x**2, np.full(101, True)), drifts(x[:, None], x, x**2, np.full(101, True))
    (True, False)
    """
    rows = _some_of(X, r, on)
    if rows is None:
        return False
    n, c = len(rows), np.ones(len(rows)) if s is None else np.asarray(s[rows], dtype=np.float64)
    c /= c.mean()
    z, r = (np.asarray(v[rows], dtype=np.float64) - np.average(v[rows], weights=c) for v in (fitted, r))
    unit, size = float(np.abs(z).max()), float(np.abs(r).max())
    if min(unit, size) <= TINY:
        return False
    z, r = z / unit, r / size
    length = float(c @ z**2)
    slope = float(c @ (z * r)) / length
    left = (r - slope * z) / np.maximum(1 - c * (1 / n + z**2 / length), 1 / n)
    odds = 2 * stdtr(n - 2, -abs(slope) * length / max(float(np.linalg.norm(c * z * left)), TINY))
    return bool(odds < SELDOM and abs(slope) * size > OTHER * unit)


def _basis(A: Floats) -> Floats:
    """An orthonormal basis of the columns and the intercept."""
    return np.asarray(np.linalg.qr(np.column_stack([np.ones(len(A)), A]))[0])


def _chosen(X: Any, fitted: Floats, r: Floats, on: Bools) -> tuple[Floats, Floats, Floats] | None:
    """Some of the rows ``on``: features, predictions and residuals; None where they are too few."""
    rows = _some_of(X, r, on)
    if rows is None:
        return None
    A = X[rows]
    A = np.asarray(A.toarray() if is_sparse(A) else A, dtype=np.float64)
    z, left = (np.asarray(v, dtype=np.float64)[rows] for v in (fitted, r))
    A, z, left = (v / np.maximum(np.abs(v).max(axis=0, initial=0.0), TINY) for v in (A, z, left))  # squares are finite
    return A, z, left


def _some_of(X: Any, r: Floats, on: Bools) -> NDArray[np.intp] | None:
    """The numbers of some of the rows ``on``; None where they are too few."""
    rows = np.flatnonzero(on & np.isfinite(r))
    rows = rows[np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).round().astype(np.intp)]
    return None if len(rows) < SPARE * (X.shape[1] + 1) else rows
