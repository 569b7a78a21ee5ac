"""scale: the cut-offs of `trimlearn.robust.scale`.

Normal errors, of which a share is shifted by 6 σ, around a linear model of p coefficients; the least trimmed squares
fit that concentration reaches from the truth; then rows are judged and the model fitted to the inliers twice, as
estimators do. Measured over (n, p, level): by how much σ is off, and the share of clean rows that is flagged, of bad
rows that is kept, and by how much the contamination is off, for each constant as it is and on both sides of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.calibration import summarise, with_constant
from trimlearn.robust import scale
from trimlearn.robust.verdict import Verdict, readmit

__all__ = ["TRIED", "cell", "run"]

SHIFT = 6.0  # σ by which bad rows are off: nearer ones are hard to tell from clean rows, farther ones are easy
SIZES = ((20, 1), (50, 1), (50, 5), (200, 5), (200, 20), (1000, 5))  # (n, p)
LEVELS = (0.0, 0.1, 0.3, 0.45)
REPETITIONS = 100
# Each constant and the values tried beside its own. Cut-offs are given in σ of a normal error, the module holds the
# share of clean rows beyond.
TRIED: dict[str, tuple[float, ...]] = {
    "BEYOND_START": (1.5, 2.0, 2.5, 3.0),
    "BEYOND_SCALE": (1.7, 2.0, 2.3, 2.6, 3.0),
    "BEYOND_USUAL": (2.0, 2.2, 2.5, 2.8, 3.0),
    "BEYOND_COUNT": (2.0, 2.5, 3.0, 3.5, 4.0),
    "EXPECTED": (0.1, 0.2, 0.4, 0.8, 1.6),
}


def cell(n: int, p: int, level: float, constant: str, value: float, repetitions: int = REPETITIONS) -> dict[str, Any]:
    """The means over repetitions, with one constant set to a value."""
    patched = value if constant == "EXPECTED" else float(scale.Chi().survival(value))
    with with_constant(scale, constant, patched):
        found = np.array([_judged(n, p, level, seed) for seed in range(repetitions)])
    sigma, flagged, kept, off = found.mean(axis=0)
    figures = {"sigma_bias": sigma - 1, "clean_flagged": flagged, "bad_kept": kept, "contamination_bias": off}
    return {"constant": constant, "value": value, "n": n, "p": p, "level": level} | {
        name: float(figure) for name, figure in figures.items()
    }


def _judged(n: int, p: int, level: float, seed: int) -> tuple[float, float, float, float]:
    """σ, the shares of clean rows flagged and of bad rows kept, and the error of the contamination."""
    X, y, bad, h, first = _trimmed_fit(n, p, level, seed)

    def judge(coef: np.ndarray) -> Verdict:
        return scale.judge(y - X @ coef, h, p)

    _, _, verdict = readmit(first, judge(first), partial(_refit, X, y), judge, rounds=2)
    kept = verdict.inliers[:bad].mean() if bad else 0.0
    return verdict.scale, 1 - verdict.inliers[bad:].mean(), kept, verdict.contamination - bad / n


@cache
def _trimmed_fit(n: int, p: int, level: float, seed: int) -> tuple[np.ndarray, np.ndarray, int, int, np.ndarray]:
    """Rows X, targets y of which the first ``bad`` are shifted, h, and the least trimmed squares fit."""
    rng = np.random.default_rng([seed, n, p, round(100 * level)])
    X = np.column_stack([np.ones(n), rng.standard_normal((n, p - 1))])
    y, bad, h = rng.standard_normal(n), round(level * n), (n + p + 1) // 2
    y[:bad] += SHIFT
    return X, y, bad, h, _concentrated(X, y, h)


def _concentrated(X: np.ndarray, y: np.ndarray, h: int) -> np.ndarray:
    """Least trimmed squares, from the truth."""
    coef, rows = np.zeros(X.shape[1]), np.arange(0)
    while True:
        before, rows = rows, np.sort(np.argsort(np.abs(y - X @ coef), kind="stable")[:h])
        if np.array_equal(before, rows):
            return coef
        coef = np.linalg.lstsq(X[rows], y[rows], rcond=None)[0]


def _refit(X: np.ndarray, y: np.ndarray, rows: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(X[rows], y[rows], rcond=None)[0])


def run() -> dict[str, Any]:
    """All constants, values and cells; the summary is over cells."""
    rows = [
        cell(n, p, level, constant, value)
        for constant, values in TRIED.items()
        for value in values
        for n, p in SIZES
        for level in LEVELS
    ]

    def root_mean_square(name: str, rows: Sequence[dict[str, Any]]) -> float:
        return float(np.sqrt(np.mean([row[name] ** 2 for row in rows])))

    def largest(name: str, rows: Sequence[dict[str, Any]]) -> float:
        return max(row[name] for row in rows)

    figures = {
        "sigma_bias_rms": partial(root_mean_square, "sigma_bias"),
        "clean_flagged_rms": partial(root_mean_square, "clean_flagged"),
        "clean_flagged_most": partial(largest, "clean_flagged"),
        "bad_kept_most": partial(largest, "bad_kept"),
        "contamination_bias_rms": partial(root_mean_square, "contamination_bias"),
    }
    settings = {"shift": SHIFT, "repetitions": REPETITIONS}
    return {"settings": settings, "summary": summarise(rows, ("constant", "value"), figures), "rows": rows}
