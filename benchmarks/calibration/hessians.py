"""`trimlearn.smart.method.FEW` and `SOME`: what a Hessian and its factors cost, by the number of parameters."""

from __future__ import annotations

from timeit import repeat
from typing import Any

import numpy as np

from trimlearn.engines import LocalEngine
from trimlearn.losses import Logistic
from trimlearn.losses.exact import solve_symmetric
from trimlearn.problem import Problem
from trimlearn.weights import AllOnes

PARAMETERS = (30, 100, 300, 1000)
NUMBERS = 10_000_000  # n·p of the large problem


def run() -> dict[str, Any]:
    """Seconds of a factorisation, and the time of a Hessian over that of a pass (a value and a gradient)."""
    rng = np.random.default_rng(0)
    rows = {}
    for p in PARAMETERS:
        V = rng.standard_normal((NUMBERS // p, p))
        engine = LocalEngine(Problem(Logistic(V, rng.random(len(V)) < 0.5), AllOnes()))
        x, g = np.zeros(p), rng.standard_normal((p, 1))
        H = engine.hessian(x)
        a_pass = min(repeat(lambda engine=engine, x=x: engine.value_gradient(x), number=1, repeat=5))
        hessian = min(repeat(lambda engine=engine, x=x: engine.hessian(x), number=1, repeat=3))
        factors = min(repeat(lambda H=H, g=g: solve_symmetric(H, g), number=1, repeat=3))
        rows[str(p)] = {"hessian / pass": round(hessian / a_pass, 1), "factors, s": round(factors, 4)}
    return {"what": f"logistic regression, n·p = {NUMBERS}, by p", "rows": rows}
