"""The inner problem of alternating minimisation: min over x of F(w, x) at fixed w."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn.arrays import Array, asarray_like, dot, norm, to_numpy

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
        found = _descend(engine, ahead, value, gradient, 2.0 * gamma)
        if found is None:
            break
        new, f, g, gamma = found
        F = f + r2.value(new)
        if F > best and t > 1.0:  # extrapolated too far: once more from x itself
            if engine.passes_left < 1:
                break
            ahead, t = x, 1.0
            value, gradient = engine.value_gradient(x)
            continue
        faster = (1 + (1 + 4 * t * t) ** 0.5) / 2
        push = (t - 1) / faster if r2.convex else 0.0
        step = new - x
        x, best, ahead, t = new, F, new + push * step, faster
        if norm(step) <= 1e-14 * norm(x) or engine.passes_left < 1:
            break
        value, gradient = (f, g) if push == 0.0 else engine.value_gradient(ahead)
    return x, gamma


def _descend(
    engine: Engine, point: Array, value: float, gradient: Array, gamma: float
) -> tuple[Array, float, Array, float] | None:
    """One proximal gradient step from ``point``, its γ halved until 1/γ bounds the curvature along the step; None where
    no pass is left for it."""
    r2 = engine.problem.r2
    while engine.passes_left >= 1:
        new = r2.step(point, gradient, gamma)
        engine.counts.prox_r2 += 1
        f, g = engine.value_gradient(new)
        d = new - point
        bound = dot(d, d) / (2 * gamma)
        # The second test says the same of gradients: near the minimum the values differ by rounding alone.
        if f <= value + dot(gradient, d) + bound or dot(g - gradient, d) <= bound:
            return new, f, g, gamma
        gamma *= 0.5
    return None
