"""The numerics of sparse least trimmed squares."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, LassoCV, Ridge

from trimlearn.estimators.linear.sparse import Net, half
from trimlearn.robust.regression.elastic_net import EXACT, elastic_net
from trimlearn.robust.regression.sparse import (
    HonestFit,
    Rows,
    best_rows,
    explain_by_penalty,
    fold_numbers,
    honest,
    settle,
    starts,
)
from trimlearn.robust.regression.sparse_path import PenaltyPath, alpha_grid


def sparse_rows(n: int, p: int, bad: int, seed: int = 0) -> tuple[Rows, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    t = 2 * X[:, 0] - 2 * X[:, 1] + 2 * X[:, 2] + rng.standard_normal(n)
    t[:bad] += 30
    return Rows(X, t, np.ones(n), True), np.arange(n) < bad


@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
def test_weighted_rows_have_scikit_learns_elastic_net(l1_ratio: float, intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((30, 40)) + 3, rng.standard_normal(30)
    c = np.repeat([0.0, 1.0, 2.0], 10)
    found, solved = elastic_net(X, t, c, [0.3, 0.1], l1_ratio, intercept=intercept, tol=EXACT)
    repeated = np.repeat(np.arange(30), c.astype(int))
    for alpha, x in zip((0.3, 0.1), found, strict=True):
        peer = ElasticNet(alpha, l1_ratio=l1_ratio, fit_intercept=intercept, tol=1e-12, max_iter=10**6)
        peer.fit(X[repeated], t[repeated])
        np.testing.assert_allclose(x[:40], peer.coef_, atol=1e-6)
        np.testing.assert_allclose(x[40:], [peer.intercept_][: int(intercept)], atol=1e-6)
    assert solved


def test_without_l1_it_is_ridge_regression_and_without_a_penalty_least_squares() -> None:
    rng = np.random.default_rng(1)
    X, t = rng.standard_normal((12, 20)), rng.standard_normal(12)
    ridge = elastic_net(X, t, np.ones(12), 0.5, 0.0)[0][0]
    np.testing.assert_allclose(ridge[:-1], Ridge(12 * 0.5).fit(X, t).coef_, atol=1e-10)
    shortest = elastic_net(X, t, np.ones(12), 0.0, intercept=False)[0][0]
    np.testing.assert_allclose(shortest, np.linalg.lstsq(X, t, rcond=None)[0], atol=1e-10)


def test_concentration_lowers_the_objective_and_ends_at_a_lasso_of_the_rows_kept() -> None:
    rows, bad = sparse_rows(60, 80, 9)
    net = Net(0.3, 1.0, tol=EXACT).for_rows(rows)
    found, history = explain_by_penalty(rows, net, next(starts(rows, net, 48)), 48)
    assert np.all(np.diff(history) < 0)
    kept = np.argsort(rows.residuals(found) ** 2)[:48]
    assert not bad[kept].any()
    np.testing.assert_allclose(found[:-1], Lasso(0.3, tol=1e-12).fit(rows.X[kept], rows.t[kept]).coef_, atol=1e-5)


def test_honest_residuals_are_of_models_that_have_not_seen_the_row() -> None:
    rows, _ = sparse_rows(40, 60, 0)
    fold = fold_numbers(40)
    net = Net(0.1, 1.0).for_rows(rows)
    fit = honest(rows, net, fold)(np.ones(40), None)
    other = Lasso(0.1).fit(rows.X[fold != 3], rows.t[fold != 3])
    np.testing.assert_allclose(fit.r[fold == 3], (rows.t - other.predict(rows.X))[fold == 3], atol=0.05)
    assert np.mean(fit.r**2) > np.mean(rows.residuals(fit.x) ** 2)


def test_rows_that_take_turns_in_being_explained_count_all() -> None:
    """Two rows, each of which models that have not seen it miss, and the fit to the others does not."""
    n = 20
    rows = Rows(np.zeros((n, 1)), np.zeros(n), np.ones(n), True)
    others = np.linspace(-1.5, 1.5, n - 2)

    def fitted(c: np.ndarray, x0: np.ndarray | None) -> HonestFit:
        return HonestFit(np.zeros(2), c, np.append(np.where(c[:2] > 0, 10.0, 0.5), others))

    found = settle(rows, fitted, np.append([1.0, 0.0], np.ones(n - 2)), 11.0)
    assert found is not None and found.fit.c.all()


@pytest.mark.parametrize("bad", [0, 15, 30])
def test_the_rows_explained_are_the_good_ones(bad: int) -> None:
    rows, wrong = sparse_rows(100, 150, bad, seed=bad)
    net = Net(0.2, 1.0).for_rows(rows)
    found = best_rows(rows, net, lambda rows: honest(rows, net, fold_numbers(100)), half(rows)).fit.c > 0
    assert not found[wrong].any()
    assert found[~wrong].mean() >= 0.95


def test_the_path_on_clean_rows_is_that_of_scikit_learns_lasso_cv() -> None:
    rows, _ = sparse_rows(60, 30, 0)
    fold = fold_numbers(60)
    splits = [(fold != k, fold == k) for k in range(5)]
    alphas = alpha_grid(rows, rows.s, 1.0, 20, 1e-2)
    found = PenaltyPath(rows, splits, [1.0], [alphas]).validate(rows.s)
    peer = LassoCV(alphas=20, eps=1e-2, cv=[(np.flatnonzero(a), np.flatnonzero(b)) for a, b in splits])
    peer.fit(rows.X, rows.t)
    np.testing.assert_allclose(alphas, peer.alphas_)
    np.testing.assert_allclose(found.mse[0], peer.mse_path_, rtol=1e-2)
    assert found.alpha == pytest.approx(peer.alpha_)
