"""TrimmedGraphicalLasso: scikit-learn's optimum on the kept rows, breakdown, p > n, bad input, scikit-learn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.covariance import GraphicalLasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from trimlearn.estimators.covariance.graphical_lasso import TrimmedGraphicalLasso
from trimlearn.robust.scatter.graphical_lasso import graphical_lasso, penalised

pytestmark = pytest.mark.filterwarnings("ignore:.*they lie together")  # as the bad rows of some tests do


@pytest.mark.filterwarnings("ignore:features .* do not vary")  # some checks have two distinct rows only
@parametrize_with_checks([TrimmedGraphicalLasso(alpha=0.1, random_state=0)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def chain(n: int, p: int, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a chain of features, of which some form a cluster elsewhere; which; and the edges of the chain."""
    rng = np.random.default_rng(seed)
    Theta = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(np.linalg.inv(Theta)).T
    bad = np.arange(n) < share * n
    X[bad] = rng.standard_normal((int(bad.sum()), p)) + 5 * np.sign(rng.standard_normal(p))
    return X, bad, Theta != 0


# ---- the solver ----


THEIRS = pytest.mark.filterwarnings("ignore:graphical_lasso. did not converge")  # scikit-learn's, near the optimum


@THEIRS
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_the_solver_finds_what_scikit_learn_finds(alpha: float) -> None:
    X = chain(60, 8, 0.0)[0]
    S = np.cov(X.T, bias=True)
    theta, done = graphical_lasso(S, alpha, tol=1e-7)
    theirs = GraphicalLasso(alpha=alpha, tol=1e-8, enet_tol=1e-10, max_iter=500).fit(X).precision_
    assert done
    np.testing.assert_allclose(theta, theirs, atol=1e-4)
    assert penalised(S, theta, alpha) <= penalised(S, theirs, alpha) + 1e-7


def test_the_solver_satisfies_the_optimality_conditions() -> None:
    S = np.cov(chain(20, 30, 0.0)[0].T, bias=True)  # p > n: S is singular
    theta, done = graphical_lasso(S, 0.2, tol=1e-6)
    W = np.linalg.inv(theta)
    off = ~np.eye(30, dtype=bool)
    assert done and np.linalg.eigvalsh(theta).min() > 0
    np.testing.assert_allclose(np.diag(W), np.diag(S), rtol=1e-3)
    assert np.abs(W - S)[off].max() <= 0.2 + 1e-3
    np.testing.assert_allclose((W - S)[off & (theta != 0)], 0.2 * np.sign(theta)[off & (theta != 0)], atol=1e-3)


def test_the_solver_ends_in_few_steps_where_rows_are_as_few_as_features() -> None:
    X = np.random.default_rng(1).standard_normal((11, 10))
    S = np.cov(X.T, bias=True)  # a condition number of thousands: gradient steps alone take more than a thousand
    theta, done = graphical_lasso(S, 0.01, tol=1e-6, max_iter=60)
    W = np.linalg.inv(theta)
    assert done and np.abs(W - S)[~np.eye(10, dtype=bool)].max() <= 0.0101
    # Nothing is penalised.
    exact, done = graphical_lasso(S, 0.0, tol=1e-9, max_iter=60)
    assert done
    np.testing.assert_allclose(exact @ S, np.eye(10), atol=1e-3)


@pytest.mark.parametrize(("n", "p"), [(20, 30), (15, 60)])
def test_the_solver_ends_in_few_steps_where_features_have_common_factors(n: int, p: int) -> None:
    rng = np.random.default_rng([n, p])
    X = 0.5 * rng.standard_normal((n, p)) + rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
    S = np.cov((X * np.exp(rng.standard_normal(p))).T, bias=True)
    theta, done = graphical_lasso(S, 0.01, max_iter=60)
    off = ~np.eye(p, dtype=bool)
    assert done and np.linalg.eigvalsh(theta).min() > 0 and np.any(theta[off] == 0) and np.any(theta[off] != 0)


def test_features_of_scales_from_tiny_to_huge() -> None:
    S = np.cov(chain(60, 4, 0.0)[0].T)
    units = np.array([1e-8, 1.0, 1e3, 1e8])
    theta, done = graphical_lasso(S * np.outer(units, units), 0.0, tol=1e-7)
    assert done
    np.testing.assert_allclose(theta * np.outer(units, units), np.linalg.inv(S), rtol=1e-3)


# ---- the estimator ----


def test_the_smallest_objective_of_all_subsets() -> None:
    X = chain(10, 2, 0.2, seed=3)[0]
    values = []
    for rows in combinations(range(10), 7):
        S = np.cov(X[list(rows)].T, bias=True)
        values.append(penalised(S, graphical_lasso(S, 0.1, tol=1e-8)[0], 0.1))
    model = TrimmedGraphicalLasso(alpha=0.1, contamination=3, reweight=False, tol=1e-7, random_state=0).fit(X)
    assert model.objective_ == pytest.approx(min(values), abs=1e-6)


@THEIRS
@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_as_good_as_without_the_bad_rows(share: float) -> None:
    X, bad, edges = chain(300, 6, share)
    model = TrimmedGraphicalLasso(alpha=0.1, tol=1e-6, random_state=0).fit(X)
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[~bad].mean() > 0.98
    assert model.contamination_ == pytest.approx(share, abs=0.02)
    kept = GraphicalLasso(alpha=0.1, tol=1e-6).fit(X[model.inlier_mask_])
    np.testing.assert_allclose(model.precision_, kept.precision_, atol=1e-3)
    np.testing.assert_allclose(model.location_, kept.location_, atol=1e-12)
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(6), atol=1e-9)
    assert np.all(model.precision_[np.eye(6, k=1, dtype=bool)] != 0)
    assert np.abs(model.precision_[~edges]).max() < 0.1
    values = [record.objective for record in model.history_]
    assert values == sorted(values, reverse=True) and values[-1] == model.objective_ and len(values) == model.n_iter_
    assert model.score(X[~bad]) > model.score(X[bad]) + 10 if share else True


def test_few_clean_rows_are_hardly_ever_flagged() -> None:
    draws = [np.random.default_rng([11, k]).standard_normal((15, 5)) for k in range(20)]
    flagged = [1.0 - TrimmedGraphicalLasso(random_state=0).fit(X).inlier_mask_.mean() for X in draws]
    assert np.mean(flagged) <= 0.03 and np.max(flagged) <= 0.21


def test_no_clean_rows_are_flagged_where_features_are_many() -> None:
    X = np.random.default_rng(0).standard_normal((30, 75))
    assert TrimmedGraphicalLasso(random_state=0).fit(X).inlier_mask_.mean() > 0.9


def test_more_features_than_rows() -> None:
    X, bad, _ = chain(40, 50, 0.2)
    model = TrimmedGraphicalLasso(alpha=0.4, random_state=0).fit(X)
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[~bad].mean() > 0.9
    assert model.predict(X[bad]).tolist() == [-1] * 8
    assert np.linalg.eigvalsh(model.precision_).min() > 0


def test_weights_are_repetitions_and_order_does_not_matter() -> None:
    X = chain(60, 3, 0.2)[0]
    s = np.random.default_rng(0).integers(0, 3, 60)
    a = TrimmedGraphicalLasso(alpha=0.1, tol=1e-7, random_state=0).fit(X, sample_weight=s)
    b = TrimmedGraphicalLasso(alpha=0.1, tol=1e-7, random_state=0).fit(np.repeat(X, s, axis=0)[::-1])
    np.testing.assert_allclose(a.precision_, b.precision_, rtol=1e-5)
    assert a.contamination_ == pytest.approx(b.contamination_)


def test_rethreshold() -> None:
    model = TrimmedGraphicalLasso(alpha=0.1, random_state=0).fit(chain(100, 4, 0.2)[0])
    assert model.rethreshold(0.3).contamination_ == pytest.approx(0.3)
    assert model.raw_weights_.sum() == pytest.approx(70)


def test_bad_input() -> None:
    X = chain(60, 4, 0.0)[0]
    for alpha in (-1.0, "x", True):
        with pytest.raises(ValueError, match="alpha"):
            TrimmedGraphicalLasso(alpha=alpha, random_state=0).fit(X)
    with pytest.raises(ValueError, match="contamination"):
        TrimmedGraphicalLasso(contamination="x", random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        TrimmedGraphicalLasso(alpha=0.01, tol=1e-9, max_iter=1, random_state=0).fit(X)
    X[:, 2] = 1.0
    with pytest.warns(UserWarning, match=r"features \[2\] of X do not vary"):
        model = TrimmedGraphicalLasso(alpha=0.1, random_state=0).fit(X)
    assert np.isfinite(model.precision_).all() and model.inlier_mask_.mean() > 0.9


def test_rows_that_are_all_the_same_have_no_covariance() -> None:
    with pytest.raises(ValueError, match="all rows of X are the same"):
        TrimmedGraphicalLasso().fit(np.ones((20, 2)))
