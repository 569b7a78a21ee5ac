"""SMART's variants: which rows are drawn, how often w is renewed, which duals are refreshed. Data, not code."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan
from typing import final

from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.draws import (
    Coin,
    Cyclic,
    Every,
    Everything,
    JLaw,
    Nothing,
    RowLaw,
    Same,
    WithReplacement,
)
from trimlearn.smart.duals import DUALS
from trimlearn.smart.method import Method
from trimlearn.smart.metric import LBFGS, Diagonal, Euclidean, Metric, make_metric
from trimlearn.smart.steps import Auto, Decaying, Fixed, StepRule, check_step_size
from trimlearn.smart.theory import theorem1
from trimlearn.weights import AllOnes

__all__ = ["SMART", "page", "palm", "prox_saga", "prox_svrg", "saga", "sg", "svrg", "variable_projection"]

Step = str | float | StepRule


@final
@dataclass(frozen=True)
class SMART(Method):
    """Algorithm 1 with any laws of Iₖ (``batch``), jₖ (``j``) and Dₖ (``refresh``).

    tau: τ, inf takes the best w at once; with step="theory", "theory" takes the corollaries'. step: γ, a number,
    "theory" (Theorem 1's), "auto" or a `StepRule`. duals: how y is stored, "residuals", "gradients" or "snapshot" (they
    agree); None takes the cheapest. metric: "euclidean", "diagonal" or "lbfgs". momentum: heavy-ball, in [0, 1). None
    leaves both to "auto", which takes what is exact for r2, and to plain Algorithm 1 for any other step. output:
    "last", or "random" for the iterate t₀ that Theorem 1 speaks of.

    >>> svrg(b=64).batch.b, svrg(b=64).refresh, palm().batch
    (64, Nothing(), Everything())
    """

    batch: RowLaw
    j: JLaw
    refresh: RowLaw
    step: Step = "auto"
    tau: float | str = inf
    metric: str | Metric | None = None
    momentum: float | None = None
    duals: str | None = None
    output: str = "last"

    def bind(self, problem: Problem, seed: int) -> Algorithm1:
        n = problem.n
        batch, refresh = self.batch.bind(n), self.refresh.bind(n)
        b = batch.b if isinstance(batch, WithReplacement) and batch.b is not None else n
        j = self.j.bind(n, b)
        if j.chance == 0 and not isinstance(problem.r1, AllOnes):
            raise ValueError(f"a method that never renews w (q = 0) needs r1 = AllOnes(), got {problem.r1!r}.")
        rule, tau = self._step_sizes(problem, b, refresh.rho(n, b), j.chance)
        metric, momentum = self._metric(problem, rule, refresh), self._momentum(problem, rule)
        self._check_duals(refresh)
        if self.output not in ("last", "random"):
            raise ValueError(f"output must be 'last' or 'random', got {self.output!r}.")
        eta = rule.eta if isinstance(rule, Fixed) else 1.0
        random_output = self.output == "random"
        return Algorithm1(
            problem, seed, batch, j, refresh, tau, rule, self.duals, metric, momentum, random_output, eta, b
        )

    def _step_sizes(self, problem: Problem, b: int, rho: float, q: float) -> tuple[StepRule, float]:
        tau = self.tau
        if self.step == "theory":
            rates = theorem1(problem.n, b, problem.loss.lipschitz(), problem.r1.B, rho, q=q)
            return Fixed(rates.gamma, rates.eta), rates.tau if tau == "theory" else _check_tau(tau)
        if self.step == "auto":
            return Auto(), _check_tau(tau)
        return self.step if isinstance(self.step, StepRule) else Fixed(check_step_size(self.step)), _check_tau(tau)

    def _metric(self, problem: Problem, rule: StepRule, refresh: RowLaw) -> Metric:
        scalable = isinstance(rule, Auto) and problem.r2.separable and isinstance(problem.loss, PredictionLoss)
        metric = make_metric(self.metric, Diagonal() if scalable else Euclidean())
        metric.check(problem.r2)
        if isinstance(metric, LBFGS) and not (isinstance(refresh, Nothing) and self.duals != "none"):
            raise ValueError(
                "metric='lbfgs' reads its secants off the estimator and needs duals with D = Nothing(), "
                "as in svrg; use metric='diagonal' or None."
            )
        return metric

    def _momentum(self, problem: Problem, rule: StepRule) -> float:
        if self.momentum is None:
            return 0.9 if isinstance(rule, Auto) and problem.r2.convex else 0.0
        if isinstance(self.momentum, bool) or not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be a number in [0, 1) or None, got {self.momentum!r}.")
        if self.momentum > 0 and not problem.r2.convex:
            raise ValueError(f"momentum needs a convex r2, {type(problem.r2).__name__} is not; use momentum=0.")
        return float(self.momentum)

    def _check_duals(self, refresh: RowLaw) -> None:
        if self.duals in DUALS and not DUALS[self.duals].refreshes and not isinstance(refresh, Nothing):
            raise ValueError(
                f"duals={self.duals!r} cannot refresh single rows, and this variant does (D is not empty); "
                "use duals='residuals' or 'gradients', or svrg."
            )


def _check_tau(tau: float | str) -> float:
    if isinstance(tau, (str, bool)) or isnan(tau) or tau <= 0:
        raise ValueError(f"tau must be a number > 0 or inf, or 'theory' together with step='theory'; got {tau!r}.")
    return float(tau)


def saga(
    b: int | None = None,
    q: float | None = None,
    step: Step = "auto",
    tau: float | str = inf,
    metric: str | Metric | None = None,
    momentum: float | None = None,
    duals: str | None = None,
    output: str = "last",
) -> SMART:
    """SMART-SAGA (Corollaries 1 and 3): Dₖ = Iₖ. b = None means ⌈n^(2/3)⌉, q = None as in `svrg`, or the theory's 1/n.

    >>> saga(step="theory").j
    Coin(q=None, draws=1, restart=None)
    """
    return SMART(
        WithReplacement(b),
        Coin(q, draws=1 if step == "theory" else None),
        Same(),
        step,
        tau,
        metric,
        momentum,
        duals,
        output,
    )


def svrg(
    b: int | None = None,
    q: float | None = None,
    step: Step = "auto",
    tau: float | str = inf,
    metric: str | Metric | None = None,
    momentum: float | None = None,
    duals: str | None = None,
    output: str = "last",
) -> SMART:
    """SMART-SVRG (Corollaries 2 and 4), the default: Dₖ = ∅, b = ⌈n^(2/3)⌉, q = 1 − (1−1/n)^b.

    >>> svrg(b=100, q=0.1).j
    Coin(q=0.1, draws=None, restart=None)
    """
    return SMART(WithReplacement(b), Coin(q), Nothing(), step, tau, metric, momentum, duals, output)


def prox_saga(
    b: int | None = None,
    step: Step = "auto",
    refresh: str = "same",
    metric: str | Metric | None = None,
    momentum: float | None = None,
    duals: str | None = None,
) -> SMART:
    """ProxSAGA (section 2.2): r1 = AllOnes(), q = 0; Dₖ = Iₖ, or b draws of its own with refresh="independent".

    An evaluation after every n draws feeds the history and the stopping rule and sums the mean of y afresh.

    >>> prox_saga(b=10).refresh
    Same()
    """
    laws: dict[str, RowLaw] = {"same": Same(), "independent": WithReplacement(b)}
    if refresh not in laws:
        raise ValueError(f"refresh must be 'same' or 'independent', got {refresh!r}.")
    return SMART(WithReplacement(b), Every(), laws[refresh], step, inf, metric, momentum, duals)


def prox_svrg(
    b: int | None = None,
    q: float | None = None,
    step: Step = "auto",
    restart: int | None = None,
    metric: str | Metric | None = None,
    momentum: float | None = None,
    duals: str | None = None,
) -> SMART:
    """ProxSVRG (section 2.2): r1 = AllOnes(), Dₖ = ∅, q = 1/t; restart: Reddi et al.'s, every ⌈30κ⌉ iterations.

    >>> prox_svrg(q=1 / 50, restart=300).j.restart
    300
    """
    return SMART(WithReplacement(b), Coin(q, restart=restart), Nothing(), step, inf, metric, momentum, duals)


def palm(
    step: Step = "auto",
    tau: float | str = inf,
    cyclic: bool = True,
    metric: str | Metric | None = None,
    momentum: float | None = 0.0,
    duals: str | None = None,
) -> SMART:
    """PALM (Bolte, Sabach and Teboulle 2014): Iₖ = Dₖ = everything; w and x in turn, or by a fair coin.

    A cyclic pair is one pass, as the x-step uses the gradient that the w-step left.

    >>> palm(cyclic=False).j.q
    0.5
    """
    return SMART(Everything(), Cyclic() if cyclic else Coin(0.5), Everything(), step, tau, metric, momentum, duals)


def variable_projection(
    step: Step = "auto",
    cyclic: bool = True,
    metric: str | Metric | None = None,
    momentum: float | None = 0.0,
    duals: str | None = None,
) -> SMART:
    """Variable projection (Aravkin, Drusvyatskiy and van Leeuwen 2016; Yang and Lozano 2015): PALM with τ = ∞.

    >>> variable_projection().tau
    inf
    """
    return palm(step, inf, cyclic, metric, momentum, duals)


def sg(
    b: int | None = None, q: float | None = None, step: Step = "auto", tau: float | str = inf, growth: float = 0.0
) -> SMART:
    """The rival PSPG: minibatch stochastic gradients without duals and with γₖ → 0; growth > 0 lets the batch grow.

    step: "auto" starts at 1/L and halves after 10 passes, a number starts there; a `StepRule` is taken as it is.

    >>> sg(step=0.5).step
    Decaying(gamma=0.5, half=10.0)
    """
    if step == "auto":
        step = Decaying()
    elif not isinstance(step, (str, StepRule)):
        step = Decaying(check_step_size(step))
    return SMART(WithReplacement(b, growth=growth), Coin(q), Nothing(), step, tau, duals="none")


def page(
    b: int | None = None,
    q: float | None = None,
    step: Step = "auto",
    tau: float | str = inf,
    metric: str | Metric | None = None,
    momentum: float | None = None,
) -> SMART:
    """PAGE (Li, Bao, Zhang and Richtárik 2021): g ← g + 1/b Σ(wᵢ∇fᵢ(xᵏ) − wᵢ∇fᵢ(xᵏ⁻¹)), b = ⌈√n⌉, q = b/(n + b).

    >>> page().duals
    'recursive'
    """
    return SMART(WithReplacement(b, power=0.5), Coin(q), Nothing(), step, tau, metric, momentum, duals="recursive")
