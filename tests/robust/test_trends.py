"""Residuals that depend on where a row lies: a curve, or errors that grow; and what the user is told."""

from __future__ import annotations

from collections.abc import Callable
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from scipy.sparse import csr_array

from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression.misfit import bends, drifts, widens


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def residuals(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    A = np.column_stack([X, np.ones(len(y))])
    fitted = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return fitted, y - fitted


@pytest.mark.parametrize(("n", "p"), [(40, 1), (60, 10), (300, 3)])
def test_clean_rows_neither_bend_nor_widen(rng: np.random.Generator, n: int, p: int) -> None:
    said = []
    for _ in range(300):
        X = rng.standard_normal((n, p))
        about = X, *residuals(X, X.sum(axis=1) + rng.standard_normal(n)), np.full(n, True)
        said.append((bends(*about), widens(*about)))
    assert np.all(np.mean(said, axis=0) <= 0.01)


def test_errors_that_grow_are_no_bend(rng: np.random.Generator) -> None:
    said = []
    for _ in range(200):
        x = rng.uniform(0, 10, 80)
        about = x[:, None], *residuals(x[:, None], x + x * rng.standard_normal(80)), np.full(80, True)
        said.append((bends(*about), widens(*about)))
    bent, wide = np.mean(said, axis=0)
    assert bent <= 0.02 and wide >= 0.9


def test_a_bend_is_found_in_any_column_dense_or_sparse(rng: np.random.Generator) -> None:
    X = rng.standard_normal((150, 3))
    fitted, r = residuals(X, X[:, 0] + X[:, 2] ** 2 + rng.standard_normal(150))
    on = np.full(150, True)
    assert bends(X, fitted, r, on) and bends(csr_array(X), fitted, r, on)
    assert not bends(X, fitted, r, np.arange(150) < 10)  # too few rows to tell
    two = (X > 0).astype(float)
    assert not bends(two, *residuals(two, two.sum(axis=1) + rng.standard_normal(150)), on)  # squares that are columns


def test_a_curve_is_called_a_curve(rng: np.random.Generator) -> None:
    x = rng.uniform(0, 10, 200)
    y = 0.1 * x**2 + x + 0.5 * rng.standard_normal(200)
    y[:3] += 20
    with pytest.warns(UserWarning, match="bend along the fit"):
        TrimmedLinearRegression(random_state=0).fit(x[:, None], y)


def test_errors_that_grow_are_called_so(rng: np.random.Generator) -> None:
    x = rng.uniform(0, 10, 600)  # of half as many no row is flagged
    with pytest.warns(UserWarning, match="change their size"):
        TrimmedLinearRegression(random_state=0).fit(x[:, None], x + 0.4 * x * rng.standard_normal(600))


@pytest.mark.parametrize("growth", [np.abs, lambda x: np.exp(0.7 * x)])
def test_errors_that_grow_along_one_feature_or_on_either_side_of_it_are_seen(
    rng: np.random.Generator, growth: Callable[[np.ndarray], np.ndarray]
) -> None:
    seen, clean = [], []
    for _ in range(40):
        X, noise = rng.standard_normal((150, 4)), rng.standard_normal(150)
        y = 20 * X[:, 0] - 20 * X[:, 1]  # predictions do not tell where errors are large
        on = np.full(150, True)
        seen.append(widens(X, *residuals(X, y + (0.3 + growth(X[:, 3])) * noise), on))
        clean.append(widens(X, *residuals(X, y + noise), on))
    assert np.mean(seen) >= 0.9 and np.mean(clean) <= 0.025


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_prices_whose_errors_multiply_them_are_told_though_no_row_is_flagged(seed: int) -> None:
    """Of skewed errors that grow, slopes are told where errors are dense: half of those of the mean."""
    rng = np.random.default_rng([77, seed])
    X = rng.standard_normal((500, 2))
    y = 10 * np.exp(X @ [0.3, 0.15] + 0.4 * rng.standard_normal(500))
    with pytest.warns(UserWarning, match="has other slopes"):
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    A = np.column_stack([X, np.ones(500)])
    assert model.inlier_mask_.all() and model.coef_[0] < 0.8 * np.linalg.lstsq(A, y, rcond=None)[0][0]


def test_a_fit_drifts_where_least_squares_is_another(rng: np.random.Generator) -> None:
    X = rng.standard_normal((150, 3))
    fitted, r = residuals(X, rng.standard_normal(150))
    on = np.full(150, True)
    other = r + 0.5 * fitted / fitted.std()
    assert not drifts(X, fitted, r, on) and not drifts(X, fitted, r + 9.0, on)
    assert drifts(X, fitted, other, on) and drifts(csr_array(X), fitted, other, on)
    assert not drifts(X, fitted, other, np.arange(150) < 10)  # too few rows to tell
    assert not drifts(X, np.ones(150), other, on) and not drifts(X, fitted, np.ones(150), on)


def test_least_squares_counts_rows_by_their_weights_where_it_is_asked_for_other_slopes(
    rng: np.random.Generator,
) -> None:
    x, s = rng.standard_normal(150), rng.choice([1.0, 20.0], 150)
    r = np.where(s > 1, 0.02, 0.5) * x + 0.1 * rng.standard_normal(150)
    on, again = np.full(150, True), np.repeat(np.arange(150), s.astype(int))
    assert drifts(x[:, None], x, r, on) and not drifts(x[:, None], x, r, on, s)
    assert not drifts(x[again, None], x[again], r[again], np.full(len(again), True))


def test_a_ridge_penalty_is_not_told_as_errors_that_change_their_size(rng: np.random.Generator) -> None:
    """It shrinks slopes on purpose: least squares has others by as much."""
    X = rng.standard_normal((100, 3))
    y = X @ [1.0, 0.5, -1.0] + rng.standard_normal(100)
    with catch_warnings():
        simplefilter("error")
        TrimmedLinearRegression(penalty="l2", alpha=50.0, random_state=0).fit(X, y)


def test_a_constant_column_and_a_sparse_one_are_no_trend(rng: np.random.Generator) -> None:
    X = np.column_stack([np.ones(100), rng.standard_normal(100) * (rng.random(100) < 0.1)])
    about = residuals(X[:, 1:], rng.standard_normal(100)), np.full(100, True)
    assert not widens(X, *about[0], about[1]) and not widens(csr_array(X), *about[0], about[1])


def test_rows_flagged_where_a_feature_makes_errors_large_are_doubted() -> None:
    told = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 3))
        y = X.sum(axis=1) + rng.standard_normal(600) * (0.3 + 2 * np.abs(X[:, 0]))
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            model = TrimmedLinearRegression(random_state=0).fit(X, y)
        said = [str(warning.message) for warning in caught]
        told += any("change their size along the fit or a feature" in message for message in said)
        assert model.inlier_mask_.mean() >= 0.95 or said
    assert told >= 2


def test_few_rows_in_a_skewed_tail_are_doubted() -> None:
    rng = np.random.default_rng(2)  # three rows are flagged
    X = rng.standard_normal((60, 2))
    y = X.sum(axis=1) + rng.exponential(size=60)
    with pytest.warns(UserWarning, match="skewed"):
        TrimmedLinearRegression(efficiency="mm", random_state=0).fit(X, y)
    assert TrimmedLinearRegression(random_state=0).fit(X, y).inlier_mask_.all()  # skewed errors are among its laws


def test_gross_errors_on_a_line_are_not_doubted(rng: np.random.Generator) -> None:
    X = rng.standard_normal((120, 2))
    y = X.sum(axis=1) + rng.standard_normal(120)
    y[:9] += 12
    model = TrimmedLinearRegression(random_state=0).fit(X, y)  # a warning would be an error
    assert not model.inlier_mask_[:9].any()
