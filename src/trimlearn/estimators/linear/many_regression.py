"""Regressions of many rows that have no closed form, wherever these lie: by a sample of them, then by all.

What a model says of rows is asked of them block by block (`ShardRows`), by tasks that are the same in this process and
on the workers of a cluster. Where blocks lie, and how they are fitted, is what a `RegressionRows` knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.engines.cluster.rows import ShardRows
from trimlearn.estimators.linear.doubt import warn_of_exact_fit
from trimlearn.estimators.linear.examples import Examples
from trimlearn.estimators.linear.laws import RegressionLaw, are_labels, half_of
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.inference.probability import row_probabilities
from trimlearn.robust.regression.streamed_mm import all_of_them
from trimlearn.robust.regression.streamed_rows import Summary
from trimlearn.robust.scale import judge, raw_scale
from trimlearn.robust.verdict import Verdict

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
SAME = 1e-5  # share of the cut-off by which it moves, if it does not: a tenth of what a summary can tell
TINY = 1e-300  # stands for p-values of 0: the smallest power of ten whose inverse is finite, and some room


@final
@dataclass(frozen=True, eq=False)
class FittedJudge:
    """A fitted model, by which rows are judged where they lie."""

    coef: np.ndarray
    intercept: float
    law: RegressionLaw

    def linear(self, block: ShardRows) -> np.ndarray:
        """The linear predictions of the rows of a block."""
        return np.asarray(block.V @ self.coef + self.intercept)


@final
@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """The rows whose residuals by a model are at most ``cut``."""

    judge: FittedJudge
    cut: float


class RegressionRows(ABC):
    """All rows, and what a model says of them.

    Parameters
    ----------
    model : TrimmedGLM or TrimmedLinearRegression
        What is fitted.
    law : RegressionLaw
        How its targets spread.
    mass : float
        The sample weight of all rows, or how many they are.
    q : int
        Coefficients that count as fitted.
    floor : float
        The smallest scale to believe in.
    unit : float
        About the size of the residuals.
    """

    def __init__(self, model: Any, law: RegressionLaw, mass: float, q: int, floor: float, unit: float) -> None:
        self.model, self.law, self.mass, self.q, self.floor, self.unit = model, law, mass, q, floor, unit

    # -- what depends on where they lie -------------------------------------------------------------------------------

    @abstractmethod
    def trimmed(self, x: Array, h: float) -> LinearFit:
        """The trimmed fit that keeps h, from x."""

    @abstractmethod
    def refitted(self, x: Array, kept: ExplainedRows) -> Array:
        """The model of these rows, from x."""

    @abstractmethod
    def total(self, task: Callable[..., float], *args: Any) -> float:
        """The sum of task(block, *args) over all blocks."""

    @abstractmethod
    def column(self, task: Callable[..., np.ndarray], *args: Any) -> Any:
        """task(block, *args), an entry for each row, of all rows in their order."""

    @abstractmethod
    def tally(self, unit: float, task: Callable[..., np.ndarray], *args: Any) -> Summary:
        """Values that stand for such a column, whose entries are of about the size of ``unit``, in increasing order;
        and how many rows each stands for."""

    @abstractmethod
    def edge(self, value: float, unit: float) -> float:
        """The largest number that a value of a tally may stand for."""

    # -- what does not ------------------------------------------------------------------------------------------------

    @property
    def half(self) -> float:
        """The fewest rows that can be the majority."""
        return half_of(self.mass, self.mass, self.q)

    def judge(self, x: Array) -> FittedJudge:
        """The model x."""
        coef, intercept = self.model._parts(np.asarray(x, np.float64))
        return FittedJudge(coef, intercept, self.law)

    def summary(self, x: Array) -> Summary:
        """The residuals by x, tallied."""
        return self.tally(self.unit, block_residuals, self.judge(x))

    def judged(self, x: Array, h: float) -> Verdict:
        """The verdict on all rows by the model x, of which h are trusted."""
        values, counts = self.summary(x)
        intercept = bool(self.model.fit_intercept)
        found = judge(values, min(h, float(counts.sum())), self.q, counts, intercept=intercept, floor=self.floor)
        return all_of_them(found, self.unit, self.edge)

    def explained(self, x: Array, verdict: Verdict, h: float) -> tuple[Array, Verdict, ExplainedRows]:
        """The model of the rows that x explains by the verdict, and those that this explains, until these are about
        the same; with the verdict by it, and the rows it was fitted to."""
        for _ in range(ROUNDS):
            kept = ExplainedRows(self.judge(x), verdict.cutoff * verdict.scale)
            x = self.refitted(x, kept)
            verdict = self.judged(x, h)
            if abs(verdict.cutoff * verdict.scale - kept.cut) <= SAME * kept.cut:
                break
        return x, verdict, kept


def fit_regression(rows: RegressionRows, law: RegressionLaw, starts: Sequence[Array], h: float | None) -> None:
    """Fit the model from the best of these starts, which the fit to a sample gave; all rows decide the trimmed fit, the
    scale, the cut-off, the share of bad rows and the coefficients. h: what is to be kept; None: find out."""
    model, events = rows.model, min(rows.total(_above, law), rows.total(_below, law))
    half = half_of(rows.mass, events, rows.q)  # as `RegressionLaw.half` says of arrays
    keep = half if h is None else h
    raw = min((rows.trimmed(x, keep) for x in starts), key=lambda fit: fit.objective)
    verdict = rows.judged(raw.x, keep)
    if h is None and not model.reweight:
        keep = rows.mass * (1 - verdict.contamination)
        raw = rows.trimmed(raw.x, keep)
    x, kept = raw.x, None
    if model.reweight:
        x, _, kept = rows.explained(raw.x, verdict, keep)
    last = rows.judged(x, half)
    share = 1 - h / rows.mass if h is not None else (last if model.reweight else verdict).contamination
    publish_regression(rows, raw, keep, x, last, share, kept)


def publish_regression(
    rows: RegressionRows,
    raw: LinearFit,
    keep: float,
    x: Array,
    last: Verdict,
    share: float,
    kept: ExplainedRows | None,
) -> None:
    """Set what all regressions have. raw: the trimmed fit, which kept ``keep``; x, last: the last one and the verdict
    by it; share: of bad rows; kept: the rows that x was fitted to, None for those of the trimmed fit."""
    model, by = rows.model, rows.judge(x)
    model._covariance = None
    model.raw_weights_ = raw.w
    model._set_fits(raw.x, raw.objective, raw.history, model._parts(raw.x), model._parts(x))
    values, counts = rows.summary(raw.x)
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)
    model.scale_, model.threshold_, model.contamination_ = last.scale, last.cutoff, share
    values, counts = rows.tally(1.0, log_p_values, by, last.scale)
    chance = row_probabilities(np.minimum(1.0, np.exp(values)), counts)
    model.outlier_scores_ = rows.column(_scores, by, last.scale)
    model.outlier_probability_ = rows.column(_chances, by, last.scale, values, chance)
    model.weights_ = raw.w if kept is None else rows.column(explained_weights, kept)
    if rows.law.family.dispersed and last.scale <= rows.floor:
        warn_of_exact_fit(np.asarray(model.weights_))


def refuse_labels(model: Any, t: np.ndarray) -> None:
    """ValueError for labels, which have no residuals to judge them by; t: targets of a sample."""
    if model.loss == "binomial" and are_labels(t):
        raise ValueError("labels 0 and 1 in large data are for TrimmedLogisticRegression.")


# -- what is asked of a block, wherever it lies -----------------------------------------------------------------------


def block_residuals(block: ShardRows, judge: FittedJudge) -> np.ndarray:
    """Of each row."""
    return np.asarray(judge.law.residuals(block.t, judge.linear(block)), dtype=np.float64)


def explained_weights(block: ShardRows, kept: ExplainedRows) -> np.ndarray:
    """1 for each row that is explained, 0 for the others."""
    return np.asarray(np.abs(block_residuals(block, kept.judge)) <= kept.cut, dtype=np.float64)


def log_p_values(block: ShardRows, judge: FittedJudge, scale: float) -> np.ndarray:
    """The logarithm of each row's p-value, by the law itself."""
    mean = judge.law.family.mean(judge.linear(block).astype(np.float64))
    p = judge.law.family.p_values(block.t.astype(np.float64), mean, scale)
    return np.asarray(np.log(np.maximum(p, TINY)))


def _scores(block: ShardRows, judge: FittedJudge, scale: float) -> np.ndarray:
    return np.asarray(np.abs(block_residuals(block, judge)) / scale)


def _chances(block: ShardRows, judge: FittedJudge, scale: float, values: np.ndarray, chance: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(log_p_values(block, judge, scale), values, chance))


def _above(block: ShardRows, law: RegressionLaw) -> float:
    """How many rows do not have the least target of the law; ValueError where it knows no such targets."""
    law.check(Examples(block.V, block.t))
    return _mass(block, law.off_bounds(block.t)[0])


def _below(block: ShardRows, law: RegressionLaw) -> float:
    """How many rows do not have the largest target of the law."""
    return _mass(block, law.off_bounds(block.t)[1])


def _mass(block: ShardRows, these: np.ndarray) -> float:
    return float(np.sum(these if block.s is None else block.s[these], dtype=np.float64))
