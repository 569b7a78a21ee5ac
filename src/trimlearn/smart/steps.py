"""Step sizes γ: fixed (by hand or by the theory), decaying, and automatic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, final

from trimlearn.arrays import Array, asarray_like, norm, sum64
from trimlearn.smart.draws import Draws
from trimlearn.smart.method import State
from trimlearn.smart.metric import Metric

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["Auto", "Decaying", "Fixed", "StepRule", "check_step_size", "largest_curvature"]


Curvature = Callable[[], tuple[float, bool]]  # measures when called: see `largest_curvature`


class StepRule(ABC):
    """How γ is chosen."""

    guards: ClassVar[bool] = False  # whether a rise of F(w, ·) between two w-steps is taken back

    @abstractmethod
    def at_w_step(self, state: State, curvature: Curvature) -> float:
        """γ for the x-steps that follow this w-step; ``curvature`` measures when called."""

    def at_x_step(self, state: State, passes: float) -> float:
        """γ for this x-step."""
        return state.gamma

    def back_off(self, state: State, overflow: bool) -> None:
        """After steps that were taken back, because F rose or because a number overflowed."""
        return


def largest_curvature(engine: Engine, state: State, metric: Metric, draws: Draws, noise: float) -> tuple[float, bool]:
    """λ_max(M⁻¹H) + ν·tr(M⁻¹H), H the Hessian of 1/m Σ wᵢfᵢ at x over m = ⌈n^(2/3)⌉ draws; and whether H < 0 there.

    A few power iterations, started where the last ones ended: x-steps only ever see such minibatches, and near a
    solution the largest curvature changes slowly. The trace, by one random vector (Hutchinson), stands for the
    curvature of single examples, which is what a small batch feels: ν is the share of a draw in the batch.
    """
    rows = draws.rows(probe_size(engine.problem.n))
    u = asarray_like(draws.normal(tuple(state.x.shape)), state.x)
    image = metric.apply(state, engine.curvature(state.x, u, rows))
    trace = abs(sum64(u * image))
    first = state.direction is None
    u = _unit(image) if first else state.direction
    value, along = 0.0, 0.0
    for _ in range(9 if first else 3):
        if u is None:
            break
        image = metric.apply(state, engine.curvature(state.x, u, rows))
        along = sum64(u * image)
        value = norm(image)
        u = _unit(image)
    state.direction = u
    return value + noise * trace, along < 0


def probe_size(n: int) -> int:
    """⌈n^(2/3)⌉, and all rows up to 100."""
    return max(min(n, 100), ceil(n ** (2 / 3) - 1e-9))


def _unit(v: Array) -> Array | None:
    length = norm(v)
    return v / length if isfinite(length) and length > 0 else None


@final
@dataclass(frozen=True)
class Fixed(StepRule):
    """γ, always."""

    gamma: float
    eta: float = 1.0  # the theory's: stationarity is measured with γ/η

    def at_w_step(self, state: State, curvature: Curvature) -> float:
        return self.gamma


@final
@dataclass(frozen=True)
class Decaying(StepRule):
    """γₖ = γ₀/(1 + passes/``half``): halved after ``half`` passes. γ₀ = None takes 1/L at the start."""

    gamma: float | None = None
    half: float = 10.0

    def at_w_step(self, state: State, curvature: Curvature) -> float:
        if not isfinite(state.gamma0):
            state.gamma0 = self.gamma if self.gamma is not None else _inverse(curvature()[0], state)
        return state.gamma if isfinite(state.gamma) else state.gamma0

    def at_x_step(self, state: State, passes: float) -> float:
        return state.gamma0 / (1.0 + passes / self.half)


@final
@dataclass(frozen=True)
class Auto(StepRule):
    """γ = scale/L, L the largest curvature where x is now, measured at every w-step.

    When a w-step finds that F(w, ·) has risen, x goes back to the last w-step and scale is halved; every w-step without
    a rise brings it back by ``recovery``. Where the loss is concave there is nothing to overshoot, and scale may grow
    up to ``concave``.
    """

    recovery: float = 1.1
    concave: float = 1e3

    guards = True

    def at_w_step(self, state: State, curvature: Curvature) -> float:
        L, concave = curvature()
        if state.w_steps > 1:
            grown = state.scale * (2.0 if concave else self.recovery)
            state.scale = min(grown, self.concave if concave else 1.0)
        return _inverse(L, state, state.scale)

    def back_off(self, state: State, overflow: bool) -> None:
        factor = 0.1 if overflow else 0.5
        state.scale *= factor
        state.gamma *= factor


def _inverse(L: float, state: State, scale: float = 1.0) -> float:
    if isfinite(L) and L > 0:
        return scale / L
    # No curvature in sight (all weight on rows that are flat here): go on with the last step, or a unit one.
    return state.gamma if isfinite(state.gamma) else scale


def check_step_size(step: Any) -> float:
    """``step`` as a number > 0."""
    try:
        gamma = float(step)
    except (TypeError, ValueError):
        gamma = nan
    if isinstance(step, bool) or not (isfinite(gamma) and gamma > 0):
        raise ValueError(f"step must be 'auto', 'theory', a StepRule or a number > 0, got {step!r}.")
    return gamma
