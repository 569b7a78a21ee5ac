"""Linear regression of a dataset larger than memory: by a sample of its rows, then by all of them."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from scipy.special import stdtr

from trimlearn._utils.digits import summarised
from trimlearn._utils.threads import team
from trimlearn.estimators.streamed import StreamedData, column_names
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses.exact import COLUMNS, solve_symmetric
from trimlearn.progress import stage
from trimlearn.robust.regression.streamed import Concentrated, StreamedRows, concentrated, smoothed
from trimlearn.robust.scale import judge, raw_scale, rounding_floor
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Record
from trimlearn.streams import Dataset

__all__ = ["fit_linear_stream"]

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
PIECE = 1 << 20  # rows whose weights and probabilities are found in one go: a limit on memory, some 8 MB a column


def fit_linear_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out.

    The fit to a sample, with all that a fit to arrays does, says where to start and how errors are spread (its ψ). All
    rows decide the rest: the trimmed fit, the scale, the cut-off, the share of bad rows and the coefficients.
    """
    if model.penalty not in (None, "l2") or model.criterion != "lts" or data.p >= COLUMNS:
        raise ValueError(
            f"data larger than memory are fitted by criterion='lts' with penalty=None or 'l2' and fewer than {COLUMNS} "
            "columns; fit other models to a sample of the rows."
        )
    streamed = StreamedData(data, model._seed())
    known = streamed.fitted_to_sample(model)
    rows = _rows(model, streamed)
    with team():
        stage(f"least trimmed squares of {data.n:,} rows")
        half = (data.n + rows.q + 1) // 2
        keep = float(half) if h is None else h
        raw = concentrated(rows, rows.standardised(known.raw_coef_, known.raw_intercept_), keep)
        if h is None and not model.reweight:
            keep = data.n * (1 - _judged(model, rows, raw.r, keep, known).contamination)
            raw = concentrated(rows, raw.u, keep)
        column_names(model, data)
        model._covariance, model._noise, model._bread, model._psi = None, None, 1.0, known._psi
        _keep_raw(model, streamed, rows, raw, keep)
        start = rows.standardised(known.coef_, known.intercept_)
        u, r, verdict, w = _final(model, rows, raw, keep, known, start)
    model.coef_, model.intercept_ = model._parts(rows.plain(u))
    model.scale_, model.threshold_ = verdict.scale, verdict.cutoff
    model.contamination_ = verdict.contamination if h is None else 1 - h / data.n
    _keep_rows(model, streamed, r, w)


def _rows(model: Any, streamed: StreamedData) -> StreamedRows:
    copy, p = streamed.copy, streamed.data.p
    assert copy.t is not None, "there is a target"
    A = np.asarray(copy.X[: 10_000], dtype=np.float64)  # only for the scale of sums: any rows would do
    center = np.median(A, axis=0) if model.fit_intercept else np.zeros(p)
    scale = np.sqrt(np.mean((A - center) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    penalty = np.zeros(p + bool(model.fit_intercept))
    if model.penalty == "l2":
        penalty[:p] = model.alpha / scale**2
    t = copy.t.astype(copy.X.dtype, copy=False)
    return StreamedRows(copy.X, t, center, scale, bool(model.fit_intercept), penalty)


def _judged(model: Any, rows: StreamedRows, r: np.ndarray, h: float, known: Any) -> Verdict:
    """The verdict on all rows, from a summary of their residuals."""
    values, counts = summarised(r, max(known.scale_, rounding_floor(rows.t[:10_000])))
    tails = model.efficiency == "mm" and model.penalty is None
    floor = rounding_floor(rows.t[:10_000])
    return judge(values, h, rows.q, counts, intercept=model.fit_intercept, floor=floor, tails=tails)


def _final(
    model: Any, rows: StreamedRows, raw: Concentrated, keep: float, known: Any, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Verdict, Any]:
    """The final coefficients, residuals and verdict, and how a row's residual becomes its weight."""
    half = (rows.n + rows.q + 1) // 2
    if not model.reweight:
        return raw.u, raw.r, _judged(model, rows, raw.r, half, known), None
    if known._psi is not None:
        stage("weights that fall smoothly with the residual")
        found = smoothed(rows, start, known.scale_, known.threshold_, known._psi)
        psi, verdict = found.psi, found.verdict
        model._noise, model._bread = found.noise, found.bread
        return found.u, found.r, verdict, lambda t: np.where(t <= verdict.cutoff, psi.weight(t), 0)
    u, r, verdict = raw.u, raw.r, _judged(model, rows, raw.r, keep, known)
    for _ in range(ROUNDS):
        cut = verdict.cutoff * verdict.scale
        G, g = rows.moments(lambda a, cut=cut: (np.abs(a) <= cut).astype(a.dtype), r, u)  # type: ignore[misc]
        u = u + solve_symmetric(G, g[:, None])[:, 0]
        r = rows.residuals(u)
        verdict = _judged(model, rows, r, half, known)
        if verdict.cutoff * verdict.scale == cut:
            break
    return u, r, verdict, lambda t: (t <= verdict.cutoff).astype(t.dtype)


def _keep_raw(model: Any, streamed: StreamedData, rows: StreamedRows, raw: Concentrated, keep: float) -> None:
    """What is known of the trimmed fit."""
    model._x = rows.plain(raw.u)
    model.raw_coef_, model.raw_intercept_ = model._parts(model._x)
    model.objective_ = raw.objectives[-1]
    model.history_ = [
        Record(k, 2.0 * k + 1, value, nan, nan, keep, nan) for k, value in enumerate(raw.objectives)
    ]
    model.n_iter_ = max(1, len(raw.objectives) - 1)
    model.raw_weights_ = streamed.copy.restored(raw.weights())
    values, counts = summarised(raw.r, max(float(np.abs(raw.r[:1000]).mean()), 1e-300))
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)


def _keep_rows(model: Any, streamed: StreamedData, r: np.ndarray, weight: Any) -> None:
    """What is known of every row, in the order of the files. ``weight``: of a score; None: that of the trimmed fit."""
    scores = r
    np.abs(scores, out=scores)
    scores /= scores.dtype.type(model.scale_)
    values, counts = summarised(scores, 1.0)
    freedom = max(1.0, float(counts[values <= model.threshold_].sum()) - model._parameters)
    chance = row_probabilities(np.minimum(1.0, 2.0 * stdtr(freedom, -values)), counts)
    model.outlier_scores_ = streamed.copy.restored(scores)
    del scores, r
    model.outlier_probability_ = np.empty_like(model.outlier_scores_)
    model.weights_ = model.raw_weights_ if weight is None else np.empty_like(model.outlier_scores_)
    for start in range(0, streamed.data.n, PIECE):
        at = slice(start, start + PIECE)
        t = model.outlier_scores_[at]
        model.outlier_probability_[at] = np.interp(t, values, chance)
        if weight is not None:
            model.weights_[at] = weight(t)
