"""Regressions of datasets larger than memory: by a sample of their rows, then by all of them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.digits import summarised, upper_edge
from trimlearn._utils.threads import each, filled, team
from trimlearn.engines.cluster.rows import ShardRows
from trimlearn.estimators.linear.many_regression import (
    ExplainedRows,
    RegressionRows,
    explained_weights,
    fit_regression,
    refuse_labels,
)
from trimlearn.estimators.linear.many_rows import FinalFit, TrimmedRegression, fit_many_rows, standards
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.estimators.streamed import StreamedData, refuse_choice, refuse_text, set_column_names
from trimlearn.losses.exact import COLUMNS
from trimlearn.losses.storage import open_storage
from trimlearn.progress import stage
from trimlearn.robust.regression.streamed_lts import concentrated
from trimlearn.robust.regression.streamed_rows import StreamedRows, Summary
from trimlearn.robust.streamed import TrimmedHere, WeighedHere, newton_streamed
from trimlearn.robust.trimming import pieces_of
from trimlearn.smart.method import FEW, concentration_records
from trimlearn.solution import Status
from trimlearn.streams import Dataset

PIECE = 1 << 16  # rows looked at in one go by a thread: a limit on memory, some 0.5 MB a column in float64


def fit_linear_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    refuse_choice(model)
    if model.penalty not in (None, "l2") or model.criterion != "lts" or data.p >= COLUMNS:
        raise ValueError(
            f"data larger than memory are fitted by criterion='lts' with penalty=None or 'l2' and fewer than {COLUMNS} "
            "columns; fit other models to a sample of the rows."
        )
    refuse_text(model, data)
    streamed = StreamedData(data, model._seed())
    known = streamed.fitted_to_sample(model)
    center, scale, penalty = standards(model, streamed.sample[0])
    t = streamed.t.astype(streamed.X.dtype, copy=False)
    rows = StreamedRows(streamed.X, t, center, scale, bool(model.fit_intercept), penalty)

    def trimmed(u: np.ndarray, h: float) -> TrimmedRegression:
        stage(f"least trimmed squares of {data.n:,} rows")
        found = concentrated(rows, u, h)
        history = concentration_records(found.objectives, h)
        return TrimmedRegression(found.u, found.r, found.objectives[-1], history, found.weights())

    set_column_names(model, data)
    with team():
        fit_many_rows(model, rows, known, h, trimmed, lambda last: _publish(model, last))


def _publish(model: Any, last: FinalFit) -> None:
    """What is known of every row, in the order of the files."""
    scores = model.outlier_scores_ = last.r  # which nobody needs any more
    chance = model.outlier_probability_ = np.empty_like(scores)
    if model.reweight:
        model.weights_ = np.empty_like(scores)
    near = last.scores[last.chance > 0].min(initial=inf)  # up to there it is 0

    def part(at: slice) -> None:
        t = scores[at]
        np.abs(t, out=t)
        t /= t.dtype.type(model.scale_)
        far = np.flatnonzero(t >= near)
        chance[at] = 0
        chance[at][far] = last.chances(t[far])
        if model.reweight:
            model.weights_[at] = last.weights(t)

    each(part, pieces_of(len(scores), PIECE))


def fit_glm_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    q = data.p + bool(model.fit_intercept)
    if model.penalty not in (None, "l2") or q > FEW:
        raise ValueError(
            f"data larger than memory are fitted with penalty=None or 'l2' and at most {FEW} coefficients; fit other "
            "models to a sample of the rows."
        )
    refuse_choice(model)
    refuse_text(model, data)
    streamed = StreamedData(data, model._seed())
    refuse_labels(model, streamed.sample[1])
    known = streamed.fitted_to_sample(model)
    set_column_names(model, data)
    vars(model).pop("_training", None)
    with team():
        fit_regression(_StreamedRegression(model, streamed, known), model._law, [known._x], h)


@final
class _StreamedRegression(RegressionRows):
    """All rows of a dataset, mapped, in pieces. ``known``: the fit to a sample of them."""

    def __init__(self, model: Any, streamed: StreamedData, known: Any) -> None:
        law, V = model._law, streamed.X
        self.n, self.V, self.t = len(V), V, streamed.t.astype(V.dtype, copy=False)
        floor = law.floor(streamed.sample[1].astype(V.dtype, copy=False))
        q = V.shape[1] + bool(model.fit_intercept)
        super().__init__(model, law, float(self.n), q, floor, known.scale_)
        mapped: Any = SimpleNamespace(X=open_storage(V), t=self.t)  # as examples, but not copied
        self.loss = law.make(mapped, known._unit, model.fit_intercept)

    def trimmed(self, x: Array, h: float) -> LinearFit:
        stage(f"trimmed fit, keeping {h:.0f} of {self.n} rows")
        rows = TrimmedHere(self.loss, h / self.n)
        x, F = newton_streamed(rows, x.astype(self.loss.like.dtype), self._ridge(h / self.n))
        return LinearFit(x, rows.weights(), F[-1], concentration_records(F, h), Status.CONVERGED)

    def refitted(self, x: Array, kept: ExplainedRows) -> Array:
        w = self.column(explained_weights, kept)
        ridge = self._ridge(float(w.mean(dtype=np.float64)))
        return newton_streamed(WeighedHere(self.loss, w), x, ridge)[0]

    def total(self, task: Callable[..., float], *args: Any) -> float:
        return sum(each(lambda at: task(self._block(at), *args), self._pieces()))

    def column(self, task: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        return filled(np.empty(self.n, np.float32), lambda at: task(self._block(at), *args), self._pieces())

    def tally(self, unit: float, task: Callable[..., np.ndarray], *args: Any) -> Summary:
        return summarised(self.column(task, *args), unit)

    def edge(self, value: float, unit: float) -> float:
        return upper_edge(value, unit)

    def _ridge(self, share: float) -> float:
        """What stands before ½‖x‖² beside the mean over all rows, of which a share is kept."""
        return 0.0 if self.model.penalty is None else float(self.model.alpha) * share

    def _pieces(self) -> list[slice]:
        return pieces_of(self.n, PIECE)

    def _block(self, at: slice) -> ShardRows:
        return ShardRows(self.V[at], self.t[at])
