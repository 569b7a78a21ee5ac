"""The older systems: alternating minimisation with concentration steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING, final

from trimlearn._utils.arrays import Array, rounding_of
from trimlearn._utils.validation import check_count
from trimlearn.problem import Problem
from trimlearn.smart.duals import choose_duals
from trimlearn.smart.inner import fista, lbfgs
from trimlearn.smart.inner.newton import newton
from trimlearn.smart.method import Method, Reweighed, Run, State, default_inner, small
from trimlearn.smart.metrics import Euclidean, Metric, default_metric, first_step
from trimlearn.smart.w_step import end_continuation, note

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


@final
@dataclass(frozen=True)
class Alternating(Method):
    """See `alternating`."""

    iterations: int = 20
    inner: str | None = None

    def bind(self, problem: Problem, seed: int) -> AlternatingRun:
        iterations = check_count(self.iterations, "iterations")
        if self.inner not in (None, "newton", "lbfgs", "proximal"):
            raise ValueError(f"inner must be 'newton', 'lbfgs', 'proximal' or None, got {self.inner!r}.")
        if self.inner == "lbfgs" and not problem.r2.smooth:
            raise ValueError(f"inner='lbfgs' needs a smooth r2 (Zero, Ridge), not {problem.r2.name}.")
        inner = self.inner or default_inner(problem, small(problem))
        metric = Euclidean() if inner == "newton" else default_metric(problem)
        return AlternatingRun(problem, seed, iterations, inner, metric)


def alternating(iterations: int = 20, inner: str | None = None) -> Alternating:
    """Alternating minimisation: the best w for x (τ = ∞), then the best x for w, in turn.

    These concentration steps are FAST-LTS [1]_ where the inner problem is least squares, which is solved exactly, as
    are trimmed PCA and the algebraic homography; FAST-TLE [2]_ where it is a generalised linear model, by L-BFGS; and
    sparse LTS [3]_ where r2 is L1, by accelerated proximal gradients.

    Parameters
    ----------
    iterations : int
        The most steps of the inner solver a round.
    inner : {"newton", "lbfgs", "proximal"} or None
        Damped proximal Newton steps, L-BFGS for a smooth r2, or accelerated proximal gradients. None takes the first
        where x has few parameters and the problem is small, else that of the others which suits r2.

    Returns
    -------
    Alternating
        The method, to be passed to `trimlearn.solve`.

    References
    ----------
    .. [1] P. J. Rousseeuw and K. Van Driessen, Computing LTS regression for large data sets, Data Mining and Knowledge
       Discovery 12 (2006).
    .. [2] N. Neykov and C. H. Müller, Breakdown point and computation of trimmed likelihood estimators in generalized
       linear models, in: Developments in Robust Statistics (2003).
    .. [3] A. Alfons, C. Croux and S. Gelper, Sparse least trimmed squares regression for analyzing high-dimensional
       large data sets, Ann. Appl. Stat. 7 (2013).

    Examples
    --------
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
    metric: Metric

    def prepare(self, engine: Engine) -> None:
        engine.use_duals(choose_duals(None, self.problem.loss, refreshes=False))

    def init(self, engine: Engine, x: Array) -> State:
        self.prepare(engine)
        state = State(x=x)
        value = engine.evaluate(x)
        state.w_steps = 1
        self.metric.learn(engine, state, 0.0)
        state.gamma = first_step(engine, x, self.metric.inverse(state))
        self.renew(engine, state, Reweighed(value, engine.gap(), nan))
        return state

    def advance(self, engine: Engine, state: State) -> None:
        """The best x for w, then the best w for x."""
        before = state.base
        state.x, left = self.fit(engine, state)
        state.k += 1
        gain = max(before - engine.evaluate(state.x) - self.problem.r2.value(state.x), 0.0)
        found = engine.reweigh(inf)
        # A round that changes nothing but the last digits is the last, also where x was optimal from the start and its
        # first residual, to which the others are relative, rounding.
        settled = max(gain, found.gap) <= rounding_of(state.x) * abs(before)
        # What is left is left for the w that x was fitted to; for another one it must be tried.
        self.renew(engine, state, found, left if found.gap <= 0 else nan, settled)

    def finish(self, engine: Engine, state: State) -> None:
        if state.record is None:  # h was lowered since the last w-step
            self.renew(engine, state, engine.reweigh(inf))
        elif state.record.stationarity_w > 0:  # the last w-step changed w: x is still the best for the one before
            exact = engine.minimise(state.x)
            if exact is not None:
                state.x = exact
                self.renew(engine, state, Reweighed(engine.evaluate(exact), engine.gap(), nan), 0.0)

    def take_over(self, engine: Engine, state: State, x: Array) -> None:
        """Go on from x, where Algorithm 1 has just made a w-step or anywhere else."""
        if x is not state.x:
            state.x = x
            engine.evaluate(x)
            self.renew(engine, state, engine.reweigh(inf))

    def fit(self, engine: Engine, state: State) -> tuple[Array, float]:
        """The best x for w, as far as it was found, and what may be left to gain."""
        engine.counts.prox_r2 += 1
        exact = engine.minimise(state.x)
        if exact is not None:
            return exact, 0.0
        # While a continuation still lowers h, the next w will differ anyway: a rough x will do.
        rough = engine.r1 is not self.problem.r1
        known = engine, state.x, state.base - self.problem.r2.value(state.x), state.y_mean
        if self.inner == "newton":
            return newton(*known, 1 if rough else self.iterations)
        iterations, inverse = min(self.iterations, 5) if rough else self.iterations, self.metric.inverse(state)
        if self.inner == "lbfgs":
            x, left = lbfgs(*known, iterations, inverse)
        else:
            x, left, state.gamma = fista(*known, state.gamma, iterations, inverse)
        strongest = self.inner == default_inner(self.problem, hessians=True)
        return x, left if strongest else nan  # the word of a weaker solver does not count

    def renew(self, engine: Engine, state: State, found: Reweighed, fall: float = nan, settled: bool = False) -> None:
        """Every yᵢ ← wᵢ∇fᵢ(x), and the record of (w, x); ``fall``: what F could fall by, NaN where it must be tried."""
        state.y_mean = engine.mean_duals()
        state.w_steps += 1
        if not state.finishing:  # residuals are relative to those of the metric that Algorithm 1 had
            self.metric.learn(engine, state, 0.0)
        residual = self.metric.residual(state, state.y_mean, self.problem.r2, state.gamma)
        record = note(engine, state, found, residual, fall=fall)
        state.record = replace(record, settled=settled)
        state.anchor, state.base = state.x, record.objective
        end_continuation(engine, state)
