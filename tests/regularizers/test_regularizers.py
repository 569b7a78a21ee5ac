"""Every prox against a naive twin, and against random candidates it must beat."""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
import pkgutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, optimize

import trimlearn.regularizers
from trimlearn._utils.arrays import to_numpy
from trimlearn.regularizers import (
    L0,
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    ExceptIntercept,
    GroupL2,
    Indicator,
    NonNegative,
    Rank,
    Ridge,
    Scaled,
    Separable,
    Simplex,
    Sphere,
    Stiefel,
    Zero,
)
from trimlearn.regularizers.separable import as_elastic_net

LABELS = [2, 0, 2, 1, 0, 2]
PER_COORDINATE = np.array([0.0, 0.3, 1.0, 2.0, 0.7, 0.1])
# name: (term, shape of the x it is tried on)
TERMS = {
    "zero": (Zero(), (6,)),
    "ridge": (Ridge(0.7), (6,)),
    "ridge per coordinate": (Ridge(PER_COORDINATE), (6,)),
    "l1": (L1(0.7), (3, 2)),
    "l1 per coordinate": (L1(PER_COORDINATE), (6,)),
    "elastic net": (ElasticNet(0.8, l1_ratio=0.3), (6,)),
    "elastic net per coordinate": (ElasticNet(PER_COORDINATE, l1_ratio=0.6), (6,)),
    "group rows": (GroupL2(0.9), (4, 3)),
    "group labels": (GroupL2(0.9, groups=LABELS), (6,)),
    "group labels, matrix": (GroupL2(0.9, groups=LABELS), (6, 2)),
    "l0 penalty": (L0(alpha=0.4), (6,)),
    "l0 penalty per coordinate": (L0(alpha=PER_COORDINATE), (6,)),
    "l0 ball": (L0(k=2), (6,)),
    "l0 ball, matrix": (L0(k=3), (3, 2)),
    "scad": (SCAD(0.5), (6,)),
    "scad per coordinate": (SCAD(PER_COORDINATE, a=2.5), (6,)),
    "mcp": (MCP(0.5), (6,)),
    "mcp per coordinate": (MCP(PER_COORDINATE, b=1.5), (6,)),
    "box": (Box(-0.5, 1.0), (3, 2)),
    "box per coordinate": (Box([-np.inf, 0.0, 1.0, -1.0, -2.0, 0.2], [0.0, np.inf, 1.0, 2.0, -1.0, 0.3]), (6,)),
    "nonnegative": (NonNegative(), (6,)),
    "simplex": (Simplex(), (6,)),
    "simplex, matrix": (Simplex(total=2.5), (3, 2)),
    "sphere": (Sphere(), (6,)),
    "sphere, matrix": (Sphere(radius=3.0), (3, 2)),
    "stiefel": (Stiefel(), (5, 2)),
    "stiefel, square": (Stiefel(), (3, 3)),
    "rank": (Rank(2), (4, 3)),
    "rank one": (Rank(1), (2, 5)),
    "except intercept": (ExceptIntercept(L1(0.7)), (4, 2)),
    "except intercept, scad": (ExceptIntercept(SCAD(0.7)), (5,)),
    "except intercept, simplex": (ExceptIntercept(Simplex()), (5,)),
    "scaled, scad": (Scaled(SCAD(0.7), 0.3), (5,)),
    "scaled, ridge": (Scaled(Ridge(0.7), 2.0), (5,)),
    "except intercept, ridge": (ExceptIntercept(Ridge(0.7)), (4, 2)),
    "except intercept, l0 ball": (ExceptIntercept(L0(k=2)), (5,)),
}
SEPARABLE = [name for name, (term, _) in TERMS.items() if term.separable]
COUPLED = [name for name, (term, _) in TERMS.items() if not term.separable]
CONVEX = [name for name, (term, _) in TERMS.items() if term.convex]
SMOOTH = [name for name, (term, _) in TERMS.items() if term.smooth]
SETS = [name for name, (term, _) in TERMS.items() if isinstance(term, Indicator) or name == "l0 ball"]

all_terms = pytest.mark.parametrize("name", TERMS)
seeds = st.integers(0, 2**32 - 1)
steps = st.floats(0.01, 20.0)
few = settings(max_examples=15, deadline=None)
many = settings(max_examples=150, deadline=None)


def draw(shape, seed, scale=2.0):
    return scale * np.random.default_rng(seed).standard_normal(shape)


def prox_objective(term, u, x, gamma):
    return term.value(u) + float(np.sum((u - x) ** 2 / (2 * gamma)))


# --- one-dimensional twins: the penalty as the paper that introduced it prints it ---------------------------------


def l1_1d(t, alpha):
    return alpha * t


def ridge_1d(t, alpha):
    return alpha * t**2 / 2


def elastic_net_1d(t, alpha, l1_ratio):
    return alpha * l1_ratio * t + alpha * (1 - l1_ratio) / 2 * t**2


def l0_1d(t, alpha):
    return alpha * (t > 0)


def scad_slope(t, alpha, a):
    """Fan and Li define SCAD by its derivative."""
    return alpha if t <= alpha else max(a * alpha - t, 0) / (a - 1)


def mcp_slope(t, alpha, b):
    """Zhang too: the integral of (λ − s/b)₊."""
    return max(alpha - t / b, 0)


def integral(slope, t):
    """∫₀ᵗ slope, on a grid fine enough for a piecewise linear integrand: the midpoint rule errs only at the kinks."""
    s = (np.arange(4000) + 0.5) * t / 4000
    return sum(slope(si) for si in s) * t / 4000


def scad_1d(t, alpha, a):
    t = np.asarray(t)
    middle = alpha**2 + ((a * alpha - alpha) ** 2 - (a * alpha - np.minimum(t, a * alpha)) ** 2) / (2 * (a - 1))
    return np.where(t <= alpha, alpha * t, middle)


def mcp_1d(t, alpha, b):
    s = np.minimum(t, b * alpha)
    return alpha * s - s**2 / (2 * b)


PENALTIES_1D = {
    "ridge": (lambda alpha, c: Ridge(alpha), lambda t, alpha, c: ridge_1d(t, alpha)),
    "l1": (lambda alpha, c: L1(alpha), lambda t, alpha, c: l1_1d(t, alpha)),
    "elastic net": (lambda alpha, c: ElasticNet(alpha, c), lambda t, alpha, c: elastic_net_1d(t, alpha, c)),
    "l0": (lambda alpha, c: L0(alpha), lambda t, alpha, c: l0_1d(t, alpha)),
    "scad": (lambda alpha, c: SCAD(alpha, 2.05 + 3 * c), lambda t, alpha, c: scad_1d(t, alpha, 2.05 + 3 * c)),
    "mcp": (lambda alpha, c: MCP(alpha, 1.05 + 3 * c), lambda t, alpha, c: mcp_1d(t, alpha, 1.05 + 3 * c)),
}


@pytest.mark.parametrize(("alpha", "shape"), [(0.7, 2.5), (1.3, 3.7), (0.2, 5.0)])
def test_scad_and_mcp_integrate_their_defining_slopes(alpha, shape):
    for t in [0.1, 0.5, 1.0, 2.0, 4.0, 9.0]:
        want = integral(lambda s: scad_slope(s, alpha, shape), t)
        assert SCAD(alpha, shape).value(np.array([t])) == pytest.approx(want, rel=1e-5)
        want = integral(lambda s: mcp_slope(s, alpha, shape), t)
        assert MCP(alpha, shape).value(np.array([-t])) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("kind", PENALTIES_1D)
@given(x=st.floats(-8, 8), gamma=steps, alpha=st.floats(0, 3), shape=st.floats(0, 1))
@many
def test_penalty_against_a_grid(kind, x, gamma, alpha, shape):
    make, rho = PENALTIES_1D[kind]
    u, value = make(alpha, shape).prox(np.array([x]), gamma)
    assert value == pytest.approx(float(rho(np.abs(u[0]), alpha, shape)), abs=1e-12)
    grid = np.concatenate([np.linspace(-abs(x) - 1, abs(x) + 1, 4001), [0.0, x]])
    best = np.min(rho(np.abs(grid), alpha, shape) + (grid - x) ** 2 / (2 * gamma))
    got = float(rho(np.abs(u[0]), alpha, shape)) + (u[0] - x) ** 2 / (2 * gamma)
    assert got <= best + 1e-12 * (1 + best)


@pytest.mark.parametrize("kind", ["scad", "mcp"])
@given(x=st.floats(0, 8), fraction=st.floats(0.01, 0.98), alpha=st.floats(0.01, 3), shape=st.floats(0, 1))
@many
def test_folded_prox_solves_its_stationarity_equation(kind, x, fraction, alpha, shape):
    """Below max_step the equation u + γρ′(u) = x has one root; bisection finds it to full precision."""
    term = PENALTIES_1D[kind][0](alpha, shape)
    slope, c = (scad_slope, term.a) if kind == "scad" else (mcp_slope, term.b)
    gamma = fraction * term.max_step
    want = 0.0
    if x > gamma * alpha:
        want = optimize.brentq(lambda u: u + gamma * slope(u, alpha, c) - x, 0, x, xtol=1e-15, rtol=1e-15)
    u, _ = term.prox(np.array([x, -x]), gamma)
    np.testing.assert_allclose(u, [want, -want], atol=1e-11)


@pytest.mark.parametrize("term", [SCAD(0.8, a=3.0), MCP(0.8, b=2.0)])
def test_folded_prox_is_continuous_below_max_step_and_jumps_above(term):
    x = np.linspace(0, 6, 60001)
    below, _ = term.prox(x, 0.9 * term.max_step)
    above, _ = term.prox(x, 1.1 * term.max_step)
    assert np.max(np.diff(below)) <= 1e-4 / (1 - 0.9) * (1 + 1e-6)
    assert np.max(np.diff(above)) > 0.5


@pytest.mark.parametrize("kind", ["scad", "mcp"])
@pytest.mark.parametrize("beyond", [0.0, 1e-9, 0.3, 1.0, 1.9, 2.1, 3.0, 10.0])
def test_folded_prox_jumps_exactly_where_two_minimisers_tie(kind, beyond):
    """From max_step on, u is soft-thresholded (SCAD) or zero (MCP), or x itself, whichever costs less."""
    alpha, shape = 0.9, 0.4
    make, rho = PENALTIES_1D[kind]
    gamma = make(alpha, shape).max_step + beyond
    x = np.linspace(0, 10, 100_001)
    small = np.clip(x - gamma * alpha, 0, alpha) if kind == "scad" else np.zeros_like(x)
    cost_small = rho(small, alpha, shape) + (small - x) ** 2 / (2 * gamma)
    cost_free = rho(x, alpha, shape)
    u, _ = make(alpha, shape).prox(x, gamma)
    clear = np.abs(cost_small - cost_free) > 1e-12
    np.testing.assert_allclose(u[clear], np.where(cost_small < cost_free, small, x)[clear], atol=1e-14)


@pytest.mark.parametrize("term", [SCAD(0.8, a=3.0), MCP(0.8, b=2.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [-1e-7, -1e-15, 0.0, 1e-15, 1e-7])
def test_folded_prox_next_to_max_step(term, dtype, offset):
    """Where the curved piece is almost flat the division by 1 − γ/b is ill-conditioned, the objective must not be."""
    x = np.linspace(-4, 4, 1001).astype(dtype)
    gamma = term.max_step + offset
    u, _ = term.prox(x, gamma)
    x, u = x.astype(float), u.astype(float)
    grid = np.concatenate([np.linspace(-4, 4, 2001), [0.0]])
    best = np.min(term._penalty(grid) + (grid - x[:, None]) ** 2 / (2 * gamma), axis=1)
    got = term._penalty(u) + (u - x) ** 2 / (2 * gamma)
    assert np.all(got <= best + 20 * np.finfo(dtype).eps)


# --- twins for the terms that couple coordinates, and for the sets -------------------------------------------------


def nearest(candidates, x):
    return min(candidates, key=lambda u: float(np.sum((u - x) ** 2)))


def on_support(x, support):
    u = np.zeros_like(x)
    u[list(support)] = x[list(support)]
    return u


@given(seed=seeds, k=st.integers(1, 7))
@many
def test_l0_ball_against_all_subsets(seed, k):
    x = draw(6, seed)
    subsets = itertools.combinations(range(6), min(k, 6))
    u, value = L0(k=k).prox(x, 1.0)
    np.testing.assert_array_equal(u, nearest([on_support(x, s) for s in subsets], x))
    assert value == 0.0


def test_l0_ball_keeps_the_first_of_equal_entries():
    x = np.array([[1.0, -2.0], [2.0, -1.0], [2.0, 1.0]])
    np.testing.assert_array_equal(L0(k=2).prox(x, 1.0)[0], [[0, -2], [2, 0], [0, 0]])
    np.testing.assert_array_equal(L0(k=4).prox(x, 1.0)[0], [[1, -2], [2, 0], [2, 0]])
    t = torch.asarray(x)
    assert L0(k=2).prox(t, 1.0)[0].tolist() == [[0, -2], [2, 0], [0, 0]]
    np.testing.assert_array_equal(L0(k=2).prox(np.array([0.0, 3.0, 0.0]), 1.0)[0], [0, 3, 0])


def simplex_by_active_sets(x, total):
    candidates = []
    for size in range(1, len(x) + 1):
        for support in map(list, itertools.combinations(range(len(x)), size)):
            u = np.zeros_like(x)
            u[support] = x[support] - (x[support].sum() - total) / size
            if np.all(u >= 0):
                candidates.append(u)
    return nearest(candidates, x)


@given(seed=seeds, total=st.floats(0.05, 10), scale=st.floats(0.1, 10))
@many
def test_simplex_against_all_active_sets(seed, total, scale):
    x = draw(5, seed, scale)
    u, _ = Simplex(total).prox(x, 1.0)
    np.testing.assert_allclose(u, simplex_by_active_sets(x, total), atol=1e-12 * (scale + total))


def test_simplex_is_exact_far_away_and_in_float32():
    x = np.array([0.3, 0.1, -0.2, 0.25])
    u, _ = Simplex().prox(x + 2.0**30, 1.0)
    np.testing.assert_allclose(u, Simplex().prox(x, 1.0)[0], atol=1e-6)
    u, _ = Simplex().prox(np.full(100_000, 1e4, dtype=np.float32), 1.0)
    np.testing.assert_allclose(u, 1e-5, rtol=1e-6)
    assert Simplex().value(u) == 0.0
    np.testing.assert_array_equal(Simplex(3.0).prox(np.array([1e300, 0.0, -1e300]), 1.0)[0], [3, 0, 0])


@pytest.mark.parametrize(("groups", "shape"), [(LABELS, (6,)), (LABELS, (6, 2)), (None, (6, 3)), ([*"abbbca"], (6,))])
@given(seed=seeds, gamma=steps, alpha=st.floats(0, 3))
@few
def test_group_prox_satisfies_the_optimality_conditions(groups, shape, seed, gamma, alpha):
    """0 ∈ α∂‖u_g‖ + (u_g − x_g)/γ, group by group: sufficient, since the problem is convex."""
    x = draw(shape, seed)
    u, value = GroupL2(alpha, groups).prox(x, gamma)
    labels = np.arange(6) if groups is None else np.array(groups)
    for label in np.unique(labels):
        xg, ug = x[labels == label], u[labels == label]
        if np.any(ug != 0):
            np.testing.assert_allclose(xg - ug, gamma * alpha * ug / linalg.norm(ug), atol=1e-10)
        else:
            assert linalg.norm(xg) <= gamma * alpha * (1 + 1e-12)
    assert value == pytest.approx(alpha * sum(linalg.norm(u[labels == label]) for label in np.unique(labels)))


def test_group_of_single_entries_is_l1():
    x = draw(6, 0)
    u, value = GroupL2(0.5, groups=range(6)).prox(x, 1.3)
    want, want_value = L1(0.5).prox(x, 1.3)
    np.testing.assert_allclose(u, want, atol=1e-14)
    assert value == pytest.approx(want_value)


@given(seed=seeds)
@many
def test_box_against_the_three_candidates(seed):
    term = TERMS["box per coordinate"][0]
    x = draw(6, seed)
    u, _ = term.prox(x, 1.0)
    for xj, uj, low, high in zip(x, u, term.lower, term.upper, strict=True):
        assert uj == nearest([c for c in (xj, low, high) if low <= c <= high], xj)


@given(seed=seeds)
@few
def test_box_and_nonnegative_against_scipy(seed):
    x = draw(6, seed)
    want = optimize.lsq_linear(np.eye(6), x, bounds=(-0.5, 1.0), tol=1e-14).x
    np.testing.assert_allclose(Box(-0.5, 1.0).prox(x, 1.0)[0], want, atol=1e-8)
    np.testing.assert_allclose(NonNegative().prox(x, 1.0)[0], optimize.nnls(np.eye(6), x)[0], atol=1e-12)


@given(seed=seeds, radius=st.floats(0.1, 10))
@few
def test_sphere_against_all_angles(seed, radius):
    x = draw(2, seed)
    angles = np.linspace(0, 2 * np.pi, 200_001)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    want = circle[np.argmin(np.sum((circle - x) ** 2, axis=1))]
    np.testing.assert_allclose(Sphere(radius).prox(x, 1.0)[0], want, atol=1e-4 * radius)


def test_sphere_from_zero_and_at_extreme_scales():
    u, _ = Sphere(2.0).prox(np.zeros((2, 2)), 1.0)
    np.testing.assert_array_equal(u, [[2, 0], [0, 0]])
    assert Sphere(2.0).prox(torch.zeros(3), 1.0)[0].tolist() == [2, 0, 0]
    for scale in [1e-320, 1e-200, 1e200]:
        np.testing.assert_allclose(Sphere().prox(scale * np.array([1.0, 1.0]), 1.0)[0], math.sqrt(0.5))


@given(seed=seeds)
@few
def test_stiefel_against_all_rotations_and_reflections(seed):
    x = draw((2, 2), seed)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    c, s = np.cos(angles), np.sin(angles)
    rotations = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], 1)
    everything = np.concatenate([rotations, rotations * [1, -1]])
    best = np.min(np.sum((everything - x) ** 2, axis=(1, 2)))
    u, _ = Stiefel().prox(x, 1.0)
    assert best - 1e-5 <= np.sum((u - x) ** 2) <= best + 1e-12


@given(seed=seeds)
@few
def test_stiefel_against_newton_iteration(seed):
    """The polar factor is the limit of y ← (y + y⁻ᵀ)/2 on the square factor of x = QR."""
    x = draw((6, 3), seed)
    q, y = linalg.qr(x, mode="economic")
    for _ in range(60):
        y = (y + linalg.inv(y).T) / 2
    np.testing.assert_allclose(Stiefel().prox(x, 1.0)[0], q @ y, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stiefel_stays_orthonormal_when_x_is_nearly_or_exactly_singular(dtype):
    eps = np.finfo(dtype).eps
    for matrix in [np.zeros((5, 3)), np.outer(np.arange(5), np.ones(3)), np.diag([1, 1e-6, 1e-12])]:
        x = matrix.astype(dtype)
        u, _ = Stiefel().prox(x, 1.0)
        np.testing.assert_allclose(u.T @ u, np.eye(3), atol=20 * eps)


@given(seed=seeds, k=st.integers(1, 4))
@few
def test_rank_against_the_eigenvalues_it_drops(seed, k):
    """Eckart–Young: the squared distance to rank k is the sum of the smallest eigenvalues of xᵀx."""
    x = draw((5, 4), seed)
    u, _ = Rank(k).prox(x, 1.0)
    dropped = np.sum(np.sort(linalg.eigvalsh(x.T @ x))[: 4 - k])
    assert np.sum((u - x) ** 2) == pytest.approx(dropped, abs=1e-10)
    assert np.linalg.matrix_rank(u, tol=1e-10) == k


# --- what holds for every term -------------------------------------------------------------------------------------


def candidates(term, x, u, rng):
    """Near u and far from it, all in the domain."""
    yield term.feasible(np.zeros_like(x))
    yield term.feasible(x)
    yield term.feasible(rng.permutation(u.ravel()).reshape(u.shape))
    for scale in [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0, 10.0]:
        for _ in range(4):
            noise = scale * rng.standard_normal(x.shape)
            keep = rng.random(x.shape) < rng.random()
            yield term.feasible(u + noise)
            yield term.feasible(u + noise * keep)
            yield term.feasible(u * keep)


@all_terms
@given(seed=seeds, gamma=steps)
@few
def test_no_candidate_beats_the_prox(name, seed, gamma):
    term, shape = TERMS[name]
    x = draw(shape, seed)
    u, _ = term.prox(x, gamma)
    best = prox_objective(term, u, x, gamma)
    assert math.isfinite(best)
    for candidate in candidates(term, x, u, np.random.default_rng(seed)):
        assert best <= prox_objective(term, candidate, x, gamma) + 1e-12 * (1 + best)


@all_terms
@given(seed=seeds, gamma=steps)
@few
def test_returned_value_is_the_value_there_and_x_is_untouched(name, seed, gamma):
    term, shape = TERMS[name]
    x = draw(shape, seed)
    before = x.copy()
    u, value = term.prox(x, gamma)
    assert type(value) is float
    assert value == term.value(u)
    assert u.shape == x.shape
    np.testing.assert_array_equal(x, before)


@all_terms
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_gives_what_numpy_gives_in_the_dtype_of_x(name, dtype):
    term, shape = TERMS[name]
    for seed, gamma in enumerate([0.1, np.float64(0.5), 3.0, 9.0]):
        x = draw(shape, seed).astype(dtype)
        t = torch.asarray(x)
        u, value = term.prox(x, gamma)
        v, torch_value = term.prox(t, gamma)
        tolerance = 20 * float(np.finfo(dtype).eps)
        assert isinstance(v, torch.Tensor)
        assert str(u.dtype) == dtype == str(v.dtype).removeprefix("torch.")
        np.testing.assert_allclose(to_numpy(v), u, rtol=tolerance, atol=tolerance)
        assert type(torch_value) is float
        assert torch_value == pytest.approx(value, rel=tolerance, abs=tolerance)
        assert term.feasible(t).dtype == t.dtype
        assert term.value(term.feasible(t)) == pytest.approx(term.value(term.feasible(x)), rel=10 * tolerance)
        wide, _ = term.prox(x.astype(np.float64), gamma)
        np.testing.assert_allclose(u, wide, atol=100 * tolerance)


@pytest.mark.parametrize(
    "term",
    [
        SCAD(np.float64(1), np.float64(3)),
        MCP(np.float64(1), np.float64(2)),
        ElasticNet(np.float64(1), np.float64(0.5)),
        Sphere(np.float64(2)),
        Simplex(np.float64(2)),
        L0(alpha=np.float64(1)),
        GroupL2(np.float64(1), np.arange(3)),
        Box(np.float64(0), np.float64(1)),
        Ridge(torch.ones(3)),
        L1(torch.tensor(0.5)),
    ],
)
def test_parameters_of_another_type_do_not_change_the_dtype(term):
    x = np.array([1.0, -2.0, 5.0], dtype=np.float32)
    for gamma in [np.float64(0.5), 0.5, np.float64(50.0), torch.tensor(0.5, dtype=torch.float64)]:
        assert term.prox(x, gamma)[0].dtype == np.float32
        assert term.prox(torch.asarray(x), gamma)[0].dtype == torch.float32


@pytest.mark.parametrize("name", SEPARABLE)
@pytest.mark.parametrize("as_array", [np.asarray, torch.asarray])
def test_array_gamma_is_the_prox_coordinate_by_coordinate(name, as_array):
    term, shape = TERMS[name]
    for seed in range(5):
        x = draw(shape, seed)
        gamma = np.exp(draw(shape, seed + 100, scale=1.0))
        u, value = term.prox(as_array(x), as_array(gamma))
        u = to_numpy(u)
        for j in np.ndindex(*shape):
            np.testing.assert_allclose(u[j], term.prox(x, float(gamma[j]))[0][j], rtol=1e-14)
        assert value == pytest.approx(term.value(u), rel=1e-14)
        same, _ = term.prox(as_array(x), as_array(np.full(shape, 0.3)))
        np.testing.assert_array_equal(to_numpy(same), term.prox(x, 0.3)[0])


def test_gamma_per_row_and_per_column_broadcast():
    x = draw((3, 2), 0)
    rows, columns = np.array([[0.1], [0.5], [2.0]]), np.array([0.2, 0.9])
    for term in [L1(0.7), ExceptIntercept(L1(0.7)), SCAD(0.7), L0(alpha=0.7), ExceptIntercept(MCP(0.7))]:
        for gamma in [rows, columns]:
            full = np.broadcast_to(gamma, x.shape)
            np.testing.assert_array_equal(term.prox(x, gamma)[0], term.prox(x, full)[0])


@pytest.mark.parametrize("make", [Ridge, L1, ElasticNet, SCAD, MCP, lambda alpha: L0(alpha=alpha)])
def test_array_alpha_is_one_scalar_alpha_per_coordinate(make):
    x = draw(6, 3)
    for gamma in [0.3, 8.0]:
        u, value = make(PER_COORDINATE).prox(x, gamma)
        parts = [make(alpha).prox(x[j : j + 1], gamma) for j, alpha in enumerate(PER_COORDINATE)]
        np.testing.assert_allclose(u, np.concatenate([part[0] for part in parts]), rtol=1e-15)
        assert value == pytest.approx(sum(part[1] for part in parts), rel=1e-14)
        assert u[0] == x[0]  # alpha = 0 leaves the coordinate free


@pytest.mark.parametrize("name", SETS)
@given(seed=seeds)
@few
def test_projections_are_feasible_idempotent_and_ignore_gamma(name, seed):
    term, shape = TERMS[name]
    x = draw(shape, seed)
    u, value = term.prox(x, 0.1)
    assert value == 0.0 == term.value(u)
    np.testing.assert_allclose(term.prox(u, 0.1)[0], u, atol=1e-14)
    np.testing.assert_array_equal(term.prox(x, 10.0)[0], u)
    np.testing.assert_array_equal(term.feasible(x), u)
    for dtype in [np.float32, np.float64]:
        assert term.value(term.feasible(x.astype(dtype))) == 0.0


OUTSIDE = {
    "box": np.full((3, 2), 1.001),
    "box per coordinate": np.array([0.0, 0.0, 1.001, 0.0, -1.5, 0.25]),
    "nonnegative": np.array([-1e-3, 1, 1, 1, 1, 1]),
    "simplex": np.array([1.001, 0, 0, 0, 0, 0]),
    "simplex, matrix": np.array([[2.6, -0.1], [0, 0], [0, 0]]),
    "sphere": np.array([0.999, 0, 0, 0, 0, 0]),
    "sphere, matrix": np.ones((3, 2)),
    "stiefel": np.eye(5, 2) + 1e-3,
    "stiefel, square": 1.001 * np.eye(3),
    "rank": np.eye(4, 3) * [1, 1, 1e-3],
    "rank one": np.eye(2, 5) * [1, 1e-3, 0, 0, 0],
    "l0 ball": np.array([1.0, 1.0, 1e-300, 0, 0, 0]),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("as_array", [np.asarray, torch.asarray])
def test_sets_are_infinite_outside_and_forgive_rounding(name, as_array):
    term, shape = TERMS[name]
    assert term.value(as_array(OUTSIDE[name])) == math.inf
    u = term.feasible(draw(shape, 0))
    assert term.value(as_array(u * (1 + 1e-13))) == 0.0


def test_every_set_has_a_point_outside():
    assert set(OUTSIDE) == set(SETS)


@pytest.mark.parametrize("name", CONVEX)
@given(seed=seeds, gamma=steps)
@few
def test_prox_of_a_convex_term_is_nonexpansive(name, seed, gamma):
    term, shape = TERMS[name]
    x, y = draw(shape, seed), draw(shape, seed + 1)
    u, v = term.prox(x, gamma)[0], term.prox(y, gamma)[0]
    assert np.sum((u - v) ** 2) <= np.sum((u - v) * (x - y)) + 1e-12  # firmly so


@all_terms
def test_penalties_are_finite_everywhere_and_sets_are_not(name):
    term, shape = TERMS[name]
    x = draw(shape, 7)
    inner = term.r2 if isinstance(term, (ExceptIntercept, Scaled)) else term
    finite = isinstance(inner, (Separable, GroupL2)) or (isinstance(inner, L0) and inner.k is None)
    assert math.isfinite(term.value(x)) == finite
    assert np.array_equal(term.feasible(x), x) == finite


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("as_array", [np.asarray, torch.asarray])
def test_gradient_by_finite_differences(name, as_array):
    term, shape = TERMS[name]
    x = draw(shape, 1)
    gradient = to_numpy(term.gradient(as_array(x)))
    for j in np.ndindex(*shape):
        e = np.zeros(shape)
        e[j] = 1e-3
        assert gradient[j] == pytest.approx((term.value(x + e) - term.value(x - e)) / 2e-3, abs=1e-9)


@pytest.mark.parametrize("name", SMOOTH)
def test_prox_and_curvature_agree_with_the_gradient(name):
    term, shape = TERMS[name]
    x, y = draw(shape, 1), draw(shape, 2)
    u, _ = term.prox(x, 0.7)
    np.testing.assert_allclose(x - u, 0.7 * term.gradient(u), atol=1e-14)  # the prox optimality condition
    change = linalg.norm(term.gradient(x) - term.gradient(y))
    assert change <= term.lipschitz() * linalg.norm(x - y) * (1 + 1e-12)
    largest = max((linalg.norm(term.gradient(e.reshape(shape))) for e in np.eye(math.prod(shape))), default=0.0)
    assert term.lipschitz() == pytest.approx(largest)


def test_which_terms_are_what():
    assert {type(TERMS[name][0]) for name in SMOOTH} == {Zero, Ridge, ExceptIntercept, Scaled}
    assert {type(TERMS[name][0]) for name in CONVEX} == {
        Zero, Ridge, L1, ElasticNet, GroupL2, Box, NonNegative, Simplex, ExceptIntercept, Scaled,
    }  # fmt: skip
    assert {type(TERMS[name][0]) for name in SEPARABLE} == {
        Zero, Ridge, L1, ElasticNet, L0, SCAD, MCP, Box, NonNegative, ExceptIntercept, Scaled,
    }  # fmt: skip
    assert not L0(k=1).separable
    assert SCAD(1.0, a=3.5).max_step == 2.5
    assert MCP(1.0, b=1.5).max_step == 1.5
    assert ExceptIntercept(MCP(1.0, b=1.5)).max_step == 1.5
    weakly_convex = {name for name, (term, _) in TERMS.items() if term.max_step < math.inf}
    assert weakly_convex == {name for name in TERMS if "scad" in name or "mcp" in name}


@pytest.mark.parametrize(
    "r2",
    [
        Zero(),
        Ridge(2.0),
        L1(2.0),
        GroupL2(2.0),
        L0(k=1),
        L0(alpha=2.0),
        MCP(2.0),
        Box(0, 1),
        Simplex(),
        Sphere(),
        Stiefel(),
        Rank(1),
    ],
)
def test_except_intercept_applies_r2_above_the_last_row_and_leaves_that(r2):
    term = ExceptIntercept(r2)
    x = draw((5, 2), 4)
    u, value = term.prox(x, 0.8)
    want, want_value = r2.prox(x[:-1], 0.8)
    np.testing.assert_array_equal(u[:-1], want)
    np.testing.assert_array_equal(u[-1], x[-1])
    assert value == want_value
    assert (term.convex, term.separable, term.smooth) == (r2.convex, r2.separable, r2.smooth)
    np.testing.assert_array_equal(term.feasible(x), np.vstack([r2.feasible(x[:-1]), x[-1:]]))
    np.testing.assert_array_equal(to_numpy(term.prox(torch.asarray(x), 0.8)[0])[-1], x[-1])


def test_as_elastic_net_has_the_value_of_r2():
    x = np.random.default_rng(3).standard_normal((4, 2))
    for r2 in (Zero(), Ridge(0.3), L1(np.array([[1.0], [0.0], [2.0], [3.0]])), ElasticNet(0.7, 0.2)):
        alpha, ratio = as_elastic_net(r2, x.shape)
        assert alpha.shape == x.shape
        assert np.sum(alpha * (ratio * np.abs(x) + (1 - ratio) * x * x / 2)) == pytest.approx(r2.value(x))
    alpha, ratio = as_elastic_net(ExceptIntercept(Ridge(1.0)), x.shape)
    assert alpha[:-1].all() and not alpha[-1].any() and ratio == 0.0
    assert as_elastic_net(NonNegative(), x.shape) is None and as_elastic_net(ExceptIntercept(MCP(1.0)), x.shape) is None


def test_except_intercept_slices_gamma_and_gradient():
    term, x = ExceptIntercept(L1(np.array([1.0, 2.0]))), np.array([3.0, 3.0, 3.0])
    np.testing.assert_array_equal(term.prox(x, np.array([0.5, 1.0, 99.0]))[0], [2.5, 1.0, 3.0])
    np.testing.assert_array_equal(ExceptIntercept(Ridge(2.0)).gradient(x), [6.0, 6.0, 0.0])
    np.testing.assert_array_equal(ExceptIntercept(L1(2.0)).prox(x[:1], 1.0)[0], x[:1])  # nothing but an intercept


@all_terms
@pytest.mark.parametrize("as_array", [np.asarray, torch.asarray])
def test_nan_comes_out_as_nan(name, as_array):
    term, shape = TERMS[name]
    x = draw(shape, 0)
    x.flat[1] = np.nan
    u = to_numpy(term.prox(as_array(x), 0.5)[0])
    assert np.isnan(u.flat[1])
    x[...] = np.nan
    assert np.isnan(to_numpy(term.prox(as_array(x), 0.5)[0])).any()


def test_values_accumulate_in_float64():
    x = np.full(3_000_000, 0.1, dtype=np.float32)
    assert L1(1.0).value(x) == pytest.approx(3e6 * float(np.float32(0.1)), rel=1e-12)
    assert L1(1.0).value(torch.asarray(x)) == pytest.approx(3e6 * float(np.float32(0.1)), rel=1e-12)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Ridge, L1, ElasticNet, GroupL2, SCAD, MCP, lambda alpha: L0(alpha=alpha)])
@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf, "strong"])
def test_bad_alpha(make, alpha):
    with pytest.raises(ValueError, match="alpha must"):
        make(alpha)


@pytest.mark.parametrize("make", [Ridge, L1, ElasticNet, SCAD, MCP, lambda alpha: L0(alpha=alpha)])
def test_bad_alpha_array(make):
    with pytest.raises(ValueError, match="alpha must be finite and >= 0"):
        make(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"alpha of shape \(2,\) does not broadcast to x of shape \(3,\)"):
        make(np.array([1.0, 1.0])).prox(np.ones(3), 1.0)
    with pytest.raises(ValueError, match=r"alpha of shape \(2, 3\) does not broadcast"):  # would enlarge x
        make(np.ones((2, 3))).value(np.ones(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ElasticNet(1.0, l1_ratio=1.5), r"l1_ratio must be a number in \[0, 1\], got 1.5"),
        (lambda: ElasticNet(1.0, l1_ratio=math.nan), "l1_ratio must not be NaN"),
        (lambda: SCAD(1.0, a=2.0), "a must be a finite number > 2, got 2.0"),
        (lambda: SCAD(1.0, a=math.inf), "a must be a finite number > 2"),
        (lambda: MCP(1.0, b=1), "b must be a finite number > 1, got 1"),
        (lambda: MCP(1.0, b=[2.0]), "b must be a finite number > 1"),
        (lambda: L0(), "exactly one of alpha .* and k"),
        (lambda: L0(alpha=1.0, k=1), "exactly one of alpha .* and k"),
        (lambda: L0(k=0), "k must be an integer >= 1, got 0"),
        (lambda: L0(k=2.0), "k must be an integer >= 1, got 2.0"),
        (lambda: L0(k=True), "k must be an integer >= 1, got True"),
        (lambda: Rank(0), "k must be an integer >= 1"),
        (lambda: Rank(1.5), "k must be an integer >= 1"),
        (lambda: Box(1.0, 0.0), "lower must be <= upper"),
        (lambda: Box([0.0, 2.0], [1.0, 1.0]), "lower must be <= upper"),
        (lambda: Box(math.nan, 0.0), "lower must not be NaN"),
        (lambda: Box(math.inf, math.inf), "lower must be <= upper"),
        (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), "lower .* and upper .* do not broadcast"),
        (lambda: Simplex(0.0), "total must be a finite number > 0"),
        (lambda: Simplex(-1.0), "total must be a finite number > 0"),
        (lambda: Sphere(0.0), "radius must be a finite number > 0"),
        (lambda: GroupL2(1.0, groups=[[1, 2]]), "groups must be 1-D"),
        (lambda: GroupL2(np.ones(2)), "alpha must be a scalar"),
        (lambda: ExceptIntercept(0.1), "r2 must be a Regularizer"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@all_terms
@pytest.mark.parametrize("gamma", [0.0, -1.0, math.nan, math.inf])
def test_bad_gamma(name, gamma):
    term, shape = TERMS[name]
    with pytest.raises(ValueError, match="gamma must be finite and > 0"):
        term.prox(np.ones(shape), gamma)


@pytest.mark.parametrize("name", SEPARABLE)
def test_bad_gamma_array(name):
    term, shape = TERMS[name]
    gamma = np.ones(shape)
    gamma[0] = 0.0
    with pytest.raises(ValueError, match="gamma must be finite and > 0"):
        term.prox(np.ones(shape), gamma)
    with pytest.raises(ValueError, match=r"gamma of shape .* does not broadcast"):
        term.prox(np.ones(shape), np.ones(shape[0] + 1))


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_terms_want_a_scalar_gamma(name):
    term, shape = TERMS[name]
    with pytest.raises(ValueError, match="gamma must be a scalar"):
        term.prox(np.ones(shape), np.ones(shape))


def test_bad_x():
    with pytest.raises(ValueError, match="x must hold real floating-point numbers"):
        L1(0.5).value(np.array([1, 2]))
    with pytest.raises(ValueError, match="x must hold real floating-point numbers"):
        Sphere().prox(np.array([1, 2]), 1.0)
    with pytest.raises(ValueError, match="groups is needed"):
        GroupL2(1.0).value(np.ones(3))
    with pytest.raises(ValueError, match="groups has 2 labels but x has 3 rows"):
        GroupL2(1.0, groups=[0, 1]).prox(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="Rank needs a 2-D x"):
        Rank(1).prox(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="Stiefel needs at least as many rows as columns"):
        Stiefel().prox(np.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match=r"lower of shape \(2,\) does not broadcast"):
        Box([0.0, 0.0], 1.0).prox(np.ones(3), 1.0)


@pytest.mark.parametrize("name", [name for name in TERMS if name not in SMOOTH])
def test_terms_that_are_not_smooth_say_so(name):
    term, shape = TERMS[name]
    with pytest.raises(TypeError, match="is not smooth and has no gradient; use prox instead"):
        term.gradient(np.ones(shape))
    with pytest.raises(TypeError, match="is not smooth and has no Lipschitz constant"):
        term.lipschitz()


MODULES = [module.name for module in pkgutil.iter_modules(trimlearn.regularizers.__path__)]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_the_docstrings(module):
    result = doctest.testmod(importlib.import_module(f"trimlearn.regularizers.{module}"))
    assert result.failed == 0


def test_every_public_term_has_an_example():
    for name in trimlearn.regularizers.__all__:
        term = getattr(trimlearn.regularizers, name)
        if isinstance(term, type) and not term.__abstractmethods__:
            assert ">>>" in term.__doc__, name


def test_steps_that_float32_does_not_hold_are_taken():
    """A feature of 1e-20 has a curvature of 1e-40."""
    x, g = np.ones(1, np.float32), np.full(1, 1e-30, np.float32)
    found = Zero().step(x, g, 1e40)
    assert found.dtype == np.float32 and found[0] == pytest.approx(-1e10)


def test_half_of_a_penalty_is_convex_for_steps_twice_as_long():
    assert Scaled(MCP(alpha=1.0, b=3.0), 0.5).max_step == 6.0
