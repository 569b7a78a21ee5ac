"""Linear regression of many rows, wherever they lie: by a sample of them, then by all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import stdtr

from trimlearn.estimators.linear.doubt import warn_of_exact_fit
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses.exact import solve_symmetric
from trimlearn.progress import stage
from trimlearn.robust.regression.chance import are_few
from trimlearn.robust.regression.mm import Lqq
from trimlearn.robust.regression.streamed_mm import RowMetric, all_of_them, smoothed
from trimlearn.robust.regression.streamed_rows import StandardisedRows
from trimlearn.robust.scale import judge, raw_scale
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Record

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
SAME = 1e-5  # share of the cut-off by which it moves, if it does not: a tenth of what a summary can tell
TINY = 1e-300  # stands for a scale of 0: the smallest power of ten whose inverse is finite, and some room


@final
@dataclass(frozen=True)
class TrimmedRegression:
    """The trimmed fit: coefficients u, residuals as rows give them, F, how that went, and the weights of all rows."""

    u: np.ndarray
    r: Any
    objective: float
    history: list[Record]
    w: Any


@final
@dataclass(frozen=True)
class FinalFit:
    """Coefficients, residuals and verdict of the last fit; ψ where weights fall smoothly. The probability that a row is
    wrong is ``chance`` at the ``scores`` that are listed, and between them in between."""

    u: np.ndarray
    r: Any
    verdict: Verdict
    psi: Lqq | None
    scores: np.ndarray
    chance: np.ndarray

    def chances(self, t: np.ndarray) -> np.ndarray:
        """The probability that rows with scores t are wrong."""
        return np.asarray(np.interp(t, self.scores, self.chance))

    def weights(self, t: np.ndarray) -> np.ndarray:
        """How much rows with scores t count."""
        return np.where(t <= self.verdict.cutoff, 1.0 if self.psi is None else self.psi.weight(t), 0.0)


def fit_many_rows(
    model: Any,
    rows: StandardisedRows,
    known: Any,
    h: float | None,
    trimmed: Callable[[np.ndarray, float], TrimmedRegression],
    publish: Callable[[FinalFit], None],
) -> None:
    """Fit ``model`` to all rows, keeping h; None: find out.

    The fit ``known`` to a sample, with all that a fit to arrays does, says where to start and how errors are spread
    (its ψ). All rows decide the rest: the trimmed fit, the scale, the cut-off, the share of bad rows and the
    coefficients. trimmed: least trimmed squares from u that keep h. publish: sets what is known of every row, the
    weights where these are not those of the trimmed fit.
    """
    unit = max(known.scale_, rows.floor, TINY)
    keep = float(_half(rows)) if h is None else h
    raw = trimmed(rows.standardised(known.raw_coef_, known.raw_intercept_), keep)
    if h is None and not model.reweight:
        keep = rows.mass * (1 - _judged(model, rows, raw.r, keep, unit).contamination)
        raw = trimmed(raw.u, keep)
    vars(model).pop("_training", None)
    model._covariance, model._noise, model._bread, model._scatter = None, None, 1.0, None
    values, counts = rows.summary(raw.r, unit)
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)
    u, r, verdict, psi = _final(model, rows, raw, keep, h, unit)
    x = rows.plain(raw.u)
    model._set_fits(x, raw.objective, raw.history, model._parts(x), model._parts(rows.plain(u)))
    model.scale_, model.threshold_ = verdict.scale, verdict.cutoff
    model.weights_ = model.raw_weights_ = raw.w
    model.contamination_ = verdict.contamination if h is None else 1 - h / rows.mass
    publish(FinalFit(u, r, verdict, psi, *_chances(rows, r, verdict)))
    if verdict.scale <= rows.floor:
        warn_of_exact_fit(np.asarray(model.weights_))


def standards(model: Any, V: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre and scale of the columns by some rows V, and the penalty of coefficients in these units."""
    A = np.asarray(V.toarray() if hasattr(V, "toarray") else V, dtype=np.float64)
    p = A.shape[1]
    center = np.median(A, axis=0) if model.fit_intercept else np.zeros(p)
    scale = np.sqrt(np.mean((A - center) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    penalty = np.zeros(p + bool(model.fit_intercept))
    if model.penalty == "l2":
        penalty[:p] = model.alpha / scale**2
    return center, scale, penalty


def _half(rows: StandardisedRows) -> int:
    return (rows.n + rows.q + 1) // 2


def _judged(model: Any, rows: StandardisedRows, r: Any, h: float, unit: float) -> Verdict:
    """The verdict on all rows, from a summary of their residuals, which are of about the size of ``unit``."""
    values, counts = rows.summary(r, unit)
    tails = model.efficiency != "reweight" and model.penalty is None
    verdict = judge(values, h, rows.q, counts, intercept=model.fit_intercept, floor=rows.floor, tails=tails)
    return all_of_them(verdict, unit, rows.edge)


def _final(
    model: Any, rows: StandardisedRows, raw: TrimmedRegression, keep: float, h: float | None, unit: float
) -> tuple[np.ndarray, Any, Verdict, Lqq | None]:
    """The final coefficients, residuals and verdict, from the trimmed fit that kept ``keep``; and ψ, if any."""
    u, r, half = raw.u, raw.r, _half(rows)
    first = verdict = _judged(model, rows, r, keep, unit)
    if not model.reweight:
        return u, r, first if keep == half else _judged(model, rows, r, half, unit), None
    metric: RowMetric | None = None
    for _ in range(ROUNDS):
        cut = verdict.cutoff * verdict.scale

        def weigh(a: np.ndarray, cut: float = cut) -> np.ndarray:
            return np.asarray(np.abs(a) <= cut, dtype=a.dtype)

        if metric is None:  # of the next rounds it is about the same, and what is missing comes with their steps
            metric = RowMetric(rows.curvature(weigh, r), float(rows.n - rows.flagged(r, cut)))
        u = u + solve_symmetric(metric.G, rows.slope(weigh, r, u)[:, None])[:, 0]
        r = rows.residuals(u)
        verdict = _judged(model, rows, r, keep, unit)
        if abs(verdict.cutoff * verdict.scale - cut) <= SAME * cut:
            break
    assert metric is not None, "there is a round"
    if model.efficiency != "reweight" and model.penalty is None and verdict.scale > rows.floor:
        stage("weights that fall smoothly with the residual")
        trusted = h is not None or are_few(rows.n, rows.q)
        found = smoothed(rows, (raw.u, first), (u, verdict), metric, trusted, intercept=model.fit_intercept)
        model._noise, model._bread = found.noise, found.bread
        return found.u, found.r, found.verdict, found.psi
    return u, r, _judged(model, rows, r, half, unit), None


def _chances(rows: StandardisedRows, r: Any, verdict: Verdict) -> tuple[np.ndarray, np.ndarray]:
    """Scores in increasing order, and the probability that a row of each is wrong."""
    values, counts = rows.summary(r, verdict.scale)
    scores = np.abs(values) / verdict.scale
    order = np.argsort(scores, kind="stable")
    scores, counts = scores[order], counts[order]
    freedom = max(1.0, float(counts[scores <= verdict.cutoff].sum()) - rows.q)
    return scores, row_probabilities(np.minimum(1.0, 2.0 * stdtr(freedom, -scores)), counts)
