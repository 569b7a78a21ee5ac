"""contamination="auto" for linear classifiers: every label is judged by models that have not seen it.

1. Rows are dealt into folds, and for each fold a model is fitted to the other rows. It trusts every label; or half of
   the rows, or half of each class, where that explains the labels left out significantly better, or where nothing can
   be decided else: where so many are wrong that a model which trusts them learns the mistakes.
2. Its opinion is weighed with that of flexible classifiers (`trimlearn.robust.labels.opinions`): what these can explain
   is no wrong label but a model that is too simple.
3. Where there is noise, the models of the folds are fitted again by a likelihood that allows for it
   (`trimlearn.losses.Mislabelled`), and all is weighed once more (`trimlearn.robust.labels.verdict`).

No model judges a row it was fitted on: it would find its own mistakes plausible, and with more features than rows
anything at all. Nor does any learn of that row's label through others: all that folds share is the noise matrix T.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.distinct import Folds, deal
from trimlearn.robust.labels.noise_model import Floats, Labels, estimate_noise, two_columns
from trimlearn.robust.labels.opinions import flexible_opinions
from trimlearn.robust.labels.verdict import FEW, Verdict, significant, weigh
from trimlearn.smart.alternating import alternating
from trimlearn.smart.method import Method
from trimlearn.smart.sizes import FEW as FEW_PARAMETERS
from trimlearn.smart.sizes import SMALL
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

__all__ = ["Judged", "judge_labels"]

TRUSTED = 0.5  # share of the rows that a wary model trusts: most labels are right, or nothing can be done
STARTS = ((1.0, False), (TRUSTED, False), (TRUSTED, True))  # what models trust: all, half, half of each class
FOLDS, FOLDS_SMALL = 2, 5  # where passes cost something; where they do not
START_PASSES, START_PASSES_SMALL = 20.0, 30.0
CORRECTION_PASSES, CORRECTION_PASSES_SMALL = 10.0, 60.0  # from the models at hand to those that allow for noise
SIGNIFICANT = 2.0  # standard errors by which a wary model must be better


@dataclass(frozen=True)
class Judged:
    """The verdict on all labels, and x, the mean of the models: where to start a fit to all rows."""

    verdict: Verdict
    x: Array


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

    s: sample weights. trusted: the share of rows that the first models trust, where it is known. balanced: they
    trust this share of every class, so that a rare one is not wiped out.

    >>> rng = np.random.default_rng(0)
    >>> t = np.repeat([0, 1, 2], 100)
    >>> V = rng.standard_normal((300, 2)) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[t]
    >>> t[::5] = (t[::5] + 1) % 3
    >>> judged = judge_labels(Softmax(V, t, intercept=True))
    >>> round(judged.verdict.noise.epsilon, 1), bool(np.all(judged.verdict.keep()[::5] == 0))
    (0.2, True)
    """
    weights = np.ones(loss.n) if s is None else np.asarray(to_numpy(s), dtype=np.float64)
    court = _Court(loss, weights, C, method, seed, tol)
    V = loss.linear.storage.V
    fold = deal(V, court.labels, weights, court.folds)
    if not _crossed(fold, court.labels, weights, court.folds):
        court, fold = replace(court, crossed=False), np.zeros_like(fold)
    flexible = flexible_opinions(V, court.labels, weights, seed) if court.crossed else []
    starts = court.starts(fold, trusted, balanced)
    judged, verdict = court.judge(next(starts), fold, flexible), None
    for models in starts:
        if not judged.verdict.undecided > FEW:
            break
        verdict = verdict or judged.verdict
        again = court.judge(models, fold, flexible, verdict.log_likelihood)
        judged = judged if again.verdict.clean else again
    return judged


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

    def starts(self, fold: Folds, trusted: float | None, balanced: bool) -> Iterator[list[Array]]:
        """The first models of all folds, in the order in which to try them. Where nothing is said, those that trust
        every label come first; but those that trust half of the rows, or of each class, where such a model explains
        the labels it has not seen significantly better."""
        if trusted is not None:
            yield [self.trimmed(trusted, balanced, self.others(fold, g)) for g in range(self.folds)]
            return
        contest = range(self.folds if self.small else 1)
        found = {start: [self.trimmed(*start, self.others(fold, g)) for g in contest] for start in STARTS}
        likelihood = {start: self._likelihood(models, fold) for start, models in found.items()}
        first = STARTS[0]
        for start in STARTS[1:]:
            gain = likelihood[start] - likelihood[first]
            first = start if significant(gain, self.s[fold < len(contest)], SIGNIFICANT) else first
        for start in sorted(STARTS, key=lambda start: start != first):
            models = found[start]
            yield models + [self.trimmed(*start, self.others(fold, g)) for g in range(len(models), self.folds)]

    def judge(
        self, models: list[Array], fold: Folds, flexible: list[Floats], trusting: Floats | None = None
    ) -> Judged:
        """The verdict of these models and of flexible ones."""
        models = list(models)

        def corrected(T: Floats) -> Floats:
            models[:] = [self.correct(T, self.others(fold, g), x) for g, x in enumerate(models)]
            return self.predict(models, fold)

        verdict = weigh([self.predict(models, fold), *flexible], self.labels, self.s, corrected, trusting)
        return Judged(verdict, sum(models) / len(models))

    def _likelihood(self, models: list[Array], fold: Folds) -> Floats:
        """log P(label | x) of the rows in the folds of these models."""
        rows = fold < len(models)
        z, labels = [self.predict(models, fold)[rows]], self.labels[rows]
        return estimate_noise(z, labels, self.s[rows], largest=False).log_likelihood(z, labels)

    def predict(self, models: list[Array], fold: Folds) -> Floats:
        """Predictions (n, K), each by the model of its fold."""
        z = np.stack([two_columns(to_numpy(self.loss.linear.predict(x))) for x in models])
        return np.asarray(z[np.minimum(fold, len(models) - 1), np.arange(len(fold))])

    def trimmed(self, share: float, balanced: bool, rows: NDArray[np.bool_]) -> Array:
        """The model that fits the best ``share`` of these rows."""
        s = self.s * rows
        h = share * float(s.sum())
        r1 = GroupCappedSimplex(self.labels, h) if balanced else CappedSimplex(h)
        large = START_PASSES if share < 1 else START_PASSES / 2  # h need not fall
        return self._solve(self.loss, r1, s, START_PASSES_SMALL if self.small else large)

    def correct(self, T: Floats, rows: NDArray[np.bool_], x0: Array) -> Array:
        """The model that fits these rows, from x0, by a likelihood in which labels are mistaken as T says."""
        linear = self.loss.linear
        loss = Mislabelled(linear.storage.V, self.labels, T, intercept=linear.intercept, center=linear.center)
        passes = CORRECTION_PASSES_SMALL if self.small else CORRECTION_PASSES
        return self._solve(loss, AllOnes(), self.s * rows, passes, x0)

    def _solve(self, loss: PredictionLoss, r1: WeightSet, s: Floats, max_passes: float, x0: Array = None) -> Array:
        problem = Problem(loss, r1, Ridge(1.0 / (self.C * float(s.sum()))), s)
        rough = alternating(inner="lbfgs") if self.small and prod(loss.x_shape) > FEW_PARAMETERS else None
        method = self.method or rough  # an opinion needs few digits, and there are dozens of fits
        return solve(problem, method, x0=x0, max_passes=max_passes, tol=self.tol, seed=self.seed).x


def _crossed(fold: Folds, labels: Labels, s: Floats, folds: int) -> bool:
    """Whether every fold has rows, and leaves rows of every class to the model that judges it."""
    mass = np.zeros((folds, int(labels.max()) + 1))
    np.add.at(mass, (fold, labels), s)
    there = mass.sum(axis=0) > 0
    return bool(np.all(mass.sum(axis=1) > 0) and np.all((mass.sum(axis=0) - mass)[:, there] > 0))
