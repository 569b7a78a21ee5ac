"""TrimmedEstimator: any scikit-learn model, as good on dirty data as on the clean rows of it."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lars, LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from trimlearn import outlier_table
from trimlearn.datasets import load_digits_contaminated
from trimlearn.estimators.meta.crossfit import EncodedExamples, content_splits, fit_weighted, weight_argument
from trimlearn.estimators.meta.foretold import features_as_numbers, foretold
from trimlearn.estimators.meta.targets import NumericTarget
from trimlearn.estimators.meta.wrapper import TrimmedEstimator


# Skipped: what needs SCIPY_ARRAY_API set or a GPU. The warnings are LogisticRegression's own: lbfgs on unscaled data.
@pytest.mark.usefixtures("quick_fits")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:up to .* of the labels may be wrong")  # some have labels that X says nothing about
@pytest.mark.filterwarnings("ignore:the features explain the labels no better than chance")
@pytest.mark.filterwarnings("ignore:.* of the rows do not follow the trimmed fit")  # some have 15 rows of 10 features
@parametrize_with_checks(
    [TrimmedEstimator(LogisticRegression(), random_state=0), TrimmedEstimator(Ridge(), random_state=0)]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# -- how good ---------------------------------------------------------------------------------------------------------


def split(X: np.ndarray, y: np.ndarray, how: str) -> tuple[Any, ...]:
    """A fifth of the training targets off by 5 to 15 standard deviations of y, up and down or all up by 10."""
    rng = np.random.default_rng(0)
    train = np.arange(len(y)) % 4 != 0
    dirty = y[train].copy()
    bad = np.zeros(len(dirty), dtype=bool)
    bad[rng.choice(len(dirty), len(dirty) // 5, replace=False)] = True
    off = rng.uniform(5, 15, bad.sum()) * rng.choice([-1, 1], bad.sum()) if how == "both ways" else 10.0
    dirty[bad] += y.std() * off
    return X[train], dirty, bad, X[~train], y[~train]


def rmse(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


REGRESSORS = [
    RandomForestRegressor(20, random_state=0),
    HistGradientBoostingRegressor(max_iter=40),
    make_pipeline(StandardScaler(), Ridge()),
]


@pytest.mark.parametrize(("data", "how"), [("friedman", "both ways"), ("diabetes", "up")])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_regression_is_as_good_as_on_the_clean_rows(data: str, model: Any, how: str) -> None:
    X, y = make_friedman1(500, noise=1.0, random_state=0) if data == "friedman" else load_diabetes(return_X_y=True)
    X, y, bad, X_test, y_test = split(X, y, how)
    clean = rmse(clone(model).fit(X[~bad], y[~bad]), X_test, y_test)
    trimmed = TrimmedEstimator(model, random_state=0).fit(X, y)
    assert rmse(trimmed, X_test, y_test) <= 1.1 * clean < rmse(clone(model).fit(X, y), X_test, y_test)
    assert abs(trimmed.contamination_ - 0.2) < 0.05
    assert not trimmed.inlier_mask_[bad].any() and trimmed.inlier_mask_[~bad].mean() > 0.95


CLASSIFIERS = [
    RandomForestClassifier(30, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=8),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_digits_with_wrong_labels_are_learnt_as_from_right_ones(model: Any) -> None:
    digits = load_digits_contaminated(0.2)
    train = np.arange(len(digits.y)) % 3 != 0
    X, y, bad = digits.X[train], digits.y[train], digits.is_wrong[train]
    X_test, y_test = digits.X[~train], digits.y_true[~train]
    clean = clone(model).fit(X[~bad], y[~bad]).score(X_test, y_test)
    trimmed = TrimmedEstimator(model, max_iter=5, tol=0.02, random_state=0).fit(X, y)
    assert trimmed.score(X_test, y_test) > clean - 0.02
    assert abs(trimmed.contamination_ - bad.mean()) < 0.05
    assert trimmed.inlier_mask_[bad].mean() < 0.1 and trimmed.inlier_mask_[~bad].mean() > 0.98


def test_in_sample_losses_would_not_do_for_a_tree() -> None:
    """A tree explains what it was fitted on, so that nobody who is kept ever leaves: why cv is not None by default."""
    X, y, bad, _, _ = split(*make_friedman1(300, noise=0.5, random_state=0), "both ways")
    tree = DecisionTreeRegressor(random_state=0)
    blind = TrimmedEstimator(tree, contamination=0.2, cv=None, reweight=False, random_state=0).fit(X, y)
    fair = TrimmedEstimator(tree, contamination=0.2, reweight=False, random_state=0).fit(X, y)
    assert fair.inlier_mask_[bad].mean() < 0.3 < 0.6 < blind.inlier_mask_[bad].mean()


def test_balanced_trimming_keeps_each_class_its_share() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [380, 20])
    X = rng.standard_normal((400, 2)) + 1.5 * y[:, None]
    rare = {
        balanced: TrimmedEstimator(
            LogisticRegression(), contamination=0.1, reweight=False, balanced_trimming=balanced, random_state=0
        )
        .fit(X, y)
        .weights_[y == 1]
        .sum()
        for balanced in (False, True)
    }
    assert rare[True] == pytest.approx(18) and rare[False] < 10


# -- what the features predict is not wrong ---------------------------------------------------------------------------


def steep(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows without a wrong number, most of which lie elsewhere than the others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    noise = rng.standard_normal(n)
    if kind == "step":
        return X, 8.0 * (X[:, 0] > 0.9) + 0.3 * noise
    if kind == "zeros":
        return X, np.where(X[:, 0] > 0.5, 3 + 10 * X[:, 0] + noise, 0.0)
    if kind == "group":
        X[:, 1] = rng.random(n) < 0.06
        return X, X[:, 0] + 20 * X[:, 1] + noise
    return X, np.exp(4 * X[:, 0]) + noise


@pytest.mark.filterwarnings("ignore:.* of the rows do not follow the trimmed fit")
@pytest.mark.filterwarnings("ignore:.* but the errors of the others change their size")  # as they do among zeros
@pytest.mark.parametrize("kind", ["step", "zeros", "group", "curve"])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
        KNeighborsRegressor(5),
        HistGradientBoostingRegressor(max_iter=30, random_state=0),
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", alpha=0.1, gamma=0.5)),
    ],
    ids=["tree", "neighbours", "boosting", "kernel ridge"],
)
def test_a_region_that_the_model_learns_is_not_cut_out(model: Any, kind: str) -> None:
    X_test, y_test = steep(kind, 1000, seed=99)
    for seed in (0, 1):
        X, y = steep(kind, 200, seed)
        trimmed = TrimmedEstimator(model, random_state=0).fit(X, y)
        assert rmse(trimmed, X_test, y_test) <= 1.1 * rmse(clone(model).fit(X, y), X_test, y_test)


def test_that_nothing_is_trimmed_because_the_features_predict_it_is_said() -> None:
    X, y = steep("step", 200, seed=0)
    with pytest.warns(UserWarning, match="the features predict them"):
        model = TrimmedEstimator(KNeighborsRegressor(5), random_state=0).fit(X, y)
    assert model.inlier_mask_.all() and model.contamination_ == 0
    fold = content_splits(rows(X, y), 3, seed=0)[0]
    off = np.abs(y[fold[1]] - KNeighborsRegressor(5).fit(X[fold[0]], y[fold[0]]).predict(X[fold[1]]))
    np.testing.assert_allclose(model.outlier_scores_[fold[1]], off / model.scale_)  # by untrimmed models as well


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_wrong_numbers_beside_a_curve_are_found(share: float) -> None:
    X, y = steep("curve", 300, seed=0)
    bad = np.random.default_rng(1).permutation(300)[: int(300 * share)]
    y[bad] += 150.0
    tree = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
    model = TrimmedEstimator(tree, random_state=0).fit(X, y)
    assert model.inlier_mask_[bad].mean() < 0.1 and np.delete(model.inlier_mask_, bad).mean() > 0.9


def flagged_group(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Right rows, of which those with a 1 in the last column are larger by 10."""
    rng = np.random.default_rng(seed)
    told = rng.random(n) < share
    X = np.column_stack([rng.standard_normal((n, 4)), told])
    return X, X @ [1, 2, -1, 0.5, 10] + 0.5 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore:.* of the rows do not follow the trimmed fit, but the features predict them")
@pytest.mark.parametrize(
    ("model", "share", "seed"),
    [
        (HistGradientBoostingRegressor(max_iter=50, random_state=0), 0.1, 3),  # 21 rows: in folds fewer than in a leaf
        (KNeighborsRegressor(5), 0.1, 3),  # that one column tells is hardly seen by distances
        (KNeighborsRegressor(5), 0.05, 0),
    ],
    ids=["boosting", "neighbours", "few"],
)
def test_a_group_that_one_column_tells_is_not_lost(model: Any, share: float, seed: int) -> None:
    X, y = flagged_group(900, share, seed)
    trimmed = TrimmedEstimator(model, random_state=0).fit(X[:300], y[:300])
    assert trimmed.inlier_mask_[X[:300, 4] == 1].all()
    assert trimmed.score(X[300:], y[300:]) > clone(model).fit(X[:300], y[:300]).score(X[300:], y[300:]) - 0.02


def test_a_group_is_told_apart_from_wrong_numbers_beside_and_within_it() -> None:
    X, y = flagged_group(300, 0.1, seed=0)
    bad = np.random.default_rng(1).permutation(300)[:30]
    y[bad] += 40
    assert X[bad, 4].any()
    model = TrimmedEstimator(KNeighborsRegressor(5), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    right = np.delete(np.arange(300), bad)
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[right].mean() > 0.95
    assert model.inlier_mask_[right][X[right, 4] == 1].mean() > 0.9


def test_a_group_is_found_in_any_order_of_the_rows() -> None:
    X, y = flagged_group(150, 0.1, seed=0)
    model = TrimmedEstimator(KNeighborsRegressor(5), random_state=0)
    order = np.random.default_rng(0).permutation(150)
    with pytest.warns(UserWarning, match="the features predict them"):
        weights = model.fit(X, y).weights_
    with pytest.warns(UserWarning, match="the features predict them"):
        np.testing.assert_array_equal(model.fit(X[order], y[order]).weights_, weights[order])
    twice = np.tile(np.arange(150), 2)  # copies are known as such, and prove nothing
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[twice], y[twice])
    assert np.array_equal(model.weights_[:150], model.weights_[150:]) and len(caught) == 1


def test_a_group_that_the_model_cannot_learn_is_told_of() -> None:
    X, y = (part[:300] for part in flagged_group(900, 0.05, seed=1))  # 16 rows, of 20 to a leaf
    boosting = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    with pytest.warns(UserWarning, match="the features foretell 16 of them") as caught:
        model = TrimmedEstimator(boosting, random_state=0).fit(X, y)
    assert len(caught) == 1 and not model.inlier_mask_[X[:, 4] == 1].any()


@pytest.mark.parametrize("seed", [4, 8, 9])
def test_that_a_line_fits_neither_end_of_a_curve_is_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((900, 4))[:300]
    y = np.exp(X @ [0.6, 1.2, -0.6, 0.3] + 0.5 * rng.standard_normal(900)[:300])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TrimmedEstimator(Ridge(1e-3), random_state=0).fit(X, y)
    doubts = [str(one.message) for one in caught if one.category is UserWarning]
    assert len(doubts) == 1 and "foretell" in doubts[0]


@pytest.mark.parametrize(
    ("kind", "says"), [("skewed", "one skewed law"), ("grows", "change their size"), ("bends", "bend along the fit")]
)
def test_the_doubts_of_a_linear_regression_are_told_of_any_model(kind: str, says: str) -> None:
    rng = np.random.default_rng(1)
    X, noise = rng.uniform(size=(300, 2)), rng.standard_normal(300)
    errors = {
        "skewed": np.exp(noise),
        "grows": (0.2 + X[:, 0]) * noise,
        "bends": 4 * (X[:, 0] - 0.5) ** 2 + 0.3 * rng.standard_t(2, size=300),
    }
    with pytest.warns(UserWarning, match=says) as caught:
        TrimmedEstimator(LinearRegression(), random_state=0).fit(X, X @ [5, 3] + errors[kind])
    assert len(caught) == 1


@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_nothing_foretells_who_is_wrong_at_random(share: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = np.column_stack([rng.standard_normal((200, 3)), rng.random(200) < 0.1])
        assert not foretold(X, rng.random(200) < share).any()


def test_texts_foretell_as_numbers_do() -> None:
    colours = np.array(["red", "green", "blue", "white"] * 50, dtype=object)
    X = features_as_numbers(np.column_stack([np.arange(200.0).astype(object), colours]))
    np.testing.assert_array_equal(X[:, 0], np.arange(200))
    np.testing.assert_array_equal(foretold(X, colours == "green"), colours == "green")
    assert features_as_numbers(["a text", "another"]) is None


def test_appeals_do_not_depend_on_the_order_of_the_rows_nor_on_how_they_are_repeated() -> None:
    X, y = steep("curve", 80, seed=1)
    y[::9] -= 100
    smooth = TrimmedEstimator(KernelRidge(kernel="rbf", alpha=0.1, gamma=5.0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        weights = smooth.fit(X, y).weights_
        order = np.random.default_rng(0).permutation(80)
        np.testing.assert_array_equal(smooth.fit(X[order], y[order]).weights_, weights[order])
        s = np.tile([1.0, 2.0], 40)
        weighted = smooth.fit(X, y, sample_weight=s).weights_
        twice = np.repeat(np.arange(80), s.astype(int))
        np.testing.assert_array_equal(smooth.fit(X[twice], y[twice]).weights_, weighted[twice])


# -- what it means ----------------------------------------------------------------------------------------------------


def line(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The first ten are wrong, and lie anywhere."""
    X = np.linspace(0, 6, n)[11 * np.arange(n) % n, None]
    y = 2 * X[:, 0] + 0.1 * np.sin(37 * np.arange(n))
    y[:10] += np.tile([-20.0, 20.0], 5)
    return X, y


def test_the_final_fit_is_the_models_own_on_the_rows_that_count() -> None:
    X, y = line()
    model = TrimmedEstimator(LinearRegression(), random_state=0).fit(X, y)
    assert np.flatnonzero(~model.inlier_mask_).tolist() == list(range(10))
    own = LinearRegression().fit(X[10:], y[10:])
    np.testing.assert_allclose(model.estimator_.coef_, own.coef_)
    np.testing.assert_allclose(model.predict(X), own.predict(X))
    assert model.score(X[10:], y[10:]) == pytest.approx(own.score(X[10:], y[10:]))
    assert model.contamination_ == pytest.approx(1 / 6, abs=0.02)


def test_no_contamination_is_the_model_itself() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(), contamination=0, random_state=0).fit(X, y)
    assert np.all(model.weights_ == 1) and model.contamination_ == 0
    np.testing.assert_allclose(model.estimator_.coef_, Ridge().fit(X, y).coef_)


def test_without_reweighting_exactly_h_is_kept() -> None:
    X, y = line()
    for contamination, kept in ((0.25, 45), (7, 53), (0.41, 35.4)):
        model = TrimmedEstimator(Ridge(), contamination=contamination, reweight=False, random_state=0).fit(X, y)
        assert model.weights_.sum() == pytest.approx(kept)
        np.testing.assert_array_equal(model.weights_, model.raw_weights_)
        rounds = [round.objective for round in model.history_ if round.h == pytest.approx(kept)]
        assert model.objective_ == min(rounds) and len(rounds) >= 2


def test_auto_without_reweighting_keeps_the_share_found() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(), reweight=False, random_state=0).fit(X, y)
    assert model.contamination_ == pytest.approx(1 / 6, abs=0.03) and not model.inlier_mask_[:10].any()


def test_rethreshold_starts_from_the_last_fit() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(), contamination=0.4, reweight=False, random_state=0).fit(X, y)
    rounds = model.n_iter_
    model.rethreshold(0.2)
    assert model.weights_.sum() == pytest.approx(48) and not model.inlier_mask_[:10].any()
    assert model.n_iter_ < rounds and model.contamination == 0.4 and model.contamination_ == pytest.approx(0.2)
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="give X"):
        again.rethreshold(0.3)
    assert again.rethreshold(0.3, X, y).weights_.sum() == pytest.approx(42)


def test_scores_of_unseen_rows_are_on_the_same_scale() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(alpha=1e-3), random_state=0).fit(X, y)
    new = np.array([[1.0], [2.0]])
    np.testing.assert_allclose(
        model.outlier_score(new, [2.0, 14.0]), np.abs([2.0, 14.0] - model.predict(new)) / model.scale_
    )
    assert np.all(model.outlier_scores_[:10] > model.threshold_) and np.all(
        model.outlier_scores_[10:] <= model.threshold_
    )


def test_scores_of_labels_are_log_odds() -> None:
    digits = load_digits_contaminated(0.1)
    X, y, bad = digits.X[:600], digits.y[:600], digits.is_wrong[:600]
    model = TrimmedEstimator(LogisticRegression(), max_iter=4, tol=0.02, random_state=0).fit(X, y)
    unseen = model.outlier_score(digits.X[600:900], digits.y[600:900])
    wrong = digits.is_wrong[600:900]
    assert np.mean(unseen[wrong] > 0) > 0.9 and np.mean(unseen[~wrong] > 0) < 0.05
    assert np.mean(model.outlier_scores_[bad] > 0) > 0.9 and model.threshold_ == 0
    assert model.noise_matrix_.shape == (10, 10) and np.allclose(model.noise_matrix_.sum(axis=1), 1)
    with pytest.raises(ValueError, match="not among classes_"):
        model.outlier_score(X[:1], [77])


def test_the_table_suggests_labels() -> None:
    digits = load_digits_contaminated(0.1)
    model = TrimmedEstimator(LogisticRegression(), max_iter=4, tol=0.02, random_state=0).fit(
        digits.X[:600], digits.y[:600]
    )
    table = model.outlier_table()
    suspects = table[table["kind"] == "suspected mislabel"]
    assert abs(len(suspects) - digits.is_wrong[:600].sum()) < 10
    assert np.mean(suspects["suggested"] == digits.y_true[suspects["row"]]) > 0.9
    assert np.all(suspects["given"] == digits.y[suspects["row"]]) and np.all(np.diff(table["score"]) <= 0)
    unseen = model.outlier_table(digits.X[600:900], digits.y[600:900])
    assert abs(np.sum(unseen["outlier"]) - digits.is_wrong[600:900].sum()) < 10


def test_the_table_of_a_regression() -> None:
    model = TrimmedEstimator(Ridge(), random_state=0).fit(*line())
    table = model.outlier_table()
    assert sorted(table["row"][:10]) == list(range(10)) and table["outlier"].sum() == 10
    assert table["kind"].tolist() == ["outlier"] * 10 + ["regular"] * 50
    assert table["p_adjusted"][:10].max() < 1e-6
    assert table["features"][10:].tolist() == [""] * 50
    for row in table[:10]:
        assert row["features"] == f"y is {row['score']:.3g} sigma too {'low' if row['row'] % 2 == 0 else 'high'}"


def test_the_table_through_a_pipeline_has_features_where_there_is_one_number_a_row() -> None:
    X, y = line()
    pipe = make_pipeline(StandardScaler(), TrimmedEstimator(Ridge(), random_state=0)).fit(X, y)
    assert outlier_table(pipe, X, y)[0]["features"].startswith("y is ")
    unseen = outlier_table(pipe, X[10:12], y[10:12] + np.array([9.0, 0.0]))
    assert unseen["features"].tolist() == [f"y is {unseen[0]['score']:.3g} sigma too high", ""]
    columns = TrimmedEstimator(Ridge(), random_state=0).fit(X, np.column_stack([y, -y]))
    assert "features" not in columns.outlier_table()


def test_a_loss_of_ones_own() -> None:
    X, y = line()
    seen = []

    def absolute(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        seen.append(len(y))
        return np.abs(y - prediction)

    model = TrimmedEstimator(Ridge(), loss=absolute, contamination=0.2, random_state=0).fit(X, y)
    assert set(seen) == {60} and not model.inlier_mask_[:10].any()
    np.testing.assert_allclose(model.outlier_score(X, y), np.sqrt(2 * np.abs(y - model.predict(X))) / model.scale_)


# -- any estimator ----------------------------------------------------------------------------------------------------


def test_where_weights_go() -> None:
    assert weight_argument(make_pipeline(StandardScaler(), make_pipeline(Ridge()))) == "pipeline__ridge__sample_weight"
    assert weight_argument(make_pipeline(StandardScaler(), Lars())) is None


def test_weights_reach_the_last_step_of_a_pipeline() -> None:
    X, y = line()
    s = np.ones(60)
    s[30:] = 3.0
    model = TrimmedEstimator(make_pipeline(StandardScaler(), Ridge()), contamination=0, random_state=0).fit(
        X, y, sample_weight=s
    )
    own = make_pipeline(StandardScaler(), Ridge()).fit(X, y, ridge__sample_weight=s)
    np.testing.assert_allclose(model.predict(X), own.predict(X))


def test_no_step_of_a_pipeline_sees_the_rows_left_out() -> None:
    X, y = line()
    X = np.column_stack([X, np.sin(X[:, 0])])
    X[:10, 1] = 1e6  # with "auto" a group that the features tell, and that may be right
    model = TrimmedEstimator(make_pipeline(StandardScaler(), Ridge()), contamination=10, random_state=0).fit(X, y)
    assert not model.inlier_mask_[:10].any() and model.estimator_[0].mean_[1] < 1


def test_an_estimator_without_sample_weight_can_be_wrapped_but_not_weighted() -> None:
    X, y = line()
    model = TrimmedEstimator(KNeighborsRegressor(3), contamination=0.41, reweight=False, random_state=0).fit(X, y)
    assert set(model.weights_) == {0.0, 1.0} and model.weights_.sum() == 36  # 35.4 rows, whole
    removed = TrimmedEstimator(KNeighborsRegressor(3), random_state=0).fit(X, y, sample_weight=np.arange(60) > 9)
    assert not removed.inlier_mask_[:10].any()
    with pytest.raises(ValueError, match="takes no sample_weight"):
        TrimmedEstimator(KNeighborsRegressor(), random_state=0).fit(X, y, sample_weight=np.full(60, 2.0))


def test_decision_functions_will_do() -> None:
    rng = np.random.default_rng(0)
    y = np.tile(["a", "b", "c"], 100)
    X = rng.standard_normal((300, 2)) + 6 * np.column_stack([y == "a", y == "b"])
    y[:30] = np.roll(y[:30], 1)
    for model in (LinearSVC(), RidgeClassifier()):
        trimmed = TrimmedEstimator(model, random_state=0).fit(X, y)
        assert trimmed.inlier_mask_[:30].mean() <= 0.1 < 0.95 < trimmed.inlier_mask_[30:].mean()
        assert not hasattr(trimmed, "predict_proba") and trimmed.decision_function(X).shape == (300, 3)


def test_text_frames_and_sparse_matrices_go_to_the_model_as_they_are() -> None:
    pandas = pytest.importorskip("pandas")
    words = ["good fine nice"] * 30 + ["bad poor awful"] * 30
    y = np.repeat([1, 0], 30)
    y[:3] = 0
    texts = TrimmedEstimator(make_pipeline(CountVectorizer(), LogisticRegression()), random_state=0).fit(words, y)
    assert texts.predict(["good", "awful"]).tolist() == [1, 0]
    X, t = line()
    frame = TrimmedEstimator(Ridge(), random_state=0).fit(pandas.DataFrame(X, columns=["height"]), pandas.Series(t))
    assert frame.feature_names_in_.tolist() == ["height"] and frame.n_features_in_ == 1
    dense = TrimmedEstimator(Ridge(), random_state=0).fit(X, t)
    for kind in (sparse.csr_array, sparse.coo_array):
        np.testing.assert_allclose(TrimmedEstimator(Ridge(), random_state=0).fit(kind(X), t).weights_, dense.weights_)
    np.testing.assert_allclose(frame.estimator_.coef_, dense.estimator_.coef_)


def test_several_targets() -> None:
    X, y = line()
    Y = np.column_stack([y, -y])
    model = TrimmedEstimator(Ridge(), random_state=0).fit(X, Y)
    assert np.flatnonzero(~model.inlier_mask_).tolist() == list(range(10)) and model.predict(X).shape == (60, 2)


def test_it_is_what_it_wraps() -> None:
    assert is_classifier(TrimmedEstimator(RandomForestClassifier(), random_state=0)) and is_regressor(
        TrimmedEstimator(Ridge(), random_state=0)
    )
    assert is_regressor(TrimmedEstimator(make_pipeline(StandardScaler(), Ridge()), random_state=0))
    assert hasattr(TrimmedEstimator(LogisticRegression(), random_state=0), "predict_proba")
    assert not hasattr(TrimmedEstimator(Ridge(), random_state=0), "predict_proba")


def test_grid_search_reaches_inside() -> None:
    X, y = (part[10:] for part in line())
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(TrimmedEstimator(Ridge(), random_state=0), {"estimator__alpha": [1e-3, 1e3]}, cv=folds)
    assert search.fit(X, y).best_params_ == {"estimator__alpha": 1e-3}


# -- folds ------------------------------------------------------------------------------------------------------------


def rows(X: np.ndarray, y: np.ndarray, s: np.ndarray | None = None, classes: Any = None) -> EncodedExamples:
    return EncodedExamples(X, y, y, np.ones(len(y)) if s is None else s, classes)


def test_folds_follow_the_rows_whatever_their_order_and_number() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    order = rng.permutation(np.repeat(np.arange(50), 2))
    fold, again = np.zeros(50, dtype=int), np.zeros(100, dtype=int)
    for j, (_, test) in enumerate(content_splits(rows(X, y), 3, seed=0)):
        fold[test] = j
    for j, (_, test) in enumerate(content_splits(rows(X[order], y[order]), 3, seed=0)):
        again[test] = j
    np.testing.assert_array_equal(again, fold[order])
    assert sorted(np.bincount(fold)) == [16, 17, 17]
    other = content_splits(rows(X, y), 3, seed=1)
    assert any(set(test) != set(np.flatnonzero(fold == j)) for j, (_, test) in enumerate(other))


def test_classes_are_spread_and_rare_ones_always_fitted() -> None:
    y = np.repeat([0, 1, 2], [40, 9, 2])
    X = np.arange(51.0)[:, None]
    folds = content_splits(rows(X, y, classes=np.arange(3)), 3, seed=0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(51))
    for fitted, predicted in folds:
        assert np.sum(y[predicted] == 1) == 3 and np.sum(y[fitted] == 2) == 2
        assert not set(fitted[y[fitted] < 2]) & set(predicted)


def test_weights_two_and_zero_are_repetition_and_removal() -> None:
    X, y = line()
    s = np.tile([1.0, 2.0, 0.0], 20)
    weighted = TrimmedEstimator(Ridge(), random_state=0).fit(X, y, sample_weight=s)
    twice = np.repeat(np.arange(60), s.astype(int))
    repeated = TrimmedEstimator(Ridge(), random_state=0).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.estimator_.coef_, repeated.estimator_.coef_)
    np.testing.assert_allclose(weighted.weights_[twice], repeated.weights_)
    assert weighted.contamination_ == pytest.approx(repeated.contamination_)
    assert np.all(weighted.weights_[s == 0] == 0) and np.all(np.isfinite(weighted.outlier_scores_))


def test_a_class_is_never_trimmed_whole() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.repeat([0, 1], [57, 3])  # three labels of no pattern at all
    model = TrimmedEstimator(LogisticRegression(), contamination=0.2, reweight=False, random_state=0).fit(X, y)
    assert model.weights_[y == 1].sum() > 0 and model.predict_proba(X).shape == (60, 2)


def test_a_splitter_of_ones_own() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(), cv=KFold(5, shuffle=True, random_state=1), random_state=0).fit(X, y)
    assert np.flatnonzero(~model.inlier_mask_).tolist() == list(range(10))
    with pytest.raises(ValueError, match="exactly once"):
        TrimmedEstimator(Ridge(), cv=TimeSeriesSplit(3), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="groups"):
        TrimmedEstimator(Ridge(), cv=GroupKFold(3), random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore::UserWarning")  # folds that nobody chose may leave rows out, which is told
def test_folds_are_drawn_anew_unless_random_state_is_given() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)
    assert TrimmedEstimator(Ridge()).random_state is None
    given = [TrimmedEstimator(Ridge(), random_state=3).fit(X, y).outlier_scores_ for _ in range(2)]
    np.testing.assert_array_equal(*given)
    open_ = [TrimmedEstimator(Ridge()).fit(X, y).outlier_scores_ for _ in range(2)]
    assert not np.array_equal(*open_)


def test_rethreshold_keeps_the_folds() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)
    model = TrimmedEstimator(Ridge(), contamination=0).fit(X, y)
    before = model.outlier_scores_ * model.scale_
    model.rethreshold(0.1).rethreshold(0)
    np.testing.assert_allclose(model.outlier_scores_ * model.scale_, before)


def test_contamination_is_the_second_argument_as_everywhere_else_the_first() -> None:
    X, y = line()
    model = TrimmedEstimator(Ridge(), 0.2, reweight=False, random_state=0).fit(X, y)
    assert model.weights_.sum() == pytest.approx(48)
    assert [record.k for record in model.history_] == list(range(1, model.n_iter_ + 1))
    assert all(0 <= record.stationarity_w <= 1 for record in model.history_)


def test_random_states_left_open_are_fixed() -> None:
    X, y = line()
    data = rows(X, y)
    first, second = (fit_weighted(RandomForestRegressor(5), data, np.ones(60), seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.random_state == 3
    assert fit_weighted(RandomForestRegressor(5, random_state=7), data, np.ones(60), seed=3).random_state == 7


# -- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"estimator": StandardScaler()}, "regressor or classifier"),
        ({"estimator": None}, r"estimator must be .* as in TrimmedEstimator\(Ridge\(\)\), got None"),
        ({"estimator": Ridge}, "estimator must be"),
        ({"contamination": "automatic"}, "contamination='automatic'"),
        ({"contamination": 1.0}, "at least 0"),
        ({"loss": "hinge"}, "loss must be"),
        ({"loss": lambda y, p: -np.ones(len(y))}, "number >= 0 per row"),
        ({"loss": lambda y, p: np.full(len(y), np.nan)}, "number >= 0 per row"),
        ({"cv": 1}, "at least 2 folds"),
        ({"max_iter": 0}, "max_iter"),
        ({"balanced_trimming": True}, "balanced_trimming"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], says: str) -> None:
    X, y = line()
    with pytest.raises(ValueError, match=says):
        TrimmedEstimator(**{"estimator": Ridge(), **options}, random_state=0).fit(X, y)


def test_half_bad_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="half of the examples"):
        TrimmedEstimator(Ridge(), contamination=0.5, random_state=0).fit(*line())


def test_stopping_short_is_warned_of() -> None:
    X, y, _, _, _ = split(*make_friedman1(200, random_state=0), "both ways")
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        TrimmedEstimator(DecisionTreeRegressor(random_state=0), max_iter=1, random_state=0).fit(X, y)


@pytest.mark.parametrize("y", [np.zeros(40), np.full(40, 1e12), 1e12 * np.arange(40.0)], ids=["0", "same", "huge"])
def test_targets_of_no_spread_or_huge_scale(y: np.ndarray) -> None:
    X = np.arange(40.0)[:, None]
    model = TrimmedEstimator(LinearRegression(), random_state=0).fit(X, y)
    assert model.inlier_mask_.all() and model.contamination_ == 0 and np.isfinite(model.outlier_scores_).all()
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9, atol=1)


# -- targets most of which have one value -----------------------------------------------------------------------------


def rare_counts(rng: np.random.Generator, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Counts, three quarters of them 0."""
    X = rng.uniform(size=(n, 3))
    return X, rng.poisson(np.exp(4 * X[:, 0] - 3.5)).astype(np.float64)


@pytest.mark.filterwarnings("ignore:.* of the rows are flagged, but the errors of the others change")
@pytest.mark.filterwarnings("ignore:.* lie far off on one side of the trimmed fit")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_zero_is_not_wrong(seed: int) -> None:
    """Half of the rows were kept, which were zeros all; then every other one seemed wrong."""
    rng = np.random.default_rng(seed)
    X, y = rare_counts(rng)
    assert 0.6 < np.mean(y == 0) < 0.9
    assert TrimmedEstimator(Ridge(), random_state=0).fit(X, y).inlier_mask_.mean() > 0.85
    y[:40] += 30
    model = TrimmedEstimator(Ridge(), random_state=0).fit(X, y)
    assert not model.inlier_mask_[:40].any()
    assert model.inlier_mask_[40:].mean() > 0.85


def test_a_model_of_counts_is_not_given_zeros_alone() -> None:
    X, y = rare_counts(np.random.default_rng(3))
    booster = HistGradientBoostingRegressor(loss="poisson", max_iter=20)
    assert TrimmedEstimator(booster, random_state=0).fit(X, y).inlier_mask_.mean() > 0.9


def test_few_rows_that_no_feature_tells_from_most_are_not_judged() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 30 == 0, rng.lognormal(3, 1, 300), 0.0)
    model = TrimmedEstimator(Ridge(), random_state=0)
    with pytest.warns(UserWarning, match="most rows have one value of y"):
        model.fit(rng.standard_normal((300, 3)), y)
    assert model.inlier_mask_.all()


def test_a_model_that_predicts_no_number_is_named() -> None:
    class Broken(Ridge):
        def predict(self, X: Any) -> Any:
            return np.full(len(X), np.nan)

    X, y = rare_counts(np.random.default_rng(0))
    with pytest.raises(ValueError, match="Broken predicts NaN or infinity for 400 of 400 rows"):
        TrimmedEstimator(Broken()).fit(X, y)


@pytest.mark.parametrize("spread", [[[1.0, 0.9], [0.0, 0.4]], [[1.0, 0.0], [0.0, 1000.0]]], ids=["together", "units"])
def test_errors_of_several_targets_may_go_together_and_have_units(spread: list[list[float]]) -> None:
    """They were judged as independent and equally large: a twelfth of clean rows was flagged, silently."""
    rng = np.random.default_rng(4)
    X, E = rng.standard_normal((300, 3)), rng.standard_normal((300, 2)) @ spread
    Y = X @ rng.standard_normal((3, 2)) + E
    assert TrimmedEstimator(Ridge(), random_state=0).fit(X, Y).inlier_mask_.mean() > 0.98
    Y[:45] += 12 * E.std(axis=0)
    model = TrimmedEstimator(Ridge(), random_state=0).fit(X, Y)
    assert not model.inlier_mask_[:45].any() and model.inlier_mask_[45:].mean() > 0.98
    table = model.outlier_table()
    assert np.all(np.asarray(table.p_value)[:45] < 1e-3)


def test_weights_of_rows_with_several_targets_are_as_many_copies() -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(size=(100, 2)) * [1.0, 0.1]
    t[:10] = rng.normal(size=(10, 2)) * [0.1, 1.0]
    s = np.where(np.arange(100) < 10, 9.0, 1.0)
    copies, kind = np.repeat(t, s.astype(int), axis=0), NumericTarget(None)
    weighted = kind.judge(np.zeros_like(t), t, s, 0.6 * s.sum())
    repeated = kind.judge(np.zeros_like(copies), copies, np.ones(len(copies)), 0.6 * s.sum())
    assert weighted.contamination == pytest.approx(repeated.contamination, abs=1e-9)
    assert weighted.threshold == pytest.approx(repeated.threshold)


def test_a_regressor_says_that_it_gives_no_probabilities_to_flag_rows_by() -> None:
    X = np.arange(30.0)[:, None]
    model = TrimmedEstimator(Ridge(), random_state=0).fit(X, X[:, 0] + np.sin(X[:, 0] ** 2))
    with pytest.raises(AttributeError, match="no outlier_probability_"):
        model.flag()
    with pytest.raises(NotFittedError):
        TrimmedEstimator(Ridge()).flag()


def _shifted_labels() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three clear classes, a fifth of whose labels is shifted to the next."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 2)) + 5 * np.array([[0, 0], [1, 0], [0, 1]])[classes]
    bad = rng.random(200) < 0.2
    return X, np.where(bad, (classes + 1) % 3, classes), bad


def test_what_is_said_of_labels_depends_on_the_rows_alone() -> None:
    X, y, _ = _shifted_labels()
    models = [TrimmedEstimator(DecisionTreeClassifier(max_depth=3), random_state=seed).fit(X, y) for seed in (1, 2)]
    assert np.array_equal(*(model.outlier_scores_ for model in models))


def test_a_text_column_does_not_silence_the_flexible_models() -> None:
    X, y, bad = _shifted_labels()
    table = np.column_stack([X.astype(object), np.where(np.arange(200) % 2, "east", "west")])
    encode = make_column_transformer((OneHotEncoder(), [2]), remainder="passthrough")
    model = TrimmedEstimator(make_pipeline(encode, DecisionTreeClassifier()), random_state=0).fit(table, y)
    flagged = ~model.inlier_mask_
    assert np.mean(flagged[bad]) > 0.9 and np.mean(flagged[~bad]) < 0.02  # a tree alone accuses right labels too


def test_bases_in_the_wrong_order_are_named() -> None:
    class Mine(BaseEstimator, RegressorMixin):
        pass

    for model in (Mine(), make_pipeline(StandardScaler(), Mine())):
        with pytest.raises(ValueError, match=r"write class Mine\(RegressorMixin, BaseEstimator\), the mixin first"):
            TrimmedEstimator(model).fit(np.eye(4), np.arange(4.0))
