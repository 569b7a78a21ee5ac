"""The fits to all rows on a cluster that logistic regression makes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import nan
from typing import Any, final

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.threads import team
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.engines.levels import histogram, level, order_keys
from trimlearn.engines.shard import Shard
from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.label_fits import (
    LabelFits,
    LeadRows,
    Sample,
    TrimmedLabels,
    kept_rows,
    warn_of_lost_classes,
)
from trimlearn.estimators.linear.label_rows import LabelJudge, LabelledRows
from trimlearn.estimators.linear.on_dask_fits import solved_on_dask
from trimlearn.estimators.linear.on_dask_newton import TrimmedOnWorkers, WeighedOnWorkers
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.estimators.on_dask import SampledFit
from trimlearn.losses import Logistic, Softmax
from trimlearn.robust.labels.column_bounds import ColumnBounds
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed import newton_streamed, trimmed_newton
from trimlearn.smart.method import Record
from trimlearn.smart.sizes import FEW
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["DaskLabelFits"]


@final
class DaskLabelFits(LabelFits):
    """All rows on the workers of a cluster, each of which judges its own."""

    def __init__(self, model: Any, found: SampledFit) -> None:
        s = None if found.placed.counted else found.sample.s
        X = found.sample.V
        X = X if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
        sample = Sample(X, found.known._codes(found.sample.t), s, found.seed)
        placed = found.placed
        super().__init__(model, (placed.n, placed.p), placed.mass, sample, found.known)
        self.workers = placed.workers
        self._place(placed.mapped(_with_codes, model.classes_))

    def _place(self, placed: Placed) -> None:
        """These are the rows, of which no opinion is held."""
        self.placed = placed
        self.rows = self.workers.place(_labelled, [(block, self.K) for block in placed.blocks], "labelled")

    @property
    def by_newton(self) -> bool:
        """Whether fits are those of `trimlearn.robust.streamed`; else of `trimlearn.solve`."""
        return self.parameters <= FEW and self.model.penalty in (None, "l2") and self.model.method is None

    def draw_in(self) -> None:
        if any(self.placed.gathered(_is_wild, self.model._bounds)):
            self._place(self.placed.mapped(_drawn_in, self.model._bounds))

    def hold(self, judge: LabelJudge | None) -> None:
        if judge is None:
            self._place(self.placed)
        else:
            self.rows = self.workers.place(_holding, [(rows, judge) for rows in self.rows], "hold")

    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        (N,) = remembered("labels", lambda: (np.asarray(sum(self._gathered(_counted, judge, noise))),))
        return N

    def quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        (found,) = remembered("quantile", lambda: (np.array(self._quantile(judge, noise, share)),))
        return float(found)

    def _quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        kept = kept_rows(share, self.mass) if self.placed.counted else share * self.mass
        scores = self._asked(_scores, judge, noise)

        def counts(known: int, after: int, bits: int) -> np.ndarray:
            asked = [(block, mine, known, after, bits) for block, mine in zip(self.placed.blocks, scores, strict=True)]
            return np.asarray(sum(self.workers.gather(self.workers.place(_counts, asked, "quantile"))))

        return level(CappedSimplex(kept), self.mass, self.placed.counted, np.dtype(np.float32), counts).theta

    def trimmed(self, x: Array, share: float) -> TrimmedLabels:
        h = share * self.mass
        rows = TrimmedOnWorkers(DaskEngine(self.placed, self._loss, CappedSimplex(h), centred=False))
        if self.by_newton:
            x, values = trimmed_newton(rows, rows.like(x), share, self.ridge, self.trimmed_lead)
            history = [Record(k, 2.0 * k + 1, F, nan, nan, h, nan) for k, F in enumerate(values)]
            found = TrimmedLabels(x, values[-1], history)
        else:
            fit = self._solved(self.placed, CappedSimplex(h), x)
            found = TrimmedLabels(fit.x, fit.objective, fit.history)
        self.model.raw_weights_ = rows.weights(rows.like(found.x))
        warn_of_lost_classes(self.model, rows.engine.ask(_kept_labels, self.K)[0])
        rows.engine.close()
        return found

    def fitted(self, judge: LabelJudge, noise: LabelNoise, x: Array, cut: float | None) -> Array:
        task, more = (_with_classes, ()) if cut is None else (_with_weights, (cut,))
        asked = [(block, rows, judge, noise, *more) for block, rows in zip(self.placed.blocks, self.rows, strict=True)]
        placed = self.placed.holding(self.workers.place(task, asked, "corrected"))
        if not self.by_newton:
            return self._solved(placed, AllOnes(), x).x
        lead = self.lead
        at = np.concatenate([np.arange(at.start, at.stop) for at in lead.at])
        if cut is None:
            ahead = lead.weighed(self.loss(placed.picked(at, _targets), lead.storage))
        else:
            ahead = lead.weighed(self.loss(lead.codes, lead.storage), placed.picked(at, _sample_weights) > 0)
        rows = WeighedOnWorkers(DaskEngine(placed, self._loss, AllOnes(), centred=False), placed.mass / self.mass)
        x = newton_streamed(rows, rows.like(x), self.ridge, ahead)
        rows.engine.close()
        return x

    def _solved(self, placed: Placed, r1: WeightSet, x: Array) -> LinearFit:
        """By `trimlearn.solve`. The penalty stands beside a sum: of all rows, or of those that are left."""
        model = self.model
        mass = placed.mass if isinstance(r1, AllOnes) else self.mass
        r2 = None if model.penalty is None else make_penalty(model.penalty, 1.0, model.l1_ratio, 1 / (model.C * mass))
        return solved_on_dask(model, placed, self._loss, r1, r2, x, self.sample.seed)

    @property
    def _loss(self) -> LossOf:
        kind, more = (Logistic, {}) if self.K == 2 else (Softmax, {"n_classes": self.K})
        return LossOf(kind, {"intercept": bool(self.model.fit_intercept), **more})

    def publish(self, judge: LabelJudge, noise: LabelNoise) -> None:
        """As Dask arrays, in the order of the rows."""
        model, scores = self.model, self._asked(_scores, judge, noise)
        each, one_per_row = [(mine,) for mine in scores], self.placed.one_per_row
        model.outlier_scores_ = one_per_row(scores, np.float32)
        model.outlier_probability_ = one_per_row(self.workers.place(expit, each, "chances"), np.float32)
        model.suggested_labels_ = one_per_row(
            self._asked(_suggested, judge, noise, model.classes_), model.classes_.dtype
        )
        model.weights_ = model.raw_weights_
        if model.reweight:
            kept = self.workers.place(_kept, [(mine, model.threshold_) for mine in scores], "kept")
            model.weights_ = one_per_row(kept, np.float32)

    def _taken(self, slices: list[slice]) -> LeadRows:
        rows = np.concatenate([np.arange(at.start, at.stop) for at in slices])
        found = self.placed.fetch(rows, np.ones(len(rows)))
        return LeadRows.of(slices, found.V, found.t, None if self.placed.counted else found.s)

    def _asked(self, task: Any, *args: Any) -> list[Any]:
        """task(rows, *args) of every shard, on its worker."""
        return self.workers.place(task, [(rows, *args) for rows in self.rows], task.__name__)

    def _gathered(self, task: Any, *args: Any) -> list[Any]:
        return self.workers.gather(self._asked(task, *args))


# -- on a worker ------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class _Codes:
    """Labels in memory, as numbers of their classes."""

    held: np.ndarray

    def codes(self, at: slice) -> np.ndarray:
        return self.held[at]


def _threads() -> AbstractContextManager[None]:
    """As many as the worker has."""
    from distributed import get_worker

    current: Any = get_worker  # untyped
    return team(size=current().state.nthreads)


def _with_codes(block: ShardRows, classes: np.ndarray) -> ShardRows:
    """The same rows as floats, with the numbers of their classes for targets."""
    codes = places(block.t, classes) if len(block.t) else np.zeros(0, np.int64)
    if block.V.dtype in (np.float32, np.float64):
        return block.with_targets(codes)
    return ShardRows(block.V.astype(np.float64), codes, block.s)


def _labelled(block: ShardRows, K: int) -> LabelledRows:
    return LabelledRows(block.V, _Codes(block.t), K, block.s)


def _is_wild(block: ShardRows, bounds: ColumnBounds) -> bool:
    return bool(bounds.rows_beyond(block.V).any())


def _drawn_in(block: ShardRows, bounds: ColumnBounds) -> ShardRows:
    return ShardRows(bounds.clip(block.V), block.t, block.s)


def _holding(rows: LabelledRows, judge: LabelJudge) -> LabelledRows:
    with _threads():
        return rows.holding(judge)


def _counted(rows: LabelledRows, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
    with _threads():
        return rows.counted(judge, noise)


def _scores(rows: LabelledRows, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
    with _threads():
        return rows.scored(judge, noise)[0]


def _suggested(rows: LabelledRows, judge: LabelJudge, noise: LabelNoise, classes: np.ndarray) -> np.ndarray:
    with _threads():
        return np.asarray(classes[rows.scored(judge, noise)[1]])


def _with_classes(block: ShardRows, rows: LabelledRows, judge: LabelJudge, noise: LabelNoise) -> ShardRows:
    """The same rows with the classes that they have by their labels and by the judge, as shares."""
    with _threads():
        return block.with_targets(rows.classes(judge, noise))


def _with_weights(block: ShardRows, rows: LabelledRows, judge: LabelJudge, noise: LabelNoise, cut: float) -> ShardRows:
    """The same rows, of which those whose score is larger count for nothing."""
    return block.weighed(_kept(_scores(rows, judge, noise), cut))


def _kept(scores: np.ndarray, cut: float) -> np.ndarray:
    return np.asarray(scores <= cut, dtype=np.float32)


def _counts(block: ShardRows, scores: np.ndarray, known: int, after: int, bits: int) -> np.ndarray:
    """The histogram of a search for a quantile, see `trimlearn.engines.levels`."""
    return histogram(order_keys(scores), block.s, known, after, bits)


def _kept_labels(shard: Shard, K: int) -> tuple[np.ndarray]:
    """How much of each label is kept."""
    problem: Any = shard.engine.problem
    w = to_numpy(shard.engine.weights)
    return (
        np.bincount(to_numpy(problem.loss.t).astype(np.intp).ravel(), w if problem.s is None else w * problem.s, K),
    )


def _targets(block: ShardRows) -> np.ndarray:
    return block.t


def _sample_weights(block: ShardRows) -> np.ndarray:
    assert block.s is not None, "they were given some"
    return block.s
