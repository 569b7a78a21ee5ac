"""Damped proximal Newton steps, for models of few parameters: nothing but the Hessian costs passes over the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trimlearn.arrays import Array, asarray_like, dot, namespace, norm, to_numpy
from trimlearn.losses.exact import solve_symmetric
from trimlearn.regularizers import Regularizer

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["newton"]

FORCING = 1e-3  # share of its first proximal step to which a model is solved: so each Newton step gains three digits
PRECISE = 1e-13  # a change of F below this share of it is rounding


def newton(engine: Engine, x: Array, value: float, gradient: Array, iterations: int) -> Array:
    """min over x of F(w, x) from x, where the mean loss and its gradient are known.

    A step minimises the quadratic model of the loss, its Hessian H damped to H + λ·diag H, plus r2 itself. λ is raised
    tenfold when F does not fall, and lowered when it does (Levenberg and Marquardt): invariant to the scales of
    features, safe where the loss is far from its model, quadratic in the end.
    """
    r2 = engine.problem.r2
    F, damping, H = value + r2.value(x), 0.0, None
    for _ in range(iterations):
        if engine.passes_left < 2:
            break
        H = engine.hessian(x) if H is None else H
        new = _model_minimiser(H + damping * np.diag(np.diag(H)), gradient, x, r2)
        engine.counts.prox_r2 += 1
        f, g = engine.value_gradient(new)
        F_new = f + r2.value(new)
        finished = abs(F - F_new) <= PRECISE * abs(F)
        if F_new <= F:
            x, F, gradient, damping, H = new, F_new, g, damping / 10.0 if damping > 1e-8 else 0.0, None
        else:
            damping = max(10.0 * damping, 1e-3)
        if finished:
            break
    return x


def _model_minimiser(H: np.ndarray, gradient: Array, x: Array, r2: Regularizer) -> Array:
    """argmin over u of ⟨g, u − x⟩ + ½⟨u − x, H(u − x)⟩ + r2(u)."""
    if r2.smooth:  # Zero, Ridge: ∇r2 is linear
        ones = asarray_like(np.ones(x.shape), x)
        alpha = to_numpy(r2.gradient(ones)).astype(np.float64).ravel()
        total = to_numpy(gradient + r2.gradient(x)).astype(np.float64).ravel()
        d = -solve_symmetric(H + np.diag(alpha), total[:, None])[:, 0]
        return x + asarray_like(d.reshape(x.shape), x)
    return _proximal(H, gradient, x, r2)


def _proximal(H: np.ndarray, gradient: Array, x: Array, r2: Regularizer) -> Array:
    """The same for any r2: proximal gradients on the model, in its diagonal metric where r2 is separable, with
    momentum where r2 is convex that is dropped when it points uphill (O'Donoghue and Candès 2015)."""
    scale = np.diag(H).copy() if r2.separable else np.full(len(H), np.trace(H) / len(H))
    scale[scale <= 0] = 1.0
    root = 1.0 / np.sqrt(scale).reshape(x.shape)  # the unit of each coordinate in the metric
    L = max(float(np.linalg.eigvalsh(H / np.sqrt(np.outer(scale, scale)))[-1]), 1e-12)
    wide = namespace(x).float64
    steps = asarray_like((1.0 / (L * scale)).reshape(x.shape), x, wide) if r2.separable else 1.0 / (L * float(scale[0]))
    u = ahead = x
    t, enough = 1.0, 0.0
    for _ in range(500):
        bent = asarray_like((H @ to_numpy(ahead - x).astype(np.float64).ravel()).reshape(x.shape), x)
        new = r2.step(ahead, gradient + bent, steps)
        moved, uphill = to_numpy(new - u), to_numpy(ahead - new)
        t, last = (1.0, 1.0) if dot(uphill, moved) > 0 else ((1 + (1 + 4 * t * t) ** 0.5) / 2, t)
        ahead = new + ((last - 1) / t if r2.convex else 0.0) * (new - u)
        u = new
        size = norm(moved / root)
        if size <= max(enough, 1e-13 * norm(to_numpy(u) / root)):
            break
        enough = enough or FORCING * size
    return u
