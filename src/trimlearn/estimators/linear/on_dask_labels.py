"""Logistic regression of rows on a cluster: by a sample of them, then by all."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from math import inf
from typing import Any, final

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.residuals import Tally
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.on_dask_fits import solved_on_dask
from trimlearn.estimators.linear.on_dask_regression import tallied
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.estimators.on_dask import adopt, column_names, placed_rows, sample_fit
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.progress import stage
from trimlearn.regularizers import Regularizer, Ridge
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.smart.sizes import FEW
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["fit_logistic_on_dask"]

# C of the model that judges labels: one that is shrunk is less sure than it could be. Of 900 rows with 10 % wrong
# labels, fitted with C = 0.05, 98.6 % were told rightly with 100, 96.7 % with 1 and 91.8 % with C itself.
SURE = 100.0
STEPS = 2  # of EM for the share of wrong labels: each leaves a fifth of the error of a sample's, 0.3 points
MANY_LABELS = 1000  # different labels from which on they are taken for numbers: more classes than a softmax is for


@final
@dataclass(frozen=True, eq=False)
class Judge:
    """A fitted model and the noise of labels, as workers get them: they judge rows by these."""

    coef: np.ndarray
    intercept: np.ndarray
    noise: LabelNoise
    classes: np.ndarray

    @classmethod
    def of(cls, fitted: Any, noise: LabelNoise, classes: np.ndarray) -> Judge:
        """By a model that was fitted here."""
        return cls(np.asarray(fitted.coef_), np.asarray(fitted.intercept_), noise, classes)

    def verdict(self, block: ShardRows) -> LabelVerdict:
        """On the rows of a block."""
        z = np.asarray(two_columns(block.V @ self.coef.T + self.intercept))
        codes = places(block.t, self.classes)
        return LabelVerdict(self.noise, [z], codes, np.ones(len(codes)) if block.s is None else block.s)


def fit_logistic_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_logistic_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    check_positive(model.C, "C")
    if model.penalty is not None:
        check_choice(model.penalty, ("l2", "l1", "elasticnet"), "penalty")
    if model.class_weight is not None or model.balanced_trimming:
        raise ValueError(
            "rows on a cluster are fitted without class_weight and balanced_trimming; give sample_weight, or fit such "
            "models to a sample of the rows."
        )
    with placed_rows(X, y, sample_weight) as placed:
        h, seed = model._h(model.contamination, placed.mass), model._seed()
        model.classes_ = _classes(placed)
        known, sample = sample_fit(model, placed, seed)
        column_names(model, X, placed.p)
        vars(model).pop("_training", None)
        if len(sample.t) == placed.n:  # all rows were in it: there is nothing left to find out
            adopt(model, known, placed)
            return
        if len(known.classes_) < len(model.classes_):
            raise ValueError(
                f"the class {next(c for c in model.classes_ if c not in known.classes_)} has so few rows that a sample "
                "of all rows holds none: leave it out, or join it to another."
            )
        model._bounds = known._bounds
        _fit(model, placed, known, h, seed)


def _fit(model: Any, placed: Placed, known: Any, h: float | None, seed: int) -> None:
    verdict, n, fits = known._judged.verdict, placed.mass, _Fits(model, placed, seed)
    noise, start = _as_it_is(verdict.noise), known._x
    unsure = h is None and not verdict.clean
    by_all = (unsure or h is not None) and _as_x(known).size <= FEW
    if by_all:
        stage("a model that allows for wrong labels")
        known = fits.judge(known, noise)
    if unsure:
        stage("how many labels are wrong")
        for _ in range(STEPS):
            noise = _renewed(noise, placed, Judge.of(known, noise, model.classes_))
    share = 1 - noise.epsilon if h is None else h / n
    stage(f"trimmed fit, keeping {share * n:.0f} of {n:.0f} rows")
    raw = fits.fit(placed, model.classes_, start, CappedSimplex(share * n))
    x = raw.x
    if model.reweight and share < 1:
        stage("fit to what the labels should have been")
        judge = Judge.of(known, noise, model.classes_)
        if h is None:
            x = fits.fit(placed.mapped(_with_classes, judge), None, _as_x(known), AllOnes()).x
        else:
            cut = max(0.0, _quantile(placed, judge, share))
            x = fits.fit(placed.mapped(_with_weights, judge, cut), model.classes_, _as_x(known), AllOnes()).x
    model._x, model.objective_, model.history_ = raw.x, raw.objective, raw.history
    model.n_iter_, model.raw_weights_ = max(1, len(raw.history) - 1), raw.w
    model.raw_coef_, model.raw_intercept_ = model._parts(raw.x)
    model.coef_, model.intercept_ = model._parts(x)
    model.contamination_, model.noise_matrix_ = 1 - share, noise.T
    model._judged = JudgedLabels(LabelVerdict(noise, [], np.empty(0, np.int64), np.empty(0)), x)
    by = known if by_all else model
    cut = verdict.cut() if noise.epsilon > 0 else inf
    _keep_rows(model, placed, Judge.of(by, noise, model.classes_), cut if h is None else None, share)


@final
@dataclass(frozen=True)
class _Fits:
    """The fits to all rows."""

    model: Any
    placed: Placed
    seed: int

    def judge(self, known: Any, noise: LabelNoise) -> Any:
        """The sample's model, fitted to all rows by a likelihood in which labels are mistaken as the noise says."""
        classes, found = self.model.classes_, copy(known)
        fit = self.fit(self.placed, classes, _as_x(known), AllOnes(), noise.bounded)
        found.coef_, found.intercept_ = self.model._parts(fit.x)
        return found

    def fit(
        self, placed: Placed, classes: np.ndarray | None, x: Array, r1: WeightSet, T: np.ndarray | None = None
    ) -> LinearFit:
        """The fit with weights in r1, from x. classes: what labels stand for; None: rows have shares of all classes. T:
        how labels are mistaken, where the loss is to allow for it."""
        model, K = self.model, len(self.model.classes_)
        kind: Any
        more: dict[str, Any]
        kind, more = (Logistic, {}) if K == 2 else (Softmax, {"n_classes": K})
        kind, more = (kind, more) if T is None else (Mislabelled, {"T": T})
        loss = LossOf(kind, {"intercept": bool(model.fit_intercept), **more}, classes)
        # The penalty stands beside a sum: of all rows, or of those that are left.
        mass = placed.mass if isinstance(r1, AllOnes) else self.placed.mass
        r2: Regularizer | None = Ridge(1 / (max(SURE, model.C) * mass)) if model.penalty is not None else None
        if T is None and model.penalty is not None:
            r2 = make_penalty(model.penalty, 1.0, model.l1_ratio, 1 / (model.C * mass))
        return solved_on_dask(model, placed, loss, r1, r2, x, self.seed)


def _as_it_is(noise: LabelNoise) -> LabelNoise:
    """The same for predictions of a model that is as sure of itself as it is."""
    return LabelNoise(noise.T, np.ones(1), np.zeros(len(noise.T)), noise.epsilon, noise.floor)


def _as_x(fitted: Any) -> Array:
    """The parameters of a fitted model, as a loss takes them."""
    x = fitted.coef_.T
    x = np.vstack([x, fitted.intercept_]) if fitted.fit_intercept else x
    return x[:, 0] if len(fitted.classes_) == 2 else x


def _classes(placed: Placed) -> np.ndarray:
    """The labels of all rows; ValueError where there is one, or where they are numbers."""
    found = [labels for labels in placed.gathered(_labels) if len(labels)]
    classes = np.unique(np.concatenate(found))
    if classes.dtype.kind == "f" and len(classes) > min(MANY_LABELS, placed.n**0.5 + 1):
        raise ValueError("y holds numbers, not labels: use TrimmedLinearRegression, or round them first.")
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]}; a classifier needs two at least.")
    return classes


def _labels(block: ShardRows) -> np.ndarray:
    return np.unique(np.asarray(block.t))


def _renewed(noise: LabelNoise, placed: Placed, judge: Judge) -> LabelNoise:
    """The noise model after a step of EM over all rows: T, and the share of wrong labels."""
    (N,) = remembered("labels", lambda: (sum(placed.gathered(_counted, judge), np.zeros(noise.T.shape)),))
    T = N / np.maximum(N.sum(axis=1, keepdims=True), 1e-300)
    return replace(noise, T=T, epsilon=float(1 - np.trace(N) / N.sum()))


def _counted(block: ShardRows, judge: Judge) -> np.ndarray:
    """How many rows of each class have each label, by the verdict."""
    verdict, K = judge.verdict(block), len(judge.classes)
    shares = verdict.classes * verdict.s[:, None]
    return np.stack([shares[verdict.labels == j].sum(axis=0) for j in range(K)], axis=1)


def _with_classes(block: ShardRows, judge: Judge) -> ShardRows:
    """The same rows with the classes that they have by the verdict, as shares."""
    P = judge.verdict(block).classes
    return ShardRows(block.V, P[:, 1] if P.shape[1] == 2 else P, block.s)


def _with_weights(block: ShardRows, judge: Judge, cut: float) -> ShardRows:
    """The same rows, of which those whose label is more likely wrong count for nothing."""
    s = np.asarray(judge.verdict(block).scores <= cut, dtype=np.float64)
    return ShardRows(block.V, block.t, s if block.s is None else s * block.s)


def _quantile(placed: Placed, judge: Judge, share: float) -> float:
    """The score that a share of the rows does not exceed."""
    values, counts = tallied(placed, "scores", _score_tally, judge)
    held = np.cumsum(counts)
    return float(values[min(int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))), len(held) - 1)])


def _score_tally(block: ShardRows, judge: Judge) -> Tally:
    return Tally.of(judge.verdict(block).scores.astype(np.float32).astype(np.float64), block.s)


def _keep_rows(model: Any, placed: Placed, judge: Judge, cut: float | None, share: float) -> None:
    """What is known of every row by the final model, in the order of the rows. cut: the score up to which labels are
    kept; None: that up to which a share is."""
    model.threshold_ = max(0.0, _quantile(placed, judge, share)) if cut is None else cut
    model.outlier_scores_ = placed.column(np.float32, _scores, judge)
    model.outlier_probability_ = placed.column(np.float64, _chances, judge)
    model.suggested_labels_ = placed.column(model.classes_.dtype, _suggested, judge)
    model.weights_ = placed.column(np.float32, _kept, judge, model.threshold_) if model.reweight else model.raw_weights_
    held = sum(placed.gathered(_held, judge, model.threshold_), np.zeros(len(model.classes_)))
    lost = model.classes_[held == 0]
    if len(lost):
        warn(
            f"the fit keeps no row of {', '.join(map(str, lost[:5]))}: more is trimmed than such a class has. Lower "
            "contamination.",
        )


def _scores(block: ShardRows, judge: Judge) -> np.ndarray:
    return np.asarray(judge.verdict(block).scores, dtype=np.float32)


def _chances(block: ShardRows, judge: Judge) -> np.ndarray:
    return np.asarray(expit(judge.verdict(block).scores), dtype=np.float64)


def _suggested(block: ShardRows, judge: Judge) -> np.ndarray:
    return np.asarray(judge.classes[judge.verdict(block).suggested])


def _kept(block: ShardRows, judge: Judge, threshold: float) -> np.ndarray:
    return np.asarray(_scores(block, judge) <= threshold, dtype=np.float32)


def _held(block: ShardRows, judge: Judge, threshold: float) -> np.ndarray:
    """How many rows of each label are kept."""
    kept = _scores(block, judge) <= threshold
    return np.bincount(places(block.t, judge.classes)[kept], minlength=len(judge.classes)).astype(np.float64)
