"""Regression under a penalty where columns are few: clean rows count, and wrong ones are found all the same."""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from trimlearn import TrimmedLinearRegression

COEF = np.array([1.0, 2.0, 3.0, 0.0])


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 4))
    return X, X @ COEF + rng.normal(size=n)


def fitted(
    X: np.ndarray, y: np.ndarray, penalty: str = "l1", alpha: float = 0.05
) -> tuple[TrimmedLinearRegression, str]:
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        model = TrimmedLinearRegression(penalty=penalty, alpha=alpha, random_state=0).fit(X, y)
    return model, " ".join(str(warning.message) for warning in caught)


@pytest.mark.parametrize(("penalty", "alpha"), [("l1", 0.05), ("l1", 0.0), ("elasticnet", 0.05), ("mcp", 0.05)])
def test_of_few_clean_rows_hardly_any_is_flagged_and_then_in_doubt(penalty: str, alpha: float) -> None:
    shares = []
    for seed in range(6):
        model, told = fitted(*rows(30, seed), penalty, alpha)
        shares.append(1 - model.inlier_mask_.mean())
        assert shares[-1] <= 0.05 or "It is in doubt whether the rows flagged" in told
    assert np.mean(shares) <= 0.03


def test_where_no_row_is_wrong_the_fit_is_scikit_learns() -> None:
    same = 0
    for seed in range(5):
        X, y = rows(30, seed)
        same += np.allclose(fitted(X, y)[0].coef_, Lasso(0.05).fit(X, y).coef_, atol=1e-4)
    assert same >= 4


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_leverage_points_that_agree_are_found(share: float) -> None:
    found = []
    for seed in range(4):
        X, y = rows(50, seed)
        bad = np.arange(50) < share * 50
        X[bad] += 5.0
        y[bad] += 5.0
        model, _ = fitted(X, y)
        assert model.inlier_mask_[~bad].mean() > 0.9
        found.append(1 - model.inlier_mask_[bad].mean())
    assert np.mean(found) > 0.8


def test_errors_on_both_sides_are_found_that_seem_a_heavy_tail_without_a_penalty() -> None:
    """A mean of fits may take 30 % of the errors at 6 σ on either side for a law with heavy tails."""
    found = []
    for seed in range(4):
        X, y = rows(50, seed)
        y[:15] += 6.0 * np.where(np.arange(15) % 2, 1.0, -1.0)
        model, _ = fitted(X, y)
        assert model.inlier_mask_[15:].mean() > 0.85
        found.append(1 - model.inlier_mask_[:15].mean())
    assert np.mean(found) > 0.9


def test_a_row_that_counts_twice_is_two_rows() -> None:
    X, y = rows(30, 1)
    y[:4] += 12.0
    s = np.where(np.arange(30) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(30), s.astype(int))
    weighted = TrimmedLinearRegression(penalty="l1", alpha=0.05, random_state=0).fit(X, y, sample_weight=s)
    repeated = TrimmedLinearRegression(penalty="l1", alpha=0.05, random_state=0).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_array_equal(weighted.inlier_mask_[twice], repeated.inlier_mask_)
    assert not weighted.inlier_mask_[:4].any()
