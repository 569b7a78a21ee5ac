"""Logistic regression of rows on a cluster: by a sample of them, then by all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from scipy.special import expit
from sklearn.utils.class_weight import compute_sample_weight

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.digits import histogram, order_keys
from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.engines.levels import level
from trimlearn.engines.shard import Shard
from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.classifier import warn_of_lost_classes
from trimlearn.estimators.linear.label_fits import (
    LabelFits,
    LeadRows,
    Sample,
    kept_rows,
)
from trimlearn.estimators.linear.label_rows import LabelJudge, LabelledRows
from trimlearn.estimators.linear.many_labels import check_classes, check_sampled, fit_many_labels
from trimlearn.estimators.linear.on_dask_regression import solved_on_dask
from trimlearn.estimators.linear.on_dask_sums import TrimmedOnWorkers, WeighedOnWorkers, like
from trimlearn.estimators.linear.problems import LinearFit, make_penalty
from trimlearn.estimators.on_dask import SampledFit, by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.losses import Logistic, Softmax
from trimlearn.robust.labels.column_bounds import ColumnBounds
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed import newton_streamed
from trimlearn.smart.method import FEW, concentration_records
from trimlearn.solution import Status
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

SEVERAL_KINDS = "y holds labels of several kinds, text and numbers: write all of them as text."
MANY_LABELS = 1000  # different labels from which on they are taken for numbers: more classes than a softmax is for


def fit_logistic_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_logistic_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    check_positive(model.C, "C")
    if model.penalty is not None:
        check_choice(model.penalty, ("l2", "l1", "elasticnet"), "penalty")
    if model.balanced_trimming:
        raise ValueError(
            "rows on a cluster are trimmed whatever their class: give balanced_trimming=False, or fit the model to a "
            "sample of the rows."
        )
    with placed_rows(X, y, sample_weight) as placed:
        model.classes_, counts = _classes(placed)
        if model.class_weight is not None:
            placed = placed.mapped(_with_class_weights, model.classes_, _class_weights(model, counts))
        found = by_sample(model, X, placed, class_weight=None)  # which the rows have
        if found is not None:
            check_sampled(found.known, model.classes_)
            fit_many_labels(DaskLabelFits(model, found), found.h)


def _classes(placed: Placed) -> tuple[np.ndarray, np.ndarray]:
    """The labels of all rows, and how many have each; ValueError where there is one, or where they are numbers."""
    found = placed.gathered(_labels)
    if len({isinstance(labels[0], str) for labels, _ in found}) > 1:
        raise ValueError(SEVERAL_KINDS)
    classes, place = np.unique(np.concatenate([labels for labels, _ in found]), return_inverse=True)
    counts = np.bincount(place.ravel(), np.concatenate([counts for _, counts in found]), len(classes))
    check_classes(classes, min(MANY_LABELS, placed.n**0.5 + 1))
    return classes, counts


def _labels(block: ShardRows) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.unique(block.t, return_counts=True)
    except TypeError as error:  # they have no order
        raise ValueError(SEVERAL_KINDS) from error


def _class_weights(model: Any, counts: np.ndarray) -> np.ndarray:
    """What a row of each class counts, as scikit-learn has it."""
    if isinstance(model.class_weight, str) and model.class_weight == "balanced":
        return np.asarray(counts.sum() / (len(counts) * counts))
    return np.asarray(compute_sample_weight(model.class_weight, model.classes_), dtype=np.float64)


def _with_class_weights(block: ShardRows, classes: np.ndarray, weights: np.ndarray) -> ShardRows:
    return block.weighed(weights[places(block.t, classes)])


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
            self.rows = self._asked(LabelledRows.holding, judge)

    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        def answer() -> tuple[np.ndarray]:
            return (np.asarray(sum(self.workers.gather(self._asked(LabelledRows.counted, judge, noise)))),)

        return remembered("labels", answer)[0]

    def quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        (found,) = remembered("quantile", lambda: (np.array(self._quantile(judge, noise, share)),))
        return float(found)

    def _quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        kept = kept_rows(share, self.mass) if self.placed.counted else share * self.mass
        scores = self._asked(LabelledRows.scores, judge, noise)

        def counts(known: int, after: int, bits: int) -> np.ndarray:
            asked = [(block, mine, known, after, bits) for block, mine in zip(self.placed.blocks, scores, strict=True)]
            return np.asarray(sum(self.workers.gather(self.workers.place(_counts, asked, "quantile"))))

        return level(CappedSimplex(kept), self.mass, self.placed.counted, np.dtype(np.float32), counts).theta

    def trimmed(self, x: Array, share: float) -> LinearFit:
        h = share * self.mass
        rows = TrimmedOnWorkers(DaskEngine(self.placed, self._loss, CappedSimplex(h), centred=False))
        if self.by_newton:
            x, values = newton_streamed(rows, like(rows.loss, x), self.ridge, self.trimmed_lead(share))
            objective, history = values[-1], concentration_records(values, h)
        else:
            fit = self._solved(self.placed, CappedSimplex(h), x)
            x, objective, history = fit.x, fit.objective, fit.history
        w = rows.weights(like(rows.loss, x))
        classes, kept = self.model.classes_, rows.engine.ask(_kept_labels, self.K)[0]
        warn_of_lost_classes(classes, np.ones(self.K), kept, "Lower contamination.")
        rows.engine.close()
        return LinearFit(x, w, objective, history, Status.CONVERGED)

    def fitted(self, judge: LabelJudge, noise: LabelNoise, x: Array, cut: float | None) -> Array:
        task, more = (_with_classes, ()) if cut is None else (_with_weights, (cut,))
        asked = [(block, rows, judge, noise, *more) for block, rows in zip(self.placed.blocks, self.rows, strict=True)]
        placed = self.placed.holding(self.workers.place(task, asked, "corrected"))
        if not self.by_newton:
            return self._solved(placed, AllOnes(), x).x
        lead = self.lead
        at = _numbers(lead.at)
        if cut is None:
            ahead = lead.weighed(self.loss(placed.picked(at, _targets), lead.storage))
        else:
            ahead = lead.weighed(self.loss(lead.codes, lead.storage), placed.picked(at, _sample_weights) > 0)
        rows = WeighedOnWorkers(DaskEngine(placed, self._loss, AllOnes(), centred=False), placed.mass / self.mass)
        x, _ = newton_streamed(rows, like(rows.loss, x), self.ridge, ahead)
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
        model, scores = self.model, self._asked(LabelledRows.scores, judge, noise)
        each, one_per_row = [(mine,) for mine in scores], self.placed.one_per_row
        model.outlier_scores_ = one_per_row(scores, np.float32)
        model.outlier_probability_ = one_per_row(self.workers.place(expit, each, "chances"), np.float32)
        suggested = self._asked(LabelledRows.suggested, judge, noise, model.classes_)
        model.suggested_labels_ = one_per_row(suggested, model.classes_.dtype)
        model.weights_ = model.raw_weights_
        if model.reweight:
            kept = self.workers.place(_kept, [(mine, model.threshold_) for mine in scores], "kept")
            model.weights_ = one_per_row(kept, np.float32)

    def _taken(self, slices: list[slice]) -> LeadRows:
        rows = _numbers(slices)
        found = self.placed.fetch(rows, np.ones(len(rows)))
        return LeadRows.of(slices, found.V, found.t, None if self.placed.counted else found.s)

    def _asked(self, task: Any, *args: Any) -> list[Any]:
        """task(rows, *args) of every shard, on its worker."""
        return self.workers.place(_worked, [(task, rows, *args) for rows in self.rows], task.__name__)


def _numbers(slices: list[slice]) -> np.ndarray:
    return np.concatenate([np.arange(at.start, at.stop) for at in slices])


# -- on a worker ------------------------------------------------------------------------------------------------------


def _worked(task: Callable[..., Any], *args: Any) -> Any:
    """task(*args) with as many threads as the worker has."""
    from distributed import get_worker

    current: Any = get_worker  # untyped
    with team(size=current().state.nthreads):
        return task(*args)


def _with_codes(block: ShardRows, classes: np.ndarray) -> ShardRows:
    """The same rows as floats, with the numbers of their classes for targets."""
    codes = places(block.t, classes) if len(block.t) else np.zeros(0, np.int64)
    if block.V.dtype in (np.float32, np.float64):
        return block.with_targets(codes)
    return ShardRows(block.V.astype(np.float64), codes, block.s)


def _labelled(block: ShardRows, K: int) -> LabelledRows:
    return LabelledRows(block.V, block.t, K, block.s)


def _is_wild(block: ShardRows, bounds: ColumnBounds) -> bool:
    return bool(bounds.rows_beyond(block.V).any())


def _drawn_in(block: ShardRows, bounds: ColumnBounds) -> ShardRows:
    return ShardRows(bounds.clip(block.V), block.t, block.s)


def _with_classes(block: ShardRows, rows: LabelledRows, judge: LabelJudge, noise: LabelNoise) -> ShardRows:
    """The same rows with the classes that they have by their labels and by the judge, as shares."""
    return block.with_targets(_worked(rows.classes, judge, noise))


def _with_weights(block: ShardRows, rows: LabelledRows, judge: LabelJudge, noise: LabelNoise, cut: float) -> ShardRows:
    """The same rows, of which those whose score is larger count for nothing."""
    return block.weighed(_kept(_worked(rows.scores, judge, noise), cut))


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
