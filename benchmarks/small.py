"""small: a 43 × 12 trimmed PCA to its optimum, and what a cold ``import trimlearn`` takes."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import numpy as np

from benchmarks.common import Result, Table, Target, clock
from trimlearn import Problem, Solution, solve
from trimlearn.datasets import load_judges
from trimlearn.losses import Subspace
from trimlearn.regularizers import Stiefel
from trimlearn.weights import CappedSimplex

__all__ = ["run"]

OPTIMUM = 0.121715475  # the best F known; eight judges have weight 0 there
SECONDS, IMPORT = 0.2, 1.0  # targets: what nobody waits for

IMPORTS = """
from time import perf_counter
begin = perf_counter()
import sklearn
between = perf_counter()
import trimlearn
print(between - begin, perf_counter() - between)
"""


def run(repetitions: int = 5) -> Result:
    """Seconds to the optimum, first and later calls; seconds of the import beyond scikit-learn's own."""
    table = load_judges()
    A = table.data - table.data.mean(axis=0)
    found: list[Solution] = []

    def fit() -> None:
        found.append(solve(Problem(Subspace(A, 2), CappedSimplex(0.8 * len(A)), Stiefel())))

    seconds = [clock(fit) for _ in range(1 + repetitions)]
    imports = [_import_seconds() for _ in range(repetitions)]
    beyond = median(later for _, later in imports)
    fits = Table(
        "US Judges, 43 × 12, two components, a fifth trimmed",
        ["call", "seconds", "F", "weights at 0"],
        [
            ["first", seconds[0], found[0].objective, _at_zero(found[0])],
            ["later (median)", median(seconds[1:]), found[-1].objective, _at_zero(found[-1])],
        ],
    )
    cold = Table(
        "a cold import, median of fresh processes",
        ["what", "seconds"],
        [["import sklearn", median(first for first, _ in imports)], ["import trimlearn after it", beyond]],
    )
    return Result(
        benchmark="small",
        settings={"repetitions": repetitions, "optimum": OPTIMUM},
        targets=[
            Target("seconds to the optimum, first call", seconds[0], SECONDS),
            Target("F above the best known, relative", found[0].objective / OPTIMUM - 1, 1e-6),
            Target("seconds of import trimlearn beyond scikit-learn's", beyond, IMPORT),
        ],
        tables=[fits, cold],
    )


def _at_zero(solution: Solution) -> int:
    return int(np.count_nonzero(solution.w <= 0))


def _import_seconds() -> tuple[float, float]:
    """Of scikit-learn and then of trimlearn, in a fresh process."""
    answer = subprocess.run([sys.executable, "-c", IMPORTS], check=True, capture_output=True, text=True).stdout
    first, later = map(float, answer.split())
    return first, later
