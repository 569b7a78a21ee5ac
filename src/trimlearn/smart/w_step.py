"""A w-step, whole: the best weights for x, every dual renewed, F, and how far (w, x) is from stationary.

    w ← prox_{τ r1}(w − τ/S · f(x));    every yᵢ ← wᵢ∇fᵢ(x)

One evaluation of all rows serves all of it. `Algorithm1.w_step` says when it is made, and when steps are taken back
instead; `trimlearn.weights` finds the weights. An engine does `reweigh` with the rows it holds.
"""

from __future__ import annotations

from math import isfinite, isinf, nan, sqrt
from typing import TYPE_CHECKING

from trimlearn._utils.arrays import TINY, Array, eps_of, namespace, rounding_of, zeros
from trimlearn.problem import Problem
from trimlearn.smart.method import Record, Reweighed, State
from trimlearn.weights import WeightSet

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


def reweigh(problem: Problem, r1: WeightSet, w: Array, f: Array, tau: float) -> tuple[Array, Reweighed]:
    """The new w, prox_{τ r1}(w − τ/S · f), and what is known about it; τ = ∞ takes the best weights ŵ for f."""
    best, residual = r1.minimise(f, problem.s), nan
    excess = gap(problem, w, f, best)
    if isinf(tau):
        w = best
    else:
        w = _prox(problem, r1, w, f, tau)
        off = w - _prox(problem, r1, w, f, tau)
        residual = sqrt(problem.mean(off * off) * problem.S) / tau
    return w, Reweighed(problem.weighted_mean(w, f), excess, residual)


def gap(problem: Problem, w: Array, f: Array, best: Array) -> float:
    """1/S Σ sᵢ(wᵢ − ŵᵢ)fᵢ, ŵ the best weights: what stationarity_w is, relative to F."""
    return problem.weighted_mean(w, f) - problem.weighted_mean(best, f)


def _prox(problem: Problem, r1: WeightSet, w: Array, f: Array, tau: float) -> Array:
    xp = namespace(f)
    largest = xp.finfo(f.dtype).max ** 0.5  # an infinite loss must not become inf − inf in the projection
    f = xp.where(xp.isfinite(f), f, xp.full_like(f, largest))
    v = w - (tau / problem.S) * f
    return r1.prox(xp.clip(v, -largest, largest), problem.s)


def renew(engine: Engine, state: State) -> Array:
    """Every yᵢ ← wᵢ∇fᵢ(x), at the x last evaluated. Returns the gradient of the mean loss, which is the mean of y; the
    state has 0 for that where there are no duals."""
    gradient = engine.mean_duals()
    state.y_mean = gradient if engine.keeps_duals else zeros(gradient.shape, gradient)
    return gradient


def note(
    engine: Engine, state: State, found: Reweighed, residual: float, residual_x: float = nan, fall: float = nan
) -> Record:
    """The record of (w, x), also put into the state: F, and both measures of stationarity.

    stationarity_w is the gap over |F|. stationarity_x is the x-residual (`trimlearn.smart.metrics.Metric.residual`)
    over its first value. ``fall`` is what F could fall by. All three are given absolute.
    """
    objective, eps = found.value + engine.problem.r2.value(state.x), eps_of(state.x)
    if not isfinite(state.initial_residual):
        state.initial_residual, state.initial_objective = residual, abs(objective)
    if state.since is None:
        state.first_residual = residual
    # A start that is stationary already gives no scale to be relative to. √(2F/γ), which bounds the gradient of a
    # loss F ≥ 0 of curvature 1/γ, does, and so does the very first residual: a gradient as small against either as
    # rounding makes it is zero.
    rounding = max((2.0 * eps * abs(objective) / state.gamma) ** 0.5, eps**0.5 * state.initial_residual)
    reference = max(state.first_residual, rounding)
    if abs(objective) < least(state):  # which it may be for an x0 that was far off
        own = engine.problem.r2.feasible(engine.problem.loss.start())
        usual = engine.value_gradient(own)[0] + engine.problem.r2.value(own)
        state.initial_objective = min(state.initial_objective, abs(usual))
    size = max(abs(objective), least(state))
    state.record = Record(
        k=state.k,
        passes=engine.passes,
        objective=objective,
        stationarity_x=0.0 if reference == 0 else residual / reference,  # NaN where the gradient is
        stationarity_w=found.gap / size,
        h=engine.h,
        gamma=state.gamma,
        residual_x=residual_x,
        residual_w=found.residual,
        decrease=fall / size,
    )
    return state.record


def least(state: State) -> float:
    """What |F| counts as where it is smaller: the rounding of F as it was at first, or at the loss's own start where
    that is less. Such a fit is exact."""
    return max(rounding_of(state.x) ** 2 * state.initial_objective, TINY)


def end_continuation(engine: Engine, state: State) -> None:
    """w lies in r1 from now on, if a continuation has come to its end: call it after every record of a w-step."""
    if state.since is None and engine.r1 is engine.problem.r1:
        state.since = state.k
