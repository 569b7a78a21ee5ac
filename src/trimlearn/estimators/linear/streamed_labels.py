"""Logistic regression of a dataset larger than memory: by a sample of its rows, then by all of them."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
from scipy.special import expit

from trimlearn._utils.threads import each, team
from trimlearn.estimators.linear.streamed_label_fits import (
    LabelFits,
    StreamedLabels,
    label_pieces,
    score_quantile,
)
from trimlearn.estimators.streamed import StreamedData, column_names, refuse_choice
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.robust.streamed import trimming
from trimlearn.smart.method import Record
from trimlearn.smart.sizes import FEW
from trimlearn.streams import Dataset

__all__ = ["fit_logistic_stream"]


def fit_logistic_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out.

    The fit to a sample, with all that a fit to arrays does, says whether labels are wrong and which for which. As many
    rows as memory holds give the model that judges all labels, by a likelihood that allows for this noise; all rows say
    how many are wrong (EM), and decide the trimmed fit and the final one.
    """
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
    known = streamed.fitted_to_sample(model, labels.written)
    if len(known.classes_) < len(labels.classes):
        raise ValueError(
            f"the class {next(c for c in labels.classes if c not in known.classes_)} has so few rows that a sample of "
            "all rows holds none: leave it out, or join it to another."
        )
    model.classes_ = labels.classes
    column_names(model, data)
    vars(model).pop("_training", None)
    model._bounds, n = known._bounds, data.n
    ridge = 0.0 if model.penalty is None else 1 / (model.C * n)
    fits = LabelFits(model, streamed.X, labels, ridge)
    with team():
        verdict = known._judged.verdict
        noise, start = _as_it_is(verdict.noise), known._x
        if h is None and not verdict.clean:
            stage("how many labels are wrong")
            known = fits.judge(known, noise)
            if len(streamed.sample[1]) < n:  # else it is known already
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
        _keep_rows(model, streamed, fits, noise, None if h is None else share)


def _keep_rows(model: Any, streamed: StreamedData, fits: LabelFits, noise: LabelNoise, share: float | None) -> None:
    """What is known of every row by the final model, in the order of the files."""
    n, restored = streamed.data.n, streamed.copy.restored
    scores, suggested = fits.scores(model, noise)
    clean = share is None and noise.epsilon == 0
    model.threshold_ = (inf if clean else 0.0) if share is None else max(0.0, score_quantile(scores, share))
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
