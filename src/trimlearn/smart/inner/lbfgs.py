"""Limited-memory BFGS, SciPy's, for smooth r2."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, eps_of, to_numpy
from trimlearn.smart.inner.left import left_to_gain

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["lbfgs"]


def lbfgs(
    engine: Engine, x: Array, value: float, gradient: Array, iterations: int, inverse: Array | float = 1.0
) -> tuple[Array, float]:
    """L-BFGS from x, where the mean loss and its gradient are known; r2 must be smooth. ``inverse``: of a diagonal
    metric, whose unit the steps have."""
    from scipy.optimize import minimize  # 0.1 s of import

    r2 = engine.problem.r2
    known: list[tuple[float, Array]] = [(value, gradient)]
    root = np.sqrt(to_numpy(inverse).astype(np.float64)) + np.zeros(x.shape)
    fall: list[float] = [value + r2.value(x)]
    finite = True

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal finite
        point = asarray_like(root * flat.reshape(x.shape), x)
        f, g = known.pop() if known else engine.value_gradient(point)
        engine.counts.prox_r2 += 1
        total = root * to_numpy(g + r2.gradient(point)).astype(np.float64)
        if np.all(np.isfinite(total)):
            return f + r2.value(point), total.ravel()
        finite = False
        return np.inf, np.zeros(total.size)

    flat = (to_numpy(x).astype(np.float64) / root).ravel()
    most = max(1, ceil(min(engine.passes_left, 10 * iterations)))
    options: Any = {"maxiter": iterations, "maxfun": most, "ftol": eps_of(x), "gtol": 0.0}
    found = minimize(
        objective,
        flat,
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=lambda intermediate_result: fall.append(float(intermediate_result.fun)),
    )
    stuck = found.status != 1 and finite  # 1: a limit was reached; else no step along the gradient lowers F
    left = 0.0 if stuck else left_to_gain(fall, short=len(fall) <= iterations)
    return asarray_like(root * found.x.reshape(x.shape), x), left
