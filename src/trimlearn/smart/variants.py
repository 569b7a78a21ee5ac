"""SMART's variants: which rows are drawn, how often w is renewed, which duals are refreshed. Data, not code.

The options that all of them take, with the defaults, are those of `trimlearn.smart.SMART`.
"""

from __future__ import annotations

from math import inf
from typing import TypedDict, Unpack

from trimlearn.smart.draws import Coin, Cyclic, Every, Everything, Nothing, RowLaw, Same, WithReplacement
from trimlearn.smart.metrics import Metric
from trimlearn.smart.smart import SMART, Step
from trimlearn.smart.steps import Decaying, StepRule, check_step_size

__all__ = ["page", "palm", "prox_saga", "prox_svrg", "saga", "sg", "svrg", "variable_projection"]


class Options(TypedDict, total=False):
    """What every variant takes besides its laws: see `SMART`."""

    step: Step
    tau: float | str
    metric: str | Metric | None
    momentum: float | None
    duals: str | None
    output: str
    finish: bool


def svrg(b: int | None = None, q: float | None = None, **options: Unpack[Options]) -> SMART:
    """SMART-SVRG (Corollaries 2 and 4), the default: Dₖ = ∅, b = ⌈n^(2/3)⌉, q = 1 − (1−1/n)^b.

    >>> svrg(b=100, q=0.1, step="theory").refresh
    Nothing()
    """
    options.setdefault("finish", True)
    return SMART(WithReplacement(b), Coin(q), Nothing(), **options)


def saga(b: int | None = None, q: float | None = None, **options: Unpack[Options]) -> SMART:
    """SMART-SAGA (Corollaries 1 and 3): Dₖ = Iₖ, b = ⌈n^(2/3)⌉, q as in `svrg`, or 1/n with step="theory".

    >>> saga(b=10).refresh
    Same()
    """
    options.setdefault("finish", True)
    if q is None and options.get("step") == "theory":
        return SMART(WithReplacement(b), Coin("1/n"), Same(), **options)
    return SMART(WithReplacement(b), Coin(q), Same(), **options)


def prox_saga(b: int | None = None, refresh: str = "same", **options: Unpack[Options]) -> SMART:
    """ProxSAGA (section 2.2): r1 = AllOnes(), q = 0; Dₖ = Iₖ, or b draws of its own with refresh="independent".

    An evaluation after every n draws feeds the history and the stopping rule and sums the mean of y afresh.

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
    """ProxSVRG (section 2.2): r1 = AllOnes(), Dₖ = ∅, q = 1/t; restart: Reddi et al.'s, every ⌈30κ⌉ iterations.

    >>> prox_svrg(q=1 / 50, restart=300).j.restart
    300
    """
    options.setdefault("finish", True)
    return SMART(WithReplacement(b), Coin(q, restart=restart), Nothing(), **options)


def palm(cyclic: bool = True, **options: Unpack[Options]) -> SMART:
    """PALM (Bolte, Sabach and Teboulle 2014): Iₖ = Dₖ = everything; w and x in turn, or by a fair coin; no momentum.

    A cyclic pair is one pass, as the x-step uses the gradient that the w-step left.

    >>> palm(cyclic=False, tau=10.0).j.q
    0.5
    """
    options.setdefault("momentum", 0.0)
    return SMART(Everything(), Cyclic() if cyclic else Coin(0.5), Everything(), **options)


def variable_projection(cyclic: bool = True, **options: Unpack[Options]) -> SMART:
    """Variable projection (Aravkin, Drusvyatskiy and van Leeuwen 2016; Yang, Lozano and Aravkin 2016): PALM, τ = ∞.

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
    """The rival PSPG: minibatch stochastic gradients without duals and with γₖ → 0; growth > 0 lets the batch grow.

    step: "auto" starts at 1/L and halves after 10 passes, a number starts there; a `StepRule` is taken as it is.

    >>> sg(step=0.5).step
    Decaying(gamma=0.5, half=10.0)
    """
    if step == "auto":
        step = Decaying()
    elif not isinstance(step, StepRule):
        step = Decaying(check_step_size(step))
    return SMART(WithReplacement(b, growth=growth), Coin(q), Nothing(), step, duals="none", tau=tau)


def page(b: int | None = None, q: float | None = None, **options: Unpack[Options]) -> SMART:
    """PAGE (Li, Bao, Zhang and Richtárik 2021): g ← g + 1/b Σ(wᵢ∇fᵢ(xᵏ) − wᵢ∇fᵢ(xᵏ⁻¹)), b = ⌈√n⌉, q = b/(n + b).

    >>> page().duals
    'recursive'
    """
    options.setdefault("duals", "recursive")
    return SMART(WithReplacement(b, power=0.5), Coin("b/(n+b)" if q is None else q), Nothing(), **options)
