"""trust, labels: TrimmedLogisticRegression beside the plain fit, and beside the fit to clean labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import nan
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.common import Part, say
from benchmarks.trust_data import FOLDS, Labelled, Noise, Sample, draw, noises
from benchmarks.trust_figures import BINS, Draw, tables, targets
from trimlearn import TrimmedLogisticRegression

__all__ = ["FDR", "aligned", "findable", "judge", "labels", "measure", "spread"]

FDR = 0.1  # the share of innocents that `flag` is asked for
JUDGES = 5  # folds of the plain model whose 1 − p is the simplest ranking
ITERATIONS = 1000


def labels(data: Sequence[Labelled], asked: tuple[Noise, ...], seeds: Sequence[int], rows: int, jobs: int) -> Part:
    """Every table, condition, seed and fold."""
    tasks = [
        (table, noise, seed, fold, rows)
        for table in data
        for noise in noises(table, asked)
        for seed in seeds
        for fold in range(FOLDS)
    ]
    say(f"trust: {len(tasks)} draws of {len(data)} tables")
    draws = spread(measure, tasks, jobs)
    return Part(tables(draws), targets(draws))


def spread(task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int) -> list[Any]:
    """All of it by ``jobs`` processes with one BLAS thread each."""
    with parallel_config("loky", inner_max_num_threads=1):
        return list(Parallel(n_jobs=jobs)(delayed(_named)(task, *each) for each in arguments))


def _named(task: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return task(*arguments)
    except Exception as error:
        error.add_note(f"in {task.__name__} of {', '.join(str(each) for each in arguments)}")
        raise


# -- one draw -------------------------------------------------------------------------------------------------------


def measure(table: Labelled, noise: Noise, seed: int, fold: int, rows: int) -> Draw:
    """Fit and judge one draw."""
    sample = draw(table, noise, seed, fold, rows)
    wrong = sample.wrong
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plain models that stop short, classes with few rows: no matter of ours
        plain, oracle = (_logistic().fit(sample.X, t) for t in (sample.given, sample.y))
        doubt = _doubt(sample) if wrong.any() else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = perf_counter()
        model = TrimmedLogisticRegression(random_state=0).fit(sample.X, sample.given)
        seconds = perf_counter() - begin
    rows_listed, scores = model.flag(FDR), np.asarray(model.outlier_scores_)
    accuracy, loss = zip(*[judge(each, sample) for each in (model, plain, oracle)], strict=True)
    return Draw(
        table.name,
        noise,
        100 * float(wrong.mean()),
        100 * float(model.contamination_),
        *accuracy,
        *loss[:2],
        auroc=nan if doubt is None else float(roc_auc_score(wrong, scores)),
        auroc_plain=nan if doubt is None else float(roc_auc_score(wrong, doubt)),
        listed=len(rows_listed),
        innocents=100 * float(np.mean(~wrong[rows_listed])) if len(rows_listed) else 0.0,
        found=int(wrong[rows_listed].sum()),
        findable=findable(scores, wrong),
        rows_given=np.histogram(model.outlier_probability_, BINS)[0],
        wrong_given=np.histogram(model.outlier_probability_[wrong], BINS)[0],
        warned=bool(caught),
        seconds=seconds,
    )


def _logistic() -> Any:
    return LogisticRegression(max_iter=ITERATIONS)


def aligned(model: Any, X: np.ndarray, K: int) -> np.ndarray:
    """P(class), (n, K); a class that the model has not seen has probability 0."""
    P = np.zeros((len(X), K))
    P[:, model.classes_] = model.predict_proba(X)
    return P


def judge(model: Any, sample: Sample) -> tuple[float, float]:
    """Accuracy in per cent, and log loss, on the clean labels of the test part."""
    P = aligned(model, sample.X_test, sample.K)
    accuracy = 100 * float(np.mean(P.argmax(axis=1) == sample.y_test))
    return accuracy, float(log_loss(sample.y_test, P, labels=range(sample.K)))


def _doubt(sample: Sample) -> np.ndarray:
    """1 − p of the given labels, by plain models that have not seen them."""
    p = np.empty(len(sample.given))
    for train, test in StratifiedKFold(JUDGES, shuffle=True, random_state=0).split(sample.X, sample.given):
        model = _logistic().fit(sample.X[train], sample.given[train])
        p[test] = aligned(model, sample.X[test], sample.K)[np.arange(len(test)), sample.given[test]]
    return 1 - p


def findable(scores: np.ndarray, wrong: np.ndarray) -> int:
    """The most wrong rows above any cut of the scores above which at most a share `FDR` is innocent."""
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(wrong[order])
    length = np.arange(1, len(wrong) + 1)
    return int(found[length - found <= FDR * length].max(initial=0))
