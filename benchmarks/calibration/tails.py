"""What robust/scatter/tails takes for a tail and what for contamination: `python -m benchmarks.calibration tails`.

Distances are drawn from their laws, without a fit. Figures are means over the samples: the share flagged, the share
of bad rows as estimated, the same were the good rows normal, and how often a heavy tail is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration import with_constant
from trimlearn.robust.scale import Chi, judge
from trimlearn.robust.scatter import tails
from trimlearn.robust.scatter.judge import chosen_rows, scores_outside
from trimlearn.robust.scatter.mcd import default_h, mcd

__all__ = ["LAWS", "farthest", "judged", "run"]

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


def farthest(n: int, p: int, share: float, samples: int = SAMPLES) -> dict[str, float]:
    """How many of n clean normal rows are expected at the farthest one or beyond, by the law of rows that were not
    fitted to: with h rows drawn at random, and with `chosen_rows`. Its median should be log 2 = 0.69, and its lowest
    tenth 0.105.

    The fit keeps h rows, a ``share`` of the way from the fewest to all.
    """
    h, ones, law = default_h(n, p) + np.floor(share * (n - default_h(n, p))), np.ones(n), Chi(p)
    values = []
    for seed in range(samples):
        A = np.random.default_rng(seed).standard_normal((n, p))
        d = np.sqrt(mcd(A, ones, h, starts=200).squared_distances(A))
        most = np.array([d.max() / judge(d, h, 1, ones, law).scale]) ** 2
        values.append([n * law.survival(scores_outside(most, m, p)[0]) for m in (h, chosen_rows(h, n, p))])
    middle, low = np.quantile(values, [0.5, 0.1], axis=0).round(4)
    names = "drawn, median", "chosen, median", "drawn, lowest tenth", "chosen, lowest tenth"
    return dict(zip(names, map(float, [*middle, *low]), strict=True))


def run() -> dict[str, Any]:
    """The tables behind HUMP, TAIL and the others, and behind `chosen_rows`."""
    sizes = ((20, 1), (50, 5), (300, 5))
    table = [{"law": law, "n": n, "k": k} | judged(law, n, k) for law in LAWS for n, k in sizes]
    with with_constant(tails, "TAIL", 1.0):
        cheap = [
            {"law": law, "n": n, "k": k} | judged(law, n, k)
            for law in ("10 % shifted", "20 % shifted")
            for n, k in sizes
        ]
    few = ((15, 2), (20, 2), (50, 3), (25, 5), (50, 5), (50, 10), (100, 20))
    rows = [{"n": n, "p": p, "share": a} | farthest(n, p, a) for n, p in few for a in (0.0, 0.5, 0.8)]
    return {
        "what distances are taken for": table,
        "the same where a tail pays for one parameter (TAIL = 1)": cheap,
        "the farthest of clean rows from a fit to the nearest": rows,
    }
