"""Linear regression of a dataset larger than memory: by a sample of its rows, then by all of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import Any, final

import numpy as np
from scipy.special import stdtr

from trimlearn._utils.digits import summarised
from trimlearn._utils.threads import each, team
from trimlearn.estimators.linear.doubts import warn_of_exact_fit
from trimlearn.estimators.streamed import StreamedData, column_names, refuse_choice, refuse_text
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses.exact import COLUMNS, solve_symmetric
from trimlearn.progress import stage
from trimlearn.robust.regression.chance import are_few
from trimlearn.robust.regression.psi import Lqq
from trimlearn.robust.regression.streamed_lts import Concentrated, concentrated
from trimlearn.robust.regression.streamed_mm import RowMetric, all_of_them, smoothed
from trimlearn.robust.regression.streamed_rows import RowsElsewhere, StreamedRows
from trimlearn.robust.scale import judge, raw_scale
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Record
from trimlearn.streams import Dataset

__all__ = ["FinalFit", "final_fit", "fit_linear_stream", "judged_rows"]

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
SAME = 1e-5  # share of the cut-off by which it moves, if it does not: a tenth of what a summary can tell
TRIED = 10_000  # residuals whose mean says of about what size they are: a limit on time
TINY = 1e-300  # stands for a scale of 0: the smallest power of ten whose inverse is finite, and some room
PIECE = 1 << 17  # rows whose weights and probabilities are found in one go by a thread: a limit on memory, 1 MB each


@final
@dataclass(frozen=True)
class FinalFit:
    """Coefficients, residuals and verdict of the last fit; ψ where weights fall smoothly."""

    u: np.ndarray
    r: Any
    verdict: Verdict
    psi: Lqq | None


def fit_linear_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out.

    The fit to a sample, with all that a fit to arrays does, says where to start and how errors are spread (its ψ). All
    rows decide the rest: the trimmed fit, the scale, the cut-off, the share of bad rows and the coefficients.
    """
    refuse_choice(model)
    if model.penalty not in (None, "l2") or model.criterion != "lts" or data.p >= COLUMNS:
        raise ValueError(
            f"data larger than memory are fitted by criterion='lts' with penalty=None or 'l2' and fewer than {COLUMNS} "
            "columns; fit other models to a sample of the rows."
        )
    refuse_text(model, data)
    streamed = StreamedData(data, model._seed())
    known = streamed.fitted_to_sample(model)
    rows = _rows(model, streamed)
    unit = max(known.scale_, rows.floor, TINY)
    with team():
        stage(f"least trimmed squares of {data.n:,} rows")
        half = (data.n + rows.q + 1) // 2
        keep = float(half) if h is None else h
        raw = concentrated(rows, rows.standardised(known.raw_coef_, known.raw_intercept_), keep)
        if h is None and not model.reweight:
            keep = data.n * (1 - judged_rows(model, rows, raw.r, keep, unit).contamination)
            raw = concentrated(rows, raw.u, keep)
        column_names(model, data)
        model._covariance, model._noise, model._bread = None, None, 1.0
        vars(model).pop("_training", None)
        _keep_raw(model, streamed, rows, raw, keep)
        last = final_fit(model, rows, (raw.u, raw.r), keep, h, unit)
        model.coef_, model.intercept_ = model._parts(rows.plain(last.u))
        model.scale_, model.threshold_ = last.verdict.scale, last.verdict.cutoff
        model.contamination_ = last.verdict.contamination if h is None else 1 - h / data.n
        _keep_rows(model, streamed, last)
    if last.verdict.scale <= rows.floor:
        warn_of_exact_fit(model.weights_)


def _rows(model: Any, streamed: StreamedData) -> StreamedRows:
    p, A = streamed.data.p, streamed.sample[0]  # only for the scale of sums: any rows would do
    center = np.median(A, axis=0) if model.fit_intercept else np.zeros(p)
    scale = np.sqrt(np.mean((A - center) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    penalty = np.zeros(p + bool(model.fit_intercept))
    if model.penalty == "l2":
        penalty[:p] = model.alpha / scale**2
    t = streamed.t.astype(streamed.X.dtype, copy=False)
    return StreamedRows(streamed.X, t, center, scale, bool(model.fit_intercept), penalty)


def judged_rows(model: Any, rows: RowsElsewhere, r: Any, h: float, unit: float) -> Verdict:
    """The verdict on all rows, from a summary of their residuals, which are of about the size of ``unit``."""
    values, counts = rows.summary(r, unit)
    tails = model.efficiency == "mm" and model.penalty is None
    verdict = judge(values, h, rows.q, counts, intercept=model.fit_intercept, floor=rows.floor, tails=tails)
    return all_of_them(verdict, unit, rows.edge)


def final_fit(
    model: Any, rows: RowsElsewhere, raw: tuple[np.ndarray, Any], keep: float, h: float | None, unit: float
) -> FinalFit:
    """The final coefficients, residuals and verdict, from those of the trimmed fit that kept ``keep``."""
    half = (rows.n + rows.q + 1) // 2
    first = judged_rows(model, rows, raw[1], keep, unit)
    if not model.reweight:
        return FinalFit(raw[0], raw[1], first if keep == half else judged_rows(model, rows, raw[1], half, unit), None)
    u, r, verdict = raw[0], raw[1], first
    metric: RowMetric | None = None
    for _ in range(ROUNDS):
        cut = verdict.cutoff * verdict.scale

        def weigh(a: np.ndarray, cut: float = cut) -> np.ndarray:
            return np.asarray(np.abs(a) <= cut, dtype=a.dtype)

        if metric is None:  # of the next rounds it is about the same, and what is missing comes with their steps
            metric = RowMetric(rows.curvature(weigh, r), float(rows.n - rows.flagged(r, cut)))
        u = u + solve_symmetric(metric.G, rows.slope(weigh, r, u)[:, None])[:, 0]
        r = rows.residuals(u)
        verdict = judged_rows(model, rows, r, keep, unit)
        if abs(verdict.cutoff * verdict.scale - cut) <= SAME * cut:
            break
    assert metric is not None, "there is a round"
    if model.efficiency == "mm" and model.penalty is None and verdict.scale > rows.floor:
        stage("weights that fall smoothly with the residual")
        trusted = h is not None or are_few(rows.n, rows.q)
        found = smoothed(rows, (raw[0], first), (u, verdict), metric, trusted, intercept=model.fit_intercept)
        model._noise, model._bread = found.noise, found.bread
        return FinalFit(found.u, found.r, found.verdict, found.psi)
    return FinalFit(u, r, judged_rows(model, rows, r, half, unit), None)


def _keep_raw(model: Any, streamed: StreamedData, rows: StreamedRows, raw: Concentrated, keep: float) -> None:
    """What is known of the trimmed fit."""
    model._x = rows.plain(raw.u)
    model.raw_coef_, model.raw_intercept_ = model._parts(model._x)
    model.objective_ = raw.objectives[-1]
    model.history_ = [Record(k, 2.0 * k + 1, value, nan, nan, keep, nan) for k, value in enumerate(raw.objectives)]
    model.n_iter_ = max(1, len(raw.objectives) - 1)
    model.raw_weights_ = streamed.copy.restored(raw.weights())
    values, counts = summarised(raw.r, max(float(np.abs(raw.r[:: max(1, len(raw.r) // TRIED)]).mean()), TINY))
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)


def _keep_rows(model: Any, streamed: StreamedData, last: FinalFit) -> None:
    """What is known of every row, in the order of the files."""
    scores = last.r  # which nobody needs any more
    np.abs(scores, out=scores)
    scores /= scores.dtype.type(model.scale_)
    values, counts = summarised(scores, 1.0)
    freedom = max(1.0, float(counts[values <= model.threshold_].sum()) - model._parameters)
    chance = row_probabilities(np.minimum(1.0, 2.0 * stdtr(freedom, -values)), counts)
    model.outlier_scores_ = streamed.copy.restored(scores)
    model.outlier_probability_ = np.empty_like(model.outlier_scores_)
    model.weights_ = np.empty_like(model.outlier_scores_) if model.reweight else model.raw_weights_
    near = values[chance > 0].min(initial=inf)  # up to there it is 0

    def part(at: slice) -> None:
        t = model.outlier_scores_[at]
        far = np.flatnonzero(t >= near)
        model.outlier_probability_[at] = 0
        model.outlier_probability_[at][far] = np.interp(t[far], values, chance)
        if model.reweight:
            model.weights_[at] = (t <= model.threshold_) * (1 if last.psi is None else last.psi.weight(t))

    each(part, _pieces(streamed.data.n))


def _pieces(n: int) -> list[slice]:
    return [slice(i, min(i + PIECE, n)) for i in range(0, n, PIECE)]
