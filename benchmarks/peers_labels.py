"""peers, classification: wrong labels on MNIST beside cleanlab, and a rare class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score

from benchmarks.common import NOTHING, Digits, Part, Table, Target, say
from benchmarks.memory import Measured, measure
from benchmarks.peers_rivals import there
from trimlearn import TrimmedLogisticRegression
from trimlearn.datasets import shift_labels

__all__ = ["Found", "at_rate", "imbalanced", "labels"]

# Per cent of the test labels, at 0, 10, … 40 % wrong training labels; points; seconds.
ACCURACY = {0.0: 92.0, 0.1: 91.9, 0.2: 91.0, 0.3: 90.2, 0.4: 89.0}
ESTIMATE, CLEAN_COST, ORACLE, SECONDS, RARE = 3.0, 0.3, 1.0, 30.0, 3.0
MINE, PLAIN, CLEANLAB, TRUTH = "TrimmedLogisticRegression", "LogisticRegression", "CleanLearning", "clean rows alone"
ITERATIONS, FOLDS = 100, 3  # of LogisticRegression (scikit-learn's default), of CleanLearning


@dataclass(frozen=True)
class Found:
    """What one method made of one level of wrong labels: per cent, seconds, MiB."""

    accuracy: float
    seconds: float
    mib: float | None
    converged: bool = True
    estimate: float | None = None
    flagged: np.ndarray | None = None
    scores: np.ndarray | None = None


# -- labels shifted by one ------------------------------------------------------------------------------------------

COLUMNS = [
    "wrong, %",
    "method",
    "estimate, %",
    "test accuracy, %",
    "wrong ones flagged, %",
    "right ones flagged, %",
    "wrong ones flagged at cleanlab's rate, %",
    "seconds",
    "MiB",
    "converged",
]


def labels(data: Digits, levels: Sequence[float]) -> Part:
    """Everything at default, contamination="auto", on labels of which a share is shifted by one."""
    table = Table(f"wrong labels, {data.name}", COLUMNS)
    targets: list[Target] = []
    _warm_up(data)
    for wrong in levels:
        t, bad = shift_labels(data.t, wrong, modulo=10, seed=0)
        found: dict[str, Found] = {}
        for name, fit in _classifiers().items():
            same = name == TRUTH and not bad.any()  # all rows are clean: that is the plain fit
            found[name] = found[PLAIN] if same else fit(data, t, bad)
            say(f"peers: {wrong:.0%} wrong, {name}: {found[name].accuracy:.2f} %, {found[name].seconds:.1f} s")
        table.rows.extend(_row(wrong, name, found, bad) for name in found)
        targets += _targets(wrong, found, bad)
    return Part([table], targets)


def _warm_up(data: Digits) -> None:
    """The first fit pays for imports and threads."""
    for fit in _classifiers().values():
        few = Digits(data.name, data.V[:300], data.t[:300], data.V_test[:10], data.t_test[:10])
        fit(few, few.t, np.zeros(300, dtype=bool))


def _classifiers() -> dict[str, Callable[[Digits, np.ndarray, np.ndarray], Found]]:
    known = {MINE: _mine, PLAIN: _plain, TRUTH: _oracle}
    return known | ({CLEANLAB: _cleanlab} if there("cleanlab") else {})


def _mine(data: Digits, t: np.ndarray, bad: np.ndarray) -> Found:
    run, converged = _fit(lambda: TrimmedLogisticRegression(random_state=0).fit(data.V, t))
    model = run.value
    estimate = 100 * model.contamination_
    return _found(data, run, converged, estimate, ~model.inlier_mask_, np.asarray(model.outlier_scores_))


def _plain(data: Digits, t: np.ndarray, bad: np.ndarray) -> Found:
    return _found(data, *_fit(lambda: _logistic().fit(data.V, t)))


def _oracle(data: Digits, t: np.ndarray, bad: np.ndarray) -> Found:
    V, t = data.V[~bad], t[~bad]
    return _found(data, *_fit(lambda: _logistic().fit(V, t)))


def _cleanlab(data: Digits, t: np.ndarray, bad: np.ndarray) -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cleanlab.classification import CleanLearning

    once = {"n_jobs": 1}  # forks would be neither timed nor weighed fairly, and save nothing here
    model = CleanLearning(_logistic(), cv_n_folds=FOLDS, seed=0, find_label_issues_kwargs=once)
    run, converged = _fit(lambda: model.fit(data.V, t))
    flagged = np.asarray(model.get_label_issues()["is_label_issue"])
    return _found(data, run, converged, 100 * float(flagged.mean()), flagged)


def _logistic() -> Any:
    return LogisticRegression(max_iter=ITERATIONS)


def _fit(task: Callable[[], Any]) -> tuple[Measured[Any], bool]:
    """The model with seconds and memory, and whether nothing said that it stopped short."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = measure(task)
    return run, not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _found(data: Digits, run: Measured[Any], converged: bool, *findings: Any) -> Found:
    accuracy = 100 * float(np.mean(run.value.predict(data.V_test) == data.t_test))
    return Found(accuracy, run.seconds, run.mib, converged, *findings)


def at_rate(scores: np.ndarray, bad: np.ndarray, alarms: int) -> float:
    """Per cent of the bad rows flagged by the threshold that flags ``alarms`` good rows, or fewer where scores tie."""
    if not bad.any():
        return nan
    good = np.sort(scores[~bad])[::-1]
    return 100 * float(np.mean(scores[bad] > good[alarms])) if alarms < len(good) else 100.0


def _row(wrong: float, name: str, found: dict[str, Found], bad: np.ndarray) -> list[Any]:
    own = found[name]
    estimate = NOTHING if own.estimate is None else own.estimate
    mib = NOTHING if own.mib is None else own.mib
    same = NOTHING if not bad.any() else _same_rate(name, found, bad)
    caught, alarms = _rate(own.flagged, bad), _rate(own.flagged, ~bad)
    return [100 * wrong, name, estimate, own.accuracy, caught, alarms, same, own.seconds, mib, own.converged]


def _rate(flagged: np.ndarray | None, rows: np.ndarray) -> Any:
    return NOTHING if flagged is None or not rows.any() else 100 * float(flagged[rows].mean())


def _same_rate(name: str, found: dict[str, Found], bad: np.ndarray) -> Any:
    """Detection at the false positives of cleanlab."""
    own, rival = found[name], found.get(CLEANLAB)
    if rival is None or rival.flagged is None:
        return NOTHING
    if own.scores is not None:
        return at_rate(own.scores, bad, int(rival.flagged[~bad].sum()))
    return _rate(own.flagged, bad) if own is rival else NOTHING


def _targets(wrong: float, found: dict[str, Found], bad: np.ndarray) -> list[Target]:
    own, at = found[MINE], f"labels, {wrong:.0%} wrong"
    estimate = nan if own.estimate is None else abs(own.estimate - 100 * wrong)
    targets = [Target(f"{at}: estimate off by, points", estimate, ESTIMATE)]
    if wrong in ACCURACY:
        targets.append(Target(f"{at}: test error, %", 100 - own.accuracy, round(100 - ACCURACY[wrong], 1)))
    if wrong == 0:
        cost = found[PLAIN].accuracy - own.accuracy
        targets.append(Target(f"{at}: accuracy below plain logistic regression's, points", cost, CLEAN_COST))
    elif CLEANLAB in found:
        behind = _same_rate(CLEANLAB, found, bad) - _same_rate(MINE, found, bad)
        targets.append(Target(f"{at}: detection behind cleanlab's at its false positives, points", behind, 0))
    below = found[TRUTH].accuracy - own.accuracy
    targets.append(Target(f"{at}: seconds", own.seconds, SECONDS))
    return [*targets, Target(f"{at}: accuracy below the clean rows', points", below, ORACLE, goal=True)]


# -- a rare class ---------------------------------------------------------------------------------------------------

POSITIVE, FLIPPED, FEATURES = 0.01, 0.05, 10
RARE_COLUMNS = ["distance", "method", "balanced accuracy, %", "F1, %", "estimate, %", "seconds"]


def imbalanced(n: int, distances: Sequence[float], seeds: Sequence[int]) -> Part:
    """1 % positives, of which 5 % are flipped, and as many negatives: means over the seeds, beside the clean fit."""
    table = Table(f"a rare class: n = {n:,}, 1 % positives; classes apart by so many σ", RARE_COLUMNS)
    targets = []
    for distance in distances:
        say(f"peers: a rare class, distance {distance:g}")
        runs = [_rare(n, distance, seed) for seed in seeds]
        mean = {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
        for name, row in mean.items():
            table.rows.append([distance, name, *[NOTHING if np.isnan(value) else float(value) for value in row]])
        for name in RARE_MODELS:
            below = mean[CLEAN_LABELS][:2] - mean[name][:2]
            at = f"a rare class, {distance:g} σ, {name}"
            targets.append(Target(f"{at}: balanced accuracy below the clean fit's, points", float(below[0]), RARE))
            targets.append(Target(f"{at}: F1 below the clean fit's, points", float(below[1]), RARE))
    return Part([table], targets)


CLEAN_LABELS = "LogisticRegression, clean labels"
RARE_MODELS: dict[str, Callable[[], Any]] = {
    "balanced_trimming=True": lambda: TrimmedLogisticRegression(balanced_trimming=True, random_state=0),
    "default": lambda: TrimmedLogisticRegression(random_state=0),
}


def _rare(n: int, distance: float, seed: int) -> dict[str, list[float]]:
    """Balanced accuracy, F1, estimated contamination, seconds of every method on one sample."""
    rng = np.random.default_rng(seed)
    X, t = _two_classes(n, distance, rng)
    test = _two_classes(10 * n, distance, rng)
    positive = np.flatnonzero(t)
    wrong = max(1, round(FLIPPED * len(positive)))
    y = t.copy()
    for rows in (positive, np.flatnonzero(t == 0)):
        y[rng.choice(rows, wrong, replace=False)] ^= 1
    fits = {name: (make, y) for name, make in RARE_MODELS.items()}
    fits |= {"LogisticRegression, wrong labels": (_logistic, y), CLEAN_LABELS: (_logistic, t)}
    return {name: _rare_row(make(), X, given, test) for name, (make, given) in fits.items()}


def _rare_row(model: Any, X: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> list[float]:
    run, _ = _fit(lambda: model.fit(X, y))
    predicted = model.predict(test[0])
    scores = [balanced_accuracy_score(test[1], predicted), f1_score(test[1], predicted)]
    return [100 * scores[0], 100 * scores[1], 100 * getattr(model, "contamination_", nan), run.seconds]


def _two_classes(n: int, distance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    t = (np.arange(n) < POSITIVE * n).astype(np.int64)
    X = rng.standard_normal((n, FEATURES))
    X[:, 0] += distance * t
    return X, t
