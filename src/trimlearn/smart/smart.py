"""SMART as a user asks for it: the laws and the choices, of which many may be left open until the problem is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import is_number
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.duals import choose_duals
from trimlearn.smart.finish import Finished, can_finish, finisher
from trimlearn.smart.method import Method
from trimlearn.smart.metrics import LBFGS, Diagonal, Euclidean, Metric, default_metric, make_metric
from trimlearn.smart.move_laws import JLaw
from trimlearn.smart.row_laws import Blocks, Everything, Nothing, RowLaw, WithReplacement
from trimlearn.smart.steps import Auto, Fixed, StepRule, check_step_size
from trimlearn.smart.theory import theorem1
from trimlearn.weights import AllOnes

Step = str | float | StepRule


@final
@dataclass(frozen=True)
class SMART(Method):
    """Algorithm 1 of the paper [1]_ with any laws of Iₖ, jₖ and Dₖ.

    `svrg`, `saga` and the other variants of `trimlearn.smart` choose the laws. What is None is left to the problem.

    Parameters
    ----------
    batch : RowLaw
        The law of Iₖ, the rows whose gradients an x-step evaluates.
    j : JLaw
        The law of jₖ: whether iteration k is a w-step or an x-step.
    refresh : RowLaw
        The law of Dₖ, the rows whose duals an x-step refreshes.
    step : {"auto", "theory"}, float or StepRule
        The step γ: measured at every w-step, Theorem 1's, or as given.
    tau : float or "theory"
        The step τ in w; inf takes the best w at once. "theory", together with step="theory", takes the corollaries'.
    metric : {"euclidean", "diagonal", "lbfgs"}, Metric or None
        The metric of an x-step. None: with step="auto" the diagonal one, where it is exact for r2, else Euclidean.
    momentum : float or None
        Heavy-ball, in [0, 1). None: 0.9 with step="auto" and a convex r2, else 0.
    duals : {"residuals", "gradients", "snapshot", "total", "recursive", "none"} or None
        How y is stored. The first three, and "total" for full gradients, agree; None takes the cheapest of them.
        "recursive" is PAGE's estimator and "none" that of plain stochastic gradients.
    output : {"last", "random"}
        The iterate to return; "random" draws the t₀ that Theorem 1 speaks of.
    finish : bool
        Whether, with step="auto", second-order steps finish what Algorithm 1 began (`trimlearn.smart.finish`), where
        the problem is small enough for them.

    References
    ----------
    .. [1] A. Aravkin and D. Davis, A SMART stochastic algorithm for nonconvex optimization with applications to robust
       machine learning (2016).

    Examples
    --------
    >>> from trimlearn.smart.move_laws import Coin
    >>> from trimlearn.smart.row_laws import Nothing, WithReplacement
    >>> SMART(WithReplacement(64), Coin(q=0.1), Nothing()).batch.b
    64
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
    finish: bool = False

    @property
    def automatic(self) -> bool:
        return self.step == "auto" or (isinstance(self.step, StepRule) and self.step.automatic)

    def bind(self, problem: Problem, seed: int) -> Algorithm1 | Finished:
        n = problem.n
        batch, refresh = self.batch.bind(n), self.refresh.bind(n)
        b = batch.b if isinstance(batch, (WithReplacement, Blocks)) and batch.b is not None else n
        if isinstance(batch, Blocks) and problem.s is not None:
            raise ValueError("sampling='blocks' takes no sample weights; use sampling='rows'.")
        if isinstance(batch, Blocks) and self.step == "theory":
            raise ValueError("step='theory' is for independent draws, sampling='rows': Theorem 1 is not about blocks.")
        j = self.j.bind(n, b)
        if j.chance == 0 and not isinstance(problem.r1, AllOnes):
            raise ValueError(f"a method that never renews w (q = 0) needs r1 = AllOnes(), got {problem.r1!r}.")
        rule, tau = self._step_sizes(problem, b, refresh, j.chance)
        metric, momentum = self._metric(problem, rule, refresh), self._momentum(problem, rule)
        everything = isinstance(batch, Everything) and isinstance(refresh, Everything)
        duals = choose_duals(self.duals, problem.loss, not isinstance(refresh, Nothing), everything)
        if self.output not in ("last", "random"):
            raise ValueError(f"output must be 'last' or 'random', got {self.output!r}.")
        run = Algorithm1(
            problem=problem,
            seed=seed,
            batch=batch,
            b=b,
            j=j,
            refresh=refresh,
            tau=tau,
            rule=rule,
            duals=duals,
            metric=metric,
            momentum=momentum,
            random_output=self.output == "random",
        )
        return Finished(run, finisher(problem, seed, metric)) if self.finish and can_finish(run) else run

    def _step_sizes(self, problem: Problem, b: int, refresh: RowLaw, q: float) -> tuple[StepRule, float]:
        tau = self.tau
        if self.step == "theory":
            rho = refresh.rho(problem.n, b, None if problem.s is None else to_numpy(problem.s).astype(np.float64))
            rates = theorem1(problem.n, b, problem.loss.lipschitz(), problem.r1.B, rho, q=q, s=problem.s)
            return Fixed(rates.gamma, rates.eta), rates.tau if tau == "theory" else _check_tau(tau)
        if self.step == "auto":
            return Auto(), _check_tau(tau)
        return self.step if isinstance(self.step, StepRule) else Fixed(check_step_size(self.step)), _check_tau(tau)

    def _metric(self, problem: Problem, rule: StepRule, refresh: RowLaw) -> Metric:
        metric = make_metric(self.metric, default_metric(problem) if isinstance(rule, Auto) else Euclidean())
        metric.check(problem.r2)
        if isinstance(metric, Diagonal) and not isinstance(problem.loss, PredictionLoss):
            raise ValueError("metric='diagonal' needs a loss of linear predictions; use metric=None or 'lbfgs'.")
        if isinstance(metric, LBFGS) and not (isinstance(refresh, Nothing) and self.duals not in ("none", "recursive")):
            raise ValueError(
                "metric='lbfgs' reads its secants off the estimator and needs duals with D = Nothing(), "
                "as in svrg; use metric='diagonal' or None."
            )
        return metric

    def _momentum(self, problem: Problem, rule: StepRule) -> float:
        if self.momentum is None:
            return 0.9 if isinstance(rule, Auto) and problem.r2.convex else 0.0
        if not is_number(self.momentum) or not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be a number in [0, 1) or None, got {self.momentum!r}.")
        if self.momentum > 0 and not problem.r2.convex:
            raise ValueError(f"momentum needs a convex r2, {problem.r2.name} is not; use momentum=0.")
        return float(self.momentum)


def _check_tau(tau: float | str) -> float:
    if not is_number(tau) or not float(tau) > 0:
        raise ValueError(f"tau must be a number > 0 or inf, or 'theory' together with step='theory'; got {tau!r}.")
    return float(tau)
