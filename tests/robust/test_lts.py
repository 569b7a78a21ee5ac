"""Least trimmed squares and least median of squares: optimal on the classics and on all that can be enumerated,
blind to order, repetition and scale, and not broken by what least squares and random starts are broken by."""

from __future__ import annotations

import json
import os
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from trimlearn.datasets import load_classic
from trimlearn.datasets.locate import find_folder
from trimlearn.robust.regression import exchange, lts
from trimlearn.robust.regression.elemental import RegressionSample, _unseen
from trimlearn.robust.regression.exchange import End, Exchanges, Leverages, exchanged, settled
from trimlearn.robust.regression.lts import least_median_of_squares, least_trimmed_squares
from trimlearn.weights import CappedSimplex

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
FOLDER = find_folder("classic_robust", os.environ.get("TRIMLEARN_DATA") or BESIDE, holding="*.csv*")
REFERENCE = {} if FOLDER is None else json.loads((FOLDER / "lts_reference.json").read_text())
NO_DATA = pytest.mark.skip("no data: set TRIMLEARN_DATA to a folder that holds classic_robust/")
NAMES = sorted(REFERENCE) or [pytest.param("none", marks=NO_DATA)]


def residual_sum(A, t):
    x = np.linalg.lstsq(A, t, rcond=None)[0]
    return float(((t - A @ x) ** 2).sum())


def exhaustive(A, t, h):
    """The least sum of squares over all subsets of h rows."""
    return min(residual_sum(A[list(rows)], t[list(rows)]) for rows in combinations(range(len(t)), h))


def concentrated(A, t, h, x):
    """The objective that concentration steps reach from x."""
    value = np.inf
    for _ in range(200):
        rows = np.argsort((t - A @ x) ** 2, kind="stable")[:h]
        x = np.linalg.lstsq(A[rows], t[rows], rcond=None)[0]
        found = float(np.sort((t - A @ x) ** 2)[:h].sum())
        if found >= value * (1 - 1e-13):
            break
        value = found
    return value


def problem(n, p, seed, bad=0.3):
    """(A, t) with a share of rows shifted by 30."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(n), rng.standard_normal((n, p))])
    t = A.sum(axis=1) + rng.standard_normal(n)
    t[: int(bad * n)] += 30
    return A, t


def dirty(kind, n, p, seed):
    """(A, t, clean rows) of the three kinds of contamination of the issue."""
    rng = np.random.default_rng(seed)
    X, x = rng.standard_normal((n, p)), rng.standard_normal(p)
    towards = rng.standard_normal(p)
    towards /= np.linalg.norm(towards)
    k = int({"vertical": 0.45, "leverage": 0.4, "scattered": 0.4, "cluster": 0.2}[kind] * n)
    if kind == "leverage":
        X[:k] += 5 * towards
    elif kind == "scattered":
        X[:k] *= 5
    elif kind == "cluster":
        X[:k] = 50 * towards + 0.1 * X[:k]
    t = X @ x + rng.standard_normal(n)
    t[:k] += 50
    return np.column_stack([X, np.ones(n)]), t, np.arange(n) >= k


# --- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_classics_are_solved_to_the_optimum(name):
    reference = REFERENCE[name]
    table = load_classic(name, FOLDER.parent)
    columns = dict(zip(table.feature_names, table.data.T, strict=True))
    t = columns[reference["response"]]
    A = np.column_stack([np.ones(len(t)), *[columns[key] for key in reference["predictors"]]])
    h, best = reference["h"], reference["best_lts_objective_sum_of_h_smallest_sq_resid"]
    for seed in range(2):
        fit = least_trimmed_squares(A, t, h, seed=seed)
        assert np.sort((t - A @ fit.coef) ** 2)[:h].sum() <= best * (1 + 1e-9)
        assert fit.objective == pytest.approx(best, rel=1e-9)
        assert fit.w.sum() == pytest.approx(h)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 10), st.integers(1, 3), st.booleans())
def test_tiny_problems_are_solved_exactly(seed, n, q, discrete):
    rng = np.random.default_rng(seed)
    A, t = rng.standard_normal((n, q)), rng.standard_normal(n) + 10 * (rng.random(n) < 0.3)
    if discrete:
        A, t = np.round(A), np.round(t)
    h = n // 2 + 1
    best = exhaustive(A, t, h)
    fit = least_trimmed_squares(A, t, h)
    assert fit.objective == pytest.approx(best, rel=1e-9, abs=1e-20)
    assert float(fit.w @ (t - A @ fit.coef) ** 2) == pytest.approx(best, rel=1e-9, abs=1e-20)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 60), st.integers(1, 4), st.floats(0.5, 1.0))
def test_never_worse_than_concentration_from_least_squares(seed, n, p, share):
    A, t = problem(n, p, seed)
    h = min(n, int(share * n) + p)
    start = np.linalg.lstsq(A, t, rcond=None)[0]
    assert least_trimmed_squares(A, t, h).objective <= concentrated(A, t, h, start) * (1 + 1e-9) + 1e-20


def test_an_exchange_lowers_the_objective_by_what_its_formula_says():
    rng = np.random.default_rng(0)
    Q, t, m = rng.standard_normal((20, 3)), rng.standard_normal(20), rng.uniform(0.5, 2, 20)
    sample = RegressionSample(Q, t, m, 11.3)
    C = sample.trim(rng.random((1, 20)))[0]
    assert C.sum() == pytest.approx(11.3)

    def value(c):
        root = np.sqrt(c)
        return residual_sum(Q * root[:, None], t * root)

    def after(i, j):
        moved, delta = C.copy(), min(C[i], (m - C)[j])
        moved[i], moved[j] = moved[i] - delta, moved[j] + delta
        return value(moved)

    best = min(after(i, j) for i in np.flatnonzero(C > 0) for j in np.flatnonzero(C < m) if i != j)
    kept = sample.summed(C)
    end = End(np.zeros(sample.r), kept, np.inf, None, sample.solved(kept.M[None])[0])
    moved = exchanged(sample, end, Leverages(sample.Q))
    assert best < value(C)
    assert value(moved) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_that_gains_most_is_left_out_unseen(seed, monkeypatch):
    """Rows far out in X, whose leverage makes them gain from far beyond the threshold, and masses of their own."""
    rng = np.random.default_rng(seed)
    n = 60
    Q, t = rng.standard_normal((n, 3)), rng.standard_normal(n)
    Q[: seed % 7] *= 20
    sample = RegressionSample(Q, t, None if seed % 2 else rng.uniform(0.2, 3, n), 31.3)
    c = sample.kept(sample.loss(rng.standard_normal(3)))[0]
    end = settled(sample, sample.summed(c))
    found = exchanged(sample, end, Leverages(Q))

    def every(give, take):
        return tuple(np.ones(len(side[0]), dtype=bool) for side in (give, take))

    monkeypatch.setattr(exchange, "_hopeful", every)
    assert_array_equal(found, exchanged(sample, end, Leverages(Q)))


def test_walks_that_meet_go_on_together_and_end_where_each_would_alone():
    rng = np.random.default_rng(5)
    sample = RegressionSample(rng.standard_normal((60, 3)), rng.standard_normal(60), None, 32.0)
    U, known = rng.standard_normal((10, 3)), {}
    together = [Exchanges(sample, u, known).advance(50) for u in U]
    for walk, u in zip(together, U, strict=True):
        alone = Exchanges(sample, u).advance(4).advance(46)
        assert walk.over
        assert alone.end.value == pytest.approx(walk.end.value, rel=1e-12)
        assert_array_equal(alone.end.kept.c, walk.end.kept.c)
    assert len(known) < sum(len(Exchanges(sample, u).advance(50)._known) for u in U)


def test_moments_by_what_changed_are_those_of_a_sum_over_all_rows():
    rng = np.random.default_rng(1)
    sample = RegressionSample(rng.standard_normal((400, 5)), rng.standard_normal(400), rng.uniform(0.5, 2, 400), 210.0)
    last = sample.summed(sample.trim(rng.random((1, 400)))[0])
    for changes in (0, 1, 2, 10, 40, 200):
        c = last.c.copy()
        rows = rng.choice(400, changes, replace=False)
        c[rows] = np.where(c[rows] > 0, 0.0, sample.m[rows])
        last = sample.moved(c, last)
        assert_allclose(last.M, (sample._Z * c[:, None]).T @ sample._Z, rtol=0, atol=1e-11)
        assert_array_equal(last.c, c)


def test_rows_far_out_leave_no_rounding_behind_when_they_go():
    rng = np.random.default_rng(2)
    Q, t = rng.standard_normal((400, 5)), rng.standard_normal(400)
    Q[:40] *= np.geomspace(1e3, 1e8, 40)[:, None]
    t[0] = 1e100
    sample = RegressionSample(Q, t, None, 210.0)
    c = np.append(np.ones(250), np.zeros(150))
    last = sample.summed(c)
    for row in range(40):  # one at a time: each is a change of few rows
        c = c.copy()
        c[row] = 0.0
        last = sample.moved(c, last)
    assert_allclose(last.M, sample._moment(c), rtol=0, atol=1e-9)


def test_exchanges_grow_fewer_with_the_rows_and_end_nowhere_at_once(monkeypatch):
    """A limit on the rows, beyond which none were made, tripled the time from one size to the next."""
    rounds = {}

    class Counted:
        def __init__(self, sample, u, known=None):
            self.n, self.end, self.over = sample.n, SimpleNamespace(u=u, value=0.0), False

        def advance(self, at_most):
            rounds.setdefault(self.n, set()).add(at_most)  # of all ends, and then of the best of them
            return self

    monkeypatch.setattr(lts, "Exchanges", Counted)
    for n in (300, 5_000, 5_001, 7_000, 15_000, 40_000):
        least_trimmed_squares(*problem(n, 1, 0), (n + 3) // 2, starts=20)
    assert {n: sum(given) for n, given in rounds.items()} == {300: 50, 5_000: 50, 5_001: 49, 7_000: 25, 15_000: 5}


@pytest.mark.parametrize("unseen", [0, 1, 2])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_directions_that_no_row_sees_are_found_and_no_others(unseen, scale):
    rng = np.random.default_rng(unseen)
    Q, basis = scale * rng.standard_normal((40, 6)), np.linalg.qr(rng.standard_normal((6, 6)))[0]
    Q = Q @ basis[:, : 6 - unseen] @ basis[:, : 6 - unseen].T
    found = _unseen(Q.T @ Q)
    assert found.shape == (6, unseen)
    assert_allclose(found @ found.T, basis[:, 6 - unseen :] @ basis[:, 6 - unseen :].T, atol=1e-7)
    faint = Q + 1e-3 * scale * rng.standard_normal(Q.shape)  # seen faintly: an eigenvalue of 1e-6, far above the limit
    assert _unseen(faint.T @ faint).shape == (6, 0)


def test_a_fraction_of_a_row_may_be_kept():
    A, t = problem(30, 2, 0)
    fit = least_trimmed_squares(A, t, 17.5)
    assert fit.w.sum() == pytest.approx(17.5)
    assert_allclose(fit.w, CappedSimplex(17.5).minimise((t - A @ fit.coef) ** 2), atol=1e-12)
    below, above = (least_trimmed_squares(A, t, h).objective for h in (17, 18))
    assert below < fit.objective < above


def test_nothing_trimmed_is_least_squares():
    A, t = problem(30, 2, 0)
    fit = least_trimmed_squares(A, t, 30)
    assert_allclose(fit.coef, np.linalg.lstsq(A, t, rcond=None)[0], rtol=1e-10)
    assert_array_equal(fit.w, np.ones(30))


# --- order, repetition, scale -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", [least_trimmed_squares, least_median_of_squares])
@pytest.mark.parametrize("ties", [False, True])
def test_neither_order_nor_repetition_nor_rows_without_weight_matter(solve, ties):
    A, t = problem(40, 2, 1)
    if ties:
        A, t = np.round(A, 1), np.round(t)
    rng = np.random.default_rng(0)
    s = rng.integers(0, 4, 40).astype(float)
    h = 0.6 * s.sum()
    fit = solve(A, t, h, s)
    twice = np.repeat(np.arange(40), s.astype(int))
    shuffled = rng.permutation(len(twice))
    rows = twice[shuffled]
    repeated = solve(A[rows], t[rows], h)
    assert_array_equal(repeated.coef, fit.coef)
    assert_array_equal(repeated.w, fit.w[rows])
    assert repeated.objective == fit.objective
    assert_array_equal(fit.w[s == 0], 0.0)


def test_large_data_does_not_depend_on_the_order_of_rows_and_reaches_the_clean_basin():
    A, t = problem(8000, 4, 0)
    perm = np.random.default_rng(1).permutation(8000)
    fit, other = least_trimmed_squares(A, t, 4010), least_trimmed_squares(A[perm], t[perm], 4010)
    assert_array_equal(other.w, fit.w[perm])
    assert_allclose(other.coef, fit.coef, rtol=1e-12)
    clean = np.linalg.lstsq(A[2400:], t[2400:], rcond=None)[0]
    assert fit.objective <= concentrated(A, t, 4010, clean) * (1 + 1e-6)
    assert fit.w[:2400].sum() == 0


def test_scales_of_features_and_targets_do_not_matter():
    A, t = problem(60, 3, 2)
    scale = np.array([1.0, 1e-8, 1e8, 1.0])
    fit, scaled = least_trimmed_squares(A, t, 35), least_trimmed_squares(A * scale, 1e12 * t, 35)
    assert_array_equal(scaled.w, fit.w)
    assert_allclose(scaled.coef * scale, 1e12 * fit.coef, rtol=1e-9)
    assert scaled.objective == pytest.approx(1e24 * fit.objective, rel=1e-9)


def test_rows_however_far_out_do_not_blur_the_others():
    A, t = problem(60, 3, 3, bad=0.0)
    clean = least_trimmed_squares(A[20:], t[20:], 32)
    for far in (1e3, 1e8):
        B = A.copy()
        B[:20, 1:] *= far
        fit = least_trimmed_squares(B, np.where(np.arange(60) < 20, 1e6 * far, t), 32)
        assert_array_equal(fit.w[20:], clean.w)
        assert_allclose(fit.coef, clean.coef, rtol=1e-7)


# --- degenerate -------------------------------------------------------------------------------------------------------


def test_an_exact_fit_is_found_and_its_rows_share_h_equally():
    A, t = problem(40, 2, 4, bad=0.0)
    t = A @ np.array([3.0, -1.0, 0.5])
    t[:15] += 7 + np.arange(15)
    fit = least_trimmed_squares(A, t, 21)
    assert fit.objective == 0.0
    assert_allclose(fit.coef, [3.0, -1.0, 0.5], rtol=1e-12)
    assert_allclose(fit.w, np.r_[np.zeros(15), np.full(25, 21 / 25)])


def test_of_many_solutions_the_shortest_is_given():
    A, t = problem(40, 2, 5)
    doubled = np.column_stack([A, A[:, 1], np.full(40, 5.0)])  # a column twice, and a second constant
    fit, plain = least_trimmed_squares(doubled, t, 23), least_trimmed_squares(A, t, 23)
    assert fit.objective == pytest.approx(plain.objective, rel=1e-10)
    kept = fit.w > 0
    assert_allclose(fit.coef, np.linalg.lstsq(doubled[kept], t[kept], rcond=None)[0], rtol=1e-8)


@pytest.mark.parametrize("solve", [least_trimmed_squares, least_median_of_squares])
def test_degenerate_data_have_an_answer(solve):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 20))
    for B, t in [
        (A, rng.standard_normal(12)),  # fewer rows than columns
        (np.zeros((12, 2)), np.full(12, 3.0)),  # nothing to fit with
        (np.ones((12, 1)), np.full(12, 1e12)),  # all targets equal
        (np.ones((12, 3)), np.arange(12.0)),  # only constants
        (A[:1, :3].repeat(12, axis=0), np.full(12, 2.0)),  # one row twelve times
    ]:
        fit = solve(B, t, 7)
        assert np.isfinite(fit.coef).all() and np.isfinite(fit.objective)
        assert fit.w.sum() == pytest.approx(7)
    assert solve(A, np.ones(12), 7).objective < 1e-20
    thrice, once = solve(np.ones((12, 3)), np.arange(12.0), 7), solve(np.ones((12, 1)), np.arange(12.0), 7)
    assert thrice.objective == pytest.approx(once.objective, rel=1e-9)
    assert_allclose(thrice.coef, np.full(3, thrice.coef.mean()))


def test_dummy_columns_where_few_random_rows_are_regular():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, 150)
    A = np.column_stack([np.eye(12)[group], rng.standard_normal(150)])
    effect = np.append(3.0 * np.arange(12), 2.0)
    t = A @ effect + 0.1 * rng.standard_normal(150)
    t[::4] += 20
    clean = np.arange(150) % 4 != 0
    fit = least_trimmed_squares(A, t, 100)
    assert fit.objective <= concentrated(A, t, 100, np.linalg.lstsq(A[clean], t[clean], rcond=None)[0]) * (1 + 1e-9)
    assert_allclose(fit.coef, effect, atol=0.15)


def test_a_level_that_the_sample_of_the_starts_missed_is_fitted():
    A, t = problem(6000, 2, 6)
    rare = np.zeros(6000)
    rare[5997:] = 1.0  # three clean rows, of which a start on 1,500 rows sees none or one
    fit = least_trimmed_squares(np.column_stack([A, rare]), t + 400 * rare, 3600)
    assert fit.coef[3] == pytest.approx(400, abs=4)
    assert fit.w[5997:].sum() > 0


# --- breakdown --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vertical", "leverage", "scattered", "cluster"])
@pytest.mark.parametrize(("n", "p"), [(200, 3), (200, 20), (4000, 15), (10_000, 3)])
def test_the_basin_found_is_never_worse_than_the_clean_one(kind, n, p):
    h = (n + p + 2) // 2
    A, t, clean = dirty(kind, n, p, seed=n + p)
    x = np.linalg.lstsq(A[clean], t[clean], rcond=None)[0]
    fit = least_trimmed_squares(A, t, h)
    assert fit.objective <= concentrated(A, t, h, x) * (1 + (1e-9 if n < 5000 else 1e-3))


# --- least median of squares ------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 11), st.integers(1, 2))
def test_least_median_is_the_best_chebyshev_fit_to_q_plus_1_rows(seed, n, p):
    """Stromberg (1993): the optimum is one of them, so that trying all of them is exact."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(n), rng.standard_normal((n, p))])
    t, h, best = rng.standard_normal(n), n // 2 + 2, np.inf
    for rows in map(list, combinations(range(n), p + 2)):
        e = t[rows] - A[rows] @ np.linalg.lstsq(A[rows], t[rows], rcond=None)[0]
        z = (e**2).sum() / np.abs(e).sum()
        x = np.linalg.lstsq(A[rows], t[rows] - z * np.sign(e), rcond=None)[0]
        best = min(best, float(np.sort((t - A @ x) ** 2)[h - 1]))
    fit = least_median_of_squares(A, t, h)
    assert fit.objective == pytest.approx(best, rel=1e-6)
    assert np.sort((t - A @ fit.coef) ** 2)[h - 1] == pytest.approx(fit.objective, rel=1e-9)


def test_least_median_withstands_40_percent_of_leverage_points_on_large_data():
    A, t, clean = dirty("leverage", 6000, 4, 0)
    fit = least_median_of_squares(A, t, 3003)
    assert fit.w[~clean].sum() == 0
    x = np.linalg.lstsq(A[clean], t[clean], rcond=None)[0]
    assert fit.objective <= np.sort((t - A @ x) ** 2)[3002]


def test_bad_arguments_are_named():
    A, t = problem(10, 1, 0)
    with pytest.raises(ValueError, match="h = 11 exceeds"):
        least_trimmed_squares(A, t, 11)


def test_leverages_are_updated_as_they_would_be_computed() -> None:
    rng = np.random.default_rng(0)
    Q, c = rng.normal(size=(300, 40)), (rng.random(300) < 0.6).astype(float)
    leverages = Leverages(Q)
    for _ in range(30):
        G = (Q * c[:, None]).T @ Q
        inverse, lever = leverages.at(c, G)
        np.testing.assert_allclose(inverse, np.linalg.inv(G), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(lever, np.einsum("ij,ij->i", Q, Q @ np.linalg.inv(G)), rtol=1e-9)
        c = c.copy()
        a, b = rng.choice(np.flatnonzero(c)), rng.choice(np.flatnonzero(c == 0))
        c[a], c[b] = 0.0, 1.0


@pytest.mark.parametrize(("r", "starts"), [(1, 50), (4, 321), (5, 652), (9, 1000)])
def test_no_more_random_starts_than_half_bad_rows_call_for(r, starts):
    sample = RegressionSample(np.random.default_rng(0).standard_normal((60, r)), np.zeros(60), None, 31)
    assert lts._count(sample, None) == starts
    assert lts._count(sample, 7) == 7  # who asks for a number gets it
