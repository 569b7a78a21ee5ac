"""contamination="auto" for linear classifiers: every label is judged by models that have not seen it.

1. Rows are put into folds, and for each fold a model is fitted to the other rows. It trusts every label; or half of
   the rows, or half of each class, where that explains the labels left out significantly better, or where nothing can
   be decided else: where so many are wrong that a model which trusts them learns the mistakes. Of many rows some decide
   between the three.
2. Its predictions are added to those of flexible classifiers (`trimlearn.robust.labels.flexible`): what these can
   explain is no wrong label but a model that is too simple. Where much is still called wrong, boosting is asked too
   (`trimlearn.robust.labels.boosted`).
3. Where there is noise, the models of the folds are fitted again by a likelihood that allows for it
   (`trimlearn.losses.Mislabelled`), and all labels are judged once more (`trimlearn.robust.labels.verdict`).

No model judges a row it was fitted on: it would find its own mistakes plausible, and with more features than rows
anything at all. Nor does any learn of that row's label through others: all that folds share is the noise matrix T.
The models are coefficients, fitted again from where they are; `trimlearn.estimators.meta.crossfit` is for scikit-learn
estimators, which are fitted anew for every fold.

The models that judge labels: each is fitted to rows that it does not judge, where these rows lie.

The rows of a fit are taken out of V, so that no pass looks at others. Where there are many, a fit begins with some of
them; and of very many, some are all that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, asarray_like, index_like, to_numpy
from trimlearn._utils.residence import copy_on_device
from trimlearn._utils.threads import jobs
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.distinct import Folds, Hashes, content_folds, row_hashes, taken_rows
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.copies import apart, are_observations, cells_of, kish_weights
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.noise import estimate_noise, two_columns
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.verdict import FEW, LabelVerdict, label_verdict, significant
from trimlearn.smart import alternating, svrg
from trimlearn.smart.method import FEW as FEW_PARAMETERS
from trimlearn.smart.method import SMALL, Method, small
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

Start = tuple[float, bool]  # the share of its rows that a model trusts, and whether that is the share of every class
Rows = NDArray[np.int64]

COPIED = 1 << 28  # bytes of V that are taken out of it for one fit, a limit on memory: 85,000 rows of MNIST
MEDIUM = 20 * SMALL  # n·dim(x) up to which a fit of 40 passes takes a second: a limit on time
SAMPLE = 8_000  # rows that a fit to many begins with, a limit on time: a seventh of MNIST


def is_large(loss: PredictionLoss) -> bool:
    """Whether a pass takes long, and is many steps: of few rows with many parameters it is few."""
    return loss.n > 2 * SAMPLE and loss.n * prod(loss.x_shape) > MEDIUM


@dataclass(frozen=True)
class _Passes:
    """How many passes over its rows a fit may take. Limits on time: docs/performance.md, MNIST.

    ``start`` is for the first models, h falling to its target; half of it is enough where h need not fall.
    ``further`` is for all rows, from a model of some; ``correction`` for a model that allows for noise, from one that
    does not, or that knew another T.
    """

    start: float
    further: float
    correction: float


# On MNIST, twice the passes change the share found and the likelihood of labels left out by less than 0.3 points.
LARGE_PASSES = _Passes(start=20.0, further=5.0, correction=8.0)
MEDIUM_PASSES = _Passes(start=40.0, further=10.0, correction=20.0)  # where these are fractions of a second
SMALL_PASSES = _Passes(start=30.0, further=30.0, correction=60.0)  # where passes cost next to nothing


class Judges:
    """Fits that minimise C·Σ sᵢwᵢfᵢ(x) + ½‖x‖², to rows that are named; x is a NumPy array.

    V: the rows, on a device where they have a copy there, which is where the fits take place. K: how many classes there
    are. small: whether passes cost next to nothing, over all rows, so that fits to few of them are like those to many.
    most: rows that a fit may see.
    """

    def __init__(
        self,
        loss: Softmax | Logistic,
        labels: Labels,
        s: Floats,
        C: float,
        method: Method | None,
        seed: int,
        tol: float,
    ) -> None:
        there = copy_on_device(loss.linear.storage.V)
        self.loss = loss if there is None else other_rows_loss(loss, there, labels)
        self.labels, self.s, self.C, self.method, self.seed = labels, s, C, method, seed
        self.V, self.K = self.loss.linear.storage.V, loss.linear.K or 2
        self.small = loss.n * prod(loss.x_shape) <= SMALL
        self.most = max(SAMPLE, COPIED // self.loss.linear.storage.row_bytes)
        self._passes = SMALL_PASSES if self.small else LARGE_PASSES if is_large(loss) else MEDIUM_PASSES
        self._solve = partial(solve, tol=tol, seed=seed)

    def trimmed(self, start: Start, rows: Rows, x0: Array | None = None) -> Array:
        """The model that fits the best of these rows, the share and how as ``start`` says; from x0, if given."""
        share, balanced = start
        h = share * float(self.s[rows].sum())
        r1 = GroupCappedSimplex(self.labels[rows], h) if balanced else CappedSimplex(h)
        most = self._passes.start if share < 1 or self.small else self._passes.start / 2
        problem = self._problem(other_rows_loss(self.loss, self._taken(rows), self.labels[rows]), r1, rows)
        passes = most if x0 is None else self._passes.further
        return to_numpy(self._solve(problem, self._chosen(problem), x0=x0, max_passes=passes).x)

    def corrected(self, T: Floats, rows: Rows, x0: Array) -> Array:
        """The model of these rows, from x0, by a likelihood in which labels are mistaken as T says."""
        loss = Mislabelled(self._taken(rows), self.labels[rows], T, intercept=self.loss.linear.intercept)
        problem = self._problem(loss, AllOnes(), rows)
        return to_numpy(self._solve(problem, self._chosen(problem), x0=x0, max_passes=self._passes.correction).x)

    def predict(self, x: Array, rows: Rows) -> Floats:
        """Predictions (m, K) of these rows."""
        z = self.loss.linear.predict(asarray_like(x, self.loss.like), index_like(rows, self.loss.like))
        return two_columns(to_numpy(z))

    def some(self, rows: Rows, most: int) -> Rows:
        """At most about so many of these rows, each class with the same share of its own, and with one at least."""
        if len(rows) <= most:
            return rows
        by_class = rows[np.argsort(self.labels[rows], kind="stable")]
        first = np.unique(self.labels[by_class], return_index=True)[1]
        evenly = np.linspace(0, len(rows) - 1, most).astype(np.int64)
        return np.sort(by_class[np.union1d(first, evenly)])

    def _taken(self, rows: Rows) -> Any:
        return self.V if len(rows) == self.loss.n else taken_rows(self.V, rows)

    def _problem(self, loss: PredictionLoss, r1: WeightSet, rows: Rows) -> Problem:
        s = self.s[rows]
        return Problem(loss, r1, Ridge(1.0 / (self.C * float(s.sum()))), None if np.all(s == 1) else s)

    def _chosen(self, problem: Problem) -> Method | None:
        """How to fit: None leaves it to `trimlearn.solve`, which would take few rows of many for a small problem."""
        if self.method is not None or not small(problem):
            return self.method
        if not self.small:
            return svrg()
        # A prediction needs few digits, and there are dozens of fits.
        return alternating(inner="lbfgs") if prod(problem.loss.x_shape) > FEW_PARAMETERS else None


def other_rows_loss(loss: Softmax | Logistic, V: Any, labels: Labels) -> Softmax | Logistic:
    """The losses of other rows."""
    linear = loss.linear
    if linear.K is None:
        return Logistic(V, labels, part=True, intercept=linear.intercept)
    return Softmax(V, labels, linear.K, intercept=linear.intercept)


TRUSTED = 0.5  # share of the rows that a wary model trusts: most labels are right, or nothing can be done
TRUSTING: Start = (1.0, False)  # by definition: every row, whatever its class
STARTS: tuple[Start, ...] = (TRUSTING, (TRUSTED, False), (TRUSTED, True))  # all, half, half of each class
SIGNIFICANT = 2.0  # standard errors by which a wary model must be better: a test at 2.3 %, for there are two of them
FOLDS, FOLDS_OF_MANY = 5, 2  # of small data, where passes cost next to nothing; the least, a judge per half


@dataclass(frozen=True)
class JudgedLabels:
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
) -> JudgedLabels:
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
    labels = to_numpy(loss.t).astype(np.int64)
    judges = Judges(loss, labels, weights, C, method, seed, tol)
    hashes, copies = row_hashes(judges.V), None
    if s is not None and are_observations(hashes, labels, weights):
        copies = np.repeat(np.arange(loss.n), weights.astype(np.int64))
        written_out = other_rows_loss(loss, taken_rows(loss.linear.storage.V, copies), labels[copies])
        judges = Judges(written_out, labels[copies], np.ones(len(copies)), C, method, seed, tol)
        hashes = apart(hashes, copies)
    fold = _folds(hashes, judges.labels, judges.s, FOLDS if judges.small else FOLDS_OF_MANY)
    crossfit = _CrossFit(judges, hashes, fold, n_jobs)
    if trusted is None:
        crossfit.begin([(start, g) for start in STARTS for g in crossfit.compared])
        starts = crossfit.starts()
    else:
        starts = [(trusted, balanced)]
    judged, to_beat = crossfit.judged_from(starts[0]), None
    for start in starts[1:]:
        if judged.verdict.undecided <= FEW:
            break
        to_beat = judged.verdict.log_likelihood if to_beat is None else to_beat
        again = crossfit.judged_from(start, to_beat)
        judged = judged if again.verdict.clean else again
    return judged if copies is None else replace(judged, verdict=judged.verdict.gathered(copies, labels, weights))


def _folds(hashes: Hashes, labels: Labels, s: Floats, k: int) -> Folds:
    """The fold of every row. One for all rows, the model of which has seen them, where a fold would be empty or leave
    no row of some class to the model that judges it."""
    fold = content_folds(hashes, labels, s, k)
    mass = np.zeros((k, int(labels.max()) + 1))
    np.add.at(mass, (fold, labels), s)
    left = mass.sum(axis=0) - mass
    possible = np.all(mass.sum(axis=1) > 0) and np.all(left[:, mass.sum(axis=0) > 0] > 0)
    return fold if possible else np.zeros_like(fold)


class _CrossFit:
    """The folds, and a model for each of them that is fitted to the rows of the others.

    others: for each fold the rows that its model is fitted to, or as many of them as a fit may see. sampled: those that
    its first model is fitted to, some of the others where these are many. begun: the first models that are there
    already, by what they trust and their fold. compared: the folds whose first models say what to trust.
    """

    def __init__(self, judges: Judges, hashes: Hashes, fold: Folds, n_jobs: Any) -> None:
        self.judges, self.fold, self.n_jobs = judges, fold, n_jobs
        self.folds = int(fold.max()) + 1
        self.compared = range(self.folds if judges.small else 1)
        there = judges.s > 0
        each = [np.flatnonzero(there & ((fold != g) | (self.folds == 1))) for g in range(self.folds)]
        self.others = [judges.some(rows, judges.most) for rows in each]
        self.sampled = [judges.some(rows, SAMPLE) if len(rows) > 2 * SAMPLE else rows for rows in self.others]
        self.begun: dict[tuple[Start, int], Array] = {}
        V, labels, s, seed, K = judges.V, judges.labels, judges.s, judges.seed, judges.K
        self.flexible = flexible_predictions(V, labels, s, seed, n_jobs, hashes, K) if self.folds > 1 else []
        self.boosted = BoostedOpinion(V, labels, s, seed, hashes, K)
        self.evidence, self.cells = kish_weights(s), cells_of(V, labels, s)

    def starts(self) -> list[Start]:
        """What models may trust, in the order in which to try it. Every label comes first; but half of the rows, or of
        each class, where such a model explains the labels it has not seen significantly better."""
        judges = self.judges
        rows = judges.some(np.flatnonzero((judges.s > 0) & (self.fold < len(self.compared))), SAMPLE)
        labels, s = judges.labels[rows], self.evidence[rows]
        likelihood = {}
        for start in STARTS:
            z = self.predict([self.begun[start, g] for g in self.compared], rows)
            likelihood[start] = estimate_noise([z], labels, s, largest=False).log_likelihood([z], labels)
        first = TRUSTING
        for start in STARTS[1:]:
            if significant(likelihood[start] - likelihood[first], s, SIGNIFICANT):
                first = start
        return [first, *(start for start in STARTS if start != first)]

    def begin(self, which: list[tuple[Start, int]]) -> list[Array]:
        """The first models of these kinds and folds, fitted when first asked for."""
        missing = [at for at in which if at not in self.begun]
        fitted = jobs(self.judges.trimmed, [(start, self.sampled[g]) for start, g in missing], self.n_jobs)
        self.begun.update(zip(missing, fitted, strict=True))
        return [self.begun[at] for at in which]

    def judged_from(self, start: Start, to_beat: Floats | None = None) -> JudgedLabels:
        """The verdict by models that begin so. Those that trust half of some rows are fitted to all only with the
        noise allowed for; or where there turns out to be none."""
        models = self.begin([(start, g) for g in range(self.folds)])
        further = [g for g in range(self.folds) if self.sampled[g] is not self.others[g]]
        if start in STARTS[1:]:
            judged = self.judge(models, to_beat)
            if not (judged.verdict.clean and further):
                return judged
        fitted = jobs(self.judges.trimmed, [(start, self.others[g], models[g]) for g in further], self.n_jobs)
        for g, x in zip(further, fitted, strict=True):
            models[g] = x
        return self.judge(models, to_beat)

    def judge(self, models: list[Array], to_beat: Floats | None) -> JudgedLabels:
        """The verdict by these models and by flexible ones; also by boosting, where many labels are in doubt and it
        explains those it has not seen significantly better."""
        judged = self._judged_with(models, self.flexible, to_beat)
        more = self.boosted.asked_about(judged.verdict) if self.folds > 1 else []
        if not more:
            return judged
        again = self._judged_with(models, [*self.flexible, *more], to_beat)
        return again if again.verdict.may_replace(judged.verdict) else judged

    def _judged_with(self, models: list[Array], flexible: list[Floats], to_beat: Floats | None) -> JudgedLabels:
        models, judges = list(models), self.judges

        def corrected(T: Floats) -> Floats:
            models[:] = jobs(partial(judges.corrected, T), zip(self.others, models, strict=True), self.n_jobs)
            return self.predict(models)

        opinions = [self.predict(models), *flexible]
        verdict = label_verdict(opinions, judges.labels, self.evidence, corrected, to_beat, self.cells)
        return JudgedLabels(verdict, sum(models) / len(models))

    def predict(self, models: list[Array], rows: Rows | None = None) -> Floats:
        """Predictions (m, K) of these rows, or of all, each by the model of its fold."""
        rows = np.arange(len(self.fold)) if rows is None else rows
        z = np.empty((len(rows), self.judges.K))
        for g, x in enumerate(models):
            own = np.flatnonzero(self.fold[rows] == g)
            z[own] = self.judges.predict(x, rows[own])
        return z
