"""Digits of which some labels are wrong: TrimmedLogisticRegression beside plain logistic regression."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from trimlearn import OutlierTable, TrimmedLogisticRegression
from trimlearn.datasets import load_digits_contaminated, load_mnist, shift_labels

WRONG = 0.3  # the share of labels shifted by one, which nobody tells the estimator
SEED = 0  # any would do: the demo prints the same every time


@dataclass(frozen=True)
class DigitsData:
    """Training rows ``X`` with labels ``y`` as given, ``is_wrong`` of them wrong; clean test rows."""

    name: str
    side: int  # images are side × side
    X: NDArray[Any]
    y: NDArray[np.int64]
    is_wrong: NDArray[np.bool_]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class FitQuality:
    """Shares of test rows classified right, of wrong labels flagged, of right labels flagged."""

    accuracy: float
    detected: float
    false_positives: float
    seconds: float


@dataclass(frozen=True)
class DigitsResult:
    """Both fits; of the trimmed one also the share of wrong labels it estimates, and its table of the rows."""

    data: DigitsData
    plain: FitQuality
    trimmed: FitQuality
    contamination: float
    table: OutlierTable


def bundled_digits() -> DigitsData:
    """scikit-learn's 8 × 8 digits, two thirds to train on (labels shifted), one third to test on (labels right)."""
    digits = load_digits_contaminated(WRONG, SEED)
    rows = np.random.default_rng(SEED).permutation(len(digits.y))
    train, test = np.split(rows, [1200])
    X, y, is_wrong = digits.X[train], digits.y[train], digits.is_wrong[train]
    return DigitsData("scikit-learn digits", 8, X, y, is_wrong, digits.X[test], digits.y_true[test])


def mnist_digits(data_home: str | os.PathLike[str]) -> DigitsData:
    """MNIST with the training labels shifted."""
    X, right = load_mnist("train", data_home, dtype="float32")
    X_test, y_test = load_mnist("test", data_home, dtype="float32")
    y, is_wrong = shift_labels(right, WRONG, modulo=10, seed=SEED)
    return DigitsData("MNIST", 28, X, y, is_wrong, X_test, y_test)


def find_wrong_labels(data: DigitsData, *, progress: bool = False) -> DigitsResult:
    """Fit both, as they come. The plain model flags the labels that it would not have given itself."""
    begun = perf_counter()
    with warnings.catch_warnings():  # scikit-learn's hundred iterations are enough to compare with
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = LogisticRegression().fit(data.X, data.y)
    between = perf_counter()
    trimmed = TrimmedLogisticRegression(verbose=progress, random_state=0).fit(data.X, data.y)
    ended = perf_counter()
    return DigitsResult(
        data=data,
        plain=_judge(data, plain, plain.predict(data.X) != data.y, between - begun),
        trimmed=_judge(data, trimmed, ~trimmed.inlier_mask_, ended - between),
        contamination=trimmed.contamination_,
        table=trimmed.outlier_table(),
    )


def _judge(data: DigitsData, model: Any, flagged: NDArray[np.bool_], seconds: float) -> FitQuality:
    return FitQuality(
        accuracy=float(np.mean(model.predict(data.X_test) == data.y_test)),
        detected=float(np.mean(flagged[data.is_wrong])),
        false_positives=float(np.mean(flagged[~data.is_wrong])),
        seconds=seconds,
    )
