"""Sparse regression of few rows: where rows far out are explained by one fit and wrong by another, it is said."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, LassoCV

from trimlearn import TrimmedLinearRegression, TrimmedLinearRegressionCV


def _rows(n: int, p: int, bad: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five coefficients of ±2; bad rows are off by 5 in the relevant columns, and by 30 in the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, :5] @ [2.0, -2.0, 2.0, -2.0, 2.0] + rng.standard_normal(n)
    X[:bad, :5] += 5.0
    y[:bad] += 30.0
    return X, y


def _said(model: Any, X: np.ndarray, y: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(one.message) for one in told if "explained by one fit" in str(one.message)]


def test_a_second_explanation_is_told() -> None:
    X, y = _rows(50, 1000, 7, seed=2)
    (said,) = _said(TrimmedLinearRegressionCV(random_state=0), X, y)
    assert said.startswith("7 rows are explained by one fit and wrong by another")
    assert _said(TrimmedLinearRegressionCV(7, random_state=0), X, y) == []  # who gives it, knows


@pytest.mark.parametrize(("n", "p", "bad"), [(100, 150, 0), (50, 300, 0), (100, 150, 15)])
def test_one_explanation_is_not_doubted(n: int, p: int, bad: int) -> None:
    X, y = _rows(n, p, bad, seed=0)
    for model in (TrimmedLinearRegression(penalty="l1", alpha=0.2, random_state=0),
                  TrimmedLinearRegressionCV(random_state=0)):  # fmt: skip
        assert _said(model, X, y) == []
        assert not model.inlier_mask_[:bad].any() and model.inlier_mask_[bad:].mean() > 0.9


def test_a_given_contamination_finds_what_auto_finds() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 150))
    y = X[:, :5] @ [2.0, -2.0, 2.0, -2.0, 2.0] + rng.standard_normal(100)
    X[:15] += 5.0  # far out in all columns: many tiny coefficients pass through such rows, at the least objective
    y[:15] = rng.standard_normal(15) + 30.0
    alpha = float(LassoCV(cv=5).fit(X[15:], y[15:]).alpha_)
    for contamination in ("auto", 15):
        model = TrimmedLinearRegression(contamination, penalty="l1", alpha=alpha, random_state=0).fit(X, y)
        assert not model.inlier_mask_[:15].any() and model.inlier_mask_[15:].mean() > 0.95


def _cluster(n: int, p: int, bad: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bad rows are off by 5 in all columns, and have one target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X[:, :5] @ [2.0, -2.0, 2.0, -2.0, 2.0] + sigma * rng.standard_normal(n)
    X[:bad] += 5.0
    y[:bad] = 30.0 * sigma + sigma * rng.standard_normal(bad)
    return X, y


def test_a_cluster_far_out_does_not_bend_the_fit() -> None:
    """Concentration steps alone end in sets that hold such rows, at errors of many times the best."""
    for seed in range(2):
        X, y = _cluster(100, 150, 15, 0.3, seed)
        model = TrimmedLinearRegressionCV(random_state=0).fit(X, y)
        far = np.abs(y - X[:, :5] @ [2.0, -2.0, 2.0, -2.0, 2.0]) > 3.0
        assert not model.inlier_mask_[far].any() and model.inlier_mask_[15:].mean() > 0.9


def test_of_four_rows_a_coefficient_leverage_points_that_agree_are_found() -> None:
    for seed in range(2):
        X, y = _rows(50, 10, 7, seed)
        for model in (TrimmedLinearRegression(penalty="l1", alpha=0.1, random_state=0),
                      TrimmedLinearRegressionCV(random_state=0)):  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model.fit(X, y)
            assert not model.inlier_mask_[:7].any() and model.inlier_mask_[7:].mean() > 0.85


@pytest.mark.parametrize("penalty", ["scad", "mcp"])
def test_more_columns_than_rows_do_not_end_in_a_poor_minimum(penalty: str) -> None:
    X, y, coef = make_regression(30, 40, n_informative=5, noise=1.0, coef=True, random_state=1)
    model = TrimmedLinearRegression(0, penalty=penalty, alpha=0.1, random_state=0).fit(X, y)
    error, plain = (np.linalg.norm(found - coef) for found in (model.coef_, Lasso(0.1).fit(X, y).coef_))
    assert error < 1.5 * plain  # 45 times as much from zero, through all rows
