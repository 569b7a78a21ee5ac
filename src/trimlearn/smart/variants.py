"""SMART's variants: which rows are drawn, how often w is renewed, which duals are refreshed. Data, not code.

The options that all of them take, with the defaults, are those of `trimlearn.smart.SMART`.
"""

from __future__ import annotations

from math import inf
from typing import TypedDict, Unpack

from trimlearn._utils.validation import check_choice
from trimlearn.smart.metrics import Metric
from trimlearn.smart.move_laws import Coin, Cyclic, Every
from trimlearn.smart.row_laws import Blocks, Everything, Nothing, RowLaw, Same, WithReplacement
from trimlearn.smart.smart import SMART, Step
from trimlearn.smart.steps import Decaying, StepRule, check_step_size


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
