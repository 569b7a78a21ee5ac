"""Rows that chance set apart, and those that it did not: Wilks' law, and distances from fits without a row."""

from __future__ import annotations

from math import exp, log
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import f as f_law
from scipy.stats import kstest

from trimlearn.robust.scatter import chance
from trimlearn.robust.scatter.chance import LEAST, LEVEL, beyond_chance, log_groups_expected, log_wilks
from trimlearn.robust.scatter.judge import left_out, unseen_freedom
from trimlearn.robust.scatter.mcd import mcd


@pytest.mark.parametrize(("p", "q"), [(1, 4), (2, 3), (4, 3)])
def test_wilks_law_is_that_of_simulated_determinants(p: int, q: int) -> None:
    rng, m = np.random.default_rng(0), 12
    found = []
    for _ in range(400):
        error, other = rng.standard_normal((m, p)), rng.standard_normal((q, p))
        B = error.T @ error
        found.append(exp(log_wilks(np.linalg.slogdet(B)[1] - np.linalg.slogdet(B + other.T @ other)[1], p, q, m)))
    assert kstest(found, "uniform").pvalue > 0.01


def test_one_feature_and_one_row_is_the_f_test() -> None:
    assert log_wilks(log(0.4), 1, 1, 9) == pytest.approx(f_law.logsf((1 / 0.4 - 1) * 9, 1, 9))
    assert log_wilks(-np.inf, 3, 2, 9) == -np.inf
    assert log_wilks(0.0, 3, 2, 9) == 0.0


@pytest.mark.parametrize(("p", "q", "m"), [(1, 1, 3000.0), (3, 400, 1600.0), (10, 600, 1400.0)])
def test_the_bound_for_probabilities_out_of_range_is_near_those_in_range(p: int, q: int, m: float) -> None:
    ratios = -np.geomspace(1e-2, 1e2, 1000)
    exact = np.array([log_wilks(ratio, p, q, m) for ratio in ratios])
    near = (exact > log(LEAST)) & (exact < -400.0)
    assert near.any() and np.all(np.diff(exact) < 1e-6)
    with patch.object(chance, "LEAST", 1.0):
        bounds = np.array([log_wilks(ratio, p, q, m) for ratio in ratios[near]])
    assert np.all(bounds >= exact[near] - 1e-6)
    np.testing.assert_allclose(bounds, exact[near], atol=0.5)


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_a_group_among_many_rows_is_beyond_chance(share: float) -> None:
    A = np.random.default_rng(3).standard_normal((5000, 3))
    off = np.arange(5000) < 5000 * share
    A[off] += 5.0
    assert beyond_chance(A, np.ones(5000), np.sum(A**2, axis=1), off).sum() == off.sum()
    assert log_groups_expected(A, np.ones(5000), np.arange(5000) % 5 == 0) > log(LEVEL)


def test_the_farthest_of_clean_rows_are_there_by_chance_and_a_group_is_not() -> None:
    rng, torn = np.random.default_rng(1), 0
    for _ in range(50):
        A = rng.standard_normal((20, 2))
        d2 = np.sum(A**2, axis=1)
        torn += int(beyond_chance(A, np.ones(20), d2, d2 > np.quantile(d2, 0.7)).sum() > 1)
        off = np.arange(20) < 4
        assert log_groups_expected(A + 12.0 * off[:, None], np.ones(20), off) < log(LEVEL)
    assert torn <= 2  # 1 in 20 at most, by the level


def test_copies_of_rows_count_as_weights_do() -> None:
    A = np.random.default_rng(2).standard_normal((15, 2))
    A[:3] += 6.0
    d2, s = np.sum(A**2, axis=1), np.where(np.arange(15) % 4 == 0, 2.0, 1.0)
    every = np.repeat(np.arange(15), s.astype(int))
    off = d2 > 3.0
    found = beyond_chance(A, s, d2, off)
    np.testing.assert_array_equal(beyond_chance(A[every], np.ones(len(every)), d2[every], off[every]), found[every])
    fit = mcd(A, s, 12.0, shrinkage=0.2).refitted(A, s, np.ones(15), False)
    copied = mcd(A[every], np.ones(len(every)), 12.0, shrinkage=0.2)
    copied = copied.refitted(A[every], np.ones(len(every)), np.ones(len(every)), False)
    assert unseen_freedom(copied, A[every], np.ones(len(every))) == pytest.approx(unseen_freedom(fit, A, s))


@pytest.mark.parametrize(("n", "p"), [(30, 10), (20, 30), (15, 200)])
def test_distances_and_their_freedom_are_those_of_fits_without_the_rows(n: int, p: int) -> None:
    rng, ones = np.random.default_rng(n), np.ones(n)
    A = rng.standard_normal((n, p))
    fit = mcd(A, ones, 0.75 * n, shrinkage=0.2).refitted(A, ones, ones, False)
    without = [fit.refitted(A, ones, np.arange(n) != i, False).squared_distances(A[[i]])[0] for i in range(n)]
    # But for the divisor of the covariance, n − 2 in place of n − 1: without its part in K, 1/ρ of a distance remains.
    np.testing.assert_allclose(left_out(fit, fit.squared_distances(A), n), without, rtol=1.5 / (n - 1))
    d2 = fit.squared_distances(rng.standard_normal((2000, p)))
    assert unseen_freedom(fit, A, ones) == pytest.approx(2 * d2.mean() ** 2 / d2.var(), rel=0.35)
