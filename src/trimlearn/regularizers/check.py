"""Is a regularizer what it says it is? Its prox against other points, its gradient against differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, eps_of, namespace, to_numpy
from trimlearn.regularizers.base import Regularizer, rounding

RIVALS = 80  # points that a prox is compared with: a limit on time
STEPS = (0.1, 1.0, 10.0)  # γ: below, at and above the scale of x


def check_regularizer(r2: Regularizer, x: Any, seed: int = 0) -> None:
    """Compare a regularizer's prox with other points and its derivatives with differences; silent where all is well.

    Parameters
    ----------
    r2 : Regularizer
        The term.
    x : array
        A model to try it at, and near, in the shape and dtype that models have.
    seed : int
        Of the points tried.

    Raises
    ------
    ValueError
        With a sentence for each thing that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import L1, check_regularizer
    >>> check_regularizer(L1(0.5), np.array([3.0, -0.1, 1.0]))
    """
    if not isinstance(r2, Regularizer):
        raise ValueError(f"r2 must be a Regularizer, got {type(r2).__name__}; derive it from one.")
    x = asarray_like(x, x if namespace(x).isdtype(x.dtype, "real floating") else np.zeros(1))
    rng = np.random.default_rng(seed)
    found = []
    for point in (x, asarray_like(to_numpy(x) + rng.standard_normal(x.shape), x)):
        found += list(_values(r2, point)) or [*_prox(r2, point, rng), *_claims(r2, point, rng)]
    if found:
        raise ValueError("\n- ".join([f"{r2.name} is not right yet:", *dict.fromkeys(found)]))


def _values(r2: Regularizer, x: Array) -> Iterator[str]:
    value, nearest = r2.value(x), r2.feasible(x)
    if not isinstance(value, float) or np.isnan(value):
        yield f"value must give a float, infinity outside the domain, got {value!r}."
    elif tuple(nearest.shape) != tuple(x.shape) or not np.isfinite(r2.value(nearest)):
        yield "feasible must give a point of the shape of x where value is finite."
    elif np.isfinite(value) and np.abs(to_numpy(nearest - x)).max(initial=0.0) > rounding(x) * (1 + _size(x)):
        yield "feasible must leave an x where value is finite as it is."
    u, there = r2.prox(x, 1.0)
    if tuple(u.shape) != tuple(x.shape) or u.dtype != x.dtype:
        yield f"prox must keep shape and dtype, {tuple(x.shape)} of {x.dtype}, got {tuple(u.shape)} of {u.dtype}."
    elif not _close(there, r2.value(u), x):
        yield f"prox must also give the value at the point that it gives: it says {there:.4g}, value {r2.value(u):.4g}."


def _prox(r2: Regularizer, x: Array, rng: np.random.Generator) -> Iterator[str]:
    """No other point is better: r2(u) + Σ(u − x)²/(2γ)."""
    for gamma in STEPS:
        yield from _beaten(r2, x, gamma, rng)
    if r2.separable and x.ndim:
        said = list(_beaten(r2, x, asarray_like(rng.uniform(0.1, 3.0, x.shape), x), rng))
        yield from (f"with one gamma per coordinate, which separable=True allows: {sentence}" for sentence in said)


def _beaten(r2: Regularizer, x: Array, gamma: float | Array, rng: np.random.Generator) -> Iterator[str]:
    def objective(u: Array) -> float:
        return r2.value(u) + float(np.sum(to_numpy((u - x) ** 2 / (2 * gamma)), dtype=np.float64))

    u = r2.prox(x, gamma)[0]
    best, rivals = objective(u), [x, r2.feasible(x), 0 * x]
    for _ in range(RIVALS):
        around, size = (u, x)[rng.integers(2)], 10.0 ** rng.uniform(-4, 0.5)
        move = rng.standard_normal(x.shape) * (rng.random(x.shape) < rng.choice([0.3, 1.0]))
        rivals.append(r2.feasible(asarray_like(to_numpy(around) + size * move, x)))
        rivals.append(asarray_like(np.where(move != 0, 0.0, to_numpy(around)), x))
    least = min(objective(rival) for rival in rivals if np.isfinite(r2.value(rival)))
    if not best <= least + rounding(x) * (1 + abs(least)):  # a set has points this much outside it
        step = f"{gamma:g}" if isinstance(gamma, float) else "an array"
        at = f"{best:.6g} there, {least:.6g} elsewhere (γ = {step})"
        yield f"prox is not the minimum of value(u) + ‖u − x‖²/(2γ): {at}."


def _claims(r2: Regularizer, x: Array, rng: np.random.Generator) -> Iterator[str]:
    """What it says about itself: convex, smooth."""
    points = [r2.feasible(asarray_like(to_numpy(x) + rng.standard_normal(x.shape), x)) for _ in range(RIVALS)]
    for a, b in zip(points[::2], points[1::2], strict=True):
        middle, ends = r2.value((a + b) / 2), (r2.value(a) + r2.value(b)) / 2
        if r2.convex and not (middle <= ends or _close(middle, ends, x)):
            yield f"convex is True, but value is {middle:.4g} half way between points where its mean is {ends:.4g}."
            break
    if not r2.smooth:
        return
    h, u = eps_of(x) ** (1 / 3), asarray_like(rng.standard_normal(x.shape), x)
    change = (r2.value(x + h * u) - r2.value(x - h * u)) / (2 * h)
    said = float(np.sum(to_numpy(r2.gradient(x) * u)))
    if not abs(change - said) <= 10 * h * max(abs(change), abs(said)) + 100 * eps_of(x) * abs(r2.value(x)) / h:
        yield f"gradient is not that of value, which changes by {change:.4g} where gradient says {said:.4g}."
    elif r2.separable:
        slope, curved = to_numpy(Regularizer.curvature(r2, x)), to_numpy(r2.curvature(x))
        if np.abs(slope - curved).max(initial=0.0) > 100 * h * (1 + np.abs(slope).max(initial=0.0)):
            yield "curvature is not the derivative of gradient, coordinate by coordinate."


def _size(x: Array) -> float:
    return float(np.abs(to_numpy(x)).max(initial=0.0))


def _close(a: float, b: float, x: Array) -> bool:
    return a == b or abs(a - b) <= 1e3 * eps_of(x) * (1 + abs(a) + abs(b))
