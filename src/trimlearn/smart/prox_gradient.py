"""The rival that steps in w and x jointly, both from the same point."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, final

from trimlearn._utils.arrays import Array
from trimlearn.problem import Problem
from trimlearn.smart.duals import choose_duals
from trimlearn.smart.method import Method, Reweighed, Run, State
from trimlearn.smart.metrics import Euclidean, first_step
from trimlearn.smart.steps import check_step_size
from trimlearn.smart.w_step import end_continuation, note

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


@final
@dataclass(frozen=True)
class ProxGradient(Method):
    """See `prox_gradient`."""

    step: str | float = "auto"

    @property
    def automatic(self) -> bool:
        return self.step == "auto"

    def bind(self, problem: Problem, seed: int) -> ProxGradientRun:
        return ProxGradientRun(problem, seed, nan if self.step == "auto" else check_step_size(self.step))


def prox_gradient(step: str | float = "auto") -> ProxGradient:
    """Proximal gradient in (w, x) at once: a rival that has no need for duals, and no good step.

    w ← prox_{γ r1}(w − γ/n·f(x)) and x ← prox_{γ r2}(x − γ/n Σ wᵢ∇fᵢ(x)), both from the same point, one pass an
    iteration. The gradient of Σ wᵢfᵢ(x) has no global Lipschitz constant, so that γ must be small (section 1.1 of the
    paper).

    Parameters
    ----------
    step : "auto" or float
        The step γ; "auto" takes a tenth of 1/L at the start.

    Returns
    -------
    ProxGradient
        The method, to be passed to `trimlearn.solve`.

    Examples
    --------
    >>> prox_gradient(step=0.01)
    ProxGradient(step=0.01)
    """
    return ProxGradient(step)


@final
@dataclass(frozen=True)
class ProxGradientRun(Run):
    """Joint proximal gradient on one problem."""

    problem: Problem
    seed: int
    gamma: float

    def prepare(self, engine: Engine) -> None:
        engine.use_duals(choose_duals(None, self.problem.loss, refreshes=False))

    def init(self, engine: Engine, x: Array) -> State:
        self.prepare(engine)
        state = State(x=x, gamma=self.gamma)
        value = engine.evaluate(x)
        if not isfinite(self.gamma):
            state.gamma = 0.1 * first_step(engine, x)
        self._renew(engine, state, Reweighed(value, engine.gap(), nan))
        return state

    def advance(self, engine: Engine, state: State) -> None:
        found = engine.reweigh(state.gamma)  # from f at the old x; the gradient below is the old w's
        state.x = self.problem.r2.step(state.x, state.y_mean, state.gamma)
        engine.counts.prox_r2 += 1
        state.k += 1
        self._renew(engine, state, Reweighed(engine.evaluate(state.x), engine.gap(), found.residual))

    def finish(self, engine: Engine, state: State) -> None:
        if state.record is None:  # h was lowered since the last step
            self._renew(engine, state, engine.reweigh(inf))

    def _renew(self, engine: Engine, state: State, found: Reweighed) -> None:
        state.y_mean = engine.mean_duals()
        state.w_steps += 1
        note(engine, state, found, Euclidean().residual(state, state.y_mean, self.problem.r2, state.gamma))
        end_continuation(engine, state)
