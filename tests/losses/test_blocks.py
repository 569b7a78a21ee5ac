"""Losses in blocks: derivatives, Newton systems beside dense ones, fits beside those of the same loss written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trimlearn import Problem, solve
from trimlearn.losses import BlockLoss, DenseSystem, LeastSquares, SchurSystem, Sees, check_loss, select
from trimlearn.losses.newton_system import inverses
from trimlearn.regularizers import L1, Ridge
from trimlearn.weights import AllOnes, CappedSimplex

RNG = np.random.default_rng(0)
N = 80
USER, FILM = RNG.integers(0, 6, N), RNG.integers(0, 9, N)
RATING = RNG.standard_normal(N)


class Bilinear(BlockLoss):
    """⟨aᵤ, b_f⟩ + d − rating, twice: the number d is common to all."""

    def __init__(self, exact: bool = True) -> None:
        super().__init__([(6, 2), (9, 2), (1, 1)], [Sees(0, USER), Sees(1, FILM), Sees(2, np.zeros(N, int))])
        self.rating, self.exact = RATING, exact

    def residuals(self, blocks: Any, rows: Any = None) -> Any:
        a, b, d = blocks
        r = np.sum(a * b, axis=1) + d[:, 0] - select(self.rating, rows)
        return np.column_stack([r, 2 * r])

    def jacobian(self, blocks: Any, rows: Any = None) -> Any:
        if not self.exact:
            return super().jacobian(blocks, rows)
        a, b, d = blocks
        twice = np.array([1.0, 2.0])[:, None]
        return [b[:, None, :] * twice, a[:, None, :] * twice, np.ones((len(d), 1, 1)) * twice]

    def start(self) -> Any:
        return np.random.default_rng(1).uniform(0.5, 1.5, self.x_shape)


class Effects(BlockLoss):
    """t − (level of its group) − ⟨v, slope⟩: linear, so that least squares knows the answer."""

    def __init__(self, V: Any, group: Any, t: Any, groups: int) -> None:
        slopes = Sees(1, np.zeros(len(t), int))
        super().__init__([(groups, 1), (1, V.shape[1])], [Sees(0, group), slopes])
        self.V, self.t = V, t

    def residuals(self, blocks: Any, rows: Any = None) -> Any:
        level, slope = blocks
        return level + np.sum(select(self.V, rows) * slope, axis=1, keepdims=True) - select(self.t, rows)[:, None]


class Pairs(BlockLoss):
    """x_i − x_j − t: both of one group, which no elimination can be made of."""

    def __init__(self, i: Any, j: Any, t: Any, count: int) -> None:
        super().__init__([(count, 1)], [Sees(0, i), Sees(0, j)])
        self.t = t

    def residuals(self, blocks: Any, rows: Any = None) -> Any:
        return blocks[0] - blocks[1] - select(self.t, rows)[:, None]


def effects(n: int = 400, groups: int = 30, seed: int = 0) -> tuple[Effects, LeastSquares]:
    rng = np.random.default_rng(seed)
    V, group = rng.standard_normal((n, 2)), rng.integers(0, groups, n)
    t = rng.standard_normal(groups)[group] + V @ [1.0, -2.0] + 0.1 * rng.standard_normal(n)
    t[: n // 10] += 20
    return Effects(V, group, t, groups), LeastSquares(np.hstack([np.eye(groups)[group], V]), t)


@pytest.mark.parametrize("exact", [True, False])
def test_derivatives(exact: bool) -> None:
    for seed in range(3):
        check_loss(Bilinear(exact), seed=seed)


def test_jacobians_by_differences_are_those_given() -> None:
    given, found = Bilinear(), Bilinear(exact=False)
    x, c = given.start(), RNG.random(N)
    np.testing.assert_allclose(found.gradient(x, c), given.gradient(x, c), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.hessian(x, c), given.hessian(x, c), rtol=1e-7, atol=1e-8)


def test_the_hessian_is_gauss_and_newtons() -> None:
    loss, c = Bilinear(), RNG.random(N)
    x = loss.start()
    J = np.zeros((N, 2, len(x)))
    for k, u in enumerate(np.eye(len(x))):
        ahead, back = (loss.residuals(loss.blocks(x + h * u)) for h in (1e-6, -1e-6))
        J[:, :, k] = (ahead - back) / 2e-6
    np.testing.assert_allclose(loss.hessian(x, c), np.einsum("i,ika,ikb->ab", c, J, J), rtol=1e-6, atol=1e-6)
    u = RNG.standard_normal(len(x))
    np.testing.assert_allclose(loss.hessp(x, u, c), loss.hessian(x, c) @ u, rtol=1e-10, atol=1e-10)


def test_a_schur_complement_solves_as_the_matrix_does() -> None:
    loss, c = Bilinear(), RNG.random(N)
    system = loss.newton_system(loss.start(), c)
    assert isinstance(system, SchurSystem)
    assert system.C.shape == (9, 2, 2), "the largest group is eliminated"
    assert len(system.B) == 6 * 2 + 1
    H, g = system.matrix(), RNG.standard_normal(loss.x_shape[0])
    np.testing.assert_allclose(H, H.T)
    np.testing.assert_allclose(system.times(g), H @ g)
    np.testing.assert_allclose(system.diagonal, np.diag(H))
    damped = system.plus(0.1 * system.diagonal)
    np.testing.assert_allclose(damped.matrix(), H + 0.1 * np.diag(np.diag(H)))
    np.testing.assert_allclose(damped.solve(g), np.linalg.solve(damped.matrix(), g), rtol=1e-8)


def test_what_no_example_determines_stays() -> None:
    """The gauge a → a·M, b → b·M⁻ᵀ; users and films whose examples all have weight 0."""
    loss = Bilinear()
    c = np.where((USER == 2) | (FILM == 5), 0.0, 1.0)
    x = loss.start()
    system, g = loss.newton_system(x, c), loss.gradient(x, c)
    d = system.solve(-g)
    assert d is not None
    np.testing.assert_allclose(system.times(d), -g, atol=1e-6 * np.abs(g).max())
    a, b, _ = loss.split(d)
    assert np.all(a[2] == 0) and np.all(b[5] == 0)
    assert np.abs(d).max() < 100 * np.abs(x).max()


def test_rows_of_weight_zero_may_be_nan() -> None:
    loss = Bilinear()
    loss.rating = RATING.copy()
    loss.rating[3] = np.nan
    c = np.ones(N)
    c[3] = 0.0
    value, g = loss.value_gradient(loss.start(), c)
    assert np.isfinite(value) and np.all(np.isfinite(g))
    assert loss.newton_system(loss.start(), c).finite
    assert not loss.newton_system(np.full(loss.x_shape, np.nan), np.ones(N)).finite


@pytest.mark.parametrize("r2", [None, Ridge(0.01)], ids=["zero", "ridge"])
def test_linear_effects_are_least_squares(r2: Any) -> None:
    for blocks, plain in (effects(seed=seed) for seed in range(3)):
        for r1 in (AllOnes(), CappedSimplex(360)):
            found, expected = solve(Problem(blocks, r1, r2)), solve(Problem(plain, r1, r2))
            assert found.status.converged
            np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-8)
            np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
            np.testing.assert_array_equal(found.w, expected.w)


def test_sample_weights_repeat_examples() -> None:
    blocks, _ = effects(n=200)
    s = np.random.default_rng(1).integers(0, 3, 200)
    rows = np.repeat(np.arange(200), s)
    repeated = Effects(blocks.V[rows], blocks.sees[0].block[rows], blocks.t[rows], 30)
    h = 0.9 * s.sum()
    one, other = solve(Problem(blocks, CappedSimplex(h), sample_weight=s)), solve(Problem(repeated, CappedSimplex(h)))
    np.testing.assert_allclose(one.x, other.x, atol=1e-6)


def test_many_parameters_are_no_obstacle() -> None:
    """Of 2,000 levels a Newton system is of order 2; without blocks it would be of order 2,002."""
    rng = np.random.default_rng(0)
    V, group = rng.standard_normal((20_000, 2)), rng.integers(0, 2000, 20_000)
    t = rng.standard_normal(2000)[group] + V @ [1.0, -2.0] + 0.1 * rng.standard_normal(20_000)
    t[:1000] += 20
    loss = Effects(V, group, t, 2000)
    fit = solve(Problem(loss, CappedSimplex(19_000)))
    assert fit.status.converged and fit.passes < 100
    assert len(loss.newton_system(fit.x, fit.w).B) == 2  # type: ignore[attr-defined]
    np.testing.assert_allclose(loss.split(fit.x)[1], [[1.0, -2.0]], atol=0.01)
    assert fit.w[:1000].mean() < 0.01


def test_a_group_seen_twice_is_not_eliminated() -> None:
    rng = np.random.default_rng(0)
    heights = rng.standard_normal(12)
    i = rng.integers(0, 12, 200)
    j = (i + rng.integers(1, 12, 200)) % 12
    t = heights[i] - heights[j] + 0.01 * rng.standard_normal(200)
    t[:20] += 5
    loss = Pairs(i, j, t, 12)
    check_loss(loss)
    assert isinstance(loss.newton_system(loss.start(), np.ones(200)), DenseSystem)
    fit = solve(Problem(loss, CappedSimplex(180)))
    assert fit.status.converged
    np.testing.assert_allclose(fit.x - fit.x.mean(), heights - heights.mean(), atol=0.02)


def test_one_group_alone_and_an_r2_that_is_not_smooth() -> None:
    class Means(BlockLoss):
        def __init__(self) -> None:
            super().__init__([(6, 1)], [Sees(0, USER)])

        def residuals(self, blocks: Any, rows: Any = None) -> Any:
            return blocks[0] - select(RATING, rows)[:, None]

    fit = solve(Problem(Means(), AllOnes()))
    expected = [RATING[USER == k].mean() for k in range(6)]
    np.testing.assert_allclose(fit.x, expected, atol=1e-8)
    lasso = solve(Problem(Means(), AllOnes(), L1(10.0)))
    assert lasso.status.converged
    np.testing.assert_allclose(lasso.x, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("groups", "sees", "sentence"),
    [
        ([(6, 2)], [], "sees must name at least one block"),
        ([(0, 2)], [Sees(0, USER)], "count must be an integer >= 1"),
        ([(6, 2)], [Sees(1, USER)], "groups from 0 to 0, got 1"),
        ([(5, 2)], [Sees(0, USER)], "blocks 0 to 4 of group 0, got 0 to 5"),
        ([(6, 2)], [Sees(0, USER - 0.5)], "1-D array of integers for group 0, got float64"),
        ([(6, 2), (9, 2)], [Sees(0, USER), Sees(1, FILM[:5])], r"one block per example each, got lengths \[5, 80\]"),
    ],
)
def test_bad_blocks_are_named(groups: Any, sees: Any, sentence: str) -> None:
    class Any_(BlockLoss):
        def residuals(self, blocks: Any, rows: Any = None) -> Any:
            return blocks[0]

    with pytest.raises(ValueError, match=sentence):
        Any_(groups, sees)


def test_what_a_block_sees_by_rounding_alone_it_does_not_see() -> None:
    """Two parameters of which only the sum counts: their difference stays where it is, and is not divided by 1e-15."""
    C = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-15]], [[4.0, 0.0], [0.0, 1e-8]]])
    np.testing.assert_allclose(inverses(C), [[[0.25, 0.25], [0.25, 0.25]], [[0.25, 0.0], [0.0, 1e8]]], rtol=1e-12)
