"""The fits to all rows of a dataset larger than memory, or of arrays, that logistic regression makes."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any, final

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array
from trimlearn._utils.blocks import taken
from trimlearn._utils.threads import each
from trimlearn.estimators.linear.label_fits import (
    LabelFits,
    LeadRows,
    Sample,
    TrimmedLabels,
    kept_rows,
    warn_of_lost_classes,
)
from trimlearn.estimators.linear.label_rows import LabelJudge, LabelledRows, label_pieces
from trimlearn.estimators.linear.streamed_classes import StreamedLabels
from trimlearn.estimators.streamed import StreamedData
from trimlearn.losses.storage import open_storage
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed import RowsHere, WeighedHere, newton_streamed, trimmed_newton, trimming
from trimlearn.smart import svrg
from trimlearn.smart.method import Record
from trimlearn.smart.sizes import FEW
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["StreamedLabelFits"]

ENOUGH = 20.0  # passes for a model of many parameters: what TrimmedLogisticRegression takes for large arrays


@final
class StreamedLabelFits(LabelFits):
    """All rows in this process, mapped or in memory."""

    def __init__(self, model: Any, streamed: StreamedData, labels: StreamedLabels, known: Any) -> None:
        X, t = streamed.sample
        sample = Sample(X, known._codes(labels.written(t)), None, streamed.seed)
        super().__init__(model, streamed.data.shape, float(streamed.data.n), sample, known)
        self.restored, self.labels = streamed.copy.restored, labels
        self.rows = LabelledRows(streamed.X, labels, self.K)

    def draw_in(self) -> None:
        if self.model._bounds.rows_beyond(self.rows.X).any():
            self.rows = replace(self.rows, X=np.asarray(self.model._bounds.clip(self.rows.X)))

    def hold(self, judge: LabelJudge | None) -> None:
        self.rows = replace(self.rows, z=None) if judge is None else self.rows.holding(judge)

    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        return self.rows.counted(judge, noise)

    def quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        scores = self.rows.scored(judge, noise)[0]
        place = int(kept_rows(share, self.n)) - 1
        return inf if place == self.n - 1 else float(np.partition(scores, place)[place])

    def trimmed(self, x: Array, share: float) -> TrimmedLabels:
        loss = self.loss(self.labels.target(), open_storage(self.rows.X))
        x, h = x.astype(loss.like.dtype), share * self.n
        if self.parameters <= FEW:
            all_rows = RowsHere(loss)
            x, values = trimmed_newton(all_rows, x, share, self.ridge, self.trimmed_lead)
            w = all_rows.weights()
        else:
            found = self._solved(loss, CappedSimplex(h), x)
            x, values = found.x, [record.objective for record in found.history]
            w = trimming(f := np.asarray(found.losses), h).of(f)
        warn_of_lost_classes(self.model, self.rows.kept(w))
        self.model.raw_weights_ = self.restored(w)
        return TrimmedLabels(x, values[-1], [Record(k, 2.0 * k + 1, F, nan, nan, h, nan) for k, F in enumerate(values)])

    def fitted(self, judge: LabelJudge, noise: LabelNoise, x: Array, cut: float | None) -> Array:
        storage, lead = open_storage(self.rows.X), self.lead
        x = x.astype(storage.like.dtype)
        if cut is not None and self.parameters > FEW:
            raise ValueError("contamination must be 'auto' for so many columns and classes, or reweight=False.")
        if cut is not None:
            w = self.rows.scored(judge, noise)[0] <= cut
            ahead = lead.weighed(self.loss(lead.codes, lead.storage), taken(w, lead.at))
            return newton_streamed(
                WeighedHere(self.loss(self.labels.target(), storage), w.__getitem__), x, self.ridge, ahead
            )
        P = self.rows.classes(judge, noise)
        if judge.flexible is None:  # nobody asks for what is held any more
            self.hold(None)
        loss = self.loss(P, storage)
        if self.parameters > FEW:
            return self._solved(loss, AllOnes(), x).x
        ahead = lead.weighed(self.loss(taken(P, lead.at), lead.storage))
        return newton_streamed(WeighedHere(loss), x, self.ridge, ahead)

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
        codes = np.concatenate([self.labels.codes(at) for at in slices])
        return LeadRows.of(slices, taken(self.rows.X, slices), codes, None)
