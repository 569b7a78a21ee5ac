"""Generalised linear models and robust losses of a dataset larger than memory: by a sample of its rows, then by all."""

from __future__ import annotations

from math import nan, prod
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.digits import summarised
from trimlearn._utils.threads import each, team
from trimlearn.estimators.linear.data import Examples
from trimlearn.estimators.linear.doubts import warn_of_exact_fit
from trimlearn.estimators.streamed import StreamedData, column_names, refuse_choice, refuse_text
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.storage import open_storage
from trimlearn.progress import stage
from trimlearn.robust.regression.streamed_mm import all_of_them
from trimlearn.robust.scale import judge, raw_scale
from trimlearn.robust.streamed import RowsHere, WeighedHere, newton_streamed, trimmed_newton
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Record
from trimlearn.smart.sizes import FEW
from trimlearn.streams import Dataset

__all__ = ["fit_glm_stream"]

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
SAME = 1e-5  # share of the cut-off by which it moves, if it does not: a tenth of what a summary can tell
PIECE = 1 << 16  # rows looked at in one go by a thread: a limit on memory, some 0.5 MB a column in float64


def fit_glm_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out.

    The fit to a sample, with all that a fit to arrays does, says where to start; all rows decide the trimmed fit, the
    scale, the cut-off, the share of bad rows and the coefficients.
    """
    q = data.p + bool(model.fit_intercept)
    if model.penalty not in (None, "l2") or q > FEW:
        raise ValueError(
            f"data larger than memory are fitted with penalty=None or 'l2' and at most {FEW} coefficients; fit other "
            "models to a sample of the rows."
        )
    refuse_choice(model)
    refuse_text(model, data)
    streamed = StreamedData(data, model._seed())
    rows = _Rows(model, streamed)
    known = streamed.fitted_to_sample(model)
    column_names(model, data)
    model._covariance = None
    vars(model).pop("_training", None)
    with team():
        loss = rows.loss(known._unit)
        all_rows = RowsHere(loss)
        half = rows.half()
        keep = half if h is None else h
        stage(f"trimmed fit, keeping {keep:.0f} of {data.n} rows")
        x, objectives = trimmed_newton(all_rows, known._x.astype(loss.like.dtype), keep / data.n, rows.ridge(keep))
        verdict = rows.judged(x, keep, known.scale_)
        model.contamination_ = verdict.contamination if h is None else 1 - h / data.n
        if h is None and not model.reweight:
            keep = data.n * (1 - verdict.contamination)
            x, objectives = trimmed_newton(all_rows, x, keep / data.n, rows.ridge(keep))
        model._x, model.objective_ = x, objectives[-1]
        model.history_ = [Record(k, 2.0 * k + 1, F, nan, nan, keep, nan) for k, F in enumerate(objectives)]
        model.n_iter_ = max(1, len(objectives) - 1)
        model.raw_coef_, model.raw_intercept_ = model._parts(x)
        values, counts = summarised(rows.residuals(x), known.scale_)
        model.raw_scale_ = raw_scale(values, keep, q, counts, intercept=model.fit_intercept)
        model.raw_weights_ = streamed.copy.restored(all_rows.weights())
        del all_rows
        kept = np.ones(data.n, dtype=bool)
        for _ in range(ROUNDS if model.reweight else 0):
            cut, r = verdict.cutoff * verdict.scale, rows.residuals(x)
            for at in rows.pieces():
                kept[at] = np.abs(r[at]) <= cut
            x = newton_streamed(WeighedHere(loss, kept.__getitem__), x, rows.ridge(None))
            verdict = rows.judged(x, keep, known.scale_)
            if abs(verdict.cutoff * verdict.scale - cut) <= SAME * cut:
                break
        final = rows.judged(x, half, known.scale_)
    model.coef_, model.intercept_ = model._parts(x)
    model.scale_, model.threshold_ = final.scale, final.cutoff
    _keep_rows(model, streamed, rows, x, kept)
    if model._law.family.dispersed and final.scale <= rows.floor:
        warn_of_exact_fit(model.weights_)


class _Rows:
    """All rows of the copy, and what a model says of them."""

    def __init__(self, model: Any, streamed: StreamedData) -> None:
        self.model, self.n = model, streamed.data.n
        self.V, self.t = streamed.X, streamed.t.astype(streamed.X.dtype, copy=False)
        self.storage, self.q = open_storage(streamed.X), streamed.data.p + bool(model.fit_intercept)
        for at in self.pieces():
            model._law.check(Examples(self.V[at], self.t[at]))
        some = streamed.sample[1].astype(self.t.dtype, copy=False)
        self.floor = model._law.floor(self.t if model.loss in ("poisson", "gamma") else some)
        if model.loss == "binomial" and np.all((some == 0) | (some == 1)):
            raise ValueError("labels 0 and 1 in data larger than memory are for TrimmedLogisticRegression.")

    def pieces(self) -> list[slice]:
        return [slice(i, min(i + PIECE, self.n)) for i in range(0, self.n, PIECE)]

    def half(self) -> float:
        """What `RegressionLaw.half` says of arrays."""
        half = min(self.n, (self.n + self.q + 1) // 2)
        positive = sum(int(np.count_nonzero(self.t[at] > 0)) for at in self.pieces())
        return float(max(half, self.n - positive // 2) if self.model.loss == "poisson" else half)

    def loss(self, unit: float) -> PredictionLoss:
        found: PredictionLoss = self.model._law.make(_Mapped(self.storage, self.t), unit, self.model.fit_intercept)
        assert prod(found.x_shape) == self.q, "one prediction for each row"
        return found

    def ridge(self, h: float | None) -> float:
        """What stands before ½‖x‖² beside the mean of the losses."""
        return 0.0 if self.model.penalty is None else float(self.model.alpha) * (1.0 if h is None else h / self.n)

    def residuals(self, x: Array) -> np.ndarray:
        coef, intercept = self.model._parts(x)
        r = np.empty(self.n, np.float32)

        def part(at: slice) -> None:
            r[at] = self.model._law.residuals(self.t[at], self.V[at] @ coef + intercept)

        each(part, self.pieces())
        return r

    def judged(self, x: Array, h: float, unit: float) -> Verdict:
        """The verdict on all rows, from a summary of their residuals."""
        values, counts = summarised(self.residuals(x), unit)
        verdict = judge(values, h, self.q, counts, intercept=self.model.fit_intercept, floor=self.floor)
        return all_of_them(verdict, unit)


class _Mapped:
    """Rows as the model's losses take them."""

    def __init__(self, X: Any, t: np.ndarray) -> None:
        self.X, self.t = X, t


def _keep_rows(model: Any, streamed: StreamedData, rows: _Rows, x: Array, kept: np.ndarray) -> None:
    """What is known of every row, in the order of the files."""
    scores = rows.residuals(x)
    np.abs(scores, out=scores)
    scores /= np.float32(model.scale_)
    chance = np.empty_like(scores)
    family, (coef, intercept) = model._law.family, model._parts(x)

    def part(at: slice) -> None:
        mean = family.mean(np.asarray(rows.V[at] @ coef + intercept, dtype=np.float64))
        chance[at] = family.p_values(rows.t[at].astype(np.float64), mean, model.scale_)

    each(part, rows.pieces())
    np.clip(chance, np.float32(1e-38), 1.0, out=chance)
    values, counts = summarised(np.log(chance, out=np.empty_like(chance)), 1.0)
    wrong = row_probabilities(np.minimum(1.0, np.exp(values)), counts)
    model.outlier_scores_ = streamed.copy.restored(scores)
    model.outlier_probability_ = np.interp(np.log(chance), values, wrong).astype(np.float32)
    model.outlier_probability_ = streamed.copy.restored(model.outlier_probability_)
    model.weights_ = streamed.copy.restored(kept).astype(np.float32) if model.reweight else model.raw_weights_
