"""Draws: a pure function of (seed, k), uniform, independent of one another, and true to the sample weights."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, kstest

from trimlearn.smart.draws import Draws, Stream
from trimlearn.smart.move_laws import Coin, Cyclic, Every, Move
from trimlearn.smart.row_laws import ALL, Everything, Independent, Nothing, Recipe, RowLaw, Same, WithReplacement

BIG = 100_000


# ---- (seed, k) ----


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63), st.sampled_from(Stream))
def test_draws_are_a_pure_function_of_seed_and_k(seed: int, k: int, stream: Stream) -> None:
    def sequence() -> list[Any]:
        draws = Draws(seed, k, 10**6, None, stream)
        return [draws.uniform(), *draws.rows(9), *draws.uniforms(3), *draws.normal((2, 2)).flat]

    expected = sequence()
    Draws(seed, k + 1, 10**6).rows(100)  # nothing that is drawn elsewhere matters
    np.random.default_rng(0).random(5)
    assert sequence() == expected


def test_no_number_is_shared_between_iterations_streams_or_seeds() -> None:
    """Blocks far larger than any batch: the streams would overlap if k only moved the counter a little."""
    blocks = [
        Draws(seed, k, 10, None, stream).uniforms(BIG)
        for seed in (0, 1, 2**64 - 1)
        for k in (0, 1, 2, 2**40)
        for stream in Stream
    ]
    together = np.concatenate(blocks)
    # 53-bit numbers: by chance alone, 4.8 million of them hold 0.0013 pairs
    assert len(np.unique(together)) == len(together)


def test_consecutive_iterations_are_uncorrelated() -> None:
    first = np.array([Draws(5, k, 10).uniforms(2) for k in range(4000)])
    flat = first.ravel()
    for lag in (1, 2, 3):
        assert abs(np.corrcoef(flat[:-lag], flat[lag:])[0, 1]) < 4 / np.sqrt(len(flat))
    assert kstest(flat, "uniform").pvalue > 1e-3


def test_the_stream_defaults_to_the_iterations_own() -> None:
    assert Draws(3, 7, 10).uniform() == Draws(3, 7, 10, None, Stream.ITERATION).uniform()
    assert len({Draws(3, 7, 10, None, stream).uniform() for stream in Stream}) == len(Stream)


# ---- rows ----


@pytest.mark.parametrize("n", [1, 7, 100])
def test_rows_are_uniform(n: int) -> None:
    rows = np.concatenate([Draws(11, k, n).rows(50) for k in range(400)])
    assert rows.dtype == np.int64
    assert rows.min() >= 0 and rows.max() <= n - 1
    if n > 1:
        assert chisquare(np.bincount(rows, minlength=n)).pvalue > 1e-3


def test_rows_within_one_iteration_are_uniform_too() -> None:
    assert chisquare(np.bincount(Draws(2, 9, 64).rows(BIG), minlength=64)).pvalue > 1e-3


def test_rows_stay_in_range_at_the_largest_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """u = 1 − 2⁻⁵³ times n must not round up to n, and must not fall on a last row of weight 0."""
    largest = np.nextafter(1.0, 0.0)
    for n in (3, 10, 2**31 + 1, 10**9 + 7):
        draws = Draws(0, 0, n)
        monkeypatch.setattr(draws, "_uniform", lambda m: np.full(m, largest))
        assert draws.rows(2).tolist() == [n - 1] * 2
    for s in ([0.1, 0.2, 0.0], [3.0, 0.7, 0.0, 0.0], [1 / 3] * 7 + [0.0]):
        draws = Draws(0, 0, len(s), np.cumsum(s))
        monkeypatch.setattr(draws, "_uniform", lambda m: np.full(m, largest))
        assert s[draws.rows(1)[0]] > 0


def test_a_boundary_belongs_to_the_row_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """u·S on a boundary is drawn as repeating would draw it; u = 0 never falls on a first row of weight 0."""
    draws = Draws(0, 0, 5, np.cumsum([0.0, 1.0, 2.0, 0.0, 1.0]))
    monkeypatch.setattr(draws, "_uniform", lambda m: np.array([0.0, 0.25, 0.75]))
    assert draws.rows(3).tolist() == [1, 2, 4]


def test_sample_weights_set_the_frequencies() -> None:
    s = np.array([0.5, 3.0, 0.0, 1.25, 2.0, 0.0])
    rows = np.concatenate([Draws(1, k, 6, np.cumsum(s)).rows(100) for k in range(300)])
    seen = np.bincount(rows, minlength=6)
    assert seen[2] == seen[5] == 0
    kept = s > 0
    assert chisquare(seen[kept], seen.sum() * s[kept] / s.sum()).pvalue > 1e-3


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any), st.integers(0, 99), st.integers(0, 10**6))
def test_whole_number_weights_give_the_rows_that_repeating_them_would_give(s: list[int], seed: int, k: int) -> None:
    original = np.repeat(np.arange(len(s)), s)
    repeated = Draws(seed, k, sum(s))
    weighted = Draws(seed, k, len(s), np.cumsum(s, dtype=np.float64))
    assert repeated.uniform() == weighted.uniform()
    np.testing.assert_array_equal(original[repeated.rows(40)], weighted.rows(40))


def test_zero_weight_is_never_drawn() -> None:
    s = np.zeros(1000)
    s[[17, 400]] = 1e-9, 1.0
    rows = Draws(0, 0, 1000, np.cumsum(s)).rows(BIG)
    assert set(rows) <= {17, 400}


def test_normal_numbers_are_normal() -> None:
    z = Draws(4, 2, 10).normal((200, 50))
    assert z.shape == (200, 50)
    assert kstest(z.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z[:, 0], z[:, 1])[0, 1]) < 0.3


# ---- the laws of Iₖ and Dₖ ----


@pytest.mark.parametrize(("n", "b"), [(1, 1), (8, 4), (27, 9), (1000, 100), (1001, 101), (60_000, 1533)])
def test_the_batch_is_n_to_two_thirds_rounded_up(n: int, b: int) -> None:
    assert WithReplacement().bind(n).b == b
    assert WithReplacement(power=0.5).bind(100).b == 10


def test_bind_keeps_what_was_given() -> None:
    assert WithReplacement(5, growth=0.5).bind(10) == WithReplacement(5, growth=0.5)
    assert WithReplacement(growth=0.5).bind(8) == WithReplacement(4, growth=0.5)
    for law in (Everything(), Nothing(), Same(), Independent(0.3)):
        assert law.bind(12) == law


@pytest.mark.parametrize("b", [0, -1, 11, 2.0, 2.5, True, "5", np.nan])
def test_a_bad_batch_is_refused(b: Any) -> None:
    with pytest.raises(ValueError, match=r"^b must be an integer from 1 to n = 10"):
        WithReplacement(b).bind(10)


@pytest.mark.parametrize("b", [None, 4])
@pytest.mark.parametrize("growth", [-0.1, np.inf, np.nan])
def test_a_bad_growth_is_refused(b: int | None, growth: float) -> None:
    with pytest.raises(ValueError, match=r"^growth must be"):
        WithReplacement(b, growth=growth).bind(10)


def test_numpy_integers_are_integers() -> None:
    assert WithReplacement(np.int32(3)).bind(10).draw(Draws(0, 0, 10)).shape == (3,)


def test_a_growing_batch_grows_with_k_up_to_n() -> None:
    law = WithReplacement(4, growth=0.3).bind(30)
    sizes = [len(law.draw(Draws(0, k, 30))) for k in range(60)]
    assert sizes == [min(30, ceil(4 * (1 + 0.3 * k))) for k in range(60)]
    assert sizes[0] == 4 and sizes[-1] == 30


@pytest.mark.parametrize(
    "law", [WithReplacement(4), Same(), Independent(0.3), Everything(), Nothing()], ids=lambda law: type(law).__name__
)
def test_rho_is_the_chance_that_a_row_is_in_D(law: RowLaw) -> None:
    n, b, trials = 9, 4, 3000
    batch_law = WithReplacement(b).bind(n)
    law = law.bind(n)
    hits = np.zeros(n)
    for k in range(trials):
        draws = Draws(8, k, n)
        batch = Recipe.of(batch_law, draws)
        drawn = Recipe.of(law, draws, batch).rows(n)
        hits[np.unique(np.arange(n)[drawn])] += 1
    rho = law.rho(n, b)
    for hit in hits:
        assert binomtest(int(hit), trials, rho).pvalue > 1e-4 if 0 < rho < 1 else hit == rho * trials


def test_rho_under_sample_weights() -> None:
    """Rows are drawn with probability sᵢ/S, so Dₖ = Iₖ holds a light row seldom; laws that do not draw do not care."""
    s, b, trials = np.array([0.2, 0.0, 1.0, 3.0, 1.0]), 3, 3000
    hits = np.zeros(len(s))
    for k in range(trials):
        hits[np.unique(Draws(8, k, len(s), np.cumsum(s)).rows(b))] += 1
    rho = np.asarray(Same().rho(len(s), b, s))
    np.testing.assert_array_equal(rho, WithReplacement(b).bind(len(s)).rho(len(s), 1, s))
    for hit, chance in zip(hits, rho, strict=True):
        assert binomtest(int(hit), trials, chance).pvalue > 1e-4 if chance > 0 else hit == 0
    assert [law.rho(len(s), b, s) for law in (Everything(), Nothing(), Independent(0.3))] == [1.0, 0.0, 0.3]


def test_an_independent_D_does_not_depend_on_I() -> None:
    """The overlap of I and D is what two independent draws have; Same has it all."""
    n, b = 20, 5
    overlap = []
    for k in range(2000):
        draws = Draws(3, k, n)
        recipe = Recipe.of(WithReplacement(b), draws)
        other = Recipe.of(WithReplacement(b), draws, recipe).rows(n)
        assert Recipe.of(Same(), draws, recipe) is recipe
        batch = recipe.rows(n)
        overlap.append(np.mean(np.isin(batch, other)))
    expected = 1 - (1 - 1 / n) ** b
    assert abs(np.mean(overlap) - expected) < 4 * np.std(overlap) / np.sqrt(len(overlap))


def test_everything_and_nothing() -> None:
    assert Everything().draw(Draws(0, 0, 5)) == ALL.rows(5) == slice(None)
    empty = Nothing().draw(Draws(0, 0, 5))
    assert len(empty) == 0 and empty.dtype == np.int64


# ---- the laws of jₖ ----


@pytest.mark.parametrize("q", [0.03, 0.5, 0.9])
def test_the_coin_shows_one_with_probability_q(q: float) -> None:
    coin = Coin(q).bind(10, 3)
    assert coin.chance == q
    heads = sum(coin.draw(Draws(6, k, 10), k) is Move.W for k in range(6000))
    assert binomtest(heads, 6000, q).pvalue > 1e-4


def test_the_coins_default_q() -> None:
    assert Coin().bind(1000, 100).chance == pytest.approx(1 - (1 - 1 / 1000) ** 100, rel=1e-12)
    assert Coin().bind(10, 10).chance == 0.5  # 1 − 0.9¹⁰ is 0.65: x has its turn at least as often as w
    assert Coin("1/n").bind(1000, 100).chance == pytest.approx(1 / 1000, rel=1e-12)
    assert Coin("b/(n+b)").bind(1000, 100).chance == pytest.approx(1 / 11, rel=1e-12)


@pytest.mark.parametrize("q", [0, -0.1, 1.1, np.nan, np.inf, True, "0.5", [0.5]])
def test_a_bad_q_is_refused(q: Any) -> None:
    with pytest.raises(ValueError, match=r"^q must be a number in \(0, 1\)"):
        Coin(q).bind(10, 3)


@pytest.mark.parametrize("restart", [1, 0, -3, 2.5, True, "7"])
def test_a_bad_restart_is_refused(restart: Any) -> None:
    with pytest.raises(ValueError, match=r"^restart must be an integer >= 2"):
        Coin(0.5, restart=restart).bind(10, 3)


def test_restart_adds_a_w_step_at_every_restart_th_iteration_and_changes_no_other() -> None:
    plain, restarted = Coin(0.1).bind(10, 3), Coin(0.1, restart=7).bind(10, 3)
    for k in range(200):
        move = restarted.draw(Draws(1, k, 10), k)
        assert move is (Move.W if (k + 1) % 7 == 0 else plain.draw(Draws(1, k, 10), k))


def test_cyclic_alternates_and_draws_nothing() -> None:
    law, draws = Cyclic().bind(10, 3), Draws(0, 0, 10)
    assert [law.draw(draws, k) for k in range(4)] == [Move.W, Move.X, Move.W, Move.X]
    assert draws.uniform() == Draws(0, 0, 10).uniform()
    assert law.chance == 0.5


def test_every_evaluates_after_n_draws() -> None:
    law = Every().bind(10, 3)  # 4 batches of 3 are the first to hold 10 draws
    moves = [law.draw(Draws(0, k, 10), k) for k in range(15)]
    assert moves == ([Move.X] * 4 + [Move.EVALUATE]) * 3
    assert law.chance == 0
    assert Every(2).bind(10, 3) == Every(2)
