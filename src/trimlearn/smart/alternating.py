"""The older systems: alternating minimisation with concentration steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan, prod
from numbers import Integral
from typing import TYPE_CHECKING, final

from trimlearn.arrays import Array, eps_of
from trimlearn.problem import Problem
from trimlearn.smart.duals import choose_duals
from trimlearn.smart.inner import accelerated, lbfgs
from trimlearn.smart.method import Method, Reweighed, Run, State
from trimlearn.smart.metric import Euclidean
from trimlearn.smart.newton import newton
from trimlearn.smart.steps import first_step

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["FEW", "SMALL", "Alternating", "alternating"]

SMALL = 1_000_000  # n·dim(x) up to which a problem is small: a deterministic full-batch method is the better choice
PRECISE = 256  # times eps: a change of F below this share of it is rounding
FEW = 300  # parameters up to which their Hessian is written out


@final
@dataclass(frozen=True)
class Alternating(Method):
    """See `alternating`."""

    iterations: int = 20
    inner: str | None = None

    def bind(self, problem: Problem, seed: int) -> AlternatingRun:
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, Integral) or self.iterations < 1:
            raise ValueError(f"iterations must be an integer >= 1, got {self.iterations!r}.")
        if self.inner not in (None, "newton", "lbfgs", "proximal"):
            raise ValueError(f"inner must be 'newton', 'lbfgs', 'proximal' or None, got {self.inner!r}.")
        if self.inner == "lbfgs" and not problem.r2.smooth:
            raise ValueError(f"inner='lbfgs' needs a smooth r2 (Zero, Ridge), not {problem.r2.name}.")
        return AlternatingRun(problem, seed, int(self.iterations), self.inner or _default_inner(problem))


def _default_inner(problem: Problem) -> str:
    parameters = prod(problem.loss.x_shape)
    if parameters <= FEW and problem.n * parameters <= SMALL:
        return "newton"
    return "lbfgs" if problem.r2.smooth else "proximal"


def alternating(iterations: int = 20, inner: str | None = None) -> Alternating:
    """Concentration: the best w for x (τ = ∞), then the best x for w, in turn.

    FAST-LTS (Rousseeuw and Van Driessen 2006) where the inner problem is least squares, which is solved exactly, as are
    trimmed PCA and the algebraic homography; FAST-TLE (Neykov and Müller 2003) where it is a generalised linear model,
    by at most ``iterations`` steps of L-BFGS a round; sparse LTS (Alfons, Croux and Gelper 2013) where r2 is L1, by as
    many accelerated proximal gradient steps. inner: "lbfgs" and "proximal" are these two, "newton" damped proximal
    Newton steps; None takes the last where x has few parameters and the problem is small.

    >>> alternating(iterations=5)
    Alternating(iterations=5, inner=None)
    """
    return Alternating(iterations, inner)


@final
@dataclass(frozen=True)
class AlternatingRun(Run):
    """Alternating minimisation on one problem."""

    problem: Problem
    seed: int
    iterations: int
    inner: str

    def prepare(self, engine: Engine) -> None:
        engine.use_duals(choose_duals(None, self.problem.loss, refreshes=False))

    def init(self, engine: Engine, x: Array) -> State:
        self.prepare(engine)
        state = State(x=x)
        value = engine.evaluate(x)
        state.gamma = first_step(engine, x)
        self._renew(engine, state, Reweighed(value, engine.gap(), nan))
        return state

    def advance(self, engine: Engine, state: State) -> None:
        """The best x for w, then the best w for x."""
        r2 = self.problem.r2
        before = state.base + r2.value(state.x)
        state.x = self._fit(engine, state)
        state.k += 1
        gain = before - engine.evaluate(state.x) - r2.value(state.x)
        found = engine.reweigh(inf)
        # A round that changes nothing but the last digits is the last, also where x was optimal from the start and its
        # first residual, to which the others are relative, rounding.
        settled = max(gain, found.gap) <= PRECISE * eps_of(state.x) * abs(before)
        self._renew(engine, state, found, settled)

    def finish(self, engine: Engine, state: State) -> None:
        if state.record is None:  # h was lowered since the last w-step
            self._renew(engine, state, engine.reweigh(inf))
        elif state.record.stationarity_w > 0:  # the last w-step changed w: x is still the best for the one before
            exact = engine.minimise(state.x)
            if exact is not None:
                state.x = exact
                self._renew(engine, state, Reweighed(engine.evaluate(exact), engine.gap(), nan))

    def _renew(self, engine: Engine, state: State, found: Reweighed, settled: bool = False) -> None:
        state.y_mean, state.base = engine.renew(), found.value
        state.anchor = state.x
        state.w_steps += 1
        residual = Euclidean().residual(state, state.y_mean, self.problem.r2, state.gamma)
        record = self.note(engine, state, found, residual)
        state.record = replace(record, settled=settled)
        self.settle(engine, state)

    def _fit(self, engine: Engine, state: State) -> Array:
        engine.counts.prox_r2 += 1
        exact = engine.minimise(state.x)
        if exact is not None:
            return exact
        # While a continuation still lowers h, the next w will differ anyway: a rough x will do.
        rough = engine.r1 is not self.problem.r1
        if self.inner == "newton":
            return newton(engine, state.x, state.base, state.y_mean, 1 if rough else self.iterations)
        iterations = min(self.iterations, 5) if rough else self.iterations
        if self.inner == "lbfgs":
            return lbfgs(engine, state.x, state.base, state.y_mean, iterations)
        x, state.gamma = accelerated(engine, state.x, state.base, state.y_mean, state.gamma, iterations)
        return x
