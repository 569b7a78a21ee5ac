"""Regressions that have no closed form, of rows on a cluster: generalised linear models, robust losses, and penalties
that select columns; by a sample of the rows, then by all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.residuals import EXACT, Tally, edge, tally_of
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.estimators.linear.doubts import warn_of_exact_fit
from trimlearn.estimators.linear.on_dask_fits import solved_on_dask
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.inference.families import Family
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.regression.streamed_mm import all_of_them
from trimlearn.robust.scale import judge, raw_scale
from trimlearn.robust.verdict import Verdict
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["ErrorLaw", "RegressionRows", "publish_on_dask", "tallied"]

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
SAME = 1e-5  # share of the cut-off by which it moves, if it does not: a tenth of what a summary can tell
TINY = 1e-300  # stands for p-values of 0: the smallest power of ten whose inverse is finite, and some room


class ErrorLaw(Protocol):
    """How targets spread about what a linear model predicts."""

    @property
    def family(self) -> Family:
        """The law of one target."""

    def residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Residuals, signed, that are about normal where the model holds."""


@final
@dataclass(frozen=True, eq=False)
class FittedJudge:
    """A fitted model, as workers get it: they judge rows by it."""

    coef: np.ndarray
    intercept: float
    law: ErrorLaw

    def residuals(self, block: ShardRows) -> np.ndarray:
        """Of the rows of a block."""
        return np.asarray(self.law.residuals(block.t, self._linear(block)), dtype=np.float64)

    def p_values(self, block: ShardRows, scale: float) -> np.ndarray:
        """Of the rows of a block, by the law itself."""
        mean = self.law.family.mean(self._linear(block).astype(np.float64))
        return np.asarray(self.law.family.p_values(block.t.astype(np.float64), mean, scale))

    def _linear(self, block: ShardRows) -> np.ndarray:
        return np.asarray(block.V @ self.coef + self.intercept)


@final
@dataclass(frozen=True, eq=False)
class RegressionRows:
    """All rows, and what a model says of them. q: coefficients that count as fitted; floor: the smallest scale to
    believe in; penalised: whether the model's penalty is laid on its coefficients."""

    model: Any
    placed: Placed
    law: ErrorLaw
    loss: LossOf
    q: int
    floor: float
    seed: int
    penalised: bool = True

    @property
    def half(self) -> float:
        """The fewest rows that can be the majority."""
        return float(min(self.placed.mass, (self.placed.mass + self.q + 1) // 2))

    @property
    def exact(self) -> bool:
        """Whether residuals are looked at as they are."""
        return self.placed.n <= EXACT

    def judge(self, x: Array) -> FittedJudge:
        """The model x."""
        coef, intercept = self.model._parts(np.asarray(x, np.float64))
        return FittedJudge(coef, intercept, self.law)

    def summary(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        """Values that stand for the residuals, and how many rows each stands for."""
        return tallied(self.placed, "residuals", _residual_tally, self.judge(x), self.exact)

    def judged(self, x: Array, h: float) -> Verdict:
        """The verdict on all rows by the model x, of which h are trusted."""
        values, counts = self.summary(x)
        intercept = bool(self.model.fit_intercept)
        found = judge(values, min(h, float(counts.sum())), self.q, counts, intercept=intercept, floor=self.floor)
        return all_of_them(found, found.scale, lambda value, _: edge(value, self.exact))

    def trimmed(self, x: Array, h: float) -> LinearFit:
        """The trimmed fit that keeps h, from x."""
        stage(f"trimmed fit, keeping {h:.0f} of {self.placed.mass:.0f} rows")
        return self._solved(self.placed, CappedSimplex(h), h / self.placed.mass, x)

    def explained(self, x: Array, verdict: Verdict, h: float) -> tuple[Array, Verdict, ExplainedRows]:
        """The model of the rows that x explains by the verdict, and those that this explains, until these are about
        the same; with the verdict by it, and the rows it was fitted to."""
        for _ in range(ROUNDS):
            kept = ExplainedRows(self.judge(x), verdict.cutoff * verdict.scale)
            rows = self.placed.mapped(_explained, kept)
            stage(f"fit to the {rows.mass:.0f} rows explained")
            x = self._solved(rows, AllOnes(), 1.0, x).x
            verdict = self.judged(x, h)
            if abs(verdict.cutoff * verdict.scale - kept.cut) <= SAME * kept.cut:
                break
        return x, verdict, kept

    def _solved(self, placed: Placed, r1: WeightSet, scale: float, x: Array) -> LinearFit:
        model, r2 = self.model, None
        if self.penalised and model.penalty is not None:
            r2 = make_penalty(model.penalty, model.alpha, model.l1_ratio, scale)
        return solved_on_dask(model, placed, self.loss, r1, r2, x, self.seed)


@final
@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """The rows whose residuals by a model are at most ``cut``."""

    judge: FittedJudge
    cut: float

    def weights(self, block: ShardRows) -> np.ndarray:
        """1 for each of them in a block, 0 for the others."""
        return np.asarray(np.abs(self.judge.residuals(block)) <= self.cut, dtype=np.float64)


def tallied(placed: Placed, name: str, task: Callable[..., Tally], *args: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the tallies of all blocks: its values and counts."""

    def answer() -> tuple[np.ndarray, np.ndarray]:
        found, *more = placed.gathered(task, *args)
        for other in more:
            found = found + other
        return found.values, found.counts

    values, counts = remembered(name, answer)
    return values, counts


def publish_on_dask(
    rows: RegressionRows,
    raw: LinearFit,
    keep: float,
    x: Array,
    final: Verdict,
    share: float,
    kept: ExplainedRows | None,
) -> None:
    """Set what all regressions have. raw: the trimmed fit, which kept ``keep``; x, final: the last one and the verdict
    by it; share: of bad rows; kept: the rows that x was fitted to, None for those of the trimmed fit."""
    model, placed = rows.model, rows.placed
    model._x, model.objective_, model.history_ = raw.x, raw.objective, raw.history
    model.n_iter_, model.raw_weights_ = max(1, len(raw.history) - 1), raw.w
    model.raw_coef_, model.raw_intercept_ = model._parts(raw.x)
    values, counts = rows.summary(raw.x)
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)
    model.coef_, model.intercept_ = model._parts(x)
    model.scale_, model.threshold_, model.contamination_ = final.scale, final.cutoff, share
    by = rows.judge(x)
    values, counts = tallied(placed, "p-values", _p_value_tally, by, final.scale, rows.exact)
    chance = row_probabilities(np.minimum(1.0, np.exp(values)), counts)
    model.outlier_scores_ = placed.column(np.float64, _scores, by, final.scale)
    model.outlier_probability_ = placed.column(np.float64, _chances, by, final.scale, values, chance)
    model.weights_ = raw.w if kept is None else placed.column(np.float64, _weights, kept)
    if rows.law.family.dispersed and final.scale <= rows.floor:
        warn_of_exact_fit(np.asarray(model.weights_))


def _residual_tally(block: ShardRows, judge: FittedJudge, exact: bool) -> Tally:
    return tally_of(judge.residuals(block), block.s, exact)


def _p_value_tally(block: ShardRows, judge: FittedJudge, scale: float, exact: bool) -> Tally:
    return tally_of(_log_p(block, judge, scale), block.s, exact)


def _log_p(block: ShardRows, judge: FittedJudge, scale: float) -> np.ndarray:
    return np.asarray(np.log(np.maximum(judge.p_values(block, scale), TINY)))


def _explained(block: ShardRows, kept: ExplainedRows) -> ShardRows:
    """The same rows, of which those that are not explained count for nothing."""
    return block.weighed(kept.weights(block))


def _scores(block: ShardRows, judge: FittedJudge, scale: float) -> np.ndarray:
    return np.asarray(np.abs(judge.residuals(block)) / scale)


def _chances(block: ShardRows, judge: FittedJudge, scale: float, values: np.ndarray, chance: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(_log_p(block, judge, scale), values, chance))


def _weights(block: ShardRows, kept: ExplainedRows) -> np.ndarray:
    return kept.weights(block)
