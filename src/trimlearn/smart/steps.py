"""Step sizes γ: fixed (by hand or by the theory), decaying, and automatic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, final

from trimlearn._utils.arrays import Array, asarray_like, dot, namespace, norm
from trimlearn._utils.validation import is_number
from trimlearn.smart.draws import Draws
from trimlearn.smart.method import State
from trimlearn.smart.metrics import Metric, unit
from trimlearn.smart.row_laws import Recipe, RowLaw, WithReplacement

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

UNIFORM = WithReplacement()


class StepRule(ABC):
    """How γ is chosen."""

    guards: ClassVar[bool] = False  # whether a rise of F(w, ·) between two w-steps is taken back
    eta: float = 1.0  # stationarity is measured with the step γ/η: the theory's, where γ is

    @property
    def automatic(self) -> bool:
        """Whether γ is read off the data. A γ that was given is one for the problem as it was given."""
        return False

    @abstractmethod
    def at_w_step(self, state: State, probe: Probe) -> float:
        """γ for the x-steps that follow this w-step."""

    def at_x_step(self, state: State, passes: float) -> float:
        """γ for this x-step."""
        return state.gamma

    def back_off(self, state: State, overflow: bool) -> None:
        """After steps that were taken back, because F rose or because a number overflowed."""
        return


@dataclass(frozen=True)
class Probe:
    """Curvature in the metric, measured on one random minibatch of ⌈n^(2/3)⌉ rows: what x-steps see is no other."""

    engine: Engine
    state: State
    metric: Metric
    draws: Draws
    noise: float  # the share of one draw in a batch, amplified by momentum
    value: float  # the mean loss at x
    gradient: Array  # and its gradient
    law: RowLaw = UNIFORM  # by which x-steps draw

    @cached_property
    def rows(self) -> Recipe:
        """The minibatch, settled when first asked for."""
        n = self.engine.problem.n
        return Recipe.of(self.law.sized(probe_size(n), n), self.draws)

    def largest(self) -> tuple[float, bool]:
        """λ_max(M⁻¹H) + ν·tr(M⁻¹H), H the Hessian of 1/m Σ wᵢfᵢ at x over the m rows; and whether H < 0 there.

        A few power iterations, started where the last ones ended: from one w-step to the next the direction of largest
        curvature changes slowly. The trace, by one random vector (Hutchinson), stands for the curvature of single
        examples, which is what a small batch feels: ν is the share of a draw in the batch.
        """
        state = self.state
        u = asarray_like(self.draws.normal(tuple(state.x.shape)), state.x)
        image = self._curve(u)
        trace = abs(dot(u, image))
        first = state.direction is None
        direction = unit(image) if first else state.direction
        value, along = 0.0, 0.0
        for _ in range(9 if first else 3):
            if direction is None:
                break
            image = self._curve(direction)
            value, along = norm(image), dot(direction, image)
            direction = unit(image)
        state.direction = direction
        return value + self.noise * trace, along < 0

    def reach(self) -> float:
        """4f/⟨g, M⁻¹g⟩, f and g the mean loss and its gradient: no step need be longer.

        Where 0 ≤ f has curvature at most L everywhere, ‖g‖² ≤ 2Lf, so that this is never less than 2/L. Where f has
        saturated, flat and large, the curvature here says nothing about a step, and this does.
        """
        g = self.gradient
        length = dot(g, self.metric.apply(self.state, g))
        reach = 4.0 * self.value / length if 0 < length < inf else inf
        return reach if reach > 0 else inf

    def ahead(self, gamma: float) -> float:
        """The curvature along the next step, where that step ends: exponentials can be flat here and steep there."""
        state = self.state
        v = self.metric.apply(state, self.gradient)
        length = norm(v)
        if not (isfinite(length) and length > 0):
            return 0.0
        xp = namespace(state.x)
        u = xp.astype(v / length, state.x.dtype, copy=False)
        there = xp.astype(state.x - gamma * v, state.x.dtype, copy=False)
        image = self.engine.hessp(there, u, self.rows)
        return dot(u, image) * length / dot(u, self.gradient)  # ⟨u, Hu⟩/⟨u, Mu⟩, as Mv = g

    def _curve(self, v: Array) -> Array:
        image = self.metric.scaled_hessp(self.state, lambda u: self.engine.hessp(self.state.x, u, self.rows), v)
        return namespace(v).astype(image, v.dtype, copy=False)


def probe_size(n: int) -> int:
    """⌈n^(2/3)⌉, and at least 100 where there are as many."""
    size: int = ceil(n ** (2 / 3) - 1e-9)
    return max(min(n, 100), size)


@final
@dataclass(frozen=True)
class Fixed(StepRule):
    """γ, always."""

    gamma: float
    eta: float = 1.0

    def at_w_step(self, state: State, probe: Probe) -> float:
        return self.gamma


@final
@dataclass(frozen=True)
class Decaying(StepRule):
    """γₖ = γ₀/(1 + passes/``half``): halved after ``half`` passes. γ₀ = None takes 1/L at the start."""

    gamma: float | None = None
    half: float = 10.0

    @property
    def automatic(self) -> bool:
        return self.gamma is None

    def at_w_step(self, state: State, probe: Probe) -> float:
        if not isfinite(state.gamma0):
            L, concave = (nan, False) if self.gamma is not None else probe.largest()
            state.gamma0 = self.gamma or _no_further(probe, _inverse(L, state), concave)
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
    automatic = True

    def at_w_step(self, state: State, probe: Probe) -> float:
        L, concave = probe.largest()
        if state.w_steps > 1:
            grown = state.scale * (2.0 if concave else self.recovery)
            state.scale = min(grown, self.concave if concave else 1.0)
        return _no_further(probe, _inverse(L, state, state.scale), concave)

    def back_off(self, state: State, overflow: bool) -> None:
        factor = 0.1 if overflow else 0.5
        state.scale *= factor
        state.gamma *= factor


def _no_further(probe: Probe, gamma: float, concave: bool) -> float:
    """γ cut to what the loss is worth (`Probe.reach`), and until the curvature where the step ends allows it."""
    gamma = gamma if concave else min(gamma, probe.reach())
    for _ in range(40):
        if not probe.ahead(gamma) > 4.0 / gamma:
            break
        gamma *= 0.25
    return gamma


def _inverse(L: float, state: State, scale: float = 1.0) -> float:
    if isfinite(L) and L > 0 and 0 < scale / L < inf:
        return scale / L
    # No curvature in sight (all weight on rows that are flat here): go on with the last step, or a unit one.
    return state.gamma if isfinite(state.gamma) else scale


def check_step_size(step: Any) -> float:
    """``step`` as a number > 0."""
    if not is_number(step) or not 0 < float(step) < inf:
        raise ValueError(f"step must be 'auto', 'theory', a StepRule or a number > 0, got {step!r}.")
    return float(step)
