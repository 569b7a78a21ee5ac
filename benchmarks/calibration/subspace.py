"""What the constants of robust/subspace decide: `python -m benchmarks.calibration subspace`.

Excess: by what the least objective found with a value lies above the least found with any value of the table, relative
to it, the mean over the repetitions. 0: the value is large enough. Bad rows form a cluster off the subspace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import chdtrc, chdtri

from benchmarks.calibration.scatter import rounds_taken
from trimlearn import TrimmedPCA
from trimlearn.robust.scatter.tails import spread_freedom
from trimlearn.robust.subspace import judge, search, span, starts
from trimlearn.robust.subspace.concentrate import FlatProblem
from trimlearn.robust.subspace.flat import Flat, Points

__all__ = ["excess", "flagged_when_flattered", "plane", "run", "spread_with"]

REPETITIONS = 5


def plane(n: int, p: int, k: int, share: float, seed: int) -> np.ndarray:
    """Rows near a random subspace of dimension k, the first of which are moved away from it together."""
    rng = np.random.default_rng(seed)
    B = np.linalg.qr(rng.standard_normal((p, k + 1)))[0]
    X = (rng.standard_normal((n, k)) * np.linspace(3, 1, k)) @ B[:, :k].T + 0.3 * rng.standard_normal((n, p))
    X[: int(share * n)] += 2.0 * B[:, k]
    return X


def excess(module: Any, name: str, values: Sequence[Any], size: tuple[int, int, int], seeds: range) -> dict[str, float]:
    """For each value of a constant by what share its objective exceeds the least of all, on average over the seeds."""

    def found(value: Any, seed: int) -> float:
        n, p, k = size
        with patch.object(module, name, value):
            X = plane(n, p, k, 0.3, seed)
            return search.FlatSearch(Points(X), np.ones(n), None, seed).fit(k, 0.55 * n).objective

    table = np.array([[found(value, seed) for value in values] for seed in seeds])
    means = np.mean(table / table.min(axis=1, keepdims=True) - 1.0, axis=0)
    return {str(value): round(float(mean), 6) for value, mean in zip(values, means, strict=True)}


def steps_taken(n: int, p: int, k: int) -> int:
    """The most concentration steps from flats through random rows."""
    most = 0
    for seed in range(20):
        X, rng = plane(n, p, k, 0.3, seed), np.random.default_rng(seed)
        start = Flat(np.linalg.qr(rng.standard_normal((p, k)))[0], X[rng.integers(n)])
        problem = FlatProblem(Points(X), np.ones(n), 0.55 * n, free=True)
        most = max(most, len(problem.concentrate(start).history))
    return most


def off_after(steps: int, seed: int) -> float:
    """The sine of the angle by which a flat is off when it was the best for half of the rows and shall be for all."""
    X = plane(400, 30, 3, 0.0, seed)
    half, every = np.append(np.ones(200), np.zeros(200)), np.ones(400)
    exact = search.FlatSearch(Points(X), every, None, seed)
    flat = exact.settle(half, Flat(np.eye(30, 3), np.zeros(30)))
    with patch.object(search, "COLUMNS", 0), patch.object(search, "POWER_STEPS", steps):
        found = search.FlatSearch(Points(X), every, None, seed).settle(every, flat)
    B = exact.settle(every, flat).U
    return float(np.linalg.norm(found.U - B @ (B.T @ found.U), 2))


def components(n: int, p: int, k: int) -> list[Callable[[], Any]]:
    """Fits to clean rows and to rows of which 20 % or 40 % are bad."""
    models, shares = [TrimmedPCA(k, random_state=seed) for seed in range(REPETITIONS)], (0.0, 0.2, 0.4)
    return [partial(model.fit, plane(n, p, k, share, seed)) for seed, model in enumerate(models) for share in shares]


def spread_with(bad: float, freedom: float) -> float:
    """ν over what the nearest half of the rows say about it, where a share of the rows is bad and far away."""
    clean = chdtri(freedom, (np.arange(1, 1001) - 0.5) / 1000)
    distances2 = np.append(clean, np.full(round(1000 * bad / (1 - bad)), 1e9))
    return round(freedom / spread_freedom(distances2, np.ones(len(distances2)), 0.5), 3)


def flagged_when_flattered(freedom: float, flattery: float) -> float:
    """The share of clean rows beyond the quantile 0.975, where d² has shrunk by so much of its spread."""
    return round(float(chdtrc(freedom, chdtri(freedom, 0.025) / (1.0 - flattery * sqrt(2 / freedom)))), 5)


def run() -> dict[str, Any]:
    """The tables behind the constants of `trimlearn.robust.subspace`."""
    seeds, small, large = range(REPETITIONS), (150, 8, 2), (3000, 20, 3)
    freedoms = (2.0, 5.0, 20.0, 100.0)
    return {
        "most concentration steps (STEPS)": {
            f"n={n}, p={p}, k={k}": steps_taken(n, p, k) for n, p, k in (small, large, (500, 50, 5))
        },
        "excess by rows of the sample (SAMPLE), n=3000": excess(
            span, "SAMPLE", ((150, 150), (600, 300), (1200, 600)), large, seeds
        ),
        "excess by minima of the sample tried on all rows (CANDIDATES), n=3000": excess(
            search, "CANDIDATES", (1, 3, 8), large, seeds
        ),
        "excess by random flats kept (KEEP), n=150": excess(starts, "KEEP", (1, 8, 24), small, seeds),
        "excess by stages of the continuation (STAGES), n=150": excess(starts, "STAGES", (2, 8, 16), small, seeds),
        "sine off after power steps (POWER_STEPS)": {
            str(steps): round(float(np.mean([off_after(steps, seed) for seed in seeds])), 6) for steps in (1, 2, 5, 10)
        },
        "rounds of readmission (ROUNDS), and the share of fits that go round for ever": {
            f"n={n}, p={p}, k={k}": rounds_taken(judge, components(n, p, k)) for n, p, k in (small, (600, 20, 3))
        },
        "ν over ν by the nearest half, by the share of bad rows (UNEQUAL)": {
            f"{bad:.0%}": {f"ν={freedom:g}": spread_with(bad, freedom) for freedom in freedoms}
            for bad in (0.0, 0.2, 0.4, 0.45)
        },
        "share beyond the quantile 0.975 where distances are flattered by 0.1 (FLATTERY)": {
            f"ν={freedom:g}": flagged_when_flattered(freedom, judge.FLATTERY) for freedom in freedoms
        },
    }
