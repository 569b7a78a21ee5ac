"""The fits of Table 2: MNIST, a share of its labels shifted by one, and four ways to learn from it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn import Problem, Solution, TrimmedLogisticRegression, solve
from trimlearn.datasets import load_mnist, shift_labels
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = [
    "FITS",
    "Case",
    "Digits",
    "Found",
    "Labels",
    "Score",
    "Task",
    "fit_paper",
    "load_digits",
    "rate",
    "score",
    "worst",
]

CLASSES = 10  # digits
LAMBDA = 0.01  # the paper's: R(X) = λ/(2n)‖X‖²
OVERTRIM = 0.1  # the paper's: h is set as if 10 points more were wrong

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Digits:
    """MNIST: rows ``V`` with values in [0, 1] and true labels ``t``; the same for the test."""

    V: NDArray[np.float32]
    t: Labels
    V_test: NDArray[np.float32]
    t_test: Labels

    @property
    def n(self) -> int:
        """How many there are to learn from."""
        return len(self.t)


def load_digits(data_home: str | os.PathLike[str] | None, rows: int | None = None) -> Digits:
    """MNIST, of which the first ``rows`` (None: all) to learn from."""
    V, t = load_mnist("train", data_home, "float32")
    return Digits(V[:rows], t[:rows], *load_mnist("test", data_home, "float32"))


@dataclass(frozen=True)
class Case:
    """One contamination: the labels ``t`` as given, a share ``wrong`` of them shifted by one modulo ``modulo``."""

    digits: Digits
    wrong: float
    seed: int
    modulo: int
    passes: float
    t: Labels
    is_wrong: Mask

    @classmethod
    def make(cls, digits: Digits, wrong: float, seed: int, modulo: int, passes: float) -> Case:
        """Draw which labels are shifted."""
        return cls(digits, wrong, seed, modulo, passes, *shift_labels(digits.t, wrong, modulo, seed))

    @property
    def h(self) -> int:
        """How many rows the trimmed fit keeps."""
        return round((1 - self.wrong - OVERTRIM) * self.digits.n)


@dataclass(frozen=True)
class Score:
    """How one fit did, in %; None where there is nothing to measure. ``shifted``: test digits taken for the next one,
    as the wrong labels have it. ``detected_h``, ``false_positives_h``: had the n − h worst rows been flagged, as many
    as the paper flags. ``estimate``: the share of wrong labels that the fit itself found."""

    fit: str
    wrong: float
    seed: int
    accuracy: float
    shifted: float
    detected: float | None
    false_positives: float | None
    detected_h: float | None
    false_positives_h: float | None
    estimate: float | None
    seconds: float


@dataclass(frozen=True)
class Found:
    """The test digits as a fit reads them; the rows it takes for outliers, and the n − h that it likes least; the share
    of wrong labels it sees."""

    predicted: Labels
    flagged: Mask | None = None
    flagged_h: Mask | None = None
    estimate: float | None = None


# -- the fits ---------------------------------------------------------------------------------------------------------


def fit_paper(V: Any, t: Labels, r1: WeightSet, passes: float, seed: int) -> Solution:
    """The paper's problem, 1/n Σ wᵢfᵢ(X) + λ/(2n)‖X‖², by SMART-SVRG with automatic steps and a continuation in h.

    All passes are made: with so small a λ the rows kept become separable, and no tolerance would be met before.
    """
    problem = Problem(Softmax(V, t, CLASSES), r1, Ridge(LAMBDA / len(t)))
    return solve(problem, max_passes=passes, tol=0.0, seed=seed)


def _plain(case: Case) -> Found:
    """Untrimmed; the outliers are the n − h largest losses."""
    solution = fit_paper(case.digits.V, case.t, AllOnes(), case.passes, case.seed)
    flagged = _flag(solution.losses, case)
    return Found(_predict(solution, case), flagged, flagged)


def _smart(case: Case) -> Found:
    """Trimmed; the outliers are the zeros of w."""
    solution = fit_paper(case.digits.V, case.t, CappedSimplex(case.h), case.passes, case.seed)
    flagged = solution.w <= 0
    return Found(_predict(solution, case), flagged, flagged)


def _auto(case: Case) -> Found:
    """The estimator at default: nothing is known about the share of wrong labels."""
    model = TrimmedLogisticRegression(random_state=case.seed).fit(case.digits.V, case.t)
    flagged, flagged_h = ~model.inlier_mask_, _flag(model.outlier_scores_, case)
    return Found(model.predict(case.digits.V_test), flagged, flagged_h, 100 * model.contamination_)


def _oracle(case: Case) -> Found:
    """What could be had if the wrong labels were known: the untrimmed fit without them."""
    right = ~case.is_wrong
    V = case.digits.V[right] if case.is_wrong.any() else case.digits.V
    return Found(_predict(fit_paper(V, case.t[right], AllOnes(), case.passes, case.seed), case))


FITS: dict[str, Callable[[Case], Found]] = {"LSE": _plain, "SMART": _smart, "auto": _auto, "oracle": _oracle}


def _predict(solution: Solution, case: Case) -> Labels:
    return np.asarray(np.argmax(case.digits.V_test @ solution.x, axis=1))


def _flag(losses: Any, case: Case) -> Mask:
    """The n − h rows of the largest losses."""
    flagged = np.zeros(case.digits.n, dtype=bool)
    flagged[worst(losses, case.digits.n - case.h)] = True
    return flagged


def worst(losses: Any, count: int) -> NDArray[np.intp]:
    """The rows of the ``count`` largest losses, the largest first.

    >>> worst(np.array([1.0, 5.0, 2.0, 3.0]), 2).tolist()
    [1, 3]
    """
    return np.argsort(-np.asarray(losses), kind="stable")[:count]


# -- how they did -----------------------------------------------------------------------------------------------------


def rate(flagged: Mask | None, among: Mask) -> float | None:
    """Per cent of the rows ``among`` that are flagged; None where there are none, or none could be.

    >>> rate(np.array([True, True, False]), among=np.array([True, False, True]))
    50.0
    """
    return None if flagged is None or not among.any() else 100 * float(np.mean(flagged[among]))


def score(fit: str, case: Case) -> Score:
    """Make one fit, timed, and judge it by the true labels."""
    begin = perf_counter()
    found = FITS[fit](case)
    seconds = perf_counter() - begin
    truth = case.digits.t_test
    return Score(
        fit,
        case.wrong,
        case.seed,
        accuracy=100 * float(np.mean(found.predicted == truth)),
        shifted=100 * float(np.mean(found.predicted == (truth + 1) % case.modulo)),
        detected=rate(found.flagged, case.is_wrong),
        false_positives=rate(found.flagged, ~case.is_wrong),
        detected_h=rate(found.flagged_h, case.is_wrong),
        false_positives_h=rate(found.flagged_h, ~case.is_wrong),
        estimate=found.estimate,
        seconds=seconds,
    )


Task = tuple[str, Case]  # a key of FITS, and what to fit
