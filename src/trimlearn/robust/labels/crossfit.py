"""contamination="auto" for linear classifiers: every label is judged by models that have not seen it.

1. Rows are put into folds, and for each fold a model is fitted to the other rows. It trusts every label; or half of
   the rows, or half of each class, where that explains the labels left out significantly better, or where nothing can
   be decided else: where so many are wrong that a model which trusts them learns the mistakes.
2. Its predictions are added to those of flexible classifiers (`trimlearn.robust.labels.flexible`): what these can
   explain is no wrong label but a model that is too simple.
3. Where there is noise, the models of the folds are fitted again by a likelihood that allows for it
   (`trimlearn.losses.Mislabelled`), and all labels are judged once more (`trimlearn.robust.labels.verdict`).

No model judges a row it was fitted on: it would find its own mistakes plausible, and with more features than rows
anything at all. Nor does any learn of that row's label through others: all that folds share is the noise matrix T.
The models are coefficients, fitted again from where they are; `trimlearn.estimators.meta.crossfit` is for scikit-learn
estimators, which are fitted anew for every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.jobs import jobs
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.distinct import Folds, content_folds, row_hashes
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.noise import Floats, Labels, estimate_noise, two_columns
from trimlearn.robust.labels.verdict import FEW, LabelVerdict, label_verdict, significant
from trimlearn.smart.alternating import alternating
from trimlearn.smart.method import Method
from trimlearn.smart.sizes import FEW as FEW_PARAMETERS
from trimlearn.smart.sizes import SMALL
from trimlearn.solution import Solution
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

__all__ = ["Judged", "judge_labels"]

TRUSTED = 0.5  # share of the rows that a wary model trusts: most labels are right, or nothing can be done
STARTS = ((1.0, False), (TRUSTED, False), (TRUSTED, True))  # what models trust: all, half, half of each class
SIGNIFICANT = 2.0  # standard errors by which a wary model must be better: a test at 2.3 %, for there are two of them


@dataclass(frozen=True)
class _Effort:
    """How many folds there are, and how many passes a fit may take. Limits on time: docs/performance.md, MNIST.

    ``start`` is for the first models, h falling to its target; half of it is enough where h need not fall.
    ``correction`` is for those that allow for noise, from the models at hand.
    """

    folds: int
    start: float
    correction: float


LARGE_EFFORT = _Effort(folds=2, start=20.0, correction=10.0)  # the least: a judge per half, h falling in 20 passes
SMALL_EFFORT = _Effort(folds=5, start=30.0, correction=60.0)  # where passes cost next to nothing


@dataclass(frozen=True)
class Judged:
    """The verdict on all labels, and x, the mean of the models: where to start a fit to all rows."""

    verdict: LabelVerdict
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
    n_jobs: Any = None,
) -> Judged:
    """Judge the labels of ``loss`` by models that minimise C·Σ sᵢwᵢfᵢ(x) + ½‖x‖².

    s: sample weights. trusted: the share of rows that the first models trust, where it is known. balanced: they
    trust this share of every class, so that a rare one is not wiped out. n_jobs: models that are fitted at a time.

    >>> rng = np.random.default_rng(0)
    >>> t = np.repeat([0, 1, 2], 100)
    >>> V = rng.standard_normal((300, 2)) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[t]
    >>> t[::5] = (t[::5] + 1) % 3
    >>> judged = judge_labels(Softmax(V, t, intercept=True))
    >>> round(judged.verdict.noise.epsilon, 1), bool(np.all(judged.verdict.keep()[::5] == 0))
    (0.2, True)
    """
    weights = np.ones(loss.n) if s is None else np.asarray(to_numpy(s), dtype=np.float64)
    labels, small = to_numpy(loss.t).astype(np.int64), loss.n * prod(loss.x_shape) <= SMALL
    effort = SMALL_EFFORT if small else LARGE_EFFORT
    fold = _folds(loss, labels, weights, effort.folds)
    crossfit = _CrossFit(loss, labels, weights, C, method, seed, tol, small, effort, fold, int(fold.max()) + 1, n_jobs)
    starts = crossfit.starts(trusted, balanced)
    judged, to_beat = crossfit.judge(next(starts)), None
    for models in starts:
        if not judged.verdict.undecided > FEW:
            break
        to_beat = judged.verdict.log_likelihood if to_beat is None else to_beat
        again = crossfit.judge(models, to_beat)
        judged = judged if again.verdict.clean else again
    return judged


def _folds(loss: Softmax | Logistic, labels: Labels, s: Floats, k: int) -> Folds:
    """The fold of every row. One for all rows, the model of which has seen them, where a fold would be empty or leave
    no row of some class to the model that judges it."""
    fold = content_folds(row_hashes(loss.linear.storage.V), labels, s, k)
    mass = np.zeros((k, int(labels.max()) + 1))
    np.add.at(mass, (fold, labels), s)
    left = mass.sum(axis=0) - mass
    possible = np.all(mass.sum(axis=1) > 0) and np.all(left[:, mass.sum(axis=0) > 0] > 0)
    return fold if possible else np.zeros_like(fold)


@dataclass(frozen=True)
class _CrossFit:
    """The folds, and a model for each of them that is fitted to the rows of the others."""

    loss: Softmax | Logistic
    labels: Labels
    s: Floats
    C: float
    method: Method | None
    seed: int
    tol: float
    small: bool  # whether passes cost next to nothing
    effort: _Effort
    fold: Folds
    folds: int  # how many there are
    n_jobs: Any = None

    def others(self, g: int) -> NDArray[np.bool_]:
        """The rows that the model of fold g is fitted to."""
        return np.asarray(self.fold != g) if self.folds > 1 else np.ones(self.loss.n, dtype=bool)

    @cached_property
    def flexible(self) -> list[Floats]:
        """What flexible classifiers predict for rows they have not seen."""
        V = self.loss.linear.storage.V
        return flexible_predictions(V, self.labels, self.s, self.seed, self.n_jobs) if self.folds > 1 else []

    def starts(self, trusted: float | None, balanced: bool) -> Iterator[list[Array]]:
        """The first models of all folds, in the order in which to try them. Where nothing is said, those that trust
        every label come first; but those that trust half of the rows, or of each class, where such a model explains
        the labels it has not seen significantly better."""
        if trusted is not None:
            yield self._trimmed([(trusted, balanced, g) for g in range(self.folds)])
            return
        compared = range(self.folds if self.small else 1)
        models = iter(self._trimmed([(*start, g) for start in STARTS for g in compared]))
        found = {start: [next(models) for _ in compared] for start in STARTS}
        likelihood = {start: self._likelihood(models) for start, models in found.items()}
        first = STARTS[0]
        for start in STARTS[1:]:
            gain = likelihood[start] - likelihood[first]
            first = start if significant(gain, self.s[self.fold < len(compared)], SIGNIFICANT) else first
        for start in sorted(STARTS, key=lambda start: start != first):
            yield found[start] + self._trimmed([(*start, g) for g in range(len(compared), self.folds)])

    def judge(self, models: list[Array], to_beat: Floats | None = None) -> Judged:
        """The verdict by these models and by flexible ones."""
        models = list(models)

        def corrected(T: Floats) -> Floats:
            models[:] = jobs(lambda at: self.correct(T, *at), enumerate(models), self.n_jobs)
            return self.predict(models)

        verdict = label_verdict([self.predict(models), *self.flexible], self.labels, self.s, corrected, to_beat)
        return Judged(verdict, sum(models) / len(models))

    def _likelihood(self, models: list[Array]) -> Floats:
        """log P(label | x) of the rows in the folds of these models."""
        rows = self.fold < len(models)
        z, labels = [self.predict(models)[rows]], self.labels[rows]
        return estimate_noise(z, labels, self.s[rows], largest=False).log_likelihood(z, labels)

    def predict(self, models: list[Array]) -> Floats:
        """Predictions (n, K), each by the model of its fold."""
        z = np.stack([two_columns(to_numpy(self.loss.linear.predict(x))) for x in models])
        return np.asarray(z[np.minimum(self.fold, len(models) - 1), np.arange(self.loss.n)])

    def _trimmed(self, which: list[tuple[float, bool, int]]) -> list[Array]:
        return jobs(lambda at: self.trimmed(*at), which, self.n_jobs)

    def trimmed(self, share: float, balanced: bool, g: int) -> Array:
        """The model of fold g that fits the best ``share`` of its rows."""
        s = self.s * self.others(g)
        h = share * float(s.sum())
        r1 = GroupCappedSimplex(self.labels, h) if balanced else CappedSimplex(h)
        enough = share < 1 or self.small
        return self._to_solve(self.loss, r1, s, self.effort.start if enough else self.effort.start / 2)().x

    def correct(self, T: Floats, g: int, x0: Array) -> Array:
        """The model of fold g, from x0, by a likelihood in which labels are mistaken as T says."""
        linear = self.loss.linear
        loss = Mislabelled(linear.storage.V, self.labels, T, intercept=linear.intercept, center=linear.center)
        return self._to_solve(loss, AllOnes(), self.s * self.others(g), self.effort.correction)(x0=x0).x

    def _to_solve(self, loss: PredictionLoss, r1: WeightSet, s: Floats, max_passes: float) -> Callable[..., Solution]:
        """`solve` with all it needs but where to start."""
        problem = Problem(loss, r1, Ridge(1.0 / (self.C * float(s.sum()))), s)
        rough = alternating(inner="lbfgs") if self.small and prod(loss.x_shape) > FEW_PARAMETERS else None
        method = self.method or rough  # a prediction needs few digits, and there are dozens of fits
        return partial(solve, problem, method, max_passes=max_passes, tol=self.tol, seed=self.seed)
