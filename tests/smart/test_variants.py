"""Every variant, iterate by iterate, against its textbook form; and what its arguments refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import textbook
from textbook import assert_same, groups, iterates, make, point
from trimlearn._utils.arrays import Array
from trimlearn.losses import LeastSquares, Loss, Poisson
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, NonNegative, Regularizer, Ridge, Sphere, Zero
from trimlearn.smart import (
    SMART,
    page,
    palm,
    prox_gradient,
    prox_saga,
    prox_svrg,
    saga,
    sg,
    svrg,
    variable_projection,
)
from trimlearn.smart.method import Method
from trimlearn.smart.metrics import Euclidean
from trimlearn.smart.move_laws import Coin
from trimlearn.smart.row_laws import Everything, Independent, Nothing, Same, WithReplacement
from trimlearn.smart.steps import Auto, Decaying, Fixed
from trimlearn.smart.theory import saga_theory, svrg_theory, theorem1
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

N = 24
S = np.array([1, 2, 0, 1, 3, 1] * 4)  # whole numbers, Σ = 32

TERMS: dict[str, tuple[str, WeightSet, Regularizer, Any]] = {
    "ls-capped": ("least squares", CappedSimplex(16.6), Zero(), None),
    "ls-few-L1": ("least squares", CappedSimplex(5.5), L1(0.05), None),
    "ls-sphere": ("least squares", CappedSimplex(17.0), Sphere(2.0), None),
    "ls-weighted": ("least squares", CappedSimplex(20.3), Ridge(0.1), S),
    "ls-nonneg": ("least squares", groups(N, 18.2), NonNegative(), None),
    "logistic-groups": ("logistic", groups(N, 15.7), Ridge(0.1), None),
    "logistic-weighted": ("logistic", CappedSimplex(25.5), L1(0.01), S + 0.5 * (S > 0)),
    "softmax-capped": ("softmax", CappedSimplex(17.3), Ridge(0.05), None),
    "softmax-groups": ("softmax", groups(N, 13.1), L1(0.01), None),
    "softmax-sphere": ("softmax", CappedSimplex(19.9), Sphere(1.5), None),
}
UNTRIMMED: dict[str, tuple[str, WeightSet, Regularizer, Any]] = {
    "ls": ("least squares", AllOnes(), L1(0.05), None),
    "ls-weighted": ("least squares", AllOnes(), Zero(), S),
    "logistic": ("logistic", AllOnes(), Ridge(0.1), None),
    "softmax-sphere": ("softmax", AllOnes(), Sphere(1.5), None),
}

Pair = tuple[Method, Callable[..., textbook.Iterates]]
g = 0.1
TRIMMED_METHODS: dict[str, Pair] = {
    "saga": (saga(b=5, q=0.2, step=g), partial(textbook.saga, b=5, q=0.2, gamma=g)),
    "saga-tau": (saga(b=3, q=0.3, step=g, tau=7.0), partial(textbook.saga, b=3, q=0.3, gamma=g, tau=7.0)),
    "svrg": (svrg(b=5, q=0.3, step=g), partial(textbook.svrg, b=5, q=0.3, gamma=g)),
    "svrg-tau": (svrg(b=9, q=0.2, step=g, tau=9.0), partial(textbook.svrg, b=9, q=0.2, gamma=g, tau=9.0)),
    "palm": (palm(step=g, tau=8.0), partial(textbook.palm, gamma=g, tau=8.0)),
    "palm-inf": (palm(step=g), partial(textbook.palm, gamma=g)),
    "palm-coin": (palm(step=g, tau=8.0, cyclic=False), partial(textbook.palm, gamma=g, tau=8.0, cyclic=False)),
    "palm-coin-inf": (palm(step=g, cyclic=False), partial(textbook.palm, gamma=g, cyclic=False)),
    "projection": (variable_projection(step=g), partial(textbook.palm, gamma=g)),
    "projection-coin": (variable_projection(step=g, cyclic=False), partial(textbook.palm, gamma=g, cyclic=False)),
    "sg": (sg(b=5, q=0.2, step=g), partial(textbook.sg, b=5, q=0.2, gamma=g)),
    "sg-growing": (sg(b=2, q=0.1, step=g, growth=0.2), partial(textbook.sg, b=2, q=0.1, gamma=g, growth=0.2)),
    "page": (page(b=5, q=0.2, step=g), partial(textbook.page, b=5, q=0.2, gamma=g)),
    "page-tau": (page(b=6, q=0.2, step=g, tau=7.0), partial(textbook.page, b=6, q=0.2, gamma=g, tau=7.0)),
    # One draw a step: when it has weight 0, nothing is evaluated, and the next difference is still from xᵏ to xᵏ⁺¹.
    "page-one-draw": (page(b=1, q=0.1, step=g), partial(textbook.page, b=1, q=0.1, gamma=g)),
    "saga-one-draw": (saga(b=1, q=0.1, step=g), partial(textbook.saga, b=1, q=0.1, gamma=g)),
    "joint": (prox_gradient(step=0.5), partial(textbook.prox_gradient, gamma=0.5)),
}
UNTRIMMED_METHODS: dict[str, Pair] = {
    "prox_saga": (prox_saga(b=5, step=g), partial(textbook.prox_saga, b=5, gamma=g)),
    "prox_saga-independent": (
        prox_saga(b=5, step=g, refresh="independent"),
        partial(textbook.prox_saga, b=5, gamma=g, independent=True),
    ),
    "prox_svrg": (prox_svrg(b=5, q=0.15, step=g), partial(textbook.svrg, b=5, q=0.15, gamma=g)),
    "prox_svrg-restart": (
        prox_svrg(b=5, q=0.15, step=g, restart=4),
        partial(textbook.svrg, b=5, q=0.15, gamma=g, restart=4),
    ),
    "saga": TRIMMED_METHODS["saga"],
}


def assert_same_iterates(method: Method, twin_method: Callable[..., Any], terms: tuple[Any, ...]) -> None:
    kind, r1, r2, s = terms
    problem, twin = make(kind, r1, r2, N, s)
    x = point(problem)
    assert_same(iterates(method, problem, x), twin_method(twin, r1.start(N, problem.s), x), steps=30)


# ---- textbook forms ----


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("name", TRIMMED_METHODS)
def test_a_variant_is_its_textbook_form(name: str, terms: str) -> None:
    assert_same_iterates(*TRIMMED_METHODS[name], TERMS[terms])


@pytest.mark.parametrize("terms", UNTRIMMED)
@pytest.mark.parametrize("name", UNTRIMMED_METHODS)
def test_an_untrimmed_variant_is_its_textbook_form(name: str, terms: str) -> None:
    assert_same_iterates(*UNTRIMMED_METHODS[name], UNTRIMMED[terms])


@pytest.mark.parametrize("terms", ["ls-capped", "ls-few-L1", "ls-weighted", "softmax-capped"])
@pytest.mark.parametrize("beta", [0.5, 0.9])
def test_momentum_is_heavy_ball_through_the_prox(terms: str, beta: float) -> None:
    twin = partial(textbook.svrg, b=5, q=0.2, gamma=0.03, beta=beta)
    assert_same_iterates(svrg(b=5, q=0.2, step=0.03, momentum=beta), twin, TERMS[terms])


@pytest.mark.parametrize("terms", ["ls-capped", "ls-few-L1", "ls-weighted", "ls-nonneg", "softmax-groups"])
@pytest.mark.parametrize("beta", [0.0, 0.6])
def test_the_diagonal_metric_is_its_formula(terms: str, beta: float) -> None:
    method = svrg(b=5, q=0.2, step=0.03, metric="diagonal", momentum=beta)
    assert_same_iterates(method, partial(textbook.scaled_svrg, b=5, q=0.2, gamma=0.03, beta=beta), TERMS[terms])


def test_any_laws_may_be_combined() -> None:
    """D drawn by a coin of its own for every row: SMART takes laws that no named variant has."""
    problem, T = make("least squares", CappedSimplex(16.6), L1(0.02), N)
    x = point(problem)

    def twin() -> textbook.Iterates:
        w, here = np.full(N, 16.6 / N), x
        y = T.wG(w, here)
        for k in range(100):
            draws = T.draws(3, k)
            if draws.uniform() < 0.2:
                w = T.w_step(w, here, inf)
                y = T.wG(w, here)
            else:
                new, batch = T.wG(w, here), draws.rows(4)
                step = sum(new[i] - y[i] for i in batch) / 4 + T.mean(y)
                for i, u in enumerate(draws.uniforms(N)):
                    if u < 0.3:
                        y[i] = new[i]
                here = T.prox(here - g * step, g)
            yield w, here

    method = SMART(WithReplacement(4), Coin(0.2), Independent(0.3), step=g)
    assert_same(iterates(method, problem, x), twin(), 60)


def test_palm_is_saga_that_draws_everything() -> None:
    problem, _ = make("softmax", CappedSimplex(15.5), Ridge(0.1), N)
    x = point(problem)
    method = SMART(Everything(), Coin(0.5), Everything(), step=g, tau=8.0)
    for _, a, b in zip(
        range(30), iterates(method, problem, x), iterates(palm(step=g, tau=8.0, cyclic=False), problem, x), strict=False
    ):
        np.testing.assert_array_equal(a[1], b[1])


# ---- what is data ----


def test_the_variants_are_rows_of_the_table() -> None:
    """The table of variants: (how Iₖ is drawn, q, how Dₖ is drawn, τ)."""
    problem, untrimmed = (make("least squares", r1, Zero(), 64)[0] for r1 in (CappedSimplex(50), AllOnes()))
    q = 1 - (1 - 1 / 64) ** 16
    run = svrg(finish=False).bind(problem, 0)
    assert (run.b, run.j.chance, run.refresh, run.tau) == (16, pytest.approx(q, rel=1e-12), Nothing(), inf)
    run = saga(finish=False).bind(problem, 0)
    assert (run.b, run.j.chance, run.refresh) == (16, pytest.approx(q, rel=1e-12), Same())
    assert saga(step="theory").bind(problem, 0).j.chance == pytest.approx(1 / 64, rel=1e-12)
    run = prox_saga(b=8).bind(untrimmed, 0)
    assert (run.b, run.j.chance, run.refresh) == (8, 0.0, Same())
    run = prox_svrg(b=8, q=1 / 20, finish=False).bind(untrimmed, 0)
    assert (run.b, run.j.chance, run.refresh) == (8, 1 / 20, Nothing())
    run = palm().bind(problem, 0)
    assert (run.b, run.j.chance, run.batch, run.refresh) == (64, 0.5, Everything(), Everything())


def test_page_takes_root_n_draws_and_its_own_q() -> None:
    """Li et al. 2021, and page's docstring: b = √n, q = b/(n + b)."""
    run = page().bind(make("least squares", CappedSimplex(50), Zero(), 64)[0], 0)
    assert run.b == 8
    assert run.j.chance == pytest.approx(8 / 72, rel=1e-12)


def test_a_given_step_means_plain_algorithm_1() -> None:
    problem, _ = make("least squares", CappedSimplex(16), Zero(), N)
    run = svrg(step=0.1).bind(problem, 0)
    assert (run.rule, run.metric, run.momentum) == (Fixed(0.1), Euclidean(), 0.0)
    auto = svrg(finish=False).bind(problem, 0)
    assert isinstance(auto.rule, Auto) and auto.momentum == 0.9
    nonconvex, _ = make("least squares", CappedSimplex(16), Sphere(), N)
    assert svrg(finish=False).bind(nonconvex, 0).momentum == 0.0
    assert svrg(finish=False).bind(nonconvex, 0).metric == Euclidean()


def test_sg_decays_unless_told_otherwise() -> None:
    problem, _ = make("least squares", CappedSimplex(16), Zero(), N)
    assert sg(step=0.2).bind(problem, 0).rule == Decaying(0.2)
    assert sg().bind(problem, 0).rule == Decaying()
    assert sg(step=Fixed(0.2)).bind(problem, 0).rule == Fixed(0.2)


def test_two_runs_with_the_same_settings_have_the_same_text() -> None:
    problem, _ = make("least squares", CappedSimplex(16), Zero(), N)
    assert repr(svrg(b=4, step=0.1).bind(problem, 1)) == repr(svrg(b=4, step=0.1).bind(problem, 1))
    texts = {repr(method.bind(problem, seed)) for method in (svrg(b=4), svrg(b=5), saga(b=4)) for seed in (0, 1)}
    assert len(texts) == 6


# ---- the theory's steps ----


@pytest.mark.parametrize("kind", ["least squares", "softmax"])
def test_the_theory_step_is_theorem_1s(kind: str) -> None:
    problem, _ = make(kind, CappedSimplex(16), Zero(), N)
    L = problem.loss.lipschitz()
    run = svrg(b=8, step="theory").bind(problem, 0)
    rates = svrg_theory(N, 8, L)
    assert (run.rule.gamma, run.rule.eta) == pytest.approx((rates.gamma, rates.eta), rel=1e-12)
    assert run.tau == inf
    assert svrg(b=8, step="theory", tau=3).bind(problem, 0).tau == 3
    assert svrg(b=8, step="theory", tau="theory").bind(problem, 0).tau == pytest.approx(rates.tau, rel=1e-12)
    run = saga(b=8, step="theory", tau="theory").bind(problem, 0)
    rates = saga_theory(N, 8, L)
    assert (run.rule.gamma, run.rule.eta, run.tau) == pytest.approx((rates.gamma, rates.eta, rates.tau), rel=1e-12)
    run = palm(step="theory").bind(problem, 0)
    assert run.rule.gamma == pytest.approx(theorem1(N, N, L, 1.0, 1.0, q=0.5).gamma, rel=1e-12)


def test_prox_saga_has_a_theory_step_too() -> None:
    """Section 2.2: q = 0. Theorem 1's γ is continuous there."""
    problem, _ = make("least squares", AllOnes(), Zero(), N)
    rho = 1 - (1 - 1 / N) ** 8
    limit = theorem1(N, 8, problem.loss.lipschitz(), 1.0, rho, q=1e-12).gamma
    assert prox_saga(b=8, step="theory").bind(problem, 0).rule.gamma == pytest.approx(limit, rel=1e-6)


def test_the_theory_step_does_not_see_removed_rows() -> None:
    """s = 0 is removal: neither the row's own L nor its presence changes γ (same b, same q)."""
    V, t = textbook.table("least squares", N)
    removed = Problem(
        LeastSquares(np.vstack([V, 1e3 * V[:1]]), np.append(t, 0.0)), CappedSimplex(16), None, [1] * N + [0]
    )
    without = Problem(LeastSquares(V, t), CappedSimplex(16))
    gammas = [svrg(b=8, q=0.2, step="theory").bind(problem, 0).rule.gamma for problem in (removed, without)]
    assert gammas[0] == pytest.approx(gammas[1], rel=1e-6)


def test_the_theory_step_takes_a_weighted_row_for_its_repetition() -> None:
    V, t = textbook.table("least squares", N)
    s = np.arange(N) % 3 + 1
    weighted = Problem(LeastSquares(V, t), CappedSimplex(16), None, s)
    repeated = Problem(LeastSquares(np.repeat(V, s, axis=0), np.repeat(t, s)), CappedSimplex(16))
    gammas = [svrg(b=8, q=0.2, step="theory").bind(problem, 0).rule.gamma for problem in (weighted, repeated)]
    assert gammas[0] == pytest.approx(gammas[1], rel=1e-6)


def test_saga_with_sample_weights_takes_the_steps_its_lightest_rows_allow() -> None:
    """ρᵢ = 1 − (1 − sᵢ/S)^b: a light row with a large L is refreshed seldom, and γ must wait for it."""
    problem, _ = make("least squares", CappedSimplex(4), Zero(), N)
    L, b = problem.loss.lipschitz(), N // 2
    s = np.where(L > np.median(L), 1.0 / b, 2.0)
    weighted = Problem(problem.loss, CappedSimplex(4), None, s)
    rho = 1 - (1 - s / s.sum()) ** b
    proven = theorem1(N, b, L, 1.0, rho, q=1 / N, s=s).gamma
    assert saga(b=b, step="theory").bind(weighted, 0).rule.gamma == pytest.approx(proven, rel=1e-9)
    uniform = theorem1(N, b, L, 1.0, 1 - (1 - 1 / N) ** b, q=1 / N, s=s).gamma
    assert proven < 0.6 * uniform


# ---- what is refused, before any work ----

TRIMMED = make("least squares", CappedSimplex(16), Zero(), N)[0]
ONES = make("least squares", AllOnes(), Zero(), N)[0]
ON_SPHERE = make("least squares", CappedSimplex(16), Sphere(), N)[0]
SPARSE = make("least squares", CappedSimplex(16), L1(0.1), N)[0]
COUNTS = Problem(Poisson(np.ones((4, 1)), np.arange(4.0)), CappedSimplex(3))


class Wavy(Loss):
    """fᵢ(x) = 1 − cos(⟨vᵢ, x⟩ − tᵢ), told through values and gradients only: no linear prediction to store."""

    def __init__(self, V: Any, t: Any) -> None:
        self.V, self.t = V, t
        self.n, self.x_shape, self.like = len(t), (V.shape[1],), V[:0, 0]

    def values(self, x: Array, rows: Any = None) -> Array:
        rows = slice(None) if rows is None else rows
        return 1 - np.cos(self.V[rows] @ x - self.t[rows])

    def gradient(self, x: Array, c: Array, rows: Any = None) -> Array:
        rows = slice(None) if rows is None else rows
        return (c * np.sin(self.V[rows] @ x - self.t[rows])) @ self.V[rows]

    def lipschitz(self) -> Array:
        return np.sum(self.V**2, axis=1)


WAVY = Problem(Wavy(*textbook.table("least squares", N)), CappedSimplex(16))


@pytest.mark.parametrize("options", [{"step": 0.05}, {"step": 0.05, "tau": 9.0, "momentum": 0.6}])
def test_a_loss_without_predictions_runs_from_a_snapshot_or_a_table(options: dict[str, Any]) -> None:
    V, t = textbook.table("least squares", N)
    f, G = (lambda x: 1 - np.cos(V @ x - t)), (lambda x: np.sin(V @ x - t)[:, None] * V)
    twin = textbook.Twin(V, f, G, *textbook.weights_twin(WAVY.r1, np.ones(N), V), lambda x, _: x, np.ones(N), False)
    x, w = point(WAVY), np.full(N, 16 / N)
    plain = {"gamma": 0.05, "tau": options.get("tau", inf)}
    for duals in (None, "snapshot", "gradients"):
        theirs = textbook.svrg(twin, w, x, b=5, q=0.2, beta=options.get("momentum", 0.0), **plain)
        assert_same(iterates(svrg(b=5, q=0.2, duals=duals, **options), WAVY, x), theirs, 40)
    if "momentum" not in options:
        ours = iterates(saga(b=5, q=0.2, duals="gradients", **options), WAVY, x)
        assert_same(ours, textbook.saga(twin, w, x, b=5, q=0.2, **plain), 40)


BAD: list[tuple[str, Callable[[], Method], Problem, str]] = [
    *[(f"b={b}", partial(svrg, b=b), TRIMMED, "b must be") for b in (0, -3, N + 1, 2.5, 3.0, True, "4", nan)],
    *[(f"saga b={b}", partial(saga, b=b), TRIMMED, "b must be") for b in (0, N + 1)],
    ("independent b", lambda: prox_saga(b=0, refresh="independent"), ONES, "b must be"),
    ("growth", lambda: sg(growth=-1.0), TRIMMED, "growth must be"),
    *[(f"q={q}", partial(svrg, q=q), TRIMMED, "q must be") for q in (0, -0.5, 1.5, nan, True, "often")],
    *[
        (f"step={step}", partial(svrg, step=step), TRIMMED, "step must be")
        for step in (0, -1.0, nan, inf, True, "fast", "0.1", None, [0.1, 0.2])
    ],
    *[(f"sg step={step}", partial(sg, step=step), TRIMMED, "step must be") for step in (0, nan, "fast", "0.1", True)],
    *[
        (f"joint step={step}", partial(prox_gradient, step), TRIMMED, "step must be")
        for step in (0, -1, nan, "fast", "theory", True)
    ],
    *[
        (f"tau={tau}", partial(svrg, tau=tau), TRIMMED, "tau must be")
        for tau in (0, -1.0, nan, True, "large", "theory", None)
    ],
    ("tau theory", lambda: palm(step=0.1, tau="theory"), TRIMMED, "tau must be"),
    *[
        (f"momentum={m}", partial(svrg, momentum=m), TRIMMED, "momentum must be")
        for m in (-0.1, 1.0, 1.5, nan, True, "0.9")
    ],
    ("momentum nonconvex", lambda: svrg(momentum=0.5), ON_SPHERE, "momentum needs a convex r2"),
    ("momentum nonconvex fixed", lambda: saga(momentum=0.5, step=0.1), ON_SPHERE, "momentum needs a convex r2"),
    ("metric name", lambda: svrg(metric="newton"), TRIMMED, "metric must be one of"),
    ("metric number", lambda: svrg(metric=3), TRIMMED, "metric must be one of"),
    ("diagonal sphere", lambda: svrg(metric="diagonal"), ON_SPHERE, "metric='diagonal' needs a separable r2"),
    ("lbfgs L1", lambda: svrg(metric="lbfgs"), SPARSE, "metric='lbfgs' needs a smooth r2"),
    ("lbfgs sphere", lambda: svrg(metric="lbfgs"), ON_SPHERE, "metric='lbfgs' needs a smooth r2"),
    ("lbfgs saga", lambda: saga(metric="lbfgs"), TRIMMED, "metric='lbfgs'"),
    ("lbfgs palm", lambda: palm(metric="lbfgs"), TRIMMED, "metric='lbfgs'"),
    # PAGE's differences run from xᵏ⁻¹ to xᵏ, not from the snapshot: no secant of what L-BFGS takes them for.
    ("lbfgs page", lambda: page(metric="lbfgs"), TRIMMED, "metric='lbfgs'"),
    ("snapshot saga", lambda: saga(duals="snapshot"), TRIMMED, "duals='snapshot' cannot refresh"),
    ("snapshot palm", lambda: palm(duals="snapshot"), TRIMMED, "duals='snapshot' cannot refresh"),
    ("snapshot prox_saga", lambda: prox_saga(duals="snapshot"), ONES, "duals='snapshot' cannot refresh"),
    ("none saga", lambda: saga(duals="none"), TRIMMED, "duals='none' cannot refresh"),
    ("duals", lambda: svrg(duals="table"), TRIMMED, "duals must be one of"),
    ("duals saga", lambda: saga(duals="table"), TRIMMED, "duals must be one of"),
    ("duals number", lambda: svrg(duals=1), TRIMMED, "duals must be one of"),
    ("residuals of what has none", lambda: svrg(duals="residuals"), WAVY, "duals='residuals' needs"),
    ("diagonal of what has none", lambda: svrg(metric="diagonal"), WAVY, "metric='diagonal' needs"),
    ("saga without a table", saga, WAVY, "duals"),
    ("prox_saga trimmed", prox_saga, TRIMMED, r"r1 = AllOnes\(\)"),
    ("theory poisson", lambda: svrg(step="theory"), COUNTS, "L is infinite"),
    ("theory poisson saga", lambda: saga(step="theory", tau="theory"), COUNTS, "L is infinite"),
    ("output", lambda: svrg(output="mean"), TRIMMED, "output must be"),
    ("refresh", lambda: prox_saga(refresh="some"), ONES, "refresh must be"),
    ("restart", lambda: prox_svrg(restart=1), ONES, "restart must be"),
]


@pytest.mark.parametrize(("method", "problem", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_cannot_be_right_is_refused_before_any_work(
    method: Callable[[], Method], problem: Problem, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        method().bind(problem, 0)


def test_what_is_right_is_not_refused() -> None:
    for method in (svrg(b=1), svrg(b=N), svrg(q=0.999), svrg(step=np.float32(0.1)), svrg(step=1), svrg(momentum=0)):
        assert replace(method, finish=False).bind(TRIMMED, 0).problem is TRIMMED
        method.bind(TRIMMED, 0)
    svrg(metric="lbfgs").bind(TRIMMED, 0)
    svrg(momentum=0, metric="euclidean").bind(ON_SPHERE, 0)
    svrg(duals="gradients").bind(WAVY, 0)
    saga(duals="gradients").bind(WAVY, 0)
    svrg(tau=1).bind(TRIMMED, 0)
    for variant in (svrg, saga, page, palm, prox_svrg, prox_saga):
        variant(step=0.1).bind(ONES, 0)
