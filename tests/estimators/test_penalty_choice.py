"""Penalties chosen by cross-validation that wrong rows do not mislead, and sparse fits at default."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trimlearn import (
    TrimmedGraphicalLassoCV,
    TrimmedLinearRegression,
    TrimmedLinearRegressionCV,
    TrimmedLogisticRegressionCV,
)
from trimlearn.estimators.penalty_choice import check_grid, check_ratios


def sparse_data(n: int, p: int, bad: int, kind: str = "vertical", seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """X, y, which rows are wrong, and the coefficients."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((n, p)), np.zeros(p)
    coef[:5] = [2, -2, 2, -2, 2]
    y = X @ coef + rng.standard_normal(n)
    wrong = np.arange(n) < bad
    if kind == "both":
        X[wrong, :5] += 5
    if kind == "leverage":
        X[wrong] += 5
        y[wrong] = 0
    y[wrong] += 30
    return X, y, wrong, coef


@pytest.mark.parametrize("kind", ["vertical", "leverage", "both"])
def test_more_columns_than_rows_hide_no_outlier(kind: str) -> None:
    X, y, wrong, _ = sparse_data(100, 150, 15, kind, seed=3)
    model = TrimmedLinearRegression(penalty="l1", alpha=0.15, random_state=0).fit(X, y)
    assert not model.inlier_mask_[wrong].any()
    assert model.inlier_mask_[~wrong].mean() >= 0.95
    assert abs(model.contamination_ - 0.15) < 0.05
    assert model.outlier_probability_[wrong].min() > 0.9
    assert np.all(model.outlier_scores_[wrong] > model.threshold_)


@pytest.mark.parametrize("penalty", ["elasticnet", "scad", "mcp", "l0", "l2"])
def test_every_penalty_finds_them(penalty: str) -> None:
    X, y, wrong, _ = sparse_data(60, 80, 9, seed=1)
    model = TrimmedLinearRegression(penalty=penalty, alpha=0.3, random_state=0).fit(X, y)
    assert not model.inlier_mask_[wrong].any()


def test_the_penalty_chosen_is_as_good_as_the_one_for_the_clean_rows() -> None:
    X, y, wrong, coef = sparse_data(100, 150, 15, seed=4)
    model = TrimmedLinearRegressionCV(random_state=0).fit(X, y)
    oracle = LassoCV(cv=5).fit(X[~wrong], y[~wrong])
    error, least = (float(np.sum((m.coef_ - coef) ** 2)) for m in (model, oracle))
    assert error <= 1.3 * least
    assert model.mse_path_.shape == (100, 25)  # five folds, five times
    assert model.alpha_ in model.alphas_
    assert np.argmin(model.mse_path_.mean(axis=1)) == np.flatnonzero(model.alphas_ == model.alpha_)[0]


def test_the_penalty_does_not_hang_on_which_rows_share_a_fold() -> None:
    """Five folds once choose a 25th of the penalty that is best here, at 3.4 times the error."""
    X, y, wrong, coef = sparse_data(60, 90, 9, seed=9)
    model = TrimmedLinearRegressionCV(random_state=0).fit(X, y)
    oracle = LassoCV(cv=5).fit(X[~wrong], y[~wrong])
    error, least = (float(np.sum((m.coef_ - coef) ** 2)) for m in (model, oracle))
    assert error <= 1.3 * least
    assert TrimmedLinearRegressionCV(cv=5, random_state=0).fit(X, y).mse_path_.shape == (100, 5)  # as it is said


@pytest.mark.parametrize(("n", "p"), [(20, 5), (50, 10), (100, 150)])
def test_clean_rows_are_hardly_ever_flagged(n: int, p: int) -> None:
    flagged = []
    for seed in range(3):
        X, y, _, _ = sparse_data(n, p, 0, seed=10 + seed)
        flagged.append(np.mean(~TrimmedLinearRegressionCV(n_alphas=15, random_state=0).fit(X, y).inlier_mask_))
    assert np.mean(flagged) <= 0.03


def test_the_order_of_rows_does_not_matter_nor_how_weights_are_spelled() -> None:
    X, y, _, _ = sparse_data(40, 20, 6)
    model = TrimmedLinearRegressionCV(n_alphas=8, cv=3, random_state=0)
    whole = clone(model).fit(X, y)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(clone(model).fit(X[order], y[order]).coef_, whole.coef_, atol=1e-9)
    twice = clone(model).fit(np.vstack([X, X[:10]]), np.append(y, y[:10]))
    weighed = clone(model).fit(X, y, sample_weight=np.where(np.arange(40) < 10, 2.0, 1.0))
    np.testing.assert_allclose(weighed.coef_, twice.coef_, atol=1e-9)
    assert weighed.alpha_ == pytest.approx(twice.alpha_)


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0), [(range(30), range(30, 40))]])
def test_folds_are_given_as_in_scikit_learn(cv: Any) -> None:
    X, y, wrong, _ = sparse_data(40, 20, 6)
    model = TrimmedLinearRegressionCV(alphas=[1.0, 0.1, 0.5], cv=cv, random_state=0).fit(X, y)
    assert model.alphas_.tolist() == [1.0, 0.5, 0.1]
    assert model.mse_path_.shape[0] == 3
    assert not model.inlier_mask_[wrong].any()


def test_several_shares_of_l1_are_tried() -> None:
    X, y, _, _ = sparse_data(60, 20, 6)
    model = TrimmedLinearRegressionCV(
        penalty="elasticnet", l1_ratio=[0.2, 0.9], alphas=15, n_jobs=2, random_state=0
    ).fit(X, y)
    assert model.l1_ratio_ in (0.2, 0.9)
    assert model.alphas_.shape == (2, 15)
    assert model.mse_path_.shape == (2, 15, 25)


def test_what_the_plain_estimator_offers_is_there() -> None:
    X, y, wrong, _ = sparse_data(60, 80, 9)
    model = TrimmedLinearRegressionCV(n_alphas=10, random_state=0).fit(X, y)
    alpha, path = model.alpha_, model.mse_path_
    assert set(model.flag(0.05)) == set(np.flatnonzero(wrong))
    assert model.outlier_table().outlier[:9].all()
    assert model.score(X[~wrong], y[~wrong]) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.rethreshold(0.3)
    assert model.contamination_ == pytest.approx(0.3)
    assert model.alpha_ == alpha
    assert model.mse_path_ is path
    with pytest.raises(ValueError, match="selects coefficients"):
        model.summary()


def test_offsets_units_and_storage_do_not_matter() -> None:
    X, y, wrong, _ = sparse_data(60, 80, 9)
    model = TrimmedLinearRegressionCV(n_alphas=10, cv=3, random_state=0)
    plain = clone(model).fit(X, y)
    far = clone(model).fit(X + 1e6, y - 1e6)
    np.testing.assert_allclose(far.coef_, plain.coef_, atol=1e-4)
    scaled = clone(model).fit(X, 1e6 * y)
    np.testing.assert_allclose(scaled.coef_, 1e6 * plain.coef_, rtol=1e-4, atol=1e-2)
    stored = clone(model).fit(csr_array(X), y)
    np.testing.assert_allclose(stored.coef_, plain.coef_, atol=1e-9)
    single = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == np.float32
    assert not single.inlier_mask_[wrong].any()
    make_pipeline(StandardScaler(), clone(model)).fit(X, y)


def test_a_fit_through_all_rows_is_said_to_be_one() -> None:
    X, y, _, _ = sparse_data(30, 60, 0)
    with pytest.warns(UserWarning, match="parameters for .* rows"):
        TrimmedLinearRegression(penalty="l1", alpha=0.0, random_state=0).fit(X, y)


def test_rows_judged_by_models_that_have_not_seen_them_are_wrong_for_sure_however_many_columns_are_in_use() -> None:
    rng = np.random.default_rng(6001)
    X = rng.standard_normal((50, 300))
    y = X[:, :5] @ [2.0, -2.0, 2.0, -2.0, 2.0] + rng.standard_normal(50)
    y[:7] += 40.0 * np.where(np.arange(7) % 2, 1.0, -1.0)
    model = TrimmedLinearRegressionCV(alphas=[1e-2], random_state=0).fit(X, y)
    assert np.count_nonzero(model.coef_) > 35 and not model.inlier_mask_[:7].any()
    assert model.outlier_probability_[:7].min() > 0.9 and model.outlier_probability_[7:].max() < 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "scad"}, "penalty"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"n_alphas": 0}, "n_alphas"),
        ({"eps": 2}, "eps"),
        ({"cv": 1}, "cv"),
        ({"penalty": "elasticnet", "l1_ratio": 2}, "l1_ratio"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    X, y, _, _ = sparse_data(30, 5, 0)
    with pytest.raises(ValueError, match=message):
        TrimmedLinearRegressionCV(**options).fit(X, y)


# -- labels -----------------------------------------------------------------------------------------------------------


def test_wrong_labels_do_not_choose_the_penalty() -> None:
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 150)
    X = rng.standard_normal((300, 10))
    X[:, 0] += np.where(y == 1, 2.5, -2.5)
    labels = np.where(np.arange(300) < 60, 1 - y, y)
    model = TrimmedLogisticRegressionCV(Cs=[1e-3, 0.1, 10.0], random_state=0).fit(X, labels)
    assert model.C_ >= 0.1
    assert model.C == model.C_
    assert model.scores_.shape == (3, 5)
    assert model.Cs_.tolist() == [1e-3, 0.1, 10.0]
    assert np.mean(model.inlier_mask_[:60]) < 0.2
    assert np.mean(model.predict(X) == y) > 0.9
    chosen = model.C_
    assert model.rethreshold(0.25).C_ == chosen


def test_errors_name_cs() -> None:
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.tile([0, 1], 10)
    with pytest.raises(ValueError, match="Cs must be positive"):
        TrimmedLogisticRegressionCV(Cs=[0.0, 1.0]).fit(X, y)


# -- precision matrices -----------------------------------------------------------------------------------------------


def chain(n: int, p: int, bad: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a Markov chain, the first of them wrong, and the chain's precision."""
    theta = np.eye(p) + np.diag(np.full(p - 1, 0.4), 1) + np.diag(np.full(p - 1, 0.4), -1)
    X = np.random.default_rng(0).multivariate_normal(np.zeros(p), np.linalg.inv(theta), n)
    X[:bad] = 6 * np.sign(X[:bad])
    return X, theta


def test_bad_rows_do_not_choose_the_graph() -> None:
    X, theta = chain(200, 8, 20)
    model = TrimmedGraphicalLassoCV(random_state=0).fit(X)
    results = model.cv_results_
    assert model.alpha_ == results["alphas"][np.argmax(results["mean_test_score"])]
    assert len(results["split4_test_score"]) == len(results["alphas"]) == len(results["std_test_score"])
    assert np.mean(model.inlier_mask_[:20]) < 0.1
    clean = TrimmedGraphicalLassoCV(random_state=0).fit(X[20:])
    error, least = (float(np.linalg.norm(m.precision_ - theta)) for m in (model, clean))
    assert error <= 1.3 * least


def test_alphas_may_be_given() -> None:
    X, _ = chain(100, 5, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrimmedGraphicalLassoCV([0.3, 0.01, 0.1], cv=3, random_state=0).fit(X)
    assert model.cv_results_["alphas"].tolist() == [0.3, 0.1, 0.01]
    assert "split3_test_score" not in model.cv_results_


def test_text_is_no_grid() -> None:
    with pytest.raises(ValueError, match="alphas must be a whole number or a list"):
        check_grid("many", "alphas", np.zeros)
    with pytest.raises(ValueError, match="l1_ratio must be a number"):
        check_ratios("half", "l1_ratio")


@pytest.mark.filterwarnings("ignore:.*(a rule of their own|y holds only 2)")  # which is true as well
def test_targets_of_two_values_overflow_nothing() -> None:
    for seed in (0, 2):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 5))
        y = X[:, 0] + 0.3 * rng.standard_normal(60) > 0
        y[:4] = ~y[:4]
        with pytest.warns(UserWarning, match="lie exactly on the fit"):
            TrimmedLinearRegressionCV(n_alphas=20, random_state=0).fit(X, y.astype(float))
