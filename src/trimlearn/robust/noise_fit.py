"""contamination="auto" for classifiers: every label is judged by a trimmed model that has not seen it.

1. Rows are dealt into folds. For each fold a trimmed model is fitted to the other rows, of which it trusts half: safe
   as long as most labels are right. Trusting half of each class, or every row, has to do significantly better on the
   rows left out to be preferred: it does where a class is rare, and where labels are clean.
2. The models' predictions for the rows they have not seen give the noise model (`trimlearn.robust.noise`). Rows
   whose labels are more likely right than wrong are trusted from now on, the models are fitted to those, and this is
   repeated until the verdicts stay.

No model judges a row it was fitted on: it would find its own mistakes plausible, and with more features than rows
anything at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn.arrays import Array, to_numpy
from trimlearn.losses import Logistic, Softmax
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.noise import Floats, LabelNoise, Labels, estimate_noise, two_columns
from trimlearn.smart.alternating import SMALL
from trimlearn.smart.method import Method
from trimlearn.solve import solve
from trimlearn.validation import is_sparse
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

__all__ = ["Judged", "deal", "judge_labels"]

TRUSTED = 0.5  # share of the rows that the first models trust: most labels are right, or nothing can be done
FOLDS, FOLDS_SMALL = 2, 5  # where passes cost something; where they do not
ROUNDS, ROUNDS_SMALL = 4, 8  # refits of the folds, at most
SETTLED = 0.01  # the share of verdicts that may still change
START_PASSES, START_PASSES_SMALL = 20.0, 30.0
ROUND_PASSES, ROUND_PASSES_SMALL = 6.0, 10.0  # a refit only has to follow the verdicts
SIGNIFICANT = 2.0  # standard errors
CLEAR = 0.1  # share of errors that a model expects of itself, below which classes are clear
ONE_SIDED = 1.645  # standard errors by which noise must explain labels better than none does: a test at 5 %
CHUNK = 4096  # rows hashed at a time

Folds = NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """The noise model; of each row the score (log-odds that its label is wrong, by a model that has not seen the row)
    and the label suggested in its place; x, the mean of the models: where to start a fit to all rows; the likelihood of
    each label, log P(label | x), and the doubt about its class, 1 − max P(class | x)."""

    noise: LabelNoise
    scores: Floats
    suggested: Labels
    x: Array
    likelihood: Floats
    doubt: Floats
    labels: Labels
    s: Floats

    def keep(self, share: float | None = None) -> Floats:
        """1 for every row whose label is more likely right than wrong, and for the best ``share`` of the rows; else 0.

        A class that would lose all its rows keeps its better half.
        """
        cut = 0.0 if share is None else max(0.0, _quantile(self.scores, self.s, share))
        keep = self.scores <= cut
        for label in np.unique(self.labels[self.s > 0]):
            rows = (self.labels == label) & (self.s > 0)
            if not keep[rows].any():
                keep |= rows & (self.scores <= _quantile(self.scores[rows], self.s[rows], 0.5))
        return keep.astype(np.float64)


def judge_labels(
    loss: Softmax | Logistic,
    s: Any = None,
    *,
    C: float = 1.0,
    trusted: float | None = None,
    balanced: bool = False,
    method: Method | None = None,
    seed: int = 0,
    tol: float = 1e-4,
) -> Judged:
    """Judge the labels of ``loss`` by models that minimise C·Σ sᵢwᵢfᵢ(x) + ½‖x‖².

    s: sample weights. trusted: the share of rows that the first models trust, ½ unless more is known. balanced: they
    trust this share of every class, so that a rare one is not wiped out.

    >>> rng = np.random.default_rng(0)
    >>> t = np.repeat([0, 1, 2], 100)
    >>> V = rng.standard_normal((300, 2)) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[t]
    >>> t[::5] = (t[::5] + 1) % 3
    >>> judged = judge_labels(Softmax(V, t, intercept=True))
    >>> round(judged.noise.epsilon, 2), bool(np.all(judged.keep()[::5] == 0))
    (0.2, True)
    """
    weights = np.ones(loss.n) if s is None else np.asarray(to_numpy(s), dtype=np.float64)
    court = _Court(loss, weights, C, method, seed, tol)
    fold = deal(loss.linear.storage.V, court.labels, weights, court.folds)
    if not _crossed(fold, court.labels, weights, court.folds):
        court, fold = replace(court, crossed=False), np.zeros_like(fold)
    models = court.start(fold, trusted, balanced)
    judged = court.judge(models, fold)
    for _ in range(ROUNDS_SMALL if court.small else ROUNDS):
        keep = judged.keep()
        models = [court.refit(keep * court.others(fold, g), x) for g, x in enumerate(models)]
        judged = court.judge(models, fold)
        if np.average(keep != judged.keep(), weights=weights) <= SETTLED:
            break
    return court.acquit(judged, fold)


@dataclass(frozen=True)
class _Court:
    """What all fits of one call share."""

    loss: Softmax | Logistic
    s: Floats
    C: float
    method: Method | None
    seed: int
    tol: float
    crossed: bool = True  # whether rows are judged by models that have not seen them

    @property
    def labels(self) -> Labels:
        return to_numpy(self.loss.t).astype(np.int64)

    @property
    def small(self) -> bool:
        return self.loss.n * prod(self.loss.x_shape) <= SMALL

    @property
    def folds(self) -> int:
        return 1 if not self.crossed else FOLDS_SMALL if self.small else FOLDS

    def others(self, fold: Folds, g: int) -> NDArray[np.bool_]:
        """The rows that the model of fold g is fitted to."""
        return np.asarray(fold != g) if self.crossed else np.ones(len(fold), dtype=bool)

    def start(self, fold: Folds, trusted: float | None, balanced: bool) -> list[Array]:
        """The first model of each fold. Where nothing is said, that which trusts half of the rows; but half of each
        class, or all rows, where such a model explains the labels it has not seen significantly better."""
        if trusted is not None or balanced:
            return [self.trimmed(trusted or TRUSTED, balanced, self.others(fold, g)) for g in range(self.folds)]
        contest = range(self.folds if self.small else 1)
        best, chosen, models = None, (TRUSTED, False), []
        for start in ((TRUSTED, False), (TRUSTED, True), (1.0, False)):
            found = [self.trimmed(*start, self.others(fold, g)) for g in contest]
            likelihood = self._likelihood(found, fold)
            if best is None or _significant(likelihood - best, self.s[fold < len(contest)]):
                best, chosen, models = likelihood, start, found
        return models + [self.trimmed(*chosen, self.others(fold, g)) for g in range(len(models), self.folds)]

    def acquit(self, judged: Judged, fold: Folds) -> Judged:
        """The verdicts, unless labels that are all right explain those not seen as well: a signal may just be weak.

        Trimming what a weak model doubts makes it sure of itself, and then it finds noise. So its likelihood has to be
        better than that of models which trust every label; unless the classes are clear by its own account, where few
        wrong labels prove nothing, and equally clear rows make noise and a weak signal the same thing.
        """
        if np.average(judged.doubt, weights=self.s) < CLEAR:
            return judged
        models = [self.trimmed(1.0, False, self.others(fold, g)) for g in range(self.folds)]
        z, labels = self._predict(models, fold), self.labels
        plain = estimate_noise(z, labels, self.s, noisy=False)
        if _significant(judged.likelihood - plain.log_likelihood(z, labels), self.s, ONE_SIDED):
            return judged
        return self._verdicts(plain, z, models)

    def _likelihood(self, models: list[Array], fold: Folds) -> Floats:
        """log P(label | x) of the rows in the folds of these models."""
        rows = fold < len(models)
        z, labels = self._predict(models, fold)[rows], self.labels[rows]
        return estimate_noise(z, labels, self.s[rows]).log_likelihood(z, labels)

    def _predict(self, models: list[Array], fold: Folds) -> Floats:
        """Predictions (n, K), each by the model of its fold."""
        z = np.stack([two_columns(to_numpy(self.loss.linear.predict(x))) for x in models])
        return np.asarray(z[np.minimum(fold, len(models) - 1), np.arange(len(fold))])

    def trimmed(self, share: float, balanced: bool, rows: NDArray[np.bool_]) -> Array:
        """The model that fits the best ``share`` of these rows."""
        s = self.s * rows
        h = share * float(s.sum())
        r1 = GroupCappedSimplex(self.labels, h) if balanced else CappedSimplex(h)
        large = START_PASSES if share < 1 else START_PASSES / 2  # h need not fall
        passes = START_PASSES_SMALL if self.small else large
        return self._solve(r1, s, passes)

    def refit(self, keep: Floats, x0: Array) -> Array:
        """The model that fits the rows kept, from x0."""
        return self._solve(AllOnes(), self.s * keep, ROUND_PASSES_SMALL if self.small else ROUND_PASSES, x0)

    def _solve(self, r1: WeightSet, s: Floats, max_passes: float, x0: Array = None) -> Array:
        problem = Problem(self.loss, r1, Ridge(1.0 / (self.C * float(s.sum()))), s)
        return solve(problem, self.method, x0=x0, max_passes=max_passes, tol=self.tol, seed=self.seed).x

    def judge(self, models: list[Array], fold: Folds) -> Judged:
        """The verdicts on all rows, each by the model of its fold."""
        z = self._predict(models, fold)
        return self._verdicts(estimate_noise(z, self.labels, self.s), z, models)

    def _verdicts(self, noise: LabelNoise, z: Floats, models: list[Array]) -> Judged:
        scores, suggested = noise.score(z, self.labels), noise.suggest(z, self.labels)
        x, likelihood = sum(models) / len(models), noise.log_likelihood(z, self.labels)
        doubt = 1 - np.exp(noise.log_probabilities(z).max(axis=1))
        return Judged(noise, scores, suggested, x, likelihood, doubt, self.labels, self.s)


def _significant(d: Floats, s: Floats, deviations: float = SIGNIFICANT) -> bool:
    """Whether the mean of d is above 0 by more than chance: by so many standard errors."""
    mean = np.average(d, weights=s)
    variance = np.average((d - mean) ** 2, weights=s)
    return bool(mean > deviations * np.sqrt(variance / s.sum()))


def _crossed(fold: Folds, labels: Labels, s: Floats, folds: int) -> bool:
    """Whether every fold has rows, and leaves rows of every class to the model that judges it."""
    mass = np.zeros((folds, int(labels.max()) + 1))
    np.add.at(mass, (fold, labels), s)
    there = mass.sum(axis=0) > 0
    return bool(np.all(mass.sum(axis=1) > 0) and np.all((mass.sum(axis=0) - mass)[:, there] > 0))


def deal(V: Any, labels: Labels, s: Floats, folds: int) -> Folds:
    """A fold for each row: even within every class, by the contents of the row alone. So equal rows share a fold, and
    neither the order of the rows nor those of weight 0 matter.

    >>> V = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> fold = deal(V, np.zeros(4, dtype=int), np.ones(4), folds=3)
    >>> bool(fold[0] == fold[2]), len(set(fold))
    (True, 3)
    """
    digest = _digest(V)
    fold = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels[s > 0]):
        rows = np.flatnonzero((labels == label) & (s > 0))
        values, rank = np.unique(digest[rows], return_inverse=True)
        fold[rows] = (rank + int(values[0] % np.uint64(folds))) % folds
    return fold


def _digest(V: Any) -> NDArray[np.uint64]:
    """A number per row that only its values decide: Σⱼ aⱼ·bits(v_ij) modulo 2⁶⁴, odd aⱼ drawn once. A zero adds
    nothing, so that sparse rows and dense ones agree."""
    a = np.random.default_rng(0).integers(1 << 63, size=V.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if is_sparse(V):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_bits(V.data) * a[V.indices], dtype=np.uint64)])
        return np.asarray(total[V.indptr[1:]] - total[V.indptr[:-1]])
    return np.concatenate([_bits(to_numpy(V[i : i + CHUNK])) @ a for i in range(0, V.shape[0], CHUNK)])


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """The bits of float64, mixed: 0 for 0.0, also for -0.0."""
    return (values.astype(np.float64) + 0.0).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)


def _quantile(values: Floats, s: Floats, share: float) -> float:
    """The smallest value that at least this share of the weight does not exceed."""
    order = np.argsort(values)
    total = np.cumsum(s[order])
    return float(values[order[min(np.searchsorted(total, share * total[-1]), len(order) - 1)]])
