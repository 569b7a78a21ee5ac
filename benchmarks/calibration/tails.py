"""What robust/scatter/tails takes for a tail and what for contamination: `python -m benchmarks.calibration tails`.

Distances are drawn from their laws, without a fit. Figures are means over the samples: the share flagged, the share
of bad rows as estimated, the same were the good rows normal, and how often a heavy tail is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration import with_constant
from trimlearn.robust.scatter import tails

__all__ = ["LAWS", "judged", "run"]

SAMPLES = 40
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def shifted(share: float, distance: float) -> Draw:
    """Distances of normal rows from 0, of which a share is moved in one direction."""

    def draw(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
        X = rng.standard_normal((n, k))
        X[: int(share * n), 0] += distance + np.sqrt(k)
        return np.asarray(np.linalg.norm(X, axis=1))

    return draw


LAWS: dict[str, Draw] = {
    "normal": lambda rng, n, k: np.sqrt(rng.chisquare(k, n)),
    "elliptical t5": lambda rng, n, k: np.sqrt(rng.chisquare(k, n) / rng.chisquare(5, n) * 5),
    "elliptical t2": lambda rng, n, k: np.sqrt(rng.chisquare(k, n) / rng.chisquare(2, n) * 2),
    "exponential": lambda rng, n, k: np.linalg.norm(rng.exponential(size=(n, k)) - 1, axis=1),
    "10 % shifted": shifted(0.1, 5.0),
    "20 % shifted": shifted(0.2, 5.0),
    "40 % shifted": shifted(0.4, 5.0),
    "20 % shifted, near": shifted(0.2, 2.5),
}


def judged(law: str, n: int, k: int, samples: int = SAMPLES) -> dict[str, float]:
    """What is made of samples of n distances of k dimensions."""
    rows = []
    for seed in range(samples):
        d = LAWS[law](np.random.default_rng(seed), n, k)
        found = tails.judge_distances(d, float((n + k + 1) // 2), np.ones(n), float(k))
        flagged = float(np.mean(~found.verdict.inliers))
        rows.append([flagged, found.verdict.contamination, found.normal_contamination, float(found.law.m < np.inf)])
    names = "flagged", "contamination", "were it normal", "heavy tail"
    return {name: round(float(value), 3) for name, value in zip(names, np.mean(rows, axis=0), strict=True)}


def run() -> dict[str, Any]:
    """The tables behind HUMP, TAIL and the others."""
    sizes = ((20, 1), (50, 5), (300, 5))
    table = [{"law": law, "n": n, "k": k} | judged(law, n, k) for law in LAWS for n, k in sizes]
    with with_constant(tails, "TAIL", 1.0):
        cheap = [
            {"law": law, "n": n, "k": k} | judged(law, n, k)
            for law in ("10 % shifted", "20 % shifted")
            for n, k in sizes
        ]
    return {
        "what distances are taken for": table,
        "the same where a tail pays for one parameter (TAIL = 1)": cheap,
    }
