"""The inner problem of alternating minimisation: min over x of F(w, x) at fixed w."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn.arrays import Array, asarray_like, norm, sum64, to_numpy

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["accelerated", "lbfgs"]


def lbfgs(engine: Engine, x: Array, value: float, gradient: Array, iterations: int) -> Array:
    """L-BFGS from x, where the mean loss and its gradient are known; r2 must be smooth."""
    from scipy.optimize import minimize  # 0.1 s of import

    r2 = engine.problem.r2
    known: list[tuple[float, Array]] = [(value, gradient)]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        point = asarray_like(flat.reshape(x.shape), x)
        f, g = known.pop() if known else engine.value_gradient(point)
        engine.counts.prox_r2 += 1
        total = to_numpy(g + r2.gradient(point)).astype(np.float64)
        return (f + r2.value(point), total.ravel()) if np.all(np.isfinite(total)) else (np.inf, np.zeros(total.size))

    flat = to_numpy(x).astype(np.float64).ravel()
    most = max(1, ceil(min(engine.passes_left, 10 * iterations)))
    options: Any = {"maxiter": iterations, "maxfun": most, "ftol": 0.0, "gtol": 0.0}
    found = minimize(objective, flat, jac=True, method="L-BFGS-B", options=options)
    return asarray_like(found.x.reshape(x.shape), x)


def accelerated(
    engine: Engine, x: Array, value: float, gradient: Array, gamma: float, iterations: int
) -> tuple[Array, float]:
    """Proximal gradients with backtracking, accelerated where r2 is convex (Beck and Teboulle 2009), and monotone: an
    extrapolation that does not pay is dropped. Returns x and the last step."""
    r2 = engine.problem.r2
    best, ahead, t = value + r2.value(x), x, 1.0
    for _ in range(iterations):
        if engine.passes_left < 1:
            break
        gamma *= 2.0
        while True:
            new, penalty = r2.prox(ahead - gamma * gradient, gamma)
            engine.counts.prox_r2 += 1
            f, g = engine.value_gradient(new)
            d = new - ahead
            if f <= value + sum64(gradient * d) + sum64(d * d) / (2 * gamma) + 1e-12 * abs(value) or gamma < 1e-300:
                break
            gamma *= 0.5
        moved = norm(d)
        if f + penalty > best and t > 1.0:  # extrapolated too far: once more from x itself
            ahead, t = x, 1.0
            value, gradient = engine.value_gradient(x)
            continue
        faster = (1 + (1 + 4 * t * t) ** 0.5) / 2
        push = (t - 1) / faster if r2.convex else 0.0
        x, best, ahead, t = new, f + penalty, new + push * (new - x), faster
        if moved <= 1e-12 * (1.0 + norm(x)):
            break
        value, gradient = (f, g) if push == 0.0 else engine.value_gradient(ahead)
    return x, gamma
