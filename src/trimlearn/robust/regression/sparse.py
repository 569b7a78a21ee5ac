"""Sparse least trimmed squares: which rows a penalised regression explains, also where columns outnumber rows.

What is different from few columns:

- A penalised fit to half of the rows takes rows whose targets are small, for these need the least penalty. So the
  objective does not tell which of several fits is right.
- The rows that a fit was made for are nearer to it than others, by much. So every row is judged by a model that has not
  seen it: the *honest* residuals.

From every start, concentration steps (a fit to the h rows that the last one explains best) lead to a set of rows. Each
set grows or shrinks, every row being judged by honest residuals, until it stays the same. Of the sets that come out the
largest is taken, unless a smaller one predicts the rows that both hold significantly better.

A. Alfons, C. Croux and S. Gelper (2013), Sparse least trimmed squares regression for analyzing high-dimensional large
data sets, Ann. Appl. Stat. 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
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
    "best_rows",
    "concentrate",
    "drawn_in",
    "ends",
    "fold_numbers",
    "honest",
    "kept",
    "settle",
]

FOLDS = 5  # in which rows are left out to judge them: as many as in scikit-learn's cross-validation
ELEMENTAL = 3  # rows of a random start: Alfons, Croux and Gelper (2013, section 4)
STARTS = 20  # random ones: with 50, no fit of `benchmarks.calibration sparse` ends elsewhere
FOLLOWED = 5  # starts followed to the end, beside those that are not random
FIRST, STEPS = 2, 50  # concentration steps before starts are compared, as in FAST-LTS; at most, a limit on time
ROUNDS = 10  # of judging and fitting again, a limit on time: sets that have not settled then go round in a circle
CLIP = 2.0  # robust standard deviations at which entries are drawn in for a start: of a normal law 5 % are
BOUND = 1.5  # the same for residuals: Huber's k, near 1.345, at which 95 % efficient
HUBER = 10  # steps of an M-estimate that is a start only, a limit on time
SAME = 1e-6  # relative difference of two objectives that is the tolerance of coordinate descent
MAD = 1.4826  # the normal law's standard deviation over its median absolute deviation, 1/Φ⁻¹(¾)
STANDARD_ERRORS = 1.0  # by which a smaller set must predict better: the one-standard-error rule (Breiman et al. 1984)
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
    rows: Rows, penalised: Penalised, fitted: Honest, h: float, *, seed: int = 0, floor: float = 0.0
) -> Settled:
    """The rows that a penalised regression explains, where at least h are good.

    ``penalised`` finds the sets that ``fitted`` begins with; ``floor`` is that of `judge`.
    """
    sets = [rows.s, *[rows.s * kept(rows, x, h) for x, _ in ends(rows, penalised, h, seed)]]
    seen: set[bytes] = set()
    settled = [found for c in sets if (found := settle(rows, fitted, c, h, floor, seen)) is not None]
    return _winner(settled)


def settle(
    rows: Rows, fitted: Honest, c: Floats, h: float, floor: float = 0.0, seen: set[bytes] | None = None
) -> Settled | None:
    """Fit, judge, keep what is explained, until that stays the same. None where it comes to a set that was ``seen``
    from another start."""
    x, own, found = None, set(), None
    for _ in range(ROUNDS):
        key = (c > 0).tobytes()
        if key in own:
            break
        if seen is not None and key in seen:
            return None
        own.add(key)
        fit = fitted(c, x)
        found = Settled(fit, judge(fit.r, h, 0, rows.s, intercept=rows.intercept, floor=floor))
        x, c = fit.x, rows.s * found.verdict.inliers
    if seen is not None:
        seen |= own
    return found


def _winner(settled: Sequence[Settled]) -> Settled:
    """The largest set, unless a smaller one predicts the rows of both significantly better."""
    order = sorted(settled, key=lambda one: -one.weight)
    best = order[0]
    for one in order[1:]:
        both = (one.fit.c > 0) & (best.fit.c > 0)
        if np.count_nonzero(both) < COMMON:
            continue
        gain = best.fit.r[both] ** 2 - one.fit.r[both] ** 2
        best = one if gain.mean() > STANDARD_ERRORS * gain.std() / sqrt(len(gain)) else best
    return best


def ends(rows: Rows, penalised: Penalised, h: float, seed: int) -> list[tuple[Floats, list[float]]]:
    """Where concentration ends, from each start that is not random and from the best of those that are, best first;
    each with its objectives on the way."""
    planned = list(_planned_starts(rows, penalised, h))
    starts = planned + list(_random_starts(rows, penalised, seed))
    first = [concentrate(rows, penalised, x, h, FIRST) for x in starts]
    order = sorted(range(len(first)), key=lambda i: first[i][1][-1])
    follow = dict.fromkeys([*order[:FOLLOWED], *range(len(planned))])
    last = sorted((concentrate(rows, penalised, first[i][0], h) for i in follow), key=lambda end: end[1][-1])
    return [end for k, end in enumerate(last) if k == 0 or end[1][-1] > last[k - 1][1][-1] * (1 + SAME)]


def concentrate(
    rows: Rows, penalised: Penalised, x: Floats, h: float, steps: int = STEPS
) -> tuple[Floats, list[float]]:
    """Concentration steps from x until the objective stops falling, and its values: Σ sᵢwᵢ½rᵢ²/h + penalty(x)."""
    history: list[float] = []
    for _ in range(steps):
        new = penalised.fit(rows, rows.s * kept(rows, x, h), x)
        found = float((rows.s * kept(rows, new, h)) @ rows.residuals(new) ** 2 / (2 * h) + penalised.value(new, h))
        if history and not found < history[-1] - SAME * abs(history[-1]):
            break
        x = new
        history.append(found)
    return x, history


def kept(rows: Rows, x: Floats, h: float) -> Floats:
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


def _planned_starts(rows: Rows, penalised: Penalised, h: float) -> Iterator[Floats]:
    """Fits to entries drawn in towards the medians, to residuals drawn in as well, and to the most central rows."""
    tame = drawn_in(rows)
    x = penalised.fit(tame, rows.s, None)
    yield x
    for _ in range(HUBER):
        z = tame.predict(x)
        r = rows.t - z
        bound = BOUND * _centre_and_spread(r[:, None], rows.s)[1]
        x = penalised.fit(replace(tame, t=z + np.clip(r, -bound, bound)), rows.s, x)
    yield x
    middle, spread = _centre_and_spread(rows.X, rows.s)
    z = np.clip((rows.X - middle) / np.where(spread > 0, spread, np.inf), -2 * CLIP, 2 * CLIP)
    central = CappedSimplex(h).minimise((z**2).mean(axis=1), rows.s)
    yield penalised.fit(rows, rows.s * central, None)


def _random_starts(rows: Rows, penalised: Penalised, seed: int) -> Iterator[Floats]:
    """Fits to a few random rows."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    for _ in range(STARTS if rows.n > ELEMENTAL else 0):
        c = np.zeros(rows.n)
        c[rng.choice(rows.n, ELEMENTAL, replace=False)] = 1.0
        yield penalised.fit(rows, c, None)
