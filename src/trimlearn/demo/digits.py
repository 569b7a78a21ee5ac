"""Digits of which some labels are wrong: trimmed against plain multinomial logistic regression."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn import Problem, Solution, solve
from trimlearn.datasets import load_digits_contaminated, load_mnist, shift_labels
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["DigitsData", "DigitsResult", "Fit", "bundled_digits", "find_wrong_labels", "mnist_digits"]

WRONG = 0.3  # the share of labels shifted by one
TRIMMED = 0.35  # the share trimmed: nobody knows WRONG exactly, so a little more
LAMBDA = 1e-3
MAX_PASSES = 200
SEED = 0


@dataclass(frozen=True)
class DigitsData:
    """Training rows ``V`` with labels ``t`` as given, ``is_wrong`` of them wrong; clean test rows."""

    name: str
    side: int  # images are side × side
    V: NDArray[Any]
    t: NDArray[np.int64]
    is_wrong: NDArray[np.bool_]
    V_test: NDArray[Any]
    t_test: NDArray[np.int64]


@dataclass(frozen=True)
class Fit:
    """How good a fit is: shares of test rows classified right, of wrong labels flagged, of right labels flagged."""

    accuracy: float
    detected: float
    false_positives: float
    objective: float
    status: str
    passes: float
    seconds: float


@dataclass(frozen=True)
class DigitsResult:
    """Both fits; of the trimmed one also each row's weight ``w``, loss ``f`` and most likely label."""

    data: DigitsData
    h: float
    plain: Fit
    trimmed: Fit
    w: NDArray[Any]
    f: NDArray[Any]
    suggestion: NDArray[np.int64]


def bundled_digits() -> DigitsData:
    """scikit-learn's 8 × 8 digits, two thirds to train on (labels shifted), one third to test on (labels right)."""
    digits = load_digits_contaminated(WRONG, SEED)
    rows = np.random.default_rng(SEED).permutation(len(digits.y))
    train, test = np.split(rows, [1200])
    V, t, is_wrong = digits.X[train], digits.y[train], digits.is_wrong[train]
    return DigitsData("scikit-learn digits", 8, V, t, is_wrong, digits.X[test], digits.y_true[test])


def mnist_digits(data_home: str | os.PathLike[str]) -> DigitsData:
    """MNIST with the training labels shifted."""
    V, y = load_mnist("train", data_home, dtype="float32")
    V_test, t_test = load_mnist("test", data_home, dtype="float32")
    t, is_wrong = shift_labels(y, WRONG, modulo=10, seed=SEED)
    return DigitsData("MNIST", 28, V, t, is_wrong, V_test, t_test)


def find_wrong_labels(data: DigitsData, *, progress: bool = False) -> DigitsResult:
    """Fit with and without trimming; a label is flagged when it is among the n − h worst explained."""
    n = len(data.t)
    h = round((1 - TRIMMED) * n)
    loss = Softmax(data.V, data.t)

    def fit(r1: WeightSet) -> Solution:
        return solve(Problem(loss, r1, Ridge(LAMBDA)), max_passes=MAX_PASSES, seed=SEED, progress=progress)

    plain, trimmed = fit(AllOnes()), fit(CappedSimplex(h))
    return DigitsResult(
        data=data,
        h=h,
        # plain weights are all one: what it would flag are its own worst rows, as many as the trimmed fit flags
        plain=_judge(data, plain, flagged=np.argsort(np.argsort(plain.losses)) >= h),
        trimmed=_judge(data, trimmed, flagged=trimmed.w <= 0),
        w=trimmed.w,
        f=trimmed.losses,
        suggestion=np.argmax(data.V @ trimmed.x, axis=1),
    )


def _judge(data: DigitsData, solution: Solution, flagged: NDArray[np.bool_]) -> Fit:
    predicted = np.argmax(data.V_test @ solution.x, axis=1)
    return Fit(
        accuracy=float(np.mean(predicted == data.t_test)),
        detected=float(np.mean(flagged[data.is_wrong])),
        false_positives=float(np.mean(flagged[~data.is_wrong])),
        objective=solution.objective,
        status=solution.status.value,
        passes=solution.passes,
        seconds=solution.seconds,
    )
