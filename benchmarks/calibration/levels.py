"""How sure `trimlearn check` is of wrong labels, and what the constants of checks/target_labels do.

Tables of scikit-learn and made-up ones, a share of their labels made wrong at random: `python -m benchmarks.calibration
levels`. Boosting, a forest and a logistic regression are asked about labels that they have not seen; then labels are
judged with the constants as they are, and with others. Of all labels between two probabilities: the share that is wrong
beside the mean probability; the mean squared error of the probabilities, times 1000; and the share of right labels that
is flagged, in %.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks.calibration import with_constant
from trimlearn.checks import target_labels
from trimlearn.checks.target_learners import Learners

__all__ = ["cases", "judged", "run"]

LEVELS = (0.0, 0.04, 0.1, 0.2)
EDGES = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST = 200  # rows of a table
TRIED: dict[str, tuple[Any, ...]] = {
    "CLEAN": (0.3, 0.65, 0.8),
    "DOUBT": (0.05, 0.07, 0.1, 1e9),
    "PRIOR": ((1.0, 1.0), (2.0, 10.0), (4.0, 16.0)),
    "PRICE": (0.0, 0.25, 0.5),
    "LEARNT": ((0.0, 0.0), (0.25, 1.75), (0.4, 0.0), (0.1, 4.0)),
}
Case = tuple[list[np.ndarray], np.ndarray, np.ndarray]  # opinions, labels, who is wrong


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Features and classes: clear ones, and ordered ones that overlap."""
    for load in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer, datasets.load_digits):
        found = load()
        rows = np.sort(np.random.default_rng(0).permutation(len(found.data))[:MOST])
        yield load.__name__[5:], found.data[rows], found.target[rows]
    diabetes = datasets.load_diabetes()
    yield "diabetes in thirds", diabetes.data[:MOST], pd.qcut(diabetes.target[:MOST], 3, labels=False)
    rng = np.random.default_rng(0)
    for name, width in (("overlap", 1.0), ("little overlap", 0.3)):
        X = rng.normal(size=(MOST, 4))
        yield name, X, (X[:, 0] + X[:, 1] + width * rng.logistic(size=MOST) > 0).astype(np.int64)


def cases(levels: tuple[float, ...] = LEVELS) -> Iterator[tuple[str, float, Case]]:
    """Each table at each level."""
    for name, X, truth in tables():
        for level in levels:
            rng, labels, K = np.random.default_rng(round(100 * level)), truth.astype(np.int64), int(truth.max()) + 1
            wrong = np.zeros(len(labels), dtype=bool)
            wrong[rng.choice(len(labels), round(level * len(labels)), replace=False)] = True
            labels = np.where(wrong, (labels + rng.integers(1, K, len(labels))) % K, labels)
            scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
            learners = Learners(scaled, X, [False] * X.shape[1], labels, K, 0)
            yield name, level, (learners.opinions(np.ones(len(labels), dtype=bool)), labels, wrong)


def judged(found: list[Case], known: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of all cases, and who is wrong; known: what does not depend on the constants, filled in."""

    def remembered(work: Any) -> Any:
        def once(predictions: Any, labels: Any, *more: Any) -> Any:
            key = work.__name__, hash((len(predictions), predictions[0].tobytes(), labels.tobytes()))
            if key not in known:
                known[key] = work(predictions, labels, *more)
            return known[key]

        return once

    names = ("noise_levels", "label_verdict")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(target_labels, name, remembered(getattr(target_labels, name))))
        p = [target_labels.judge_target_labels(opinions, labels).probability for opinions, labels, _ in found]
    return np.concatenate(p), np.concatenate([wrong for *_, wrong in found])


def run() -> dict[str, Any]:
    """Each level with the constants as they are, and each constant in turn."""
    found = list(cases())
    known: dict[Any, Any] = {}
    rows = []
    for level in LEVELS:
        p, wrong = judged([case for _, at, case in found if at == level], known)
        rows.append({"level": level, **_figures(p, wrong)})
    everything = [case for *_, case in found]
    out: dict[str, Any] = {"summary": rows}
    for name, values in TRIED.items():
        out[name] = []
        for value in values:
            with with_constant(target_labels, name, value):
                out[name].append({name: value, **_figures(*judged(everything, known))})
    return out


def _figures(p: np.ndarray, wrong: np.ndarray) -> dict[str, Any]:
    right = p[~wrong]
    out: dict[str, Any] = {
        "error": 1000 * float(np.mean((p - wrong) ** 2)),
        "flagged": 100 * float(np.mean(right > 0.5)),
    }
    for low, high in pairwise(EDGES):
        on = (p > low) & (p <= high)
        if on.any():
            out[f"{low:g} to {high:g}"] = f"{p[on].mean():.2f} → {wrong[on].mean():.2f} of {int(on.sum())}"
    return out
