"""SMART as a user asks for it: the laws and the choices, of which many may be left open until the problem is known.

SMART's variants: which rows are drawn, how often w is renewed, which duals are refreshed. Data, not code.

The options that all of them take, with the defaults, are those of `trimlearn.smart.SMART`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypedDict, Unpack, final

import numpy as np

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import check_choice, is_number
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.duals import choose_duals
from trimlearn.smart.finish import Finished, can_finish, finisher
from trimlearn.smart.method import Method
from trimlearn.smart.metrics import LBFGS, Diagonal, Euclidean, Metric, default_metric, make_metric
from trimlearn.smart.move_laws import Coin, Cyclic, Every, JLaw
from trimlearn.smart.row_laws import Blocks, Everything, Nothing, RowLaw, Same, WithReplacement
from trimlearn.smart.steps import Auto, Decaying, Fixed, StepRule, check_step_size
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


class Options(TypedDict, total=False):
    """What every variant takes besides its laws: see `SMART`."""

    step: Step
    tau: float | str
    metric: str | Metric | None
    momentum: float | None
    duals: str | None
    output: str
    finish: bool


def svrg(b: int | None = None, q: float | None = None, *, sampling: str = "rows", **options: Unpack[Options]) -> SMART:
    """SMART-SVRG (Corollaries 2 and 4), the default where n is large: Dₖ = ∅.

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈n^(2/3)⌉.
    q : float, optional
        The chance of a w-step. None: 1 − (1−1/n)^b, the chance that a batch holds a given row, but at most ½.
    sampling : {"rows", "blocks"}
        What is drawn: rows, or whole blocks of rows that lie together, about b in all. The latter is for data on a disk
        whose rows are in random order, as in a shuffled copy (docs/scale.md): unbiased, but outside Theorem 1, which
        is about independent rows.
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    Examples
    --------
    >>> svrg(b=100, q=0.1, step="theory").refresh
    Nothing()
    """
    options.setdefault("finish", True)
    check_choice(sampling, ("rows", "blocks"), "sampling")
    return SMART(Blocks(b) if sampling == "blocks" else WithReplacement(b), Coin(q), Nothing(), **options)


def saga(b: int | None = None, q: float | None = None, **options: Unpack[Options]) -> SMART:
    """SMART-SAGA (Corollaries 1 and 3): Dₖ = Iₖ.

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈n^(2/3)⌉.
    q : float, optional
        The chance of a w-step. None: as in `svrg`, or 1/n with step="theory".
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    Examples
    --------
    >>> saga(b=10).refresh
    Same()
    """
    options.setdefault("finish", True)
    if q is None and options.get("step") == "theory":
        return SMART(WithReplacement(b), Coin("1/n"), Same(), **options)
    return SMART(WithReplacement(b), Coin(q), Same(), **options)


def prox_saga(b: int | None = None, refresh: str = "same", **options: Unpack[Options]) -> SMART:
    """ProxSAGA (section 2.2), for r1 = AllOnes(): there are no w-steps.

    An evaluation after every n draws feeds the history and the stopping rule and sums the mean of y afresh.

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈n^(2/3)⌉.
    refresh : {"same", "independent"}
        Dₖ = Iₖ, or b draws of its own.
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    Examples
    --------
    >>> prox_saga(b=10, refresh="independent").refresh.b
    10
    """
    laws: dict[str, RowLaw] = {"same": Same(), "independent": WithReplacement(b)}
    if refresh not in laws:
        raise ValueError(f"refresh must be 'same' or 'independent', got {refresh!r}.")
    return SMART(WithReplacement(b), Every(), laws[refresh], **options)


def prox_svrg(
    b: int | None = None, q: float | None = None, restart: int | None = None, **options: Unpack[Options]
) -> SMART:
    """ProxSVRG (section 2.2), for r1 = AllOnes(): Dₖ = ∅ and q = 1/t.

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈n^(2/3)⌉.
    q : float, optional
        The chance of a w-step. None: 1 − (1−1/n)^b, the chance that a batch holds a given row, but at most ½.
    restart : int, optional
        A full gradient for certain after so many iterations: ⌈30κ⌉ in [1]_.
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    References
    ----------
    .. [1] S. J. Reddi, S. Sra, B. Póczos and A. Smola, Proximal stochastic methods for nonsmooth nonconvex finite-sum
       optimization, NIPS (2016).

    Examples
    --------
    >>> prox_svrg(q=1 / 50, restart=300).j.restart
    300
    """
    options.setdefault("finish", True)
    return SMART(WithReplacement(b), Coin(q, restart=restart), Nothing(), **options)


def palm(cyclic: bool = True, **options: Unpack[Options]) -> SMART:
    """PALM [1]_: Iₖ and Dₖ are everything; w and x in turn, or by a fair coin; no momentum unless asked for.

    A cyclic pair is one pass, as the x-step uses the gradient that the w-step left.

    Parameters
    ----------
    cyclic : bool
        Whether w and x take turns.
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    References
    ----------
    .. [1] J. Bolte, S. Sabach and M. Teboulle, Proximal alternating linearized minimization for nonconvex and nonsmooth
       problems, Mathematical Programming 146 (2014).

    Examples
    --------
    >>> palm(cyclic=False, tau=10.0).j.q
    0.5
    """
    options.setdefault("momentum", 0.0)
    return SMART(Everything(), Cyclic() if cyclic else Coin(0.5), Everything(), **options)


def variable_projection(cyclic: bool = True, **options: Unpack[Options]) -> SMART:
    """Variable projection [1]_, [2]_: PALM with τ = ∞.

    Parameters
    ----------
    cyclic : bool
        Whether w and x take turns.
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    References
    ----------
    .. [1] A. Aravkin, D. Drusvyatskiy and T. van Leeuwen, Variable projection without smoothness (2016).
    .. [2] E. Yang, A. Lozano and A. Aravkin, High-dimensional trimmed estimators: a general framework for robust
       structured estimation (2016).

    Examples
    --------
    >>> variable_projection().tau
    inf
    """
    if "tau" in options:
        raise ValueError("tau is infinite in variable_projection; use palm for another.")
    return palm(cyclic, **options)


def sg(
    b: int | None = None,
    q: float | None = None,
    step: Step = "auto",
    tau: float | str = inf,
    growth: float = 0.0,
) -> SMART:
    """The rival PSPG: minibatch stochastic gradients without duals and with γₖ → 0.

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈n^(2/3)⌉.
    q : float, optional
        The chance of a w-step. None: 1 − (1−1/n)^b, the chance that a batch holds a given row, but at most ½.
    step : "auto", float or StepRule
        "auto" starts at 1/L and halves after 10 passes, a number starts there; a `StepRule` is taken as it is.
    tau : float
        The step τ in w.
    growth : float
        The batch at iteration k is b(1 + growth·k).

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    Examples
    --------
    >>> sg(step=0.5).step
    Decaying(gamma=0.5, half=10.0)
    """
    if step == "auto":
        step = Decaying()
    elif not isinstance(step, StepRule):
        step = Decaying(check_step_size(step))
    return SMART(WithReplacement(b, growth=growth), Coin(q), Nothing(), step, duals="none", tau=tau)


def page(b: int | None = None, q: float | None = None, **options: Unpack[Options]) -> SMART:
    """PAGE [1]_: g ← g + 1/b Σ(wᵢ∇fᵢ(xᵏ) − wᵢ∇fᵢ(xᵏ⁻¹)).

    Parameters
    ----------
    b : int, optional
        The draws of a batch. None: ⌈√n⌉.
    q : float, optional
        The chance of a w-step. None: b/(n + b).
    **options : object
        The parameters ``step``, ``tau``, ``metric``, ``momentum``, ``duals``, ``output`` and ``finish`` of `SMART`.

    Returns
    -------
    SMART
        The method, to be passed to `trimlearn.solve`.

    References
    ----------
    .. [1] Z. Li, H. Bao, X. Zhang and P. Richtárik, PAGE: a simple and optimal probabilistic gradient estimator for
       nonconvex optimization, ICML (2021).

    Examples
    --------
    >>> page().duals
    'recursive'
    """
    options.setdefault("duals", "recursive")
    return SMART(WithReplacement(b, power=0.5), Coin("b/(n+b)" if q is None else q), Nothing(), **options)
