"""Which x-steps one compiled loop can take, and what it has to be told of them."""

from __future__ import annotations

from math import ceil, isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn.losses.linear import Linear
from trimlearn.regularizers.separable import as_elastic_net
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.method import State
from trimlearn.smart.metrics import Diagonal, Euclidean
from trimlearn.smart.move_laws import Coin
from trimlearn.smart.row_laws import Nothing, Same, WithReplacement
from trimlearn.smart.steps import StepRule

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


def steps_are_alike(run: Algorithm1) -> bool:
    """Whether all x-steps of a run draw as many rows and move x coordinate by coordinate, by the same γ up to the next
    w-step, for which a coin is tossed; and nobody looks at x in between."""
    return (
        isinstance(run.batch, WithReplacement)
        and run.batch.growth == 0
        and type(run.rule).at_x_step is StepRule.at_x_step
        and isinstance(run.metric, Diagonal | Euclidean)
        and isinstance(run.j, Coin)
        and not run.random_output
    )


def law_of(run: Algorithm1, state: State, engine: Engine, cumulative: np.ndarray | None) -> Any:
    """What is drawn ahead; None where steps have to be taken one by one."""
    renews = isinstance(run.refresh, Same) and cumulative is None
    if not (renews or isinstance(run.refresh, Nothing)) or not (steps_are_alike(run) and state.moved):
        return None
    assert isinstance(run.j, Coin), "steps are alike"
    if run.j.restart is not None:
        return None
    from trimlearn.kernels.stretch_data import Law

    n = engine.problem.n
    return Law(
        key=np.array([run.seed, 0], np.uint64),
        k=state.k,
        q=run.j.chance,
        b=run.b,
        steps=ceil(n / run.b),  # who counts the seconds is asked once a pass
        room=_room(engine),
        cumulative=np.empty(0) if cumulative is None else cumulative,
        renews=renews,
    )


def model_of(run: Algorithm1, state: State, linear: Linear) -> Any:
    """x and what moves it; None where the prox of r2 is no threshold and division, as that of an elastic net is."""
    x = state.x
    net = as_elastic_net(run.problem.r2, x.shape)
    if net is None:
        return None
    from trimlearn.kernels.stretch_data import MovingPoint

    alpha, ratio = net
    inverse = np.asarray(run.metric.inverse(state), dtype=np.float64)
    size = np.broadcast_to(state.gamma * inverse, x.shape)
    strength = size * alpha
    previous = x if state.previous is None else state.previous
    p, dtype = linear.p, x.dtype
    return MovingPoint(
        x=_flat(x, linear),
        previous=_flat(previous, linear),
        mean=_flat(state.y_mean, linear),
        size=_flat(size, linear),
        threshold=_flat(strength * ratio, linear),
        shrink=1 / _flat(1 + strength * (1 - ratio), linear),
        momentum=run.momentum,
        center=np.zeros(p, dtype) if linear.center is None else np.array(linear.center),
        per_scale=np.ones(p, dtype) if linear.scale is None else 1 / linear.scale,
    )


def put_back(model: Any, state: State, linear: Linear) -> None:
    """The state after the steps."""
    state.x, state.previous, state.y_mean = (_shaped(a, linear) for a in (model.x, model.previous, model.mean))


def _room(engine: Engine) -> float:
    """Rows that may be evaluated until `solve` would stop: passes + 1 ≥ max_passes, in its own arithmetic."""
    n, most = engine.problem.n, engine.max_passes
    if isinf(most):
        return most
    rows = ceil((most - 1) * n)
    while rows > 0 and (rows - 1) / n + 1 >= most:
        rows -= 1
    while rows / n + 1 < most:
        rows += 1
    return float(rows - engine.counts.gradients)


def _flat(a: np.ndarray, linear: Linear) -> np.ndarray:
    """An array of x's shape as (p, K), or (p + 1, K): a copy, and never read-only, which would be another type."""
    return np.array(a[:, None] if linear.K is None else a.T if linear.transpose else a, order="C")


def _shaped(a: np.ndarray, linear: Linear) -> np.ndarray:
    """The inverse."""
    return a[:, 0] if linear.K is None else a.T if linear.transpose else a
