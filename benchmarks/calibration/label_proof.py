"""label_proof: what proves labels wrong, a likelihood and how few rows are left in doubt.

Labels drawn from a law in which nothing is wrong: logistic ones of normal features, with a column of two values (the
treated and the others) or of four (a factor), classes one of which surrounds the other, and others. And normal
clusters, some of whose labels are wrong, with columns of two values that mean nothing. For each constant as it is and
on both sides of it: how often `TrimmedLogisticRegression` accuses labels of which none is wrong, and which share of the
wrong ones it finds.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from benchmarks.calibration import summarise, with_constant
from trimlearn import TrimmedLogisticRegression
from trimlearn.robust.labels import proof

__all__ = ["DRAWN", "TRIED", "accused", "clusters", "drawn", "run", "worlds"]

ROWS = 120
DRAWN = ("slope 0.5", "slope 1", "slope 2.5", "slope 6", "probit", "uniform", "skewed", "spread", "treated", "factor")
APART, LEVELS = (4.0, 5.0, 7.0), (0.02, 0.1, 0.3)
REPETITIONS = 4
TRIED: dict[str, tuple[Any, tuple[float, ...]]] = {
    "CLEARNESS": (proof, (3.0, 6.0, 12.0)),
    "PROVEN": (proof, (2.0, 4.0, 6.0)),
    "SHARP": (proof, (0.5, 1.0, 2.0)),
}


def drawn(law: str, seed: int, n: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels drawn by them, of which none is wrong."""
    rng = np.random.default_rng([seed, n, DRAWN.index(law)])
    X = rng.standard_normal((n, 3))
    p = expit(float(law.split()[-1]) * X[:, 0]) if law.startswith("slope") else norm.cdf(1.5 * X[:, 0])
    if law == "skewed":
        X = np.exp(X)
        p = expit(3 * (X[:, 0] - 1.6))
    elif law == "uniform":
        X = rng.uniform(-1.7, 1.7, (n, 3))
        p = expit(3 * X[:, 0])
    elif law == "spread":
        p = rng.integers(0, 2, n)
        X = X * (1 + p)[:, None] + p[:, None]
    elif law == "treated":
        X[:, 0] = rng.integers(0, 2, n)
        p = expit(2.4 * X[:, 0] - 1.2 + 0.3 * X[:, 1])
    elif law == "factor":
        X = np.eye(4)[rng.integers(0, 4, n)]
        p = X @ [0.1, 0.2, 0.8, 0.9]
    return X, (rng.uniform(size=n) < p).astype(int)


def clusters(apart: float, level: float, seed: int, n: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels of which a share is wrong, and the classes."""
    rng = np.random.default_rng([seed, n, round(10 * apart), round(100 * level)])
    classes = np.arange(n) % 2
    X = np.column_stack([apart * classes + rng.standard_normal(n), rng.standard_normal(n), rng.integers(0, 2, (n, 3))])
    wrong = rng.permutation(n)[: round(level * n)]
    labels = classes.copy()
    labels[wrong] = 1 - classes[wrong]
    return X, labels, classes


def accused(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which labels are called wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return ~TrimmedLogisticRegression(random_state=0).fit(X, labels).inlier_mask_


def worlds() -> list[dict[str, Any]]:
    """For every world how often labels are accused of which none is wrong, or the shares of the wrong and of the right
    ones that are called wrong."""
    rows: list[dict[str, Any]] = []
    for law in DRAWN:
        some = [float(accused(*drawn(law, seed)).any()) for seed in range(REPETITIONS)]
        rows.append({"world": law, "accused": float(np.mean(some))})
    for apart in APART:
        for level in LEVELS:
            shares = np.mean([_shares(*clusters(apart, level, seed)) for seed in range(REPETITIONS)], axis=0)
            figures = dict(zip(("found", "right_flagged"), shares.tolist(), strict=True))
            rows.append({"world": f"{apart:g} sigma, {level:.0%}"} | figures)
    return rows


def _shares(X: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    named, wrong = accused(X, labels), labels != classes
    return float(np.mean(named[wrong])), float(np.mean(named[~wrong]))


def run() -> dict[str, Any]:
    """All constants, values and worlds; the summary is over worlds."""
    as_it_is, rows = worlds(), []
    for constant, (module, values) in TRIED.items():
        given = getattr(module, constant)
        for value in values:
            with with_constant(module, constant, value):
                found = as_it_is if value == given else worlds()
            rows += [{"constant": constant, "value": value} | row for row in found]

    def mean(name: str, rows: Any) -> float:
        return float(np.mean([row[name] for row in rows if name in row]))

    figures = {name: partial(mean, name) for name in ("accused", "found", "right_flagged")}
    settings = {"n": ROWS, "repetitions": REPETITIONS}
    return {"settings": settings, "summary": summarise(rows, ("constant", "value"), figures), "rows": rows}
