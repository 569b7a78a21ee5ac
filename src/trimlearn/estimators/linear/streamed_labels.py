"""Logistic regression of datasets larger than memory, and of arrays with as many rows as these."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, final

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array
from trimlearn._utils.blocks import rows_apart, taken
from trimlearn._utils.residence import copy_on_device
from trimlearn._utils.threads import each, filled, team
from trimlearn._utils.validation import check_positive, is_sparse
from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.classifier import warn_of_lost_classes
from trimlearn.estimators.linear.examples import Examples
from trimlearn.estimators.linear.label_fits import (
    LabelFits,
    LeadRows,
    Sample,
    kept_rows,
)
from trimlearn.estimators.linear.label_rows import LabelJudge, LabelledRows, label_pieces
from trimlearn.estimators.linear.many_labels import check_classes, check_sampled, fit_many_labels
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.estimators.streamed import (
    StreamedData,
    can_stream,
    labels_of,
    refuse_choice,
    sample_size,
    set_column_names,
)
from trimlearn.losses.storage import open_storage
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed import TrimmedHere, WeighedHere, newton_streamed
from trimlearn.robust.trimming import trimming
from trimlearn.smart import svrg
from trimlearn.smart.method import FEW, concentration_records
from trimlearn.solution import Status
from trimlearn.solve import solve
from trimlearn.streams import Dataset, open_dataset
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

ENOUGH = 20.0  # passes for a model of many parameters: what TrimmedLogisticRegression takes for large arrays
FEW_LABELS = 1000  # rows whose labels are likely all there are: a choice, checked against the others


def fit_logistic_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    check_positive(model.C, "C")
    refuse_choice(model)
    if model.penalty not in (None, "l2") or model.class_weight is not None or model.balanced_trimming:
        raise ValueError(
            "data larger than memory are fitted with penalty=None or 'l2', without class_weight and balanced_trimming; "
            "fit other models to a sample of the rows."
        )
    q = data.p + bool(model.fit_intercept)
    streamed = StreamedData(data, model._seed(), shuffled=q > FEW)
    classes, codes = _labels(streamed)
    K = len(classes)
    if K > 2 and not streamed.shuffled and q * K > FEW:  # which nobody could know
        streamed = replace(streamed, shuffled=True)
        classes, codes = _labels(streamed)
    set_column_names(model, data)
    vars(model).pop("_training", None)
    model.classes_ = classes
    _fit(model, streamed, classes, codes, h)


def fit_logistic_rows(model: Any, data: Examples, h: float | None) -> bool:
    """Fit ``model`` to many rows in memory as to those of a stream, so that the same rows give the same fit whatever
    they lie in; labels are the numbers of its classes. False: it was not, because there are few rows or many
    parameters, or something was asked for that streams cannot do."""
    (n, p), K = data.X.shape, len(model.classes_)
    m, q = sample_size(n, p), p + bool(model.fit_intercept)
    tall = n > m and q * (1 if K == 2 else K) <= FEW
    if not tall or data.s is not None or is_sparse(data.X) or not can_stream(model, p):
        return False
    seed = model._seed()
    if copy_on_device(data.X) is not None or len(np.unique(data.t[rows_apart(n, m, seed)])) < K:
        return False
    streamed = StreamedData(open_dataset(np.ascontiguousarray(data.X), data.t), seed)
    fits, judge, noise = _fit(model, streamed, *_labels(streamed), h)
    model._training, model._judged = data, JudgedLabels(fits.rows.verdict(judge, noise), model._x)
    return True


def _fit(
    model: Any, streamed: StreamedData, classes: np.ndarray, codes: np.ndarray, h: float | None
) -> tuple[StreamedLabelFits, LabelJudge, LabelNoise]:
    """The fit: all rows, who judged their labels, and how these are mistaken."""
    known = streamed.fitted_to_sample(model, partial(labels_of, streamed.data))
    check_sampled(known, classes)
    fits = StreamedLabelFits(model, streamed, codes, known)
    with team():
        return fits, *fit_many_labels(fits, h)


@final
class StreamedLabelFits(LabelFits):
    """All rows in this process, mapped or in memory."""

    def __init__(self, model: Any, streamed: StreamedData, codes: np.ndarray, known: Any) -> None:
        X, t = streamed.sample
        sample = Sample(X, known._codes(labels_of(streamed.data, t)), None, streamed.seed)
        super().__init__(model, streamed.data.shape, float(streamed.data.n), sample, known)
        self.restored, self.rows = streamed.copy.restored, LabelledRows(streamed.X, codes, self.K)

    def draw_in(self) -> None:
        if self.model._bounds.rows_beyond(self.rows.X).any():
            self.rows = replace(self.rows, X=np.asarray(self.model._bounds.clip(self.rows.X)))

    def hold(self, judge: LabelJudge | None) -> None:
        self.rows = replace(self.rows, z=None) if judge is None else self.rows.holding(judge)

    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        return self.rows.counted(judge, noise)

    def quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        scores = self.rows.scores(judge, noise)
        place = int(kept_rows(share, self.n)) - 1
        return inf if place == self.n - 1 else float(np.partition(scores, place)[place])

    def trimmed(self, x: Array, share: float) -> LinearFit:
        loss = self.loss(self.rows.codes, open_storage(self.rows.X))
        x, h = x.astype(loss.like.dtype), share * self.n
        if self.parameters <= FEW:
            all_rows = TrimmedHere(loss, share)
            x, values = newton_streamed(all_rows, x, self.ridge, self.trimmed_lead(share))
            w = all_rows.weights()
        else:
            found = self._solved(loss, CappedSimplex(h), x)
            x, values = found.x, [record.objective for record in found.history]
            w = trimming(f := np.asarray(found.losses), h).of(f)
        classes, kept = self.model.classes_, self.rows.kept(w)
        warn_of_lost_classes(classes, np.ones(self.K), kept, "Lower contamination.")
        return LinearFit(x, self.restored(w), values[-1], concentration_records(values, h), Status.CONVERGED)

    def fitted(self, judge: LabelJudge, noise: LabelNoise, x: Array, cut: float | None) -> Array:
        storage, lead = open_storage(self.rows.X), self.lead
        x = x.astype(storage.like.dtype)
        if cut is not None and self.parameters > FEW:
            raise ValueError("contamination must be 'auto' for so many columns and classes, or reweight=False.")
        if cut is not None:
            w = self.rows.scores(judge, noise) <= cut
            ahead = lead.weighed(self.loss(lead.codes, lead.storage), taken(w, lead.at))
            rows = WeighedHere(self.loss(self.rows.codes, storage), w)
            return newton_streamed(rows, x, self.ridge, ahead)[0]
        P = self.rows.classes(judge, noise)
        if judge.flexible is None:  # nobody asks for what is held any more
            self.hold(None)
        loss = self.loss(P, storage)
        if self.parameters > FEW:
            return self._solved(loss, AllOnes(), x).x
        ahead = lead.weighed(self.loss(taken(P, lead.at), lead.storage))
        return newton_streamed(WeighedHere(loss), x, self.ridge, ahead)[0]

    def _solved(self, loss: Any, r1: WeightSet, x: Array) -> Any:
        model = self.model
        method = svrg(sampling="blocks") if model.method is None else model.method
        passes = ENOUGH if model.max_passes is None else float(model.max_passes)
        problem = Problem(loss, r1, Ridge(self.ridge))
        return solve(problem, method, x0=x, max_passes=passes, tol=1e-3, seed=model._seed())

    def publish(self, judge: LabelJudge, noise: LabelNoise) -> None:
        """In the order of the files."""
        model = self.model
        scores, suggested = self.rows.scored(judge, noise)
        model.suggested_labels_ = model.classes_[self.restored(suggested)]
        del suggested
        model.outlier_scores_ = self.restored(scores)
        del scores
        model.outlier_probability_ = np.empty_like(model.outlier_scores_)
        model.weights_ = np.empty_like(model.outlier_scores_) if model.reweight else model.raw_weights_

        def part(at: slice) -> None:
            model.outlier_probability_[at] = expit(model.outlier_scores_[at])
            if model.reweight:
                model.weights_[at] = model.outlier_scores_[at] <= model.threshold_

        each(part, label_pieces(self.n))

    def _taken(self, slices: list[slice]) -> LeadRows:
        return LeadRows.of(slices, taken(self.rows.X, slices), taken(self.rows.codes, slices).astype(np.int64), None)


def _labels(streamed: StreamedData) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and the number of the class of each row, in the order of the copy: the mapped targets themselves
    where these are 0 and 1."""
    data, t, pieces = streamed.data, streamed.t, label_pieces(streamed.data.n)
    values = np.unique(np.concatenate([_distinct(t[at]) for at in pieces]))
    classes = np.unique(labels_of(data, values))
    check_classes(classes, len(t) ** 0.5 + 1)
    if list(values) == [0, 1] and t.dtype == streamed.X.dtype:
        return classes, t
    codes = np.empty(len(t), np.int32)
    return classes, filled(codes, lambda at: places(labels_of(data, t[at]), classes), pieces)


def _distinct(t: np.ndarray) -> np.ndarray:
    """The different labels among t; quickly where these are a few of the first."""
    few = np.unique(t[:FEW_LABELS])
    return few if len(few) < FEW_LABELS // 2 and np.isin(t, few).all() else np.unique(t)
