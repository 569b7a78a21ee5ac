"""Accelerated proximal gradients, for any r2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimlearn._utils.arrays import Array, dot, norm
from trimlearn.smart.inner.left import left_to_gain

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["fista"]


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
