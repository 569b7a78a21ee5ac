"""Step sizes and counts of the paper's theorems: identities of the proofs, orders, and the inequality on real runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf, log, nan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimlearn.smart.draws import drawn
from trimlearn.smart.theory import (
    Rates,
    counts,
    estimate_mu,
    saga_theory,
    sample_t0,
    svrg_theory,
    theorem1,
    theorem2,
)
from trimlearn.weights import CappedSimplex

VARIANTS = [saga_theory, svrg_theory]
Preset = Callable[..., Rates]


def spread(rates: Rates, ell: float) -> float:
    """a' from γ = 1/(4a' + ℓ)."""
    return (1 / rates.gamma - ell) / 4


# ---- γ, η, τ ----


@pytest.mark.parametrize("theorem", [theorem1, theorem2])
def test_gamma_and_eta_are_the_printed_formulas(theorem: Preset) -> None:
    n, b, q, eps0 = 7, 3, 0.3, 0.2
    rng = np.random.default_rng(0)
    L, B, rho = rng.uniform(0.5, 3, n), rng.uniform(0.2, 1, n), rng.uniform(0, 0.9, n)
    stay = [0.7 * (1 - r) for r in rho]
    theta_sq = [(1 - sqrt(c)) ** 2 if theorem is theorem1 else sqrt(c) * (1 - c**0.25) ** 2 for c in stay]
    a = sqrt(sum(0.7 * 1.2 * (B[i] * L[i]) ** 2 / (2 * b * theta_sq[i]) for i in range(n)) / n)
    ell = sum(B * L) / n
    rates = theorem(n, b, L, B, rho, q=q, eps0=eps0)
    assert rates.gamma == pytest.approx(1 / (4 * a + ell), rel=1e-12)
    assert rates.eta == pytest.approx(2 + 4 * rates.gamma * (a + ell), rel=1e-12)
    assert rates.memory == pytest.approx(max(map(sqrt, stay)), rel=1e-12)
    assert rates.tau == pytest.approx(0.7 / 0.3 * rates.gamma / rates.eta, rel=1e-12)


def test_a_row_of_small_sample_weight_is_refreshed_seldom() -> None:
    """ρᵢ = 1 − (1 − sᵢ/S)^b in the printed formulas, with means over s; a row of weight 0 is no row."""
    n, b, q, eps0 = 5, 3, 0.2, 0.01
    s, L = np.array([0.01, 0.0, 2.0, 1.0, 5.0]), np.array([3.0, 100.0, 1.0, 2.0, 0.5])
    spread_sq, ell, S = 0.0, 0.0, sum(s)
    for share, Li in zip(s / S, L, strict=True):
        kept = (1 - share) ** b
        spread_sq += share * 0.8 * 1.01 * Li**2 / (2 * b * (1 - sqrt(0.8 * kept)) ** 2)
        ell += share * Li
    rates = theorem1(n, b, L, rho=drawn(n, b, s), q=q, eps0=eps0, s=s)
    assert rates.gamma == pytest.approx(1 / (4 * sqrt(spread_sq) + ell), rel=1e-12)
    assert rates.memory == pytest.approx(sqrt(0.8 * (1 - 0.01 / S) ** b), rel=1e-12)
    few = s > 0
    without = theorem1(4, b, L[few], rho=drawn(4, b, s[few]), q=q, eps0=eps0, s=s[few])
    assert (rates.gamma, rates.eta) == (without.gamma, without.eta)
    assert theorem1(n, b, L, rho=drawn(n, b, s), q=0.0, s=s).gamma > 0  # q = 0 (ProxSAGA): ρ = 0 only where s = 0


@given(
    st.sampled_from([theorem1, theorem2]),
    st.integers(2, 10**6),
    st.integers(1, 10**4),
    st.floats(1e-3, 1e3),
    st.floats(0, 0.95),
    st.floats(0.001, 0.95),
)
def test_the_identities_the_proofs_need(theorem: Preset, n: int, b: int, L: float, rho: float, q: float) -> None:
    rates = theorem(n, b, L, 1.0, rho, q=q)
    a_prime, gamma, eta = spread(rates, L), rates.gamma, rates.eta
    a = gamma * a_prime
    assert a_prime > 0
    assert 2 * a_prime + L / 2 == pytest.approx(1 / (2 * gamma))  # the αᵢ bound
    assert eta == pytest.approx(2 * (1 + 2 * a + 2 * gamma * L))  # the appendix's η: L, not 4L
    assert (eta - 1 - 2 * a) / (2 * gamma) - L == pytest.approx(eta / (4 * gamma))  # not η/(2γ)
    assert eta / gamma == pytest.approx(12 * a_prime + 6 * L)


@pytest.mark.parametrize("preset", VARIANTS)
@pytest.mark.parametrize("error_bound", [False, True])
def test_tau_balances_w_and_x(preset: Preset, error_bound: bool) -> None:
    rates = preset(500, 60, 3.0, error_bound=error_bound)
    assert rates.q * rates.tau / 2 == pytest.approx(rates.q_prime * rates.gamma / (2 * rates.eta), rel=1e-12)
    assert rates.decrease_w == pytest.approx(2 * rates.decrease_x, rel=1e-12)
    assert rates.decrease == rates.decrease_x == pytest.approx(rates.q_prime * rates.gamma / (4 * rates.eta))


def test_the_printed_taus() -> None:
    """Corollaries 1 and 3 print what the proof needs, (n−1)γ/η; 2 and 4 a value 1/q² = 1,571 times too small."""
    saga, svrg = saga_theory(60_000, 1533, 1.0), svrg_theory(60_000, 1533, 1.0)
    assert saga.tau == pytest.approx(59_999 * saga.gamma / saga.eta)
    printed = svrg.q * svrg.q_prime * svrg.gamma / svrg.eta
    assert svrg.tau / printed == pytest.approx(1571, abs=1)


def test_presets_are_the_corollaries() -> None:
    n, b, zeta = 50, 7, 1 - 1 / 50
    for error_bound, theorem in ((False, theorem1), (True, theorem2)):
        saga = saga_theory(n, b, 2.0, error_bound=error_bound)
        svrg = svrg_theory(n, b, 2.0, error_bound=error_bound)
        by_hand = theorem(n, b, 2.0, rho=1 - zeta**b, q=1 / n), theorem(n, b, 2.0, rho=0.0, q=1 - zeta**b)
        for found, expected in zip((saga, svrg), by_hand, strict=True):
            for name in ("q", "gamma", "eta", "tau", "memory"):
                assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10)
            assert found.error_bound is error_bound
    assert saga.memory == pytest.approx(zeta ** ((b + 1) / 2))
    assert svrg.memory == pytest.approx(zeta ** (b / 2))


@pytest.mark.parametrize("preset", VARIANTS)
def test_sanity_values_at_b_n_two_thirds(preset: Preset) -> None:
    """γL → 1/(1 + 4√2) = 0.150 (Theorem 1) and 1/(1 + 8√2) = 0.081 (Theorem 2) as ε₀ → 0 and n → ∞, both variants."""
    for error_bound, limit in ((False, 1 / (1 + 4 * sqrt(2))), (True, 1 / (1 + 8 * sqrt(2)))):
        large = preset(10**9, 10**6, 5.0, eps0=1e-9, error_bound=error_bound)
        mnist = preset(60_000, 1533, 5.0, error_bound=error_bound)
        assert 5 * large.gamma == pytest.approx(limit, rel=1e-3)
        assert 5 * mnist.gamma == pytest.approx(0.081 if error_bound else 0.15, rel=0.015)


@given(st.integers(10, 5000), st.integers(2, 200), st.floats(0.01, 0.6))
def test_monotone_where_it_must_be(n: int, b: int, q: float) -> None:
    base = theorem1(n, b, 1.0, q=q)
    assert theorem1(n, b + 1, 1.0, q=q).gamma > base.gamma  # more draws, less variance
    assert theorem1(n, b, 1.0, rho=0.5, q=q).gamma > base.gamma  # fresher duals
    assert theorem1(n, b, 1.0, q=q + 0.1).gamma > base.gamma
    assert theorem1(n, b, 1.0, q=q, eps0=0.5).gamma < base.gamma
    assert theorem1(n, b, 1.0, B=0.5, q=q).gamma == pytest.approx(2 * base.gamma)
    assert theorem2(n, b, 1.0, q=q).gamma < base.gamma


@pytest.mark.parametrize("preset", VARIANTS)
@pytest.mark.parametrize("error_bound", [False, True])
def test_steps_scale_as_one_over_L(preset: Preset, error_bound: bool) -> None:
    one, ten = preset(300, 20, 1.0, error_bound=error_bound), preset(300, 20, 10.0, error_bound=error_bound)
    assert ten.gamma == pytest.approx(one.gamma / 10, rel=1e-13)
    assert ten.tau == pytest.approx(one.tau / 10, rel=1e-13)
    assert ten.eta == pytest.approx(one.eta, rel=1e-13)


@pytest.mark.parametrize("preset", VARIANTS)
def test_gamma_over_eta_is_of_order_b_three_halves_over_n(preset: Preset) -> None:
    """γ/η = Ω(b^{3/2}/n): the ratio is bounded below, and flat where b is small against n^{2/3}."""
    ratio = {
        (n, b): (r := preset(n, b, 1.0)).gamma / r.eta / (b**1.5 / n)
        for n, b in product((10**6, 10**8), (4, 16, 64, 256))
    }
    values = np.array(list(ratio.values()))
    assert values.min() > 0.04
    assert values.max() / values.min() < 1.45  # (b + 1)/b at b = 4 is SAGA's share of it
    assert ratio[10**8, 64] == pytest.approx(ratio[10**8, 256], rel=0.02)


@pytest.mark.parametrize("preset", VARIANTS)
def test_per_example_constants(preset: Preset) -> None:
    rng = np.random.default_rng(1)
    L = rng.uniform(0.1, 2.0, 40)
    equal, mixed, worst = preset(40, 5, np.full(40, 1.7)), preset(40, 5, L), preset(40, 5, L.max())
    assert equal.gamma == pytest.approx(preset(40, 5, 1.7).gamma, rel=1e-13)
    assert mixed.gamma > worst.gamma
    assert mixed.gamma == pytest.approx(preset(40, 5, 1.0, B=L).gamma, rel=1e-13)
    rms, mean = sqrt(np.mean(L**2)), L.mean()
    unit = spread(preset(40, 5, 1.0), 1.0)
    assert mixed.gamma == pytest.approx(1 / (4 * unit * rms + mean), rel=1e-12)
    assert preset(40, 5, np.r_[L[:-1], 0.0]).gamma > mixed.gamma


def test_a_tiny_batch_of_a_huge_sample_keeps_its_digits() -> None:
    """1 − √(1 − 1/n) is 5e-13 at n = 10¹²; computed naively it has four digits left."""
    rates = svrg_theory(10**12, 1, 1.0, eps0=1e-12)
    assert spread(rates, 1.0) == pytest.approx(sqrt(0.5) * 2e12, rel=1e-9)


def test_refreshing_every_dual() -> None:
    rates = theorem1(10, 4, 1.0, rho=1.0, q=0.5, eps0=1e-9)
    assert spread(rates, 1.0) == pytest.approx(sqrt(0.5 / 8))  # θ = 1
    assert rates.memory == 0


# ---- the inequality itself ----


def soft(x: np.ndarray, t: float) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - t, 0)


TERMS: dict[str, tuple[Callable[[np.ndarray], float], Callable[[np.ndarray, float], np.ndarray]]] = {
    "zero": (lambda x: 0.0, lambda x, t: x),
    "l1": (lambda x: 0.3 * float(np.abs(x).sum()), lambda x, t: soft(x, 0.3 * t)),
    "sphere": (lambda x: 0.0, lambda x, t: x / np.linalg.norm(x)),  # not convex
}


class LeastSquares:
    """fᵢ(x) = ½(⟨aᵢ, x⟩ − tᵢ)² with a capped simplex and a term r2, written as the paper writes it."""

    def __init__(self, n: int, term: str, seed: int, s: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.s = np.ones(n) if s is None else s
        self.share = self.s / self.s.sum()
        self.n, self.A, self.t = n, rng.normal(size=(n, 2)), rng.normal(size=n) * 2
        self.L = (self.A**2).sum(1)
        self.r1, (self.r2, self.prox2) = CappedSimplex(0.7 * self.s.sum()), TERMS[term]

    def f(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * (self.A @ x - self.t) ** 2

    def grads(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return (w * (self.A @ x - self.t))[:, None] * self.A

    def F(self, w: np.ndarray, x: np.ndarray) -> float:
        return float(self.share @ (w * self.f(x))) + self.r2(x)

    def w_bar(self, w: np.ndarray, x: np.ndarray, tau: float) -> np.ndarray:
        return np.asarray(self.r1.prox(w - tau / self.s.sum() * self.f(x), self.s))

    def Y(self, rates: Rates, w: np.ndarray, x: np.ndarray) -> float:
        """The certified decrease at (w, x)."""
        step = rates.gamma / rates.eta
        x_bar = self.prox2(x - step * self.share @ self.grads(w, x), step)
        x_sq = np.sum(((x - x_bar) / step) ** 2)
        w_sq = self.s @ (((w - self.w_bar(w, x, rates.tau)) / rates.tau) ** 2)
        return float(rates.decrease_x * x_sq + rates.decrease_w * w_sq)


@pytest.mark.parametrize("s", [np.ones(4), np.array([0.02, 1.0, 3.0, 1.0])], ids=["equal", "sample weights"])
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("saga", [True, False])
def test_every_step_is_a_supermartingale_step(saga: bool, term: str, s: np.ndarray) -> None:
    """E[X_{k+1}] + Y_k ≤ X_k, X = F + 1/S Σ sᵢαᵢVᵢ, by enumeration of Iₖ and jₖ from arbitrary (w, x, y).

    With Dₖ = Iₖ the x-step and the refreshed duals depend on each other, as in the algorithm and not in the proof.
    """
    n, b, eps0 = 4, 2, 0.01
    problem = LeastSquares(n, term, seed=2, s=s)
    q, rho = (1 / n, drawn(n, b, s)) if saga else (float(drawn(n, b)), np.zeros(n))
    rates = theorem1(n, b, problem.L, rho=rho, q=q, eps0=eps0, s=s)
    a = rates.gamma * spread(rates, float(problem.share @ problem.L))
    alpha = rates.q_prime * rates.gamma * (1 + eps0) / (2 * a * b * (1 - np.sqrt(rates.q_prime * (1 - rho))))
    rng, steps = np.random.default_rng(3), []

    def lyapunov(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        return problem.F(w, x) + float(problem.share * alpha @ ((problem.grads(w, x) - y) ** 2).sum(1))

    for _ in range(40):
        w = problem.r1.prox(rng.normal(size=n), s)
        x, stale = (problem.prox2(rng.normal(size=2) * 3, 0.0) for _ in range(2))
        y = problem.grads(w, x + rng.choice([0, 0.1, 1]) * (stale - x))
        fresh, after = problem.grads(w, x), 0.0
        for draws in product(range(n), repeat=b):
            rows, new_y = list(draws), y.copy()
            g = (fresh[rows] - y[rows]).mean(0) + problem.share @ y
            if saga:
                new_y[rows] = fresh[rows]
            chance = float(np.prod(problem.share[rows]))
            after += chance * lyapunov(w, problem.prox2(x - rates.gamma * g, rates.gamma), new_y)
        w_step = problem.F(problem.w_bar(w, x, rates.tau), x)
        expected = rates.q * w_step + rates.q_prime * after
        drop, certified = lyapunov(w, x, y) - expected, problem.Y(rates, w, x)
        assert drop >= certified - 1e-12
        steps.append((drop, certified))
    drops, certified_drops = np.array(steps).T
    assert np.any(drops < 40 * certified_drops)  # the certificate is not vacuous: some step comes near it


def run_smart(
    problem: LeastSquares, rates: Rates, saga: bool, T: int, seed: int
) -> tuple[list[float], float, list[int]]:
    """Algorithm 1, naively: F at each iterate, Σ Y, and the evaluations of ∇f, f, prox r1, prox r2."""
    rng, n = np.random.default_rng(seed), problem.n
    w, x = problem.r1.start(n), np.zeros(2)
    y, F, Y, evaluations = problem.grads(w, x), [problem.F(w, x)], 0.0, np.array([n, 0, 0, 0])
    for _ in range(T):
        rows, w_step = rng.integers(n, size=rates.b), rng.random() < rates.q
        Y += problem.Y(rates, w, x)
        if w_step:
            w = problem.w_bar(w, x, rates.tau)
            y = problem.grads(w, x)
            evaluations += [n, n, 1, 0]
        else:
            fresh = problem.grads(w, x)
            g = (fresh[rows] - y[rows]).mean(0) + y.mean(0)
            if saga:
                y[rows] = fresh[rows]
            x = problem.prox2(x - rates.gamma * g, rates.gamma)
            evaluations += [rates.b, 0, 0, 1]
        F.append(problem.F(w, x))
    return F, Y, [int(k) for k in evaluations]


@pytest.mark.parametrize("preset", VARIANTS)
def test_runs_decrease_as_theorem_1_certifies(preset: Preset) -> None:
    """E[F_T] ≤ F_0 − Σ E[Y_t], and the average evaluations are those that `counts` predicts."""
    T, seeds, problem = 30, 200, LeastSquares(8, "zero", seed=4)
    rates = preset(8, 4, problem.L)
    runs = [run_smart(problem, rates, preset is saga_theory, T, seed) for seed in range(seeds)]
    F_0, F_T, Y = runs[0][0][0], np.mean([F[-1] for F, _, _ in runs]), np.mean([Y for _, Y, _ in runs])
    assert F_T <= F_0 - Y
    assert Y > 0.02 * F_0  # the certified part is a real share of the decrease

    predicted = counts(rates, gap=T * rates.decrease, epsilon=1.0)
    assert predicted.iterations in (T, T + 1)
    means = np.mean([e for _, _, e in runs], axis=0)
    columns = [predicted.gradients, predicted.functions, predicted.prox_r1, predicted.prox_r2]
    np.testing.assert_allclose(means, columns, rtol=0.1)


# ---- counts ----


def test_counts_add_up() -> None:
    rates = svrg_theory(1000, 100, 1.0)
    found = counts(rates, gap=2.0, epsilon=1e-3)
    assert found.iterations == pytest.approx(2.0 / (rates.decrease_x * 1e-3), abs=1)
    assert found.prox_r1 + found.prox_r2 == pytest.approx(found.iterations)
    assert found.prox_r1 == pytest.approx(found.iterations * rates.q)
    assert found.functions == pytest.approx(1000 * found.prox_r1)
    assert found.gradients == pytest.approx(1000 + found.functions + 100 * found.prox_r2)
    assert counts(rates, 2.0, 1e-4).iterations == pytest.approx(10 * found.iterations, rel=1e-3)


@pytest.mark.parametrize(
    ("preset", "orders"), [(saga_theory, (2 / 3, 0, -1, 0)), (svrg_theory, (2 / 3, 2 / 3, -1 / 3, 0))]
)
@pytest.mark.parametrize("mu", [None, 1e-3])
def test_orders_in_n_are_those_of_table_1(
    preset: Preset, orders: tuple[float, float, float, float], mu: float | None
) -> None:
    """At b = n^{2/3}: the exponents of n, gradients less the n of the start; SAGA's prox columns exchanged."""
    table = []
    for n in (10**6, 10**7, 10**8, 10**9):
        c = counts(preset(n, round(n ** (2 / 3)), 1.0, error_bound=mu is not None), 1.0, 1e-8, mu)
        table.append([c.gradients - n, c.functions, c.prox_r1, c.prox_r2])
    slopes = np.diff(np.log10(table), axis=0)
    np.testing.assert_allclose(slopes, np.tile(orders, (3, 1)), atol=0.02)


def test_linear_counts_follow_delta() -> None:
    rates = saga_theory(1000, 100, 1.0, error_bound=True)
    mu = 0.4
    drop = mu * min(rates.q_prime * rates.gamma / (4 * rates.eta), rates.q * rates.tau / 2)
    assert rates.delta(mu) == pytest.approx(max(1 - drop, rates.memory), rel=1e-13)
    assert rates.delta(mu) == pytest.approx(1 - drop, rel=1e-13)
    assert rates.delta(inf) == pytest.approx(rates.memory)  # never faster than stale duals fade
    fresh = replace(rates, memory=0.1)
    assert fresh.delta(0.7 / rates.decrease) == pytest.approx(0.3)
    assert fresh.delta(1.0 / rates.decrease) == pytest.approx(0.1)
    assert counts(rates, 1.0, 1e-6, mu).iterations == pytest.approx(log(1e6) / -log(1 - drop), abs=1)
    assert counts(rates, 1.0, 2.0, mu).iterations == 0
    assert counts(rates, 1.0, 1e-6, mu=1e-18).iterations > 1e18  # δ rounds to 1, its logarithm does not


def test_a_long_w_step_leaves_x_to_decide() -> None:
    rates = theorem2(100, 10, 1.0, q=0.1, tau=inf)
    assert rates.decrease == rates.decrease_x
    short = replace(rates, tau=1e-6)
    assert short.decrease == pytest.approx(0.1 * 1e-6 / 2)
    assert short.delta(1.0) == pytest.approx(1 - 5e-8, abs=1e-15)


# ---- t₀ and μ ----


def test_t0_is_uniform_on_0_to_T() -> None:
    rng = np.random.default_rng(5)
    times = np.bincount([sample_t0(4, rng) for _ in range(5000)], minlength=6)
    assert times[5] == 0
    np.testing.assert_allclose(times[:5], 1000, atol=120)
    assert sample_t0(0, rng) == 0
    for T in (-1, 2.5, True):
        with pytest.raises(ValueError, match="T must be"):
            sample_t0(T, rng)  # type: ignore[arg-type]


def test_mu_of_a_quadratic_is_found() -> None:
    """F = ½ Σ λⱼxⱼ², residual = gradient: ‖∇F‖² ≥ 2 λ_min (F − F*), met on the flattest axis."""
    curvature, x, records = np.array([0.3, 2.0, 5.0]), np.array([1.0, 1.0, 1.0]), []
    for _ in range(400):
        records.append((0.5 * curvature @ x**2, np.sum((curvature * x) ** 2), 0.0))
        x = x - 0.15 * curvature * x
    F, x_sq, w_sq = np.array(records).T
    assert estimate_mu(F, x_sq, w_sq, f_star=0.0) == pytest.approx(0.6, rel=1e-6)
    assert estimate_mu(F, x_sq, w_sq) >= 0.6 - 1e-9
    assert estimate_mu(F[:20], x_sq[:20], w_sq[:20]) > 0.6


def test_mu_is_not_misled_by_records_at_the_optimum() -> None:
    assert estimate_mu([3.0, 1.0, 1.0, 1.0 + 1e-15], [4.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]) == 3.0
    F, x_sq = 1e20 * np.array([3.0, 1.0, 1.0, 1.0 + 1e-15]), 1e20 * np.array([4.0, 0.0, 0.0, 0.0])
    assert estimate_mu(F, x_sq, x_sq / 2) == pytest.approx(3.0)  # what counts as the optimum is a share of F
    assert estimate_mu([1.0, 1.0], [0.0, 0.0], [0.0, 0.0]) == inf
    assert estimate_mu([inf, 3.0, 1.0, nan], [1.0, 2.0, 0.0, 1.0], [nan, 2.0, 0.0, 1.0]) == 2.0
    assert estimate_mu([nan], [1.0], [1.0]) == inf
    with pytest.raises(ValueError, match="equally long"):
        estimate_mu([1.0, 2.0], [1.0], [1.0, 2.0])


# ---- bad input ----


@pytest.mark.parametrize("theorem", [theorem1, theorem2])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 0.0}, "q must be"),
        ({"q": 1.0}, "q must be"),
        ({"q": nan}, "q must be"),
        ({"q": True}, "q must be"),
        ({"b": 0}, "b must be"),
        ({"b": 2.5}, "b must be"),
        ({"n": 1}, "n must be"),
        ({"n": True}, "n must be"),
        ({"eps0": 0.0}, "eps0 must be"),
        ({"eps0": 1.0}, "eps0 must be"),
        ({"L": -1.0}, "L must be"),
        ({"L": nan}, "L must be"),
        ({"L": np.ones(3)}, "L must be a number or one per example"),
        ({"L": 0.0}, "constant"),
        ({"B": -0.1}, "B must be"),
        ({"rho": 1.1}, "rho must be"),
        ({"rho": -0.1}, "rho must be"),
        ({"tau": 0.0}, "tau must be"),
        ({"tau": nan}, "tau must be"),
    ],
)
def test_arguments_that_cannot_be(theorem: Preset, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        theorem(**{"n": 10, "b": 2, "L": 1.0, "q": 0.1} | change)


@pytest.mark.parametrize("preset", VARIANTS)
def test_no_global_lipschitz_constant(preset: Preset) -> None:
    for L in (inf, np.r_[1.0, inf, np.ones(8)]):
        with pytest.raises(ValueError, match=r'Poisson and gamma .* use step="auto"'):
            preset(10, 2, L)
    for n, b in ((1, 1), (10, 0)):
        with pytest.raises(ValueError, match="must be an integer"):
            preset(n, b, 1.0)


def test_what_a_theorem_does_not_say() -> None:
    with pytest.raises(ValueError, match="rho must be < 1"):
        theorem2(10, 2, 1.0, rho=1.0, q=0.1)
    rates = saga_theory(10, 2, 1.0)
    with pytest.raises(ValueError, match="Theorem 2"):
        rates.delta(0.1)
    with pytest.raises(ValueError, match="Theorem 2"):
        counts(rates, 1.0, 0.1, mu=0.1)
    for mu in (0.0, -1.0, nan):
        with pytest.raises(ValueError, match="mu must be"):
            saga_theory(10, 2, 1.0, error_bound=True).delta(mu)
    for gap, epsilon in ((0.0, 1.0), (1.0, 0.0), (inf, 1.0), (1.0, nan)):
        with pytest.raises(ValueError, match="must be a finite number > 0"):
            counts(rates, gap, epsilon)
