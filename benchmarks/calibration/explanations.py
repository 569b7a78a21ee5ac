"""explanations: as what rows that `TrimmedCovariance` calls bad are told: errors, a tail, or groups.

Normal rows with errors or another group of rows beside them, and rows of one law that is heavy-tailed or skewed. Of
the samples of each law and shape: how many have more than a twentieth of the rows called bad, and how many of these are
told to be a heavy tail, a skewed one, or groups; the rest pass for errors, without a word.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration import summarise
from trimlearn import TrimmedCovariance
from trimlearn.estimators.doubtful_rows import ASKED, WHY, called_bad

__all__ = ["LAWS", "SEEDS", "SHAPES", "TOLD", "cell", "run"]

Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def _beside(share: float, moved: Draw) -> Draw:
    """Normal rows of which a share is another one."""

    def draw(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
        X, bad = rng.standard_normal((n, p)), round(share * n)
        X[:bad] = moved(rng, bad, p)
        return X

    return draw


def _directions(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    towards = rng.standard_normal((n, p))
    return np.asarray(towards / np.linalg.norm(towards, axis=1, keepdims=True))


def _together(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.asarray(rng.standard_normal((n, p)) + 8.0 * _directions(rng, 1, p))


def _elsewhere(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return np.asarray(rng.standard_normal((n, p)) + 8.0 * _directions(rng, n, p))


LAWS: dict[str, Draw] = {
    "normal": lambda rng, n, p: rng.standard_normal((n, p)),
    "log-normal": lambda rng, n, p: np.exp(rng.standard_normal((n, p))),
    "exponential": lambda rng, n, p: rng.exponential(size=(n, p)),
    "t3 features": lambda rng, n, p: rng.standard_t(3, size=(n, p)),
    "t3 rows": lambda rng, n, p: rng.standard_normal((n, p)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3),
    "Laplace": lambda rng, n, p: rng.laplace(size=(n, p)),
    "10 % each elsewhere": _beside(0.1, _elsewhere),
    "20 % each elsewhere": _beside(0.2, _elsewhere),
    "20 % ten times as wide": _beside(0.2, lambda rng, n, p: 10.0 * rng.standard_normal((n, p))),
    "10 % together": _beside(0.1, _together),
    "30 % together": _beside(0.3, _together),
    "three equal groups": lambda rng, n, p: (
        rng.standard_normal((n, p)) + 8.0 * _directions(rng, 3, p)[np.arange(n) % 3]
    ),
}
SHAPES = (20, 2), (30, 3), (60, 3), (100, 5), (200, 5)
SEEDS = range(12)
TOLD = *WHY, "otherwise told", "no word", "few are bad"


def cell(law: str, n: int, p: int, seed: int) -> str:
    """What is made of one sample."""
    X = LAWS[law](np.random.default_rng([n, p, list(LAWS).index(law), seed]), n, p)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = TrimmedCovariance(random_state=0).fit(X)
    for why, text in WHY.items():
        if any(text in str(warning.message) for warning in told):
            return why
    if called_bad(model.contamination_, ~model.inlier_mask_, np.ones(n)) <= ASKED:
        return "few are bad"
    return "otherwise told" if told else "no word"


def run() -> dict[str, Any]:
    """All laws, shapes and seeds."""
    rows = [
        {"law": law, "n": n, "p": p, "seed": seed, "told": cell(law, n, p, seed)}
        for law in LAWS for n, p in SHAPES for seed in SEEDS
    ]  # fmt: skip

    def count(what: str) -> Callable[[Any], float]:
        return lambda group: float(sum(row["told"] == what for row in group))

    return {"summary": summarise(rows, ["law", "n", "p"], {what: count(what) for what in TOLD}), "rows": rows}
