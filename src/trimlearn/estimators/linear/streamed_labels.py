"""Logistic regression of datasets larger than memory, and of arrays with as many rows as these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trimlearn._utils.blocks import rows_apart
from trimlearn._utils.residence import copy_on_device
from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_positive, is_sparse
from trimlearn.estimators.linear.data import Examples
from trimlearn.estimators.linear.label_rows import LabelJudge
from trimlearn.estimators.linear.many_labels import check_sampled, fit_many_labels
from trimlearn.estimators.linear.streamed_classes import StreamedLabels
from trimlearn.estimators.linear.streamed_label_fits import StreamedLabelFits
from trimlearn.estimators.streamed import StreamedData, can_stream, column_names, refuse_choice, sample_size
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.smart.sizes import FEW
from trimlearn.streams import Dataset, open_dataset

__all__ = ["fit_logistic_rows", "fit_logistic_stream"]


def fit_logistic_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    check_positive(model.C, "C")
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
    """Fit ``model`` to many rows in memory as to those of a stream, so that the same rows give the same fit whatever
    they lie in; labels are the numbers of its classes. False: it was not, because there are few rows or many
    parameters, or something was asked for that streams cannot do."""
    (n, p), K = data.X.shape, len(model.classes_)
    m, q = sample_size(n, p), p + bool(model.fit_intercept)
    tall = n > m and q * (1 if K == 2 else K) <= FEW
    if not tall or data.s is not None or is_sparse(data.X) or not can_stream(model, p):
        return False
    seed = model._seed()
    if copy_on_device(data.X) is not None or len(np.unique(data.t[rows_apart(n, m, seed)])) < K:
        return False
    streamed = StreamedData(open_dataset(np.ascontiguousarray(data.X), data.t), seed)
    fits, judge, noise = _fit(model, streamed, StreamedLabels(streamed), h)
    model._training, model._judged = data, JudgedLabels(fits.rows.verdict(judge, noise), model._x)
    return True


def _fit(
    model: Any, streamed: StreamedData, labels: StreamedLabels, h: float | None
) -> tuple[StreamedLabelFits, LabelJudge, LabelNoise]:
    """The fit: all rows, who judged their labels, and how these are mistaken."""
    known = streamed.fitted_to_sample(model, labels.written)
    check_sampled(known, labels.classes)
    fits = StreamedLabelFits(model, streamed, labels, known)
    with team():
        return fits, *fit_many_labels(fits, h)
