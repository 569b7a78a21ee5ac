"""Algorithm 1 of the paper, written once. What sets its variants apart is data: see `trimlearn.smart.variants`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite, isinf, nan
from typing import TYPE_CHECKING, final

from trimlearn._utils.arrays import Array, norm, rounding_of, zeros
from trimlearn.problem import Problem
from trimlearn.smart.draws import Stream
from trimlearn.smart.method import Record, Reweighed, Run, State, affordable
from trimlearn.smart.metrics import Metric
from trimlearn.smart.move_laws import JLaw, Move
from trimlearn.smart.row_laws import Recipe, RowLaw
from trimlearn.smart.steps import Auto, Probe, StepRule
from trimlearn.smart.w_step import end_continuation, note, renew

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


@final
@dataclass(frozen=True)
class Algorithm1(Run):
    """SMART on one problem: the laws of Iₖ, jₖ, Dₖ, the step sizes γ and τ, and how the duals y are kept."""

    problem: Problem
    seed: int
    batch: RowLaw
    b: int  # the rows in a batch
    j: JLaw
    refresh: RowLaw
    tau: float
    rule: StepRule
    duals: str
    metric: Metric
    momentum: float
    random_output: bool

    @property
    def renews(self) -> bool:
        return self.j.chance > 0

    @property
    def finishes(self) -> bool:
        return affordable(self.problem) or not isinstance(self.rule, Auto)

    def prepare(self, engine: Engine) -> None:
        engine.check(self.refresh, self.tau)
        engine.use_duals(self.duals)

    def init(self, engine: Engine, x: Array) -> State:
        self.prepare(engine)
        state = State(x=x, began=engine.passes)
        value = engine.evaluate(x)
        self._renew(engine, state, Reweighed(value, engine.gap(), nan))
        return state

    def advance(self, engine: Engine, state: State) -> None:
        state.record = None
        if engine.stretch(self, state):
            return
        draws = engine.draws(self.seed, state.k)
        move = self.j.draw(draws, state.k)
        if move is Move.W:
            self.w_step(engine, state)
        elif move is Move.EVALUATE:
            self.evaluation(engine, state)
        else:
            batch = Recipe.of(self.batch, draws)
            self.x_step(engine, state, batch, Recipe.of(self.refresh, draws, batch))
        state.k += 1
        if self.random_output:
            self._sample(engine, state)

    def w_step(self, engine: Engine, state: State) -> None:
        """w ← prox_{τ r1}(w − τ/n · f(x)); every yᵢ ← wᵢ∇fᵢ(x): see `trimlearn.smart.w_step`."""
        if state.moved and self._risen(engine, state, engine.evaluate(state.x)):
            return
        self._renew(engine, state, engine.reweigh(self.tau))  # where x has not moved, f is known

    def x_step(self, engine: Engine, state: State, batch: Recipe, refresh: Recipe) -> None:
        """x ← prox_{γ r2}(x − γ (1/b Σ_{i∈I}(wᵢ∇fᵢ(x) − yᵢ) + mean(y))); yᵢ ← wᵢ∇fᵢ(x) for i ∈ D."""
        state.gamma = self.rule.at_x_step(state, engine.passes - state.began)
        if state.moved or not engine.keeps_duals:
            difference, change = engine.difference(state.x, batch, refresh)
        else:  # x is where every yᵢ was renewed: wᵢ∇fᵢ(x) − yᵢ = 0, exactly
            difference = change = zeros(state.x.shape, state.x)
        g = state.y_mean + difference
        if self.rule.guards and not engine.finite(g):
            self._restore(engine, state, overflow=True)
            return
        self.metric.watch(state, difference)
        state.y_mean = state.y_mean + change
        x = state.x
        ahead = x if state.previous is None or not self.momentum else x + self.momentum * (x - state.previous)
        state.x, state.previous, state.moved = self.metric.move(state, ahead, g, self.problem.r2), x, True
        engine.counts.prox_r2 += 1

    def evaluation(self, engine: Engine, state: State) -> None:
        """Neither w nor y changes: F and its gradient for the record, and the mean of y summed afresh."""
        value, gradient = engine.value_gradient(state.x)
        if not self._risen(engine, state, value):
            state.y_mean = engine.mean_duals()
            self._adapt(engine, state, value, gradient)
            self._note(engine, state, Reweighed(value, 0.0, nan), gradient)

    def finish(self, engine: Engine, state: State) -> None:
        if state.sampled_x is not None:
            engine.set_weights(state.sampled_w)
            state.x = state.sampled_x
            value = engine.evaluate(state.x)
            self._note(engine, state, Reweighed(value, engine.gap(), nan), engine.mean_duals())
        elif state.record is None and self.renews:
            if state.moved:
                self._risen(engine, state, engine.evaluate(state.x))  # if so, we are back where f is known
            self._renew(engine, state, engine.reweigh(self.tau), last=True)
        elif not self.renews:  # once more, for the losses
            value = engine.evaluate(state.x)
            self._note(engine, state, Reweighed(value, 0.0, nan), engine.mean_duals())

    def _sample(self, engine: Engine, state: State) -> None:
        """Keep the present (w, x) with a chance that makes t₀ uniform on all iterates so far, whenever we stop."""
        if state.since is not None:
            age = state.k - state.since
            if engine.draws(self.seed, state.k, Stream.OUTPUT).uniform() * (age + 1) < 1:
                state.sampled_w, state.sampled_x = engine.weights, state.x

    # -- around it --------------------------------------------------------------------------------------------------

    def _renew(self, engine: Engine, state: State, found: Reweighed, last: bool = False) -> None:
        """Every yᵢ ← wᵢ∇fᵢ(x). No step follows the last one."""
        gradient, state.moved = renew(engine, state), False
        if not last:
            self._adapt(engine, state, found.value, gradient)
        self._note(engine, state, found, gradient)
        end_continuation(engine, state)
        if self.random_output and state.since is not None and state.sampled_x is None:
            state.sampled_w, state.sampled_x = engine.weights, state.x

    def _adapt(self, engine: Engine, state: State, value: float, gradient: Array) -> None:
        """Bring the metric and γ up to date after a full evaluation."""
        state.w_steps += 1
        noise = 1.0 / (self.b * (1.0 - self.momentum))
        self.metric.learn(engine, state, noise)
        draws = engine.draws(self.seed, state.k, Stream.PROBE)
        probe = Probe(engine, state, self.metric, draws, noise, value, gradient, self.batch)
        state.gamma = self.rule.at_w_step(state, probe)

    def _risen(self, engine: Engine, state: State, value: float) -> bool:
        """Whether F(w, ·) is above where it was at the last full evaluation; if so, we are back there."""
        F = value + self.problem.r2.value(state.x)
        if not self.rule.guards or F <= state.base + rounding_of(state.x) * abs(state.base):
            return False
        self._restore(engine, state, overflow=not isfinite(F))
        return True

    def _restore(self, engine: Engine, state: State, overflow: bool) -> None:
        """F(w, ·) rose, or overflowed: back to the last w-step, with a smaller γ."""
        state.x = state.previous = state.anchor
        self.rule.back_off(state, overflow)
        self.metric.forget(state)
        value = engine.evaluate(state.x)
        gradient, state.moved = renew(engine, state), False
        record = self._note(engine, state, Reweighed(value, engine.gap(), nan), gradient)
        state.record = replace(record, restored=True)

    def _note(self, engine: Engine, state: State, found: Reweighed, gradient: Array) -> Record:
        """The record of (w, x), the point to go back to."""
        paper = nan if isinf(self.tau) else self._paper_residual(state, gradient)
        residual = self.metric.residual(state, gradient, self.problem.r2, state.gamma / self.rule.eta)
        record = note(engine, state, found, residual, paper)
        state.anchor, state.base = state.x, record.objective
        return record

    def _paper_residual(self, state: State, gradient: Array) -> float:
        """(η/γ)‖x − x̄‖ of section 3.1."""
        step = state.gamma / self.rule.eta
        return norm(state.x - self.problem.r2.step(state.x, gradient, step)) / step
