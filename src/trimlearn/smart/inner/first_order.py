"""Solvers that need gradients alone: SciPy's L-BFGS for smooth r2, accelerated proximal gradients for any r2."""

from __future__ import annotations

from math import ceil, inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._utils.arrays import TINY, Array, asarray_like, dot, eps_of, norm, to_numpy

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

FEW_ITERATIONS = 4  # of fewer, a quarter is less than one


def lbfgs(
    engine: Engine, x: Array, value: float, gradient: Array, iterations: int, inverse: Array | float = 1.0
) -> tuple[Array, float]:
    """L-BFGS from x, where the mean loss and its gradient are known; r2 must be smooth. ``inverse``: of a diagonal
    metric, whose unit the steps have.

    Left to gain is what F fell by in the last quarter, and no less than ‖g‖·‖x − x₀‖, x₀ the x it began from: what a
    convex F may fall by within the distance just made. On a plateau it hardly falls, but there is a way to go.
    """
    from scipy.optimize import minimize  # 0.1 s of import

    r2 = engine.problem.r2
    known: list[tuple[float, Array]] = [(value, gradient)]
    size = abs(value + r2.value(x))
    unit = size if TINY < size < 1.0 else 1.0  # SciPy takes any fall by eps, of F below 1 too, for none
    root = np.sqrt(to_numpy(inverse).astype(np.float64)) + np.zeros(x.shape)
    fall: list[float] = [(value + r2.value(x)) / unit]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        point = asarray_like(root * flat.reshape(x.shape), x)
        f, g = known.pop() if known else engine.value_gradient(point)
        engine.counts.prox_r2 += 1
        total = root * to_numpy(g + r2.gradient(point)).astype(np.float64) / unit
        if isfinite(f) and np.all(np.isfinite(total)):
            return (f + r2.value(point)) / unit, total.ravel()
        return fall[-1] + max(abs(fall[-1]), 1.0), np.zeros(total.size)  # a rise that a line search can interpolate

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
    # 0: F stands still. 2: no step along the direction lowers F, which is the gradient before the first iteration.
    stuck = found.status == 0 or (found.status == 2 and len(fall) == 1)
    fell = fall[-2:][0] - fall[-1] if stuck else left_to_gain(fall, short=len(fall) <= iterations)
    left = unit * max(fell, norm(found.jac) * norm(found.x - flat))
    return asarray_like(root * found.x.reshape(x.shape), x), left


def fista(
    engine: Engine,
    x: Array,
    value: float,
    gradient: Array,
    gamma: float,
    iterations: int,
    inverse: Array | float = 1.0,
) -> tuple[Array, float, float]:
    """Proximal gradients with backtracking, accelerated where r2 is convex (Beck and Teboulle 2009), and monotone: an
    extrapolation that does not pay is dropped. ``inverse``: of a diagonal metric, for separable r2. The last number
    returned is the last step."""
    r2 = engine.problem.r2
    best, ahead, t = value + r2.value(x), x, 1.0
    fall = [best]
    short = False
    for _ in range(iterations):
        found = _descend(engine, ahead, value, gradient, 2.0 * gamma, inverse)
        short = found is None or engine.passes_left < 1
        if found is None:
            break
        new, f, g, gamma = found
        F = f + r2.value(new)
        if F > best and t > 1.0:  # extrapolated too far: once more from x itself
            if short:
                break
            ahead, t = x, 1.0
            value, gradient = engine.value_gradient(x)
            continue
        faster = (1 + (1 + 4 * t * t) ** 0.5) / 2
        push = (t - 1) / faster if r2.convex else 0.0
        step = new - x
        x, best, ahead, t = new, F, new + push * step, faster
        fall.append(best)
        if norm(step) <= 1e-14 * norm(x):
            return x, 0.0, gamma
        if short:
            break
        value, gradient = (f, g) if push == 0.0 else engine.value_gradient(ahead)
    return x, left_to_gain(fall, short), gamma


def _descend(
    engine: Engine, point: Array, value: float, gradient: Array, gamma: float, inverse: Array | float
) -> tuple[Array, float, Array, float] | None:
    """One proximal gradient step from ``point``, its γ halved until 1/γ bounds the curvature along the step; None where
    no pass is left for it."""
    r2 = engine.problem.r2
    while engine.passes_left >= 1:
        new = r2.step(point, gradient, gamma * inverse)
        engine.counts.prox_r2 += 1
        f, g = engine.value_gradient(new)
        d = new - point
        bound = dot(d / inverse, d) / (2 * gamma)
        # The second test says the same of gradients: near the minimum the values differ by rounding alone.
        if f <= value + dot(gradient, d) + bound or dot(g - gradient, d) <= bound:
            return new, f, g, gamma
        gamma *= 0.5
    return None


def left_to_gain(fall: list[float], short: bool) -> float:
    """By how much F fell in the last quarter of the iterations."""
    made = len(fall) - 1
    if short:
        return inf
    return fall[-1 - made // 4] - fall[-1] if made >= FEW_ITERATIONS else nan
