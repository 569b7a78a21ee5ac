"""What the level of Wilks' test decides, `trimlearn.robust.scatter.chance`: `python -m benchmarks.calibration chance`.

TrimmedCovariance at default: the share of clean normal samples of which more than a fifth is flagged, the share flagged
in the mean, and what is found of 20 % of bad rows at 10 σ in one place. A level of inf is no test.
"""

from __future__ import annotations

from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np

from trimlearn import TrimmedCovariance
from trimlearn.robust.scatter import chance

__all__ = ["rows", "run", "with_level"]

SAMPLES = 100
SHAPES = (15, 3), (20, 5), (30, 10)
LEVELS = 0.01, 0.05, 0.3, inf


def rows(n: int, p: int, bad: float, seed: int) -> np.ndarray:
    """Normal rows, the first of which are moved by 10 standard deviations in one direction."""
    rng = np.random.default_rng([n, p, seed])
    X, towards = rng.standard_normal((n, p)), rng.standard_normal(p)
    X[: int(bad * n)] += 10.0 * towards / np.linalg.norm(towards)
    return X


def with_level(n: int, p: int, level: float, samples: int = SAMPLES) -> dict[str, float]:
    """What is flagged of clean samples, and found in others, at a level."""

    def flags(bad: float) -> np.ndarray:
        model = TrimmedCovariance(random_state=0)
        return np.array([~model.fit(rows(n, p, bad, k)).inlier_mask_ for k in range(samples)])

    with patch.object(chance, "LEVEL", level):
        clean, found = flags(0.0).mean(axis=1), flags(0.2)[:, : int(0.2 * n)]
    figures = {"more than a fifth": np.mean(clean > 0.2), "flagged": clean.mean(), "found": found.mean()}
    return {name: round(float(value), 3) for name, value in figures.items()}


def run() -> dict[str, Any]:
    """The table behind LEVEL."""
    return {
        "clean samples torn apart, and bad rows found (LEVEL)": {
            f"n={n}, p={p}": {f"{level:g}": with_level(n, p, level) for level in LEVELS} for n, p in SHAPES
        }
    }
