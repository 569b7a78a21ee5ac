"""TrimmedLogisticRegression: wrong labels found and counted, rare classes kept, what scikit-learn gives on the rest."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trimlearn import TrimmedLogisticRegression
from trimlearn.datasets import load_digits_contaminated


def blobs(K: int, n: int = 400, flipped: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K classes around the corners of a simplex; a share of the labels moved on by one. X, labels, which are wrong."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % K
    X = 3.0 * np.eye(K)[truth] + rng.standard_normal((n, K))
    bad = rng.permutation(n) < round(flipped * n)
    return X, np.where(bad, (truth + 1) % K, truth), bad


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("flipped", [0.0, 0.2, 0.35])
def test_wrong_labels_are_counted_and_found(K: int, flipped: float) -> None:
    X, y, bad = blobs(K, 1200, flipped)
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert abs(model.contamination_ - flipped) < 0.04
    if flipped:
        assert np.mean(~model.inlier_mask_[bad]) > 0.85
        assert np.median(model.outlier_scores_[bad]) > 0 > np.median(model.outlier_scores_[~bad])
    assert np.mean(~model.inlier_mask_[~bad]) < 0.05
    clean = LogisticRegression().fit(X[~bad], y[~bad])
    fresh, truth, _ = blobs(K, 2000, seed=1)
    assert model.score(fresh, truth) > clean.score(fresh, truth) - 0.01


def test_digits() -> None:
    digits = load_digits_contaminated(fraction=0.3)
    model = TrimmedLogisticRegression(random_state=0).fit(digits.X, digits.y)
    assert abs(model.contamination_ - 0.3) < 0.03
    assert np.mean(~model.inlier_mask_[digits.is_wrong]) > 0.95
    table = model.outlier_table()
    worst = table[table.kind == "suspected mislabel"]
    assert np.mean(digits.y_true[worst.row] == worst.suggested) > 0.9


@pytest.mark.usefixtures("quick_fits")  # whichever rows are kept
@pytest.mark.parametrize("penalty", ["l2", "l1", None])
@pytest.mark.parametrize("K", [2, 3])
def test_the_fit_is_scikit_learns_on_the_rows_kept(penalty: str | None, K: int) -> None:
    X, y, _ = blobs(K, 600, 0.1)
    model = TrimmedLogisticRegression(0.2, penalty=penalty, C=0.7, tol=1e-9, max_passes=5000, random_state=0).fit(X, y)
    kept = model.inlier_mask_
    ratio = {"l2": 0, "l1": 1, None: 0}[penalty]
    C, solver = np.inf if penalty is None else 0.7, "saga" if ratio else "lbfgs"
    peer = LogisticRegression(C=C, l1_ratio=ratio, solver=solver, tol=1e-10, max_iter=50000)
    peer.fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=2e-4)
    assert model.coef_.shape == peer.coef_.shape and model.intercept_.shape == peer.intercept_.shape
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


def test_given_contamination_without_reweighting_trims_just_that() -> None:
    X, y, bad = blobs(3, 600, 0.2)
    model = TrimmedLogisticRegression(0.25, reweight=False, random_state=0).fit(X, y)
    assert model.weights_.sum() == pytest.approx(450)
    assert model.contamination_ == pytest.approx(0.25)
    assert np.mean(model.weights_[bad]) < 0.15
    assert model.rethreshold(0.1).weights_.sum() == pytest.approx(540)


def test_a_rare_class_keeps_its_share() -> None:
    X, truth = make_classification(
        6000, 6, n_informative=4, n_redundant=0, weights=[0.99], flip_y=0, class_sep=2.5, random_state=2
    )
    rng = np.random.default_rng(0)
    y, flips = truth.copy(), max(2, round(0.15 * np.sum(truth == 1)))
    y[rng.choice(np.flatnonzero(truth == 1), flips, replace=False)] = 0
    y[rng.choice(np.flatnonzero(truth == 0), flips, replace=False)] = 1
    train = np.arange(6000) % 2 == 0
    plain = LogisticRegression().fit(X[train], y[train])
    model = TrimmedLogisticRegression(balanced_trimming=True, random_state=0).fit(X[train], y[train])
    for score in (balanced_accuracy_score, f1_score):
        ours, theirs = (score(truth[~train], m.predict(X[~train])) for m in (model, plain))
        assert ours > theirs + 0.01
    quotas = TrimmedLogisticRegression(0.2, balanced_trimming=True, reweight=False, random_state=0).fit(
        X[train], y[train]
    )
    for label in (0, 1):
        assert np.mean(quotas.weights_[y[train] == label]) == pytest.approx(0.8)


def test_class_weight_multiplies_sample_weight() -> None:
    X, y, _ = blobs(3, 300, 0.1)
    weights = np.where(y == 0, 3.0, 1.0)
    by_class = TrimmedLogisticRegression(0.2, class_weight={0: 3.0}, random_state=0).fit(X, y)
    by_row = TrimmedLogisticRegression(0.2, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:up to .* of the labels may be wrong")
def test_what_is_said_of_few_rows_does_not_hang_on_the_seed() -> None:
    """The draws of a forest decided whether noise was proven: of these 120 rows 0 or 17 % were wrong, by the seed."""
    rng = np.random.default_rng(1000)
    X, b = rng.standard_normal((120, 4)), rng.standard_normal(4)
    y = (rng.random(120) < 1 / (1 + np.exp(-5 * X @ b / np.linalg.norm(b)))).astype(int)
    y = np.where(rng.random(120) < 0.1, 1 - y, y)
    fits = [TrimmedLogisticRegression(random_state=seed).fit(X, y) for seed in (0, 2)]
    assert fits[0].contamination_ == fits[1].contamination_
    np.testing.assert_array_equal(fits[0].outlier_scores_, fits[1].outlier_scores_)


@pytest.mark.parametrize("seed", [0, 1])
def test_class_weight_does_not_decide_which_labels_are_wrong(seed: int) -> None:
    """Weighed by their classes a few wrong labels of a rare class were three times as many, and right ones flagged."""
    rng = np.random.default_rng(seed)
    X, rare = rng.standard_normal((600, 4)), rng.random(600) < 0.05
    X[rare, :2] += 2
    bad = ~rare & (rng.random(600) < 0.05)
    y = (rare | bad).astype(int)
    plain, even = (TrimmedLogisticRegression(class_weight=c, random_state=0).fit(X, y) for c in (None, "balanced"))
    np.testing.assert_array_equal(even.inlier_mask_, plain.inlier_mask_)
    assert even.contamination_ == plain.contamination_ == pytest.approx(bad.mean(), abs=0.03)
    assert (~even.inlier_mask_[bad]).mean() > 0.8
    score = balanced_accuracy_score(rare, even.predict(X))
    assert score > balanced_accuracy_score(rare, LogisticRegression(class_weight="balanced").fit(X, y).predict(X))


@pytest.mark.filterwarnings("ignore:up to .* of the labels may be wrong")  # 100 rows, judged in a hurry
@pytest.mark.usefixtures("quick_fits")
def test_sparse_text_labels_frames_and_pickles() -> None:
    X, y, _ = blobs(3, 200, 0.15)
    X[np.abs(X) < 0.5] = 0
    names = np.array(["ant", "bee", "cat"])[y]
    frame = pd.DataFrame(X, columns=list("uvw"))
    model = TrimmedLogisticRegression(random_state=0).fit(frame, names)
    sparse = TrimmedLogisticRegression(random_state=0).fit(sp.csr_array(X), names)
    np.testing.assert_allclose(sparse.predict_proba(X), model.predict_proba(frame), atol=1e-4)
    assert set(model.suggested_labels_) <= set(names)
    assert set(model.outlier_table().given) == set(names)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
    np.testing.assert_allclose(copy.outlier_score(frame, names), model.outlier_score(frame, names))
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), TrimmedLogisticRegression(random_state=0)),
        {"trimmedlogisticregression__C": [0.1, 1.0]},
        cv=2,
    ).fit(frame, names)
    assert grid.best_score_ > 0.5


def test_separable_classes_are_no_problem() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    y[7] = 1
    assert TrimmedLogisticRegression(random_state=0).fit(X, y).outlier_scores_.argmax() == 7
    model = TrimmedLogisticRegression(C=100, random_state=0).fit(X, y)
    assert list(np.flatnonzero(~model.inlier_mask_)) == [7]
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"contamination": "all"}, "contamination"),
        ({"C": 0}, "C"),
        ({"penalty": "scad"}, "penalty"),
        ({"l1_ratio": -1, "penalty": "elasticnet"}, "l1_ratio"),
    ],
)
def test_bad_parameters_are_named(options: dict[str, Any], match: str) -> None:
    X, y, _ = blobs(2, 40)
    with pytest.raises(ValueError, match=match):
        TrimmedLogisticRegression(**options, random_state=0).fit(X, y)


def test_one_class_only() -> None:
    with pytest.raises(ValueError, match="one class"):
        TrimmedLogisticRegression(random_state=0).fit(np.eye(4), np.zeros(4))


def test_more_trimmed_than_a_class_has() -> None:
    X, y, _ = blobs(2, 200)
    y[:] = 0
    y[:3] = 1
    with pytest.warns(UserWarning, match="balanced_trimming"):
        model = TrimmedLogisticRegression(0.3, random_state=0).fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert np.any(model.inlier_mask_[:3])


def test_what_is_readmitted_is_fitted() -> None:
    rng = np.random.default_rng(1)
    X, y = np.vstack([rng.standard_normal((96, 2)), rng.standard_normal((4, 2)) + 3]), np.repeat([0, 1], [96, 4])
    with pytest.warns(UserWarning, match="no row of 1"):
        model = TrimmedLogisticRegression(0.05, random_state=0).fit(X, y)
    assert model.inlier_mask_.all()
    np.testing.assert_allclose(model.coef_, LogisticRegression(tol=1e-8).fit(X, y).coef_, atol=1e-3)


def drawn(n: int, slope: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from a logistic model, none of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-slope * X[:, 0]))).astype(int)


@pytest.mark.parametrize(("n", "slope"), [(100, 2.5), (300, 2.5), (150, 4.0), (2000, 1.0)])
def test_labels_drawn_from_a_logistic_model_are_not_accused(n: int, slope: float) -> None:
    accused = 0
    for seed in range(1 if n == 2000 else 6):
        X, y = drawn(n, slope, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            accused += TrimmedLogisticRegression(random_state=0).fit(X, y).contamination_ > 0
    assert accused <= 1


@pytest.mark.parametrize(("n", "apart", "level"), [(60, 7.0, 0.1), (150, 6.0, 0.1), (200, 6.0, 0.3), (100, 9.0, 0.04)])
def test_wrong_labels_between_classes_with_a_gap_are_found(n: int, apart: float, level: float) -> None:
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        classes = np.arange(n) % 2
        wrong = rng.permutation(n) < level * n
        X = rng.standard_normal((n, 2)) + apart * classes[:, None] * [1.0, 0.0]
        model = TrimmedLogisticRegression(random_state=0).fit(X, classes ^ wrong)
        found.append(np.mean(model.inlier_mask_ == ~wrong))
    assert np.median(found) > 0.97


@pytest.mark.parametrize("noise_columns", [0, 3])
def test_a_gap_that_a_column_of_two_values_makes_accuses_nobody(noise_columns: int) -> None:
    accused = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        treated, age = rng.integers(0, 2, 300), rng.standard_normal(300)
        X = np.column_stack([treated, age, rng.integers(0, 2, (300, noise_columns))])
        y = (rng.uniform(size=300) < 1 / (1 + np.exp(1.2 - 2.4 * treated - 0.3 * age))).astype(int)
        with pytest.warns(UserWarning, match="overlapping classes would explain them as well"):
            accused += TrimmedLogisticRegression(random_state=0).fit(X, y).contamination_ > 0
    assert accused == 0


def test_a_heavy_row_is_nobody_elses_business() -> None:
    X, y = drawn(200, 4.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heavy = np.where(np.arange(200) == 0, 1e5, 1.0)
        model = TrimmedLogisticRegression(random_state=0).fit(X, y, sample_weight=heavy)
    assert not any("Some inputs" in str(warning.message) for warning in caught)  # of trees that saw no row but one
    assert np.all(np.isfinite(model.coef_)) and model.inlier_mask_[0]


@pytest.mark.parametrize("copies", [np.repeat(np.arange(60), 3), np.random.default_rng(0).integers(0, 120, 120)])
def test_copies_prove_nothing(copies: np.ndarray) -> None:
    accused = 0
    for seed in range(5):
        X, y = drawn(120, 1.5, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            accused += TrimmedLogisticRegression(random_state=0).fit(X[copies], y[copies]).contamination_ > 0
    assert accused <= 1


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_features_of_few_values(share: float) -> None:
    rng = np.random.default_rng(7)
    X = rng.integers(0, 2, (600, 4)).astype(float)
    overlap = 1 / (1 + np.exp(-4 + 2 * X.sum(axis=1)))
    truth = X.sum(axis=1) > 1.5 if share else rng.uniform(size=600) < overlap
    bad = rng.uniform(size=600) < share
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = TrimmedLogisticRegression(random_state=0).fit(X, truth ^ bad)
        shuffled = rng.permutation(600)
        again = TrimmedLogisticRegression(random_state=0).fit(X[shuffled], (truth ^ bad)[shuffled])
    assert abs(model.contamination_ - share) < 0.05
    np.testing.assert_array_equal(model.inlier_mask_[shuffled], again.inlier_mask_)
    assert np.mean(model.inlier_mask_ == ~bad) > 0.95


@pytest.mark.parametrize(("n", "slope"), [(400, 0.5), (5000, 0.5)])
def test_a_weak_signal_is_no_noise(n: int, slope: float) -> None:
    X, y = drawn(n, slope)
    with pytest.warns(UserWarning, match="labels may be wrong, but overlapping classes"):  # it cannot know, and says so
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.contamination_ == 0 and model.inlier_mask_.all()
    np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, y).coef_, atol=0.05)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]),
        ([[0.0], [1.0]], [0, 1]),
        (np.ones((40, 2)), [0, 1] * 20),
        (np.random.default_rng(3).standard_normal((5, 2)), [0, 1, 0, 1, 2]),
    ],
)
def test_too_few_rows_to_judge_by_others(X: Any, y: Any) -> None:
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert 0 <= model.contamination_ < 0.6


def test_warm_start_on_other_data_starts_afresh() -> None:
    X, y, _ = blobs(3, 120)
    model = TrimmedLogisticRegression(0.1, warm_start=True, random_state=0).fit(X, y)
    assert model.fit(X[:, :2], y).coef_.shape == (3, 2)
    assert model.fit(X[y < 2], y[y < 2]).coef_.shape == (1, 3)


def test_a_date_in_seconds_does_no_harm() -> None:
    X, y, _ = blobs(3, 300, 0.2)
    near, far = (
        TrimmedLogisticRegression(random_state=0).fit(X + shift, y) for shift in (0.0, np.array([1.7e9, 0.0, 0.0]))
    )
    np.testing.assert_allclose(far.coef_, near.coef_, atol=0.3)  # other contents, other folds
    assert np.mean(far.inlier_mask_ == near.inlier_mask_) > 0.95


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_features_of_any_scale(scale: float) -> None:
    X, y, bad = blobs(3, 600, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TrimmedLogisticRegression(C=1e20 if scale < 1 else 1.0, random_state=0).fit(X * [scale, 1.0, 1.0], y)
    assert np.all(np.isfinite(model.coef_))
    assert np.mean(~model.inlier_mask_[bad]) > 0.8
