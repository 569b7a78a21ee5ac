"""Sparse least trimmed squares: which rows a penalised regression explains, also where columns outnumber rows.

What is different from few columns:

- A penalised fit to half of the rows takes rows whose targets are small, for these need the least penalty. So the
  objective does not tell which of several fits is right.
- The rows that a fit was made for are nearer to it than others, by much. So every row is judged by a model that has not
  seen it: the *honest* residuals.

A set of rows grows or shrinks, every row being judged by honest residuals, until it stays the same. That begins with
all rows, and with those that three fits explain best: one to tame entries, one to the most central rows, and one that
concentration (a fit to the h rows that the last one explains best, again and again) leads to. Of the sets that come out
the largest is taken, unless a smaller one predicts the rows that both hold significantly better.

A. Alfons, C. Croux and S. Gelper (2013), Sparse least trimmed squares regression for analyzing high-dimensional large
data sets, Ann. Appl. Stat. 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.order import weighted_medians
from trimlearn.robust.regression.elastic_net import Floats
from trimlearn.robust.scale import judge
from trimlearn.robust.verdict import Verdict
from trimlearn.weights import CappedSimplex

__all__ = [
    "FOLDS",
    "Honest",
    "HonestFit",
    "Mask",
    "Penalised",
    "Rows",
    "Settled",
    "best_explained",
    "best_rows",
    "drawn_in",
    "explain_by_penalty",
    "fold_numbers",
    "honest",
    "settle",
    "starts",
]

FOLDS = 5  # in which rows are left out to judge them: as many as in scikit-learn's cross-validation
STEPS = 50  # concentration steps at most, a limit on time
ROUNDS = 10  # of judging and fitting again, a limit on time: sets that have not settled then go round in a circle
CLIP = 2.0  # robust standard deviations at which entries are drawn in for a start: of a normal law 5 % are
BOUND = 1.5  # the same of residuals: Huber's k, near 1.345, at which his estimate is 95 % efficient
HUBER = 10  # steps of an M-estimate that is a start only, a limit on time
SAME = 1e-6  # relative difference of two objectives that is the tolerance of coordinate descent
MAD = 1.4826  # the normal law's standard deviation over its median absolute deviation, 1/Φ⁻¹(¾)
STANDARD_ERRORS = 1.0  # by which a smaller set must predict better: the one-standard-error rule (Breiman et al. 1984)
CLEAN_SETS = 9  # simulated data sets, none of which may look as bad: a test at the level 1/(9 + 1) (Barnard 1963)
SIMULATED = 1_000  # entries of X up to which they are, a limit on time: they are nine more searches
# A set that differs from the one taken by more than this share of the rows, that holds this share of them, and that is
# told from it by fewer standard errors: a second explanation. Of 37 clean samples above 1,000 entries two have one; of
# eight of 50 x 1,000 with 15 % leverage points, six, five of them among the six in which such rows pass for good
# (TrimmedLinearRegressionCV, samples of `benchmarks peers`).
OTHERS, ENOUGH, TOLD = 0.1, 0.75, 2.0
COMMON = 3  # rows in both sets without which nothing is compared: a standard error needs two, and one to spare

Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class Rows:
    """Rows X (n, p) and targets t, each counted s times; the model is ⟨v, x⟩ + x₀, x₀ last, or without an intercept."""

    X: Floats
    t: Floats
    s: Floats
    intercept: bool

    @property
    def n(self) -> int:
        return len(self.t)

    @property
    def S(self) -> float:
        return float(self.s.sum())

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self.X @ x[:-1] + x[-1] if self.intercept else self.X @ x)

    def residuals(self, x: Floats) -> Floats:
        return np.asarray(self.t - self.predict(x))


class Penalised(Protocol):
    """A penalised fit to weighted rows."""

    def fit(self, rows: Rows, c: Floats, x0: Floats | None) -> Floats:
        """The x that minimises Σ cᵢ½rᵢ²/Σcᵢ + penalty(x), begun at x0."""

    def value(self, x: Floats, h: float) -> float:
        """penalty(x), where h is kept."""


@final
@dataclass(frozen=True)
class HonestFit:
    """The model x of rows weighted c, and the residuals r of all rows by models that have not seen them."""

    x: Floats
    c: Floats
    r: Floats


@final
@dataclass(frozen=True)
class Settled:
    """A fit to the rows that it explains, and the verdict on all rows by it."""

    fit: HonestFit
    verdict: Verdict
    disputed: Mask | None = None  # the rows that a second explanation, not told from this one, judges otherwise

    @property
    def weight(self) -> float:
        """How much of the rows is in the fit."""
        return float(self.fit.c.sum())


Honest = Callable[[Floats, "Floats | None"], HonestFit]  # for rows weighted c, begun at x0


def fold_numbers(n: int) -> NDArray[np.int64]:
    """The fold of each of n rows in an order that depends on their contents: every fifth row, or fewer folds."""
    return np.arange(n) % max(1, min(FOLDS, n))


def honest(rows: Rows, penalised: Penalised, fold: NDArray[np.int64]) -> Honest:
    """Rows of the fit are judged by a model of the other folds, all others by the fit itself."""

    def fitted(c: Floats, x0: Floats | None) -> HonestFit:
        x = penalised.fit(rows, c, x0)
        r = rows.residuals(x)
        for k in np.unique(fold):
            seen = (fold == k) & (c > 0)
            rest = np.where(seen, 0.0, c)
            if seen.any() and np.count_nonzero(rest) > 1:
                r[seen] = rows.residuals(penalised.fit(rows, rest, x))[seen]
        return HonestFit(x, c, r)

    return fitted


def best_rows(
    rows: Rows, penalised: Penalised, fitter: Callable[[Rows], Honest], h: float, *, seed: int = 0, floor: float = 0.0
) -> Settled:
    """The rows that a penalised regression explains, where at least h are good.

    ``penalised`` finds the sets that ``fitter(rows)`` begins with; ``floor`` is that of `judge`. Of few rows a part can
    be fitted well by chance: then a smaller set must do better than any does in clean data on the same design,
    simulated.
    """
    largest, best, others = _contest(rows, penalised, fitter(rows), h, floor)
    if best is not largest and rows.X.size <= SIMULATED:
        rng = np.random.Generator(np.random.Philox(key=seed + 1))
        model, seen = rows.predict(largest.fit.x), _advantage(best, largest)
        for _ in range(CLEAN_SETS):
            clean = replace(rows, t=model + largest.verdict.scale * rng.standard_normal(rows.n))
            first, winner, _ = _contest(clean, penalised, fitter(clean), h, floor)
            if winner is not first and _advantage(winner, first) >= seen:
                best = largest
                break
    return replace(best, disputed=_disputed(best, others, rows))


def _contest(
    rows: Rows, penalised: Penalised, fitted: Honest, h: float, floor: float
) -> tuple[Settled, Settled, list[Settled]]:
    """Of the sets that come out the largest, the best, and all: the largest is the best, unless a smaller one predicts
    the rows of both significantly better. A set is large enough where the rows left out could not be fitted as well."""
    sets = [rows.s, *[rows.s * best_explained(rows, x, h) for x in starts(rows, penalised, h)]]
    seen: set[bytes] = set()
    settled = [found for c in sets if (found := settle(rows, fitted, c, h, floor, seen)) is not None]
    order = sorted(settled, key=lambda one: -one.weight)
    best = order[0]
    for one in order[1:]:
        used = min(float(np.count_nonzero(one.fit.x)), rows.S / 4)  # else sets of ¾ of the rows might be too small
        if one.weight >= (rows.S + used) / 2 and _advantage(one, best) > STANDARD_ERRORS:
            best = one
    return order[0], best, order


def _disputed(best: Settled, others: list[Settled], rows: Rows) -> Mask | None:
    """The rows that another large set holds and the best does not, or the other way, where neither predicts the rows of
    both significantly better; None where there is no such set."""
    for one in others:
        differ = (one.fit.c > 0) != (best.fit.c > 0)
        many = float(rows.s[differ].sum()) > OTHERS * rows.S and one.weight >= ENOUGH * rows.S
        if many and abs(_advantage(one, best)) <= TOLD:
            return np.asarray(differ)
    return None


def _advantage(one: Settled, other: Settled) -> float:
    """By how many standard errors the squared residuals of the rows in both sets are smaller under the first; NaN,
    which nothing exceeds, where these are too few, or explained as well by either."""
    both = (one.fit.c > 0) & (other.fit.c > 0)
    gain = other.fit.r[both] ** 2 - one.fit.r[both] ** 2
    error = float(gain.std()) / sqrt(len(gain)) if len(gain) >= COMMON else 0.0
    return float(gain.mean()) / error if error > 0 else nan


def settle(
    rows: Rows, fitted: Honest, c: Floats, h: float, floor: float = 0.0, seen: set[bytes] | None = None
) -> Settled | None:
    """Fit, judge, keep what is explained, until that stays the same; where it goes round in a circle, or does not end,
    all rows that were explained on the way round. None where it comes to a set that was ``seen`` from another start."""

    def judged(c: Floats, x: Floats | None) -> Settled:
        fit = fitted(c, x)
        return Settled(fit, judge(fit.r, h, 0, rows.s, intercept=rows.intercept, floor=floor))

    way: dict[bytes, Settled] = {}
    key, x = (c > 0).tobytes(), None
    while key not in way and len(way) < ROUNDS:
        if seen is not None and key in seen:
            return None
        way[key] = judged(c, x)
        x, c = way[key].fit.x, rows.s * way[key].verdict.inliers
        key = (c > 0).tobytes()
    if seen is not None:
        seen.update(way)
    sets = list(way.values())
    circle = sets[list(way).index(key) :] if key in way else sets[1:]
    if len(circle) == 1:
        return circle[0]
    c = np.max([one.fit.c for one in circle], axis=0)
    return way.get((c > 0).tobytes()) or judged(c, x)


def explain_by_penalty(rows: Rows, penalised: Penalised, x: Floats, h: float) -> tuple[Floats, list[float]]:
    """Concentration steps from x until the objective stops falling, and its values: Σ sᵢwᵢ½rᵢ²/h + penalty(x)."""
    history: list[float] = []
    for _ in range(STEPS):
        new = penalised.fit(rows, rows.s * best_explained(rows, x, h), x)
        squares = (rows.s * best_explained(rows, new, h)) @ rows.residuals(new) ** 2
        found = float(squares / (2 * h) + penalised.value(new, h))
        if history and not found < history[-1] - SAME * abs(history[-1]):
            break
        x = new
        history.append(found)
    return x, history


def best_explained(rows: Rows, x: Floats, h: float) -> Floats:
    """w: the h rows that x explains best."""
    return np.asarray(CappedSimplex(h).minimise(rows.residuals(x) ** 2, rows.s))


def drawn_in(rows: Rows) -> Rows:
    """The rows with every entry, and every target, drawn in towards the median of its column.

    >>> drawn_in(Rows(np.array([[0.0], [1.0], [2.0], [90.0]]), np.arange(4.0), np.ones(4), True)).X.ravel()
    array([0.    , 1.    , 2.    , 4.4652])
    """
    near = _clipped(np.column_stack([rows.X, rows.t]), rows.s)
    return Rows(near[:, :-1], near[:, -1], rows.s, rows.intercept)


def _clipped(Z: Floats, s: Floats) -> Floats:
    """Columns clipped at CLIP robust standard deviations; as they are where more than half of the entries are alike."""
    middle, spread = _centre_and_spread(Z, s)
    return np.where(spread > 0, np.clip(Z, middle - CLIP * spread, middle + CLIP * spread), Z)


def _centre_and_spread(Z: Floats, s: Floats) -> tuple[Floats, Floats]:
    middle = weighted_medians(Z, s)
    return middle, MAD * weighted_medians(np.abs(Z - middle), s)


def starts(rows: Rows, penalised: Penalised, h: float) -> Iterator[Floats]:
    """A fit to entries drawn in towards the medians; where concentration leads from its M-estimate; a fit to the most
    central rows."""
    tame = drawn_in(rows)
    x = penalised.fit(tame, rows.s, None)
    yield x
    for _ in range(HUBER):
        z = tame.predict(x)
        r = rows.t - z
        bound = BOUND * _centre_and_spread(r[:, None], rows.s)[1]
        x = penalised.fit(replace(tame, t=z + np.clip(r, -bound, bound)), rows.s, x)
    yield explain_by_penalty(rows, penalised, x, h)[0]
    middle, spread = _centre_and_spread(rows.X, rows.s)
    z = np.clip((rows.X - middle) / np.where(spread > 0, spread, np.inf), -2 * CLIP, 2 * CLIP)
    central = CappedSimplex(h).minimise((z**2).mean(axis=1), rows.s)
    yield penalised.fit(rows, rows.s * central, None)
