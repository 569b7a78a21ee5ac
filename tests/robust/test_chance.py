"""Rows that chance set apart, and those that it did not: Wilks' law, and distances from fits without a row."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.stats import f as f_law
from scipy.stats import kstest

from trimlearn.robust.scatter.chance import LEVEL, beyond_chance, groups_expected, wilks
from trimlearn.robust.scatter.judge import left_out, unseen_freedom
from trimlearn.robust.scatter.mcd import mcd


@pytest.mark.parametrize(("p", "q"), [(1, 4), (2, 3), (4, 3)])
def test_wilks_law_is_that_of_simulated_determinants(p: int, q: int) -> None:
    rng, m = np.random.default_rng(0), 12
    found = []
    for _ in range(400):
        error, other = rng.standard_normal((m, p)), rng.standard_normal((q, p))
        B = error.T @ error
        found.append(wilks(np.linalg.slogdet(B)[1] - np.linalg.slogdet(B + other.T @ other)[1], p, q, m))
    assert kstest(found, "uniform").pvalue > 0.01


def test_one_feature_and_one_row_is_the_f_test() -> None:
    assert wilks(log(0.4), 1, 1, 9) == pytest.approx(f_law.sf((1 / 0.4 - 1) * 9, 1, 9))
    assert wilks(-np.inf, 3, 2, 9) == pytest.approx(0.0, abs=1e-100)
    assert wilks(0.0, 3, 2, 9) == 1.0


def test_the_farthest_of_clean_rows_are_there_by_chance_and_a_group_is_not() -> None:
    rng, torn = np.random.default_rng(1), 0
    for _ in range(50):
        A = rng.standard_normal((20, 2))
        d2 = np.sum(A**2, axis=1)
        torn += int(beyond_chance(A, np.ones(20), d2, d2 > np.quantile(d2, 0.7)).sum() > 1)
        off = np.arange(20) < 4
        assert groups_expected(A + 12.0 * off[:, None], np.ones(20), off) < LEVEL
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
