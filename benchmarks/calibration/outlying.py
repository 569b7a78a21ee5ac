"""The law of `trimlearn.robust.regression.set_apart` beside searches: `python -m benchmarks.calibration outlying`.

Λ is the sum of squared residuals of least trimmed squares, which leaves b of n rows out, over that of least squares, in
clean normal data with q coefficients. Simulated and predicted mean and deviation of log Λ, and the share of samples in
which so small a Λ is said to be no chance at LEVEL.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from trimlearn.robust.regression import set_apart
from trimlearn.robust.regression.lts import least_trimmed_squares

__all__ = ["compared", "run"]

SAMPLES = 200
SHAPES = (20, 3), (40, 3), (40, 6), (100, 3), (100, 10)
SHARES = 0.1, 0.2, 0.4


def log_ratio(n: int, b: int, q: int, seed: int) -> float:
    """log Λ of one clean sample."""
    rng = np.random.default_rng([n, b, q, seed])
    A, t = np.column_stack([np.ones(n), rng.standard_normal((n, q - 1))]), rng.standard_normal(n)
    every = t - A @ np.linalg.lstsq(A, t, rcond=None)[0]
    kept = np.sort((t - A @ least_trimmed_squares(A, t, n - b, seed=seed).coef) ** 2)[: n - b]
    return log(kept.sum() / (every @ every))


def compared(n: int, b: int, q: int, samples: int = SAMPLES) -> dict[str, float]:
    """Simulated and predicted moments, and how often chance is denied."""
    found = np.array([log_ratio(n, b, q, seed) for seed in range(samples)])
    mean, deviation = set_apart.law_of_farthest(n, b, q)
    denied = [set_apart.log_sets_expected(float(np.exp(value)), n, b, q) <= log(set_apart.LEVEL) for value in found]
    figures = {
        "mean": found.mean(), "predicted": mean, "deviation": found.std(), "its prediction": deviation,
        "denied": np.mean(denied),
    }  # fmt: skip
    return {name: round(float(value), 3) for name, value in figures.items()}


def run() -> dict[str, Any]:
    """The table behind the law."""
    return {
        "log of the sum kept, least trimmed squares of clean rows (LEVEL)": {
            f"n={n}, q={q}, b={round(share * n)}": compared(n, round(share * n), q)
            for n, q in SHAPES
            for share in SHARES
            if round(share * n) <= (n - q) / 2
        }
    }
