"""Least trimmed squares and least median of squares: the numerics behind TrimmedLinearRegression.

Starts are many and of several kinds, and the objective decides: fits to random minimal subsets, to subsets cut along
the directions in which rows pull the fit, and to central rows. Each takes two concentration steps (the best w for x,
the best x for w) on a sample of the rows; the best go on to larger samples and at last to all rows, until concentration
ends, and exchanges of single rows take them off its fixed points.

P. Rousseeuw and K. Van Driessen (2006), Computing LTS regression for large data sets, Data Min. Knowl. Discov. 12.
D. Hawkins (1994), The feasible solution algorithm for least trimmed squares regression, CSDA 17.

Least median of squares on a sample: shortest halves along the intercept, and Chebyshev fits to the rows kept.

P. Rousseeuw (1984), Least median of squares regression, JASA 79.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, log1p

import numpy as np

from trimlearn._utils.threads import each, team
from trimlearn.robust.order import hth_smallest, medians, shortest_interval
from trimlearn.robust.regression.coordinates import DistinctRows
from trimlearn.robust.regression.elemental import (
    RegressionSample,
    absolute_start,
    completed,
    directed_starts,
    sensitive_starts,
)
from trimlearn.robust.regression.exchange import CONVERGED, End, Ends, Exchanges, concentrate, hurried
from trimlearn.weights import CappedSimplex
from trimlearn.weights.simplex import snap_h

FOLLOWED_LMS = 10  # best starts followed to the end, as FAST-LTS does (Rousseeuw and Van Driessen 2006)
ROUNDS = 30  # alternations of rows and fit at most, a limit on time: they end where the criterion no longer falls
TIED = 1e-9  # relative difference of two values of the criterion that is rounding


def minimax_starts(sample: RegressionSample, count: int, rng: np.random.Generator) -> np.ndarray:
    """Chebyshev fits to random subsets of r + 1 rows: the optimum is one of them (Stromberg 1993).

    The residuals e of least squares on r + 1 rows span what those rows leave of r dimensions, so that the Chebyshev
    fit has residuals z·sign(e) with z = Σe²/Σ|e|.
    """
    rows = sample.subsets(count, sample.r + 1, rng)
    e = sample.t[rows] - np.einsum("bki,bi->bk", sample.Q[rows], sample.fit_subsets(rows))
    z = (e**2).sum(axis=1) / np.maximum(np.abs(e).sum(axis=1), np.finfo(np.float64).tiny)
    return sample.fit_subsets(rows, sample.t[rows] - z[:, None] * np.sign(e))


def minimax_ends(sample: RegressionSample, U: np.ndarray) -> np.ndarray:
    """The best ends reached from the starts U, best first: u with a small weighted h-th smallest |tᵢ − Qᵢu|."""
    ones = np.linalg.lstsq(sample.Q, np.ones(sample.n), rcond=None)[0]
    shift = ones if np.allclose(sample.Q @ ones, 1.0, rtol=0, atol=1e-9) else None
    placed = sorted((_placed(sample, u, shift) for u in U), key=lambda end: end[1])
    ends = [_followed(sample, u, value, shift) for u, value in placed[:FOLLOWED_LMS]]
    return np.array([u for u, _ in sorted(ends, key=lambda end: end[1])])


def _placed(sample: RegressionSample, u: np.ndarray, shift: np.ndarray | None) -> tuple[np.ndarray, float]:
    """u with the best intercept, the middle of the shortest interval with residuals of mass h; its half-length."""
    e = sample.t - sample.Q @ u
    if shift is None:
        return u, float(hth_smallest(np.abs(e)[None], sample.m, sample.h)[0, 0])
    low, high = shortest_interval(e, sample.m, sample.h)
    return u + (low + high) / 2 * shift, (high - low) / 2


def _followed(
    sample: RegressionSample, u: np.ndarray, value: float, shift: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Concentration for this criterion: the best rows for u, the least largest residual over these rows, in turn."""
    for _ in range(ROUNDS):
        kept = np.abs(sample.t - sample.Q @ u) <= value * (1 + TIED)
        moved, found = _placed(sample, _chebyshev(sample.Q[kept], sample.t[kept], u), shift)
        if not found < value * (1 - TIED):
            break
        u, value = moved, found
    return u, value


def _chebyshev(Q: np.ndarray, t: np.ndarray, u: np.ndarray) -> np.ndarray:
    """argmin_u maxᵢ |tᵢ − Qᵢu|, from the rows that are worst so far; more of them until no other is worse."""
    from scipy.optimize import linprog

    size = 5 * (Q.shape[1] + 1)
    rows = np.argsort(-np.abs(t - Q @ u), kind="stable")[:size]
    while True:
        ones = np.ones((len(rows), 1))
        A = np.block([[Q[rows], -ones], [-Q[rows], -ones]])
        found = linprog(np.append(np.zeros(Q.shape[1]), 1.0), A, np.append(t[rows], -t[rows]), bounds=(None, None))
        if found.x is None:  # pragma: no cover - a bounded, feasible program
            return u
        e = np.abs(t - Q @ found.x[:-1])
        worse = np.argsort(-e, kind="stable")[:size]
        worse = np.setdiff1d(worse[e[worse] > found.x[-1] * (1 + 1e-7) + 1e-12], rows)
        if not len(worse):
            return np.asarray(found.x[:-1])
        rows = np.append(rows, worse)


# How hard the search tries. On 37 of 40 hard tables it finds the best fit known, on 35 with ENDS = 1, FOLLOWED = 3 or
# MOST = 50; less or more of the others changes at most one (python -m benchmarks.calibration lts).
SAMPLES = (1_500, 15_000)  # rows on which starts are tried (as in FAST-LTS), and on which the best are followed
FOLLOWED = 15  # best starts that are followed to the end on the first sample
# Starts far from one another that are followed as well, the likeliest where rows are two groups. By the objective the
# right fit is the last of some twenty where 40 % of the rows are bad leverage points, by that the first.
APART = 10
USUAL = 2.5  # σ beyond which a row is in the other group, as in `judge`
HALF = 0.6744897501960817  # median of a half-normal law
TINY = 1e-300  # stands for no row, and for no variance: the smallest power of ten whose inverse is finite
THINNEST = 0.25  # variance of the other group, at least, in that of the first: equal wrong rows would have none
BASINS = 4  # fits far from one another that go on to a larger sample
BEST = (5, 0)  # the best ends that go on beside them
ENDS = 10  # ends from which single rows are exchanged
WORK = 1e8  # multiplications that random starts may cost, a limit on time: 0.1 s
FEWEST, MOST = 50, 1_000  # random starts: FAST-LTS has 500
# The chance that no random start is free of bad rows if half of all rows are bad: P. Rousseeuw and A. Leroy (1987),
# Robust regression and outlier detection, p. 199, ask for 5 %. With three features 321 starts are enough for this one.
LUCKLESS = 1e-9
EXCHANGES = 50  # of single rows from each end at most, a limit on time: most ends are left after five
# Rows up to which so many are made. Beyond, an exchange moves the fit by 1/n and costs n, so that their number falls by
# 1/n², to none at 35,000 rows: no step in the time, and the last ones lower the objective by 10⁻⁶ (20,000 × 50).
EXCHANGED = 5_000
HEAT, LEFT = 10, 2  # exchanges after which so many ends are left: those that gain by more have many columns
STEPS = 500  # concentration steps at most, a limit on time: the objective falls in each, and they end far earlier
# Relative decrease, in units of r/n, below which a fit to a sample is not taken further: its own error is r/n.
ROUGH = 0.1
DOUBT = 10.0  # standard errors by which a fit to a sample is worse than another that is the better one on all rows
SPARE = 50  # rows per coefficient: with as many a fit to half of them explains those by 4 % better than it should
SEEN = 200  # rows on which fits are compared: the median of as many differences is known to 9 %
BLOCK = 64  # fits looked at together there: 100 kB, which stays in the cache
SAME = 1e-9  # relative difference of two objectives that is rounding


@dataclass(frozen=True)
class RegressionFit:
    """What was found: ``coef`` x (q,), ``w`` (n,) in the capped simplex, and the ``objective`` at both; ``basins``
    (k, q), coefficients of local minima that lie far from one another, those of a sample where rows are many."""

    coef: np.ndarray
    w: np.ndarray
    objective: float
    basins: np.ndarray


def least_trimmed_squares(
    A: np.ndarray, t: np.ndarray, h: float, s: np.ndarray | None = None, *, seed: int = 0, starts: int | None = None
) -> RegressionFit:
    """min Σ sᵢwᵢ(tᵢ − Aᵢx)² over x and w with 0 ≤ w ≤ 1, Σ sᵢwᵢ = h.

    A: (n, q) float64, with a column of ones where an intercept is wanted. s: sample weights, one for all by default.
    starts: how many random subsets are tried (as many as cost little by default). x is of least norm where the kept
    rows leave it open. Neither the order of the rows nor their repetition matters: s = 2 is the row twice.

    >>> A = np.column_stack([np.ones(6), np.arange(6.0)])
    >>> fit = least_trimmed_squares(A, np.array([1.0, 3.0, 5.0, 7.0, -40.0, 11.0]), h=5)
    >>> fit.coef.round(12), fit.w, fit.objective
    (array([1., 2.]), array([1., 1., 1., 1., 0., 1.]), 0.0)
    """
    with team():
        rows = DistinctRows.distinct(A, t, s)
        h = snap_h(h, rows.total)
        U, basins = search(rows, h, seed, starts)
        return replace(finish(rows, h, U[0]), basins=np.array([rows.coef(u) for u in basins]))


def least_median_of_squares(
    A: np.ndarray, t: np.ndarray, h: float, s: np.ndarray | None = None, *, seed: int = 0, starts: int | None = None
) -> RegressionFit:
    """min over x of the h-th smallest (tᵢ − Aᵢx)², counted with the sample weights s; w marks the rows up to it.

    The arguments are those of `least_trimmed_squares`. The search is on 1,500 of the rows where there are more.

    >>> A = np.column_stack([np.ones(5), np.array([0.0, 1.0, 2.0, 3.0, 9.0])])
    >>> fit = least_median_of_squares(A, np.array([0.0, 2.0, 2.0, 4.0, -7.0]), h=4)
    >>> fit.coef.round(6), round(fit.objective, 6)
    (array([0.5, 1. ]), 0.25)
    """
    with team():
        rows = DistinctRows.distinct(A, t, s)
        h = snap_h(h, rows.total)
        rng = np.random.Generator(np.random.Philox(key=seed))
        sample = rows.sample(SAMPLES[0] if len(rows.t) > 2 * SAMPLES[0] else None, h, rng)
        U, basins = search(rows, h, seed, starts)
        U = minimax_ends(sample, np.vstack([U, minimax_starts(sample, 2 * _count(sample, starts), rng)]))
        x = rows.coef(minimax_ends(rows.sample(None, h), U[:2])[0])
        found = _weighed(rows, h, x)
        largest, ends = float(rows.losses(x)[found.w > 0].max()), np.array([rows.coef(u) for u in basins])
        return RegressionFit(x, rows.expand(found.w), largest, ends)


def search(rows: DistinctRows, h: float, seed: int, starts: int | None) -> Ends:
    """The best coefficients found, in the coordinates of ``rows``, best first; and those of all basins."""
    if h >= rows.total or rows.r == 0:
        everything = rows.sample(None, h)
        U = everything.fit(everything.m[None])
        return U, U
    rng = np.random.Generator(np.random.Philox(key=seed))
    sizes = [size for size in SAMPLES if 2 * size < len(rows.t)]
    samples = [rows.sample(size, h, rng) for size in sizes] + [rows.sample(None, h)]
    U, _ = concentrate(samples[0], _tried(samples[0], rng, starts, sampled=len(samples) > 1), 3)
    basins = None
    for sample, best in zip(samples[:-1], BEST, strict=False):
        U, values = _converged(sample, U, ROUGH * sample.r / sample.n)
        basins = _basins(sample, U, values, len(U)) if basins is None else basins
        U, values = _likely(sample, U, values)
        U = np.vstack([_best(U, values, best), _basins(sample, U, values, BASINS)])
    U, values = _converged(samples[-1], U)
    basins = _basins(samples[-1], U, values, len(U)) if basins is None else basins
    U = _best(U, values, ENDS)
    rounds = int(EXCHANGES * min(1.0, EXCHANGED / len(rows.t)) ** 2)
    return (_exchanged(samples[-1], U, rounds) if rounds else U), basins


def _exchanged(sample: RegressionSample, U: np.ndarray, rounds: int) -> np.ndarray:
    """The ends of exchanges from U, best first: of all of them at first, then of those that are left."""
    first = min(rounds, HEAT)
    if sample.many:
        walks = each(lambda u: Exchanges(sample, u).advance(first), U)
    else:  # done before a thread is woken
        known: dict[bytes, End | None] = {}
        walks = [Exchanges(sample, u, known).advance(first) for u in U]
    walks.sort(key=lambda walk: walk.end.value)
    each(lambda walk: walk.advance(rounds - first), [walk for walk in walks[:LEFT] if not walk.over])
    walks[:LEFT] = sorted(walks[:LEFT], key=lambda walk: walk.end.value)
    return np.array([walk.end.u for walk in walks])


def _converged(sample: RegressionSample, U: np.ndarray, tol: float = CONVERGED) -> Ends:
    """Where concentration ends from U, and from a start that knows the whole sample if its rows are not too many."""
    if sample.n <= 2 * SAMPLES[-1]:
        U = np.vstack([U, absolute_start(sample)])
    return concentrate(sample, completed(sample, U), STEPS, farther=True, tol=tol)


def _likely(sample: RegressionSample, U: np.ndarray, values: np.ndarray) -> Ends:
    """Those of U that may be the best on all rows: the others exceed the best by more than chance explains."""
    F = sample.losses(U)
    spread = np.einsum("bi,bi->b", sample.trim(F), F**2)  # the variance of a sum over as many rows
    least = int(np.argmin(values))
    may = values - values[least] <= DOUBT * np.sqrt(spread + spread[least])
    return U[may], values[may]


def _basins(
    sample: RegressionSample, U: np.ndarray, values: np.ndarray, keep: int, by: np.ndarray | None = None
) -> np.ndarray:
    """The best of each basin, best first: fits that differ by more than the ends within one basin do. by: what is least
    for the best, instead of the ``values``.

    The basin that is best on a sample need not be best on all rows; its ends alone would crowd out the others.
    """
    order = np.argsort(values if by is None else by, kind="stable")
    apart = np.sqrt(values.min() / sample.h) * (0.5 + 5 * np.sqrt(sample.r / sample.n))
    rows = sample.Q[:: -(-sample.n // SEEN)].T
    found: list[np.ndarray] = []
    for first in range(0, len(U), BLOCK):  # most calls find enough in the first
        V = U[order[first : first + BLOCK]]
        P = V @ rows
        for u in found:
            other = _median_above(np.abs(P - u @ rows), apart)
            V, P = V[other], P[other]
        while len(V) and len(found) < keep:
            found.append(V[0])
            other = _median_above(np.abs(P[1:] - P[0]), apart)
            V, P = V[1:][other], P[1:][other]
        if len(found) == keep:
            break
    return np.array(found)


def _median_above(D: np.ndarray, limit: float) -> np.ndarray:
    """Whether the median of a row of D exceeds the limit: by counting, ten times as fast as finding the median."""
    above, half = 2 * np.add.reduce(D > limit, axis=1, dtype=np.uint16).astype(int), D.shape[1]
    exceeds = above > half
    split = above == half  # the limit lies between the two numbers in the middle
    exceeds[split] = np.median(D[split], axis=1) > limit
    return np.asarray(exceeds)


def _tried(sample: RegressionSample, rng: np.random.Generator, starts: int | None, sampled: bool) -> np.ndarray:
    """The best of all kinds of starts after two concentration steps.

    Of a sample with many rows per coefficient it is told by sums over the rows that were fitted, which are near the
    objective: that spares one evaluation of three.
    """
    two = hurried if sampled and sample.n > SPARE * sample.r else concentrate
    U = np.vstack([sample.fit_subsets(sample.subsets(_count(sample, starts), sample.r, rng)), directed_starts(sample)])
    U, values = two(sample, U, 2)
    leaders = _best(U, values, 3)
    V, more = two(sample, sensitive_starts(sample, leaders), 2)
    U, values = np.vstack([U, V]), np.concatenate([values, more])
    return np.vstack([_best(U, values, FOLLOWED), _basins(sample, U, values, APART, _of_two_groups(sample, U))])


def _of_two_groups(sample: RegressionSample, U: np.ndarray) -> np.ndarray:
    """Minus twice the logarithm of the likelihood of two normal groups, for the residuals of each u on some rows: those
    near the fit, and the others. How large the groups are costs nothing (Symons 1981, Biometrics 37).

    Half of the rows may lie nearer to a plane through a cluster of wrong ones than to the right plane, beside which
    these are a group, and a narrow one.
    """
    some = slice(None, None, -(-sample.n // SEEN))
    m, E = sample.m[some], sample.t[some] - U @ sample.Q[some].T
    far = np.abs(E)
    off = far > USUAL / HALF * medians(far.T)[:, None]
    found, least = np.zeros(len(U)), np.zeros(len(U))
    for group in (~off, off):
        C = group * m
        count = np.maximum(C.sum(axis=1), TINY)
        mean = np.einsum("bi,bi->b", C, E) / count
        variance = np.maximum(np.einsum("bi,bi,bi->b", C, E, E) / count - mean**2, least)
        found += count * np.log(np.maximum(variance, TINY))
        least = THINNEST * variance
    return found


def _count(sample: RegressionSample, starts: int | None) -> int:
    """How many random subsets are tried."""
    if starts is not None:
        return starts
    lucky = 0.5 ** min(sample.r, 50)  # far more starts than MOST
    enough = log(LUCKLESS) / log1p(-lucky) if lucky < 1 else FEWEST
    return int(np.clip(min(WORK / (sample.n * (sample.r + 1) ** 2), enough), FEWEST, MOST))


def _best(U: np.ndarray, values: np.ndarray, keep: int) -> np.ndarray:
    """The ``keep`` best of U with different objectives, best first."""
    order = np.argsort(values, kind="stable")
    U, values = U[order], values[order]
    new = np.append(True, np.diff(values) > SAME * values[1:])
    return np.asarray(U[new][:keep])


def finish(rows: DistinctRows, h: float, u: np.ndarray) -> RegressionFit:
    """x, w and the objective from the coefficients u of a sample.

    u is a fixed point up to rounding; but where the kept rows leave x open, the shortest may change who is kept.
    """
    best = _weighed(rows, h, rows.coef(u))
    for _ in range(10):
        x = rows.refit(best.w)
        found = best if x is None else _weighed(rows, h, x)
        if found.objective > best.objective * (1 + SAME):
            break
        ended = not found.objective < best.objective * (1 - 1e-12)
        best = found  # the more accurate one, if only as good
        if ended:
            break
    return replace(best, w=rows.expand(best.w))


def _weighed(rows: DistinctRows, h: float, x: np.ndarray) -> RegressionFit:
    """x with its best w, one for each distinct row."""
    f = rows.losses(x)
    w = CappedSimplex(h).minimise(f, rows.m)
    return RegressionFit(x, w, float((w * rows.m) @ np.where(w > 0, f, 0.0)), x[None])
