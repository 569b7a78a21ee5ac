"""Whether rows that a linear fit does not explain follow another rule, rather than none: misfit taken for bad rows.

Whether rows flagged on one side of a fit are the tail of skewed errors, rather than a group of their own.

Whether the residuals of the rows kept depend on where a row lies: a curve, or errors that grow.

How likely residuals are, if they come from one normal law, or from two groups.

Whether clean data would look as bad: with few rows per coefficient, half of them can be fitted far too well.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import rankdata

from trimlearn._utils.validation import is_sparse
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.scale import TINY, judge

THINNEST = 0.25  # σ of the flagged group, at least, in that of the others: equal flagged rows would have none



def one_group(r: Floats, c: Floats, rank: float = 0.0) -> float:
    """The logarithm of the likelihood of one normal law around 0 for residuals r, each of which counts c times, of a
    fit with so many coefficients.

    >>> round(one_group(np.array([-1.0, 1.0]), np.ones(2)), 3)
    -2.838
    """
    scale = np.sqrt(c @ r**2 / max(c.sum() - rank, 1.0))
    return float(c @ log_normal(r, scale))


def two_groups(r: Floats, c: Floats, off: NDArray[np.bool_], scale: float) -> float:
    """The same for two normal groups: one around 0 of this scale, and the rows ``off``, of a mean and scale of theirs.

    >>> r = np.array([-1.0, 1.0, 9.0, 9.5])
    >>> two_groups(r, np.ones(4), r > 5, 1.0) > one_group(r, np.ones(4))
    True
    """
    n, bad, count = c.sum(), r[off], c[off]
    mean = count @ bad / count.sum()
    spread = max(float(np.sqrt(count @ (bad - mean) ** 2 / count.sum())), THINNEST * scale)
    share = count.sum() / n
    groups = np.log(1 - share) + log_normal(r, scale), np.log(share) + log_normal(r - mean, spread)
    return float(c @ np.logaddexp(*groups))


def log_normal(r: Floats, scale: float) -> Floats:
    """The logarithm of the density of a normal law around 0 of this scale."""
    return np.asarray(-0.5 * (r / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


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


TOO_FEW, SHARE = 5, 0.05  # rows, and of all rows, that are flagged: fewer may be strays of any law (choices)
ONE_SIDED = 0.9  # of the flagged rows: chance puts 5 of 5 normal ones on one side once in 16 times
# Logarithm of the likelihood by which two groups must beat one skewed law to be believed: "strong evidence" by Kass and
# Raftery (1995). Of 25 samples of 100 rows with lognormal errors none was above it, of 25 with 20 % at 5 σ none below
# (python -m benchmarks.calibration skewness).
EVIDENCE = 3.0
# Shapes g that are tried: near 0 the law is normal, at 1 lognormal. Beyond 1.6 half of the rows lie within a seventh of
# the way to the mean.
SHAPES = np.linspace(0.1, 1.6, 16)
STRAYS, REACH = 0.02, 10.0  # the share of rows of no law, and how many σ they reach: so that no row is impossible

Flags = NDArray[np.bool_]


def looks_skewed(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = TOO_FEW) -> bool:
    """Whether one skewed law explains the scores about as well as two groups do, the flagged rows and the others.

    scores: residuals in units of σ, with signs. share, fewest: of the rows, and rows, that must be flagged for it to be
    asked.

    The law is Tukey's g, m + A(exp(gz) − 1)/g of a normal z: its median and its width below that are those of the
    scores, and of the shapes g the most likely one is taken.

    References: D. C. Hoaglin (1985), Summarizing shape numerically: the g-and-h distributions. R. E. Kass and A. E.
    Raftery (1995), Bayes factors, JASA 90.

    >>> rng = np.random.default_rng(0)
    >>> skewed = np.exp(rng.normal(size=200)) - 1
    >>> looks_skewed(skewed, skewed > 3)
    True
    >>> shifted = rng.normal(size=200) + np.where(np.arange(200) < 40, 6.0, 0.0)
    >>> looks_skewed(shifted, shifted > 3)
    False
    """
    found = evidence(scores, flagged, share, fewest)
    return found is not None and found > -EVIDENCE


def evidence(scores: Floats, flagged: Flags, share: float = SHARE, fewest: int = TOO_FEW) -> float | None:
    """The logarithm of the likelihood of one law, less that of two groups; None where too few rows are flagged, or not
    on one side, or all others are the same.

    >>> evidence(np.arange(10.0), np.arange(10) > 8) is None
    True
    """
    chosen = np.flatnonzero(np.isfinite(scores))
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(ROWS, len(chosen))).round().astype(np.intp)]
    r, off = np.asarray(scores, dtype=np.float64)[chosen], flagged[chosen]
    if min(off.sum(), (~off).sum()) < fewest or off.mean() < share or np.ptp(r[~off]) == 0:
        return None
    side = np.sign(np.median(r[off]))
    if np.mean(np.sign(r[off]) == side) < ONE_SIDED:
        return None
    good = r[~off]
    return _one_law(side * r) - two_groups(r - good.mean(), np.ones(len(r)), off, float(good.std()))


def _one_law(u: Floats) -> float:
    """The logarithm of the likelihood of the most likely g."""
    lower, m = np.quantile(u, (0.25, 0.5))
    width = m - lower
    if width <= 0:
        return -np.inf
    wide = REACH * width / ndtri(0.75)
    strays = np.log(STRAYS) + log_normal(u - m, wide)
    return max(float(np.logaddexp(np.log(1 - STRAYS) + _log_g(u - m, width, g), strays).sum()) for g in SHAPES)


def _log_g(u: Floats, width: float, g: float) -> Floats:
    """The logarithm of the density of A(exp(gz) − 1)/g, whose lower quartile is −width."""
    A = width * g / -np.expm1(g * ndtri(0.25))
    inside = 1 + g * u / A
    z = np.log(np.where(inside > 0, inside, 1.0)) / g
    return np.where(inside > 0, log_normal(z, 1.0) - np.log(A) - g * z, -np.inf)


SPARE = 5  # rows for each coefficient: with fewer, the residuals are no longer those of the errors (a choice)
LEVEL = 1e-3  # of each test, over all that are made: of a thousand clean tables one is called curved (a choice)
PLAIN = 0.02  # share of the residuals' variance that a bend explains, at least: less is no harm (a choice)
SAME = 1e-8  # of the length of a square, below which the other columns hold it: that of a column of two values



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


FEW_ROWS = 3  # per coefficient: below, the half that is fitted has less than two for each, and clean data look bad
CLEAN_SETS = 9  # simulated: a limit on time, enough to tell what a tenth would look like
CHANCE_LEVEL = 0.01  # of the test: of a hundred clean data sets, one may be called bad (a choice)
SIMULATED = 10_000  # entries of the design up to which they are, a limit on time: they are nine more searches



def are_few(n: int, coefficients: int) -> bool:
    """Whether there are few rows per coefficient.

    >>> are_few(20, 5), are_few(20, 10)
    (False, True)
    """
    return n < FEW_ROWS * coefficients


def looks_by_chance(A: Floats, t: Floats, h: float, s: Floats | None, scale: float, seed: int) -> bool:
    """Whether the residuals of least squares exceed the robust ``scale``, of a fit to h rows, by no more than they do
    in clean data on the design A, simulated; False where A is too large for that, or has no more rows than columns.

    The logarithms of that ratio are taken for normal, and the one seen must lie beyond the interval in which Student's
    law expects another one.

    >>> rng = np.random.default_rng(0)
    >>> A, t = rng.normal(size=(20, 8)), rng.normal(size=20)
    >>> looks_by_chance(A, t, 14, None, scale=0.5, seed=0)
    True
    >>> looks_by_chance(A, np.where(np.arange(20) < 4, 50.0, t), 14, None, scale=0.5, seed=0)
    False
    """
    n, q = A.shape
    if n <= q or A.size > SIMULATED:
        return False
    draw = np.random.Generator(np.random.Philox(key=seed))
    seen = _least_squares_scale(A, t, s) / scale
    clean = np.log([_excess(A, np.asarray(draw.standard_normal(n)), h, s) for _ in range(CLEAN_SETS)])
    reach = stdtrit(CLEAN_SETS - 1, 1 - CHANCE_LEVEL) * clean.std(ddof=1) * sqrt(1 + 1 / CLEAN_SETS)
    return bool(np.log(seen) <= clean.mean() + reach)


def _excess(A: Floats, t: Floats, h: float, s: Floats | None) -> float:
    """The scale of the residuals of least squares, in units of the robust one."""
    r = t - A @ least_trimmed_squares(A, t, h, s).coef
    return _least_squares_scale(A, t, s) / judge(r, h, A.shape[1], s).scale


def _least_squares_scale(A: Floats, t: Floats, s: Floats | None) -> float:
    c = np.ones(len(t)) if s is None else s
    root = np.sqrt(c)
    r = t - A @ np.linalg.lstsq(A * root[:, None], t * root, rcond=None)[0]
    return float(np.sqrt((c @ r**2) / max(c.sum() - A.shape[1], 1.0)))
