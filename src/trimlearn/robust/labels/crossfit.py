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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.threads import jobs
from trimlearn.losses import Logistic, Softmax
from trimlearn.robust.distinct import Folds, Hashes, content_folds, row_hashes, taken_rows
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.copies import apart, are_observations, kish_weights
from trimlearn.robust.labels.few_values import cells_of
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.judges import SAMPLE, Judges, Rows, Start, other_rows_loss
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.noise_level import estimate_noise
from trimlearn.robust.labels.proof import FEW, significant
from trimlearn.robust.labels.verdict import LabelVerdict, label_verdict
from trimlearn.smart.method import Method

TRUSTED = 0.5  # share of the rows that a wary model trusts: most labels are right, or nothing can be done
TRUSTING: Start = (1.0, False)  # by definition: every row, whatever its class
STARTS: tuple[Start, ...] = (TRUSTING, (TRUSTED, False), (TRUSTED, True))  # all, half, half of each class
SIGNIFICANT = 2.0  # standard errors by which a wary model must be better: a test at 2.3 %, for there are two of them
WRITTEN = 10_000  # rows that copies are written out as, a limit on time: of more, the cells they share are known well
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
    trust this share of every class, so that a rare one is not wiped out. seed: of draws from many rows; what is said
    of few does not depend on it. n_jobs: models that are fitted at a time.

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
    if s is not None and weights.sum() <= WRITTEN and are_observations(hashes, labels, weights):
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
        if not judged.verdict.clean or judged.verdict.undecided <= FEW:
            break
        to_beat = judged.verdict if to_beat is None else to_beat
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
        # Of few rows a forest's draws can decide what is proven: like the folds, they depend on the rows alone.
        seed = 0 if judges.small else judges.seed
        V, labels, s, K = judges.V, judges.labels, judges.s, judges.K
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

    def judged_from(self, start: Start, to_beat: LabelVerdict | None = None) -> JudgedLabels:
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

    def judge(self, models: list[Array], to_beat: LabelVerdict | None) -> JudgedLabels:
        """The verdict by these models and by flexible ones; also by boosting, where many labels are in doubt and it
        explains those it has not seen significantly better."""
        judged = self._judged_with(models, self.flexible, to_beat)
        more = self.boosted.asked_about(judged.verdict) if self.folds > 1 else []
        if not more:
            return judged
        again = self._judged_with(models, [*self.flexible, *more], to_beat)
        return again if again.verdict.may_replace(judged.verdict) else judged

    def _judged_with(self, models: list[Array], flexible: list[Floats], to_beat: LabelVerdict | None) -> JudgedLabels:
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
