"""Labels: misfit, chance, wild cells and overlap are no noise, and what is not known is said."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from trimlearn import TrimmedEstimator, TrimmedLogisticRegression, label_errors
from trimlearn.datasets import load_digits_contaminated
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.column_bounds import column_bounds
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.verdict import LabelVerdict, label_verdict


def two_classes(n: int, p: int, apart: float, wrong: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.standard_normal((n, p)) + apart / np.sqrt(p) * truth[:, None]
    y = truth.copy()
    y[rng.permutation(n)[: round(wrong * n)]] ^= 1
    return X, y, truth


@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_that_is_too_simple_is_no_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = rng.choice(3, 1500, p=[0.55, 0.2, 0.25])
    X = rng.normal(size=(1500, 5))
    X[:, 0] += 3 * b
    y = (b == 1).astype(int)
    with pytest.warns(UserWarning, match="a model that is too simple, not like wrong labels"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.contamination_ == 0 and model.inlier_mask_.all() and len(model.flag()) == 0
    plain = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


@pytest.mark.parametrize("X", [np.ones((100, 3)), np.random.default_rng(5).normal(size=(100, 3))])
def test_labels_that_features_say_nothing_about(X: np.ndarray) -> None:
    with pytest.warns(UserWarning, match="the features explain the labels no better than chance"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, np.arange(100) % 2)
    assert model.contamination_ == 0 and model.inlier_mask_.all()


def test_what_cannot_be_decided_is_said_and_does_no_harm() -> None:
    X, y, _ = two_classes(400, 4, 1.2, 0.3, 0)
    with pytest.warns(UserWarning, match="% of the labels may be wrong, but overlapping classes"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.contamination_ == 0
    plain = LogisticRegression(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


def test_shifts_that_flexible_models_have_learnt_are_found() -> None:
    digits = load_digits_contaminated(fraction=0.4)
    X, y, bad = digits.X[:1000], digits.y[:1000], digits.is_wrong[:1000]
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.contamination_ == pytest.approx(np.mean(bad), abs=0.1)
    assert np.mean(~model.inlier_mask_[bad]) > 0.7 and np.mean(~model.inlier_mask_[~bad]) < 0.02
    assert np.mean(model.predict(digits.X[1000:]) == digits.y_true[1000:]) > 0.85


def test_noise_that_nobody_can_tell_from_overlap_is_said() -> None:
    X, truth = make_classification(1500, 20, n_informative=8, n_classes=3, random_state=1)
    y = np.where(np.random.default_rng(0).random(1500) < 0.4, (truth + 1) % 3, truth)
    with pytest.warns(UserWarning, match="of the labels may be wrong, but overlapping classes"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.inlier_mask_.all()


def test_few_right_labels_are_named_where_classes_overlap() -> None:
    X, y, truth = two_classes(1500, 5, 3.0, 0.4, 0)
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    off, right = ~model.inlier_mask_, y == truth
    assert np.mean(off[right]) < 0.05 and np.mean(off[~right]) > 0.7
    assert model.false_discovery_rate_ <= 0.1


def test_wrong_labels_that_cannot_be_named_are_said() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 500)
    z = 1.5 * (2 * np.eye(2)[truth] - 1) + rng.standard_normal((1000, 2))  # the classes overlap
    noise = LabelNoise(np.array([[0.7, 0.3], [0.3, 0.7]]), np.ones(1), np.zeros(2), 0.3)
    verdict = LabelVerdict(noise, [z], truth, np.ones(1000))
    assert np.mean(verdict.keep() == 0) < 0.2
    assert verdict.warning is not None and "the classes overlap: only" in verdict.warning


def test_a_model_that_is_too_simple_is_said_beside_noise() -> None:
    rng = np.random.default_rng(0)
    truth, angle = rng.integers(0, 2, 1500), rng.uniform(0, 2 * np.pi, 1500)
    radius = 1 + truth + 0.15 * rng.standard_normal(1500)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal((1500, 3))])
    y = np.where(np.arange(1500) % 5 == 0, 1 - truth, truth)
    with pytest.warns(UserWarning, match="They are taken to be right; try TrimmedEstimator"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert np.mean(~model.inlier_mask_[y != truth]) > 0.6 and np.mean(~model.inlier_mask_[y == truth]) < 0.02


def test_classes_without_weight_are_no_classes() -> None:
    X, y, _ = two_classes(200, 3, 6.0, 0.0, 0)
    y = np.where(np.arange(200) % 10 == 0, 2, y)
    model = TrimmedLogisticRegression(random_state=0).fit(X, y, (y < 2).astype(float))
    assert np.array_equal(np.unique(model.predict(X)), [0, 1]) and np.all(np.isfinite(model.outlier_probability_))
    with pytest.raises(ValueError, match="y holds one class only, 2"):
        TrimmedLogisticRegression().fit(X, y, (y == 2).astype(float))
    with pytest.raises(ValueError, match=r"class_weight leaves fewer than two classes \(0\); give two at least"):
        TrimmedLogisticRegression(class_weight={1: 0, 2: 0}).fit(X, y)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_wild_cells_do_not_make_labels_wrong(seed: int) -> None:
    X, y, truth = two_classes(1000, 10, 5.0, 0.1, seed)
    rng = np.random.default_rng(seed)
    wild = rng.random(X.shape) < 0.05
    X[wild] *= 1000
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert abs(model.contamination_ - 0.1) < 0.05
    assert np.mean(~model.inlier_mask_[y == truth]) < 0.02
    table = model.outlier_table()
    named = np.asarray(table["row"])[np.asarray(table["kind"]) == "wild features"]
    assert np.mean(np.isin(np.flatnonzero(np.any(np.abs(X) > 100, axis=1)), named)) > 0.95


def test_a_far_class_is_not_dropped_as_wild() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(4000) < 0.02).astype(int)
    X = rng.standard_normal((4000, 5))
    X[:, 0] += 60 * truth
    y = np.where(rng.random(4000) < 0.1, 1 - truth, truth)
    assert np.all(TrimmedLogisticRegression(random_state=0).fit(X, y).predict(X) == truth)


def test_reach_of_sparse_columns_and_of_constant_ones() -> None:
    sp = pytest.importorskip("scipy.sparse")
    V = np.zeros((200, 3))
    V[::10, 0], V[:, 1], V[3, 2] = 1.0, 7.0, 5.0
    V[20, 0] = 1e4
    assert np.flatnonzero(column_bounds(V).rows_beyond(V)).tolist() == [20]
    S = sp.csr_array(V)
    assert np.flatnonzero(column_bounds(S).rows_beyond(S)).tolist() == [20]
    np.testing.assert_allclose(column_bounds(S).clip(S).toarray(), column_bounds(V).clip(V))


@pytest.mark.parametrize(
    "make", [TrimmedLogisticRegression, lambda: TrimmedEstimator(RandomForestClassifier(25), random_state=0)]
)
def test_one_account_of_every_row(make: Any) -> None:
    digits = load_digits_contaminated(0.2)
    X, y, bad = digits.X[:900], digits.y[:900], digits.is_wrong[:900]
    model = make().fit(X, y)
    table = model.outlier_table()
    order = np.asarray(table["row"])
    np.testing.assert_array_equal(np.asarray(table["suggested"]), model.suggested_labels_[order])
    np.testing.assert_array_equal(np.asarray(table["probability"]), model.outlier_probability_[order])
    np.testing.assert_array_equal(~model.inlier_mask_, model.outlier_probability_ > 0.5)
    assert np.asarray(table["p_value"])[0] < 0.05  # the worst of all is unlikely to be right
    listed = model.flag(fdr=0.1)
    assert np.mean(~bad[listed]) < 0.15 and len(listed) > 0.8 * bad.sum()
    assert model.false_discovery_rate_ < 0.2
    rows = (model.outlier_probability_ > 0.7) & (model.outlier_probability_ < 0.9)
    assert np.all(model.suggested_labels_[rows] != y[rows])


def test_clean_tables_get_the_plain_fit() -> None:
    X, y, _ = two_classes(600, 6, 4.0, 0.0, 3)
    model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    plain = LogisticRegression(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-3)
    assert model.contamination_ == 0 and model.threshold_ == np.inf


def test_label_errors_takes_anybodys_probabilities() -> None:
    X, y, truth = two_classes(1000, 5, 5.0, 0.2, 1)
    P = cross_val_predict(LogisticRegression(), X, y, method="predict_proba")
    names = np.array(["no", "yes"])
    found = label_errors(names[y], P)
    assert abs(found.contamination_ - 0.2) < 0.05
    assert np.mean(found.suggested_labels_ == names[truth]) > 0.97
    assert found.noise_matrix_.shape == (2, 2) and found.table()["row"][0] == np.argmax(found.scores_)
    assert np.all(found.probability_[found.mask_] > 0.5) and np.mean(found.mask_[y != truth]) > 0.9
    assert np.sum(1 - found.probability_[found.mask_]) <= max(0.1 * found.mask_.sum(), 10)
    assert found.probability_[found.mask_].min() > found.probability_[~found.mask_].max()


@pytest.mark.parametrize(
    ("y", "P", "match"),
    [
        ([0, 1], [[0.5, 0.5]], "a row for every label"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], "sum 1"),
        (["a", "b", "c"], np.full((3, 2), 0.5), "name them all"),
        ([0, None], np.full((2, 2), 0.5), "missing labels"),
    ],
)
def test_label_errors_names_what_is_wrong(y: Any, P: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        label_errors(np.asarray(y, dtype=object) if None in y else y, P)


def test_flexible_opinions_do_not_know_the_rows_they_are_asked_about() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 2, 300)
    for z in flexible_predictions(X, y, np.ones(300)):
        assert abs(np.mean(z.argmax(axis=1) == y) - 0.5) < 0.1


def test_opinions_that_learnt_the_noise_do_not_hide_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2000)
    labels = np.where(rng.random(2000) < 0.3, 1 - truth, truth)
    sharp = 5.0 * np.eye(2)[truth] + rng.standard_normal((2000, 2))
    blurred = np.log(np.where(np.eye(2)[truth] > 0, 0.7, 0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = label_verdict([sharp, blurred], labels, np.ones(2000))
    assert verdict.noise.epsilon == pytest.approx(0.3, abs=0.04)


def test_a_rule_of_few_among_many_columns_is_no_noise() -> None:
    X = np.random.default_rng(3).standard_normal((1600, 45))
    y = (X[:, 0] * X[:, 1] < 0).astype(int) + (X[:, 2] > 1)
    with pytest.warns(UserWarning, match="a model that is too simple, not like wrong labels"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    assert model.contamination_ == 0 and model.inlier_mask_.all()


def boosted(rows: int, columns: int, K: int, seed: int = 0) -> BoostedOpinion:
    rng = np.random.default_rng(seed)
    V, labels = rng.standard_normal((rows, columns)), rng.integers(0, K, rows)
    return BoostedOpinion(V, labels, np.ones(rows), 0, row_hashes(V))


def test_boosting_is_asked_where_it_can_learn_in_time() -> None:
    assert boosted(400, 10, 2).possible
    assert not boosted(100, 10, 2).possible and not boosted(400, 300, 4).possible
    asked = boosted(400, 10, 2)
    noise = LabelNoise(np.eye(2), np.zeros(1), np.zeros(2), 0.0)
    doubted = LabelVerdict(noise, [np.zeros((400, 2))], asked.labels, asked.s)
    assert doubted.warning is None and asked.asked_about(doubted) == []
    # labels that no column explains: boosting has nothing to say either
    assert asked.asked_about(replace(doubted, undecided=0.3)) == []


def test_boosting_does_not_know_the_rows_it_is_asked_about() -> None:
    opinion = boosted(400, 5, 2)
    right = np.mean(opinion.predictions.argmax(axis=1) == opinion.labels)
    assert abs(right - 0.5) < 0.1
    order = np.random.default_rng(1).permutation(400)
    moved = BoostedOpinion(opinion.V[order], opinion.labels[order], opinion.s, 0, opinion.hashes[order])
    np.testing.assert_array_equal(moved.predictions, opinion.predictions[order])


def test_more_than_half_is_said() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 100)
    labels = np.where(rng.random(500) < 0.6, (truth + rng.integers(1, 5, 500)) % 5, truth)
    verdict = label_verdict([8.0 * np.eye(5)[truth]], labels, np.ones(500))
    assert verdict.warning is not None and "% of the labels look wrong, more than half" in verdict.warning
