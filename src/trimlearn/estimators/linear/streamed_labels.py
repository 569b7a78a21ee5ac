"""Logistic regression of many rows, larger than memory or not: by a sample of them, then by all."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
from scipy.special import expit

from trimlearn._utils.blocks import rows_apart
from trimlearn._utils.residence import copy_on_device
from trimlearn._utils.threads import each, team
from trimlearn._utils.validation import is_sparse
from trimlearn.estimators.linear.data import Examples
from trimlearn.estimators.linear.streamed_classes import StreamedLabels, label_pieces
from trimlearn.estimators.linear.streamed_label_fits import LabelFits, score_quantile
from trimlearn.estimators.streamed import (
    StreamedData,
    can_stream,
    column_names,
    fits_in_memory,
    is_small,
    refuse_choice,
    sample_size,
)
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.flexible_models import FlexibleModels
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.robust.streamed import trimming
from trimlearn.smart.method import Record
from trimlearn.smart.sizes import FEW
from trimlearn.streams import Dataset, open_dataset

__all__ = ["fit_logistic_rows", "fit_logistic_stream"]

HELD = 1 << 26  # log-odds of all rows that are held: a limit on memory, 0.3 GB in float32
# Share of a sample's flags that the linear model alone sets otherwise than all models do, from which on all rows are
# asked of all, however long that takes. Where classes are linear it is 0.1 to 0.5 %; where they are not, 6 to 10 %.
MATTERS = 0.02
OTHERS = 0.8  # of the rows of a sample, that each of its judges is fitted to: four folds of five
# C of a model that judges alone, at least. Of 900 rows with 10 % wrong labels, fitted with C = 0.05, 98.6 % were told
# rightly with 100, 96.7 % with 1 and 91.8 % with C itself.
SURE = 100.0
BOTH = 3  # by definition: the linear model, a forest and the neighbours, beyond which boosting is one of the models


def fit_logistic_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    refuse_choice(model)
    if model.penalty not in (None, "l2") or model.class_weight is not None or model.balanced_trimming:
        raise ValueError(
            "data larger than memory are fitted with penalty=None or 'l2', without class_weight and balanced_trimming; "
            "fit other models to a sample of the rows."
        )
    q = data.p + bool(model.fit_intercept)
    streamed = StreamedData(data, model._seed(), shuffled=q > FEW)
    labels = StreamedLabels(streamed)
    if len(labels.classes) > 2 and not streamed.shuffled and q * len(labels.classes) > FEW:  # which nobody could know
        streamed = replace(streamed, shuffled=True)
        labels = StreamedLabels(streamed)
    column_names(model, data)
    vars(model).pop("_training", None)
    model.classes_ = labels.classes
    _fit(model, streamed, labels, h)


def fit_logistic_rows(model: Any, data: Examples, h: float | None) -> bool:
    """Fit ``model`` to rows in memory as to those of a stream, so that the same rows give the same fit whatever they
    lie in; labels are the numbers of its classes. False: it was not, because there are few rows or many parameters, or
    something was asked for that streams cannot do."""
    (n, p), K = data.X.shape, len(model.classes_)
    m, q = sample_size(n, p), p + bool(model.fit_intercept)
    many = not is_small(n, p) and n > m and q * (1 if K == 2 else K) <= FEW
    if not many or data.s is not None or is_sparse(data.X) or not can_stream(model, p):
        return False
    seed = model._seed()
    if copy_on_device(data.X) is not None or len(np.unique(data.t[rows_apart(n, m, seed)])) < K:
        return False
    streamed = StreamedData(open_dataset(np.ascontiguousarray(data.X), data.t), seed)
    fits, noise = _fit(model, streamed, StreamedLabels(streamed), h)
    model._training, model._judged = data, JudgedLabels(fits.verdict(noise), model._x)
    return True


def _fit(model: Any, streamed: StreamedData, labels: StreamedLabels, h: float | None) -> tuple[LabelFits, LabelNoise]:
    """The fit, which is that of all sources: what was fitted to all rows, and how labels are mistaken.

    The fit to a sample, with all that a fit to few rows does, says whether labels are wrong and which for which. As
    many rows as memory holds give the model that judges all labels, by a likelihood that allows for this noise; the
    forest and the neighbours of the sample are asked too (`_flexible`). All rows say how many labels are wrong (EM),
    and decide the trimmed fit and the final one.
    """
    known, n = streamed.fitted_to_sample(model, labels.written), streamed.data.n
    if len(known.classes_) < len(labels.classes):
        raise ValueError(
            f"the class {next(c for c in labels.classes if c not in known.classes_)} has so few rows that a sample of "
            "all rows holds none: leave it out, or join it to another."
        )
    verdict = known._judged.verdict
    plain = h is None and verdict.clean  # nothing to correct: the plain fit, to the data as they are
    model._bounds = known._bounds
    X = streamed.X if plain else _drawn_in(model, streamed.X)
    fits = LabelFits(model, X, labels, 0.0 if model.penalty is None else 1 / (model.C * n))
    with team():
        noise, start = _as_it_is(verdict.noise), known._x
        if not verdict.clean:
            known = fits.judge(known, noise, _judge_ridge(model, streamed, verdict))
        flexible = _flexible(model, streamed, labels, known, noise)
        if flexible is not None and not plain:
            stage("flexible models asked about all rows")
            fits.ask(flexible, known.coef_, known.intercept_, verdict.noise)
        if h is None and not plain and len(streamed.sample[1]) < n:  # else it is known already
            stage("how many labels are wrong")
            noise = fits.renewed(noise, known)
        share = 1 - noise.epsilon if h is None else h / n
        stage(f"trimmed fit, keeping {share * n:.0f} of {n} rows")
        raw, f, objectives = fits.trimmed(start, share * n)
        found = trimming(f, share * n)
        w = np.empty_like(f)
        for at in label_pieces(n):
            w[at] = found.of(f[at])
        del f
        fits.warn_of_lost_classes(w)
        model.raw_weights_ = streamed.copy.restored(w)
        del w
        x = raw
        if model.reweight and share < 1:
            stage("fit to what the labels should have been")
            x = fits.corrected(noise, known, None if h is None else share)
        model._x, model.objective_ = raw, objectives[-1]
        model.history_ = [Record(k, 2.0 * k + 1, F, nan, nan, share * n, nan) for k, F in enumerate(objectives)]
        model.n_iter_ = max(1, len(objectives) - 1)
        model.raw_coef_, model.raw_intercept_ = model._parts(raw)
        model.coef_, model.intercept_ = model._parts(x)
        model.contamination_, model.noise_matrix_ = 1 - share, noise.T
        model._judged = JudgedLabels(LabelVerdict(noise, [], np.empty(0, np.int64), np.empty(0)), x)
        if flexible is not None and not fits.asked:
            fits.ask(flexible, model.coef_, model.intercept_, verdict.noise)
        cut = verdict.cut() if noise.epsilon > 0 else inf
        _keep_rows(model, streamed, fits, noise, cut if h is None else None, share)
    return fits, noise


def _judge_ridge(model: Any, streamed: StreamedData, verdict: LabelVerdict) -> float:
    """The penalty of the model that judges all labels, beside a mean: where it is asked among others, as calibrated by
    the sample, that of the sample's judges; else next to none, for one that is shrunk is less sure than it could be."""
    n, m = streamed.data.n, len(streamed.sample[1])
    if len(verdict.predictions) > 1 and _asks_all(model, streamed):
        return 1 / (float(model.C) * OTHERS * m)
    return 0.0 if model.penalty is None else 1 / (max(SURE, float(model.C)) * n)


def _asks_all(model: Any, streamed: StreamedData) -> bool:
    """Whether all rows are few enough to be asked about by all models, whatever the sample shows."""
    return fits_in_memory(*streamed.data.shape) and streamed.data.n * len(model.classes_) <= HELD


def _drawn_in(model: Any, X: np.ndarray) -> np.ndarray:
    """The rows with wild cells drawn in, so that they steer no model; as they are where a copy would be too large."""
    if not fits_in_memory(*X.shape) or not model._bounds.rows_beyond(X).any():
        return X
    return np.asarray(model._bounds.clip(X))


def _flexible(
    model: Any, streamed: StreamedData, labels: StreamedLabels, known: Any, noise: LabelNoise
) -> FlexibleModels | None:
    """The flexible models of the sample, where they are to be asked about all rows: always where rows fit in memory;
    beyond, where the linear model alone, with such noise, judges the sample's labels otherwise than all models do."""
    n, K = streamed.data.n, len(model.classes_)
    models = len(known._judged.verdict.predictions)
    if models == 1 or n * K > HELD:
        return None
    X, codes = streamed.sample[0], known._codes(labels.written(streamed.sample[1]))
    if not _asks_all(model, streamed):
        alone = LabelVerdict(noise, [two_columns(X @ known.coef_.T + known.intercept_)], codes, np.ones(len(codes)))
        if np.mean((alone.scores > 0) != (known.outlier_scores_ > 0)) < MATTERS:
            return None
    return FlexibleModels.of(X, codes, K, streamed.seed, boosted=models > BOTH)


def _keep_rows(
    model: Any, streamed: StreamedData, fits: LabelFits, noise: LabelNoise, cut: float | None, share: float
) -> None:
    """What is known of every row, in the order of the files: by all opinions, or where only the linear model was asked
    by the final one. cut: the score up to which labels are kept; None: that up to which a share is."""
    n, restored = streamed.data.n, streamed.copy.restored
    scores, suggested = fits.scores(model, noise)
    model.threshold_ = max(0.0, score_quantile(scores, share)) if cut is None else cut
    model.suggested_labels_ = model.classes_[restored(suggested)]
    del suggested
    model.outlier_scores_ = restored(scores)
    del scores
    model.outlier_probability_ = np.empty_like(model.outlier_scores_)
    model.weights_ = np.empty_like(model.outlier_scores_) if model.reweight else model.raw_weights_

    def part(at: slice) -> None:
        model.outlier_probability_[at] = expit(model.outlier_scores_[at])
        if model.reweight:
            model.weights_[at] = model.outlier_scores_[at] <= model.threshold_

    each(part, label_pieces(n))


def _as_it_is(noise: LabelNoise) -> LabelNoise:
    """The same for predictions of a model that is as sure of itself as it is."""
    return LabelNoise(noise.T, np.ones(1), np.zeros(len(noise.T)), noise.epsilon, noise.floor)
