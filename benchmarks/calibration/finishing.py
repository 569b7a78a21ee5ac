"""`SETTLED`, `SHARE` and `LEVELS` of `trimlearn.smart.finish`: passes and objectives when they are varied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from trimlearn import Problem, solve
from trimlearn.losses import LeastSquares, Logistic, Softmax
from trimlearn.regularizers import L1, Ridge
from trimlearn.smart import finish, svrg
from trimlearn.weights import CappedSimplex

VALUES = {"SETTLED": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4), "SHARE": (0.25, 0.5, 0.75), "LEVELS": (4, 8, 16)}
N, P, BAD = 400, 6, 0.25


def problems(draws: int = 3) -> Iterator[Problem]:
    """Least squares, logistic and multinomial regression of correlated columns, a quarter of the targets wrong."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((N, P)) @ (np.eye(P) + 0.9) * 10.0 ** rng.uniform(-1, 1, P)
        score = V @ (rng.standard_normal(P) / V.std(axis=0)) + 0.3 * rng.standard_normal(N)
        wrong = np.arange(N) < BAD * N
        keep = CappedSimplex((1 - BAD) * N)
        yield Problem(LeastSquares(V, score + 8 * wrong * rng.random(N), intercept=True), keep)
        yield Problem(LeastSquares(V, score + 8 * wrong * rng.random(N), intercept=True), keep, L1(0.01))
        yield Problem(Logistic(V, (score > 0) ^ wrong, intercept=True), keep, Ridge(1e-3))
        third = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
        yield Problem(Softmax(V, (third + wrong) % 3, intercept=True), keep, Ridge(1e-3))


def run(draws: int = 3) -> dict[str, Any]:
    """For every value of each constant: the median passes, and the mean of F over that of the default's."""
    tables: dict[str, Any] = {}
    default = [solve(problem, svrg()) for problem in problems(draws)]
    for name, values in VALUES.items():
        tables[name] = {}
        for value in values:
            with patch.object(finish, name, value):
                found = [solve(problem, svrg()) for problem in problems(draws)]
            ratio = [a.objective / b.objective for a, b in zip(found, default, strict=True)]
            tables[name][f"{value:g}"] = {
                "passes": round(float(np.median([solution.passes for solution in found])), 1),
                "objective": round(float(np.mean(ratio)), 4),
                "worst objective": round(float(np.max(ratio)), 4),
                "converged": sum(solution.status.converged for solution in found),
            }
    return {"what": f"{4 * draws} problems of {N} rows, passes of all kinds, F over that of the default", **tables}
