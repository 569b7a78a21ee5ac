"""Damped proximal Newton steps, for models of few parameters: nothing but the Hessian costs passes over the data."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.arrays import TINY, Array, asarray_like, dot, namespace, norm, rounding_of, to_numpy
from trimlearn.losses.newton_system import NewtonSystem
from trimlearn.regularizers import Regularizer

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

SUBPROBLEM = 500  # steps on a quadratic model: a limit on time, as each is one product with H, 1 ms at order 1,000
FORCING = 1e-6  # share of its fall to which a model is solved: its square root, three digits of x, is what a step gains
BALANCE = 10  # the ratio of residuals that changes ρ (Boyd and others 2011, §3.4.1), looked at after as many steps
LEAST, MOST = 1e-4, 1e8  # dampings of a unit diagonal: H moves by less than 1e-4, or steps shrink below √eps of theirs


def newton(
    engine: Engine, x: Array, value: float, gradient: Array, iterations: int, r2: Regularizer | None = None
) -> tuple[Array, float]:
    """min over x of F(w, x) from x, where the mean loss and its gradient are known; and what may be left to gain.

    A step minimises the quadratic model of the loss, its Hessian H damped to H + λ·diag H, plus r2 itself. λ is raised
    a hundredfold when F does not fall, and lowered when it does (Levenberg and Marquardt): invariant to the scales of
    features, safe where the loss is far from its model, quadratic in the end. ``iterations``: steps that lowered F, at
    most. What is left is what the last undamped step promised or brought (half of Newton's decrement, where r2 is
    smooth): infinity where there was none, for want of passes or of convexity. Another r2 may be given.
    """
    r2 = engine.problem.r2 if r2 is None else r2
    F, damping, H, left = value + r2.value(x), 0.0, None, inf
    while iterations > 0 and engine.passes_left >= 2:
        H = engine.newton_system(x) if H is None else H
        if not H.finite:  # x is so far off that nothing can be said
            break
        rounding = rounding_of(x) * abs(F)
        damped = H.plus(damping * _units(H, gradient, F)) if damping else H
        new, promised = _model_minimiser(damped, gradient, x, r2, rounding)
        engine.counts.prox_r2 += 1
        if promised == -inf:  # no minimum: more damping will make one
            damping = max(100.0 * damping, 100 * LEAST)
            if damping > MOST:
                break
            continue
        f, g = engine.value_gradient(new)
        F_new = f + r2.value(new)
        if not damping:  # a model that promises a rise is not convex, and says nothing
            left = max(promised, F - F_new) if promised >= -rounding else inf
        if F_new <= F + rounding:  # where values differ by rounding alone, the model knows better
            x, F, gradient, H, damping = new, F_new, g, None, damping / 10.0 if damping > LEAST else 0.0
            iterations -= 1
        else:
            damping = max(100.0 * damping, 100 * LEAST)
        if left <= rounding or damping > MOST:
            break
    return x, left


def newton_decrease(engine: Engine, x: Array, F: float, gradient: Array) -> float:
    """By how much the quadratic model of F(w, ·) falls from x to its minimum; infinity where it has none. One pass."""
    H = engine.newton_system(x)
    if not H.finite:
        return inf
    rounding = rounding_of(x) * abs(F)
    _, promised = _model_minimiser(H, gradient, x, engine.problem.r2, rounding)
    return promised if promised >= -rounding else inf


def _units(H: NewtonSystem, gradient: Array, F: float) -> np.ndarray:
    """What damping is in units of: the diagonal of H; where that is 0, the curvature ‖g‖²/4F of a parabola above 0, and
    that of the other coordinates at least: a column that is constant beside an intercept has a g of rounding alone."""
    diagonal = np.abs(H.diagonal)
    parabola = dot(gradient, gradient) / max(4 * abs(F), TINY)
    return np.where(diagonal > 0, diagonal, max(parabola, float(diagonal.max())))


def _model_minimiser(
    H: NewtonSystem, gradient: Array, x: Array, r2: Regularizer, rounding: float
) -> tuple[Array, float]:
    """argmin over u of m(u) = ⟨g, u − x⟩ + ½⟨u − x, H(u − x)⟩ + r2(u), found in float64, and r2(x) − m(u).

    x itself and −infinity where m is seen to fall without end.
    """
    xp = namespace(x)
    wide, g = xp.astype(x, xp.float64, copy=False), xp.astype(gradient, xp.float64, copy=False)
    if r2.smooth and r2.separable:
        best = _newton_point(H, g, wide, r2)
        if best is None:
            return x, -inf
    else:
        best = _proximal(H, g, wide, r2, rounding) if r2.separable else _split(H, g, wide, r2)
    new = xp.astype(best, x.dtype, copy=False)
    return new, r2.value(x) - _model(H, g, new - x) - r2.value(new)


def _newton_point(H: NewtonSystem, gradient: Array, x: Array, r2: Regularizer) -> Array | None:
    """The same for a smooth r2, of which the quadratic model is taken too, exact for Zero and Ridge; None where H is
    negative along the gradient that is left."""
    curvature = np.maximum(to_numpy(r2.curvature(x)).ravel(), 0.0)
    d = H.plus(curvature).solve(-to_numpy(gradient + r2.gradient(x)).ravel())
    return None if d is None else x + asarray_like(d.reshape(x.shape), x)


def _proximal(H: NewtonSystem, gradient: Array, x: Array, r2: Regularizer, rounding: float) -> Array:
    """The same for any r2: proximal gradients on the model, in its diagonal metric where r2 is separable, with momentum
    that is dropped when it points uphill (O'Donoghue and Candès 2015), or where r2 is not convex leads there. What a
    rough solution leaves to the next step must be more than ``rounding``, or it would be left for good."""
    scale = H.diagonal.copy() if r2.separable else np.full(len(H.diagonal), np.mean(H.diagonal))
    scale[scale <= 0] = 1.0
    root = np.sqrt(scale)
    values = np.linalg.eigvalsh(H.matrix() / root / root[:, None])
    L = max(float(values[-1]), 1e-12)
    # A step of length d in the metric leaves at most (Ld)²/2μ to gain, and the first gains L·d²/2 at least.
    share = (FORCING * max(float(values[0]), 0.0) / L) ** 0.5 if r2.convex else 0.0
    unit = asarray_like(root.reshape(x.shape), x)
    steps = 1.0 / (L * unit * unit) if r2.separable else 1.0 / (L * float(scale[0]))
    u = ahead = x
    t, best, enough = 1.0, inf, 0.0
    for _ in range(SUBPROBLEM):
        new = r2.step(ahead, gradient + _times(H, ahead - x), steps)
        moved, made = new - u, norm((new - ahead) * unit)
        if r2.convex:
            uphill = dot(ahead - new, moved) > 0
        else:
            value = r2.value(new) + _model(H, gradient, new - x)
            uphill = value > best and t > 1.0
            if uphill:  # once more from u itself
                ahead, t = u, 1.0
                continue
            best = value
        t, last = (1.0, 1.0) if uphill else ((1 + (1 + 4 * t * t) ** 0.5) / 2, t)
        u, ahead = new, new + ((last - 1) / t) * moved
        if made <= enough or norm(moved * unit) <= 1e-13 * norm(u * unit):
            break
        enough = enough or (share * made if FORCING * L * made * made / 2 > rounding else 0.0)
    return u


def _split(H: NewtonSystem, gradient: Array, x: Array, r2: Regularizer) -> Array:
    """The same for an r2 that couples coordinates and so has no diagonal metric: the quadratic and r2 in turn, both
    exactly (ADMM, Boyd and others 2011, with their balancing of ρ), which bad scales of H hardly slow down. Where that
    does not come to its end, the better of it and of proximal gradients."""
    values, Q = np.linalg.eigh(H.matrix())
    linear = H.times(to_numpy(x).ravel()) - to_numpy(gradient).ravel()
    rho, u, y = float(max(np.sqrt(np.abs(values[0] * values[-1])), 1e-6 * abs(values[-1]))) or 1.0, x, 0 * x
    best, least = x, r2.value(x)
    for k in range(SUBPROBLEM):
        target = linear + rho * to_numpy(u - y).ravel()
        free = asarray_like((Q @ ((Q.T @ target) / (np.maximum(values, 0.0) + rho))).reshape(x.shape), x)
        old, (u, penalty) = u, r2.prox(free + y, 1.0 / rho)
        y = y + free - u
        value = penalty + _model(H, gradient, u - x)
        best, least = (u, value) if value < least else (best, least)
        if k % BALANCE == BALANCE - 1:
            primal, dual = norm(free - u), rho * norm(u - old)
            if max(primal, dual / rho) <= 1e-12 * norm(u):
                return best
            factor = 2.0 if primal > BALANCE * dual else 0.5 if dual > BALANCE * primal else 1.0
            rho, y = rho * factor, y / factor
    other = _proximal(H, gradient, x, r2, inf)
    return other if r2.value(other) + _model(H, gradient, other - x) < least else best


def _model(H: NewtonSystem, gradient: Array, d: Array) -> float:
    """⟨g, d⟩ + ½⟨d, Hd⟩."""
    wide = namespace(d).astype(d, gradient.dtype, copy=False)
    return dot(wide, gradient + 0.5 * _times(H, wide))


def _times(H: NewtonSystem, d: Array) -> Array:
    return asarray_like(H.times(to_numpy(d).ravel()).reshape(d.shape), d)
