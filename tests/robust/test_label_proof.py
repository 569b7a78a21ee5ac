"""Wrong labels are proven by the rows of the two classes in question: some may overlap beside others that are clear."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from trimlearn import TrimmedLogisticRegression, label_errors
from trimlearn.robust.labels.noise_level import estimate_noise, noise_levels
from trimlearn.robust.labels.proof import Evidence, Odds, allowed_errors
from trimlearn.robust.labels.verdict import label_verdict

K = 4
OVERLAP = np.zeros((K, K), dtype=bool)
OVERLAP[[2, 3], [3, 2]] = True


def predicted(coin: bool, level: float, seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, labels and classes; the last two classes are a coin, or as clear as the others, and a share of class
    0 is labelled 1."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, n)
    z = 9.0 * np.eye(K)[classes] + rng.standard_normal((n, K))
    last = np.flatnonzero(classes >= 2)
    if coin:
        z[last, 2:] = 4.5 + 0.7 * rng.standard_normal((len(last), 2))
    return z, np.where((classes == 0) & (rng.random(n) < level), 1, classes), classes


@pytest.mark.parametrize("seed", range(3))
def test_a_clear_class_proves_nothing_about_two_that_overlap(seed: int) -> None:
    z, labels, _ = predicted(True, 0.0, seed)
    verdict = label_verdict([z], labels, np.ones(len(z)))
    assert verdict.clean and verdict.keep().all()
    assert verdict.warning is not None and "overlapping classes would explain them as well: all are" in verdict.warning


@pytest.mark.parametrize("seed", range(3))
def test_noise_between_clear_classes_is_found_beside_two_that_overlap(seed: int) -> None:
    z, labels, classes = predicted(True, 0.3, seed)
    verdict = label_verdict([z], labels, np.ones(len(z)))
    wrong = labels != classes
    assert np.mean(verdict.keep()[wrong] == 0) > 0.95 and verdict.keep()[~wrong].all()
    assert verdict.noise.epsilon == pytest.approx(np.mean(wrong), abs=0.03)
    np.testing.assert_array_equal(verdict.overlap, OVERLAP)
    assert np.all(verdict.noise.T[OVERLAP] == 0)
    assert verdict.warning is not None and "beside those that are named" in verdict.warning


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_clear_classes_do_not_overlap(level: float) -> None:
    z, labels, classes = predicted(False, level, 0)
    verdict = label_verdict([z], labels, np.ones(len(z)))
    assert np.array_equal(verdict.keep() == 0, labels != classes)
    assert verdict.overlap is not None and not verdict.overlap.any()
    assert verdict.undecided == 0 and verdict.warning is None


def test_noise_that_models_have_learnt_in_part_stands_beside_a_coin() -> None:
    """How sure predictions are of clear classes is not judged by how well they tell the others apart."""
    rng = np.random.default_rng(2)
    classes = rng.integers(0, K, 800)
    X = rng.normal(size=(800, K)) + 6.0 * np.eye(K)[np.minimum(classes, 2)]
    labels = np.where((classes == 0) & (rng.random(800) < 0.3), 1, classes)
    with pytest.warns(UserWarning, match="beside those that are named"):
        model = TrimmedLogisticRegression(random_state=0).fit(X, labels)
    wrong = labels != classes
    assert np.mean(~model.inlier_mask_[wrong]) > 0.9 and model.inlier_mask_[~wrong].all()


def test_label_errors_of_a_far_class_and_two_that_overlap() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 3)) + np.array([[0, 8, 0], [0.4, 0, 0], [-0.4, 0, 0]])[classes]
    P = cross_val_predict(RandomForestClassifier(60, random_state=0), X, classes, method="predict_proba")
    with pytest.warns(UserWarning, match="overlapping classes would explain them as well: all are taken to be right"):
        found = label_errors(classes, P)
    assert found.contamination_ == 0 and not found.mask_.any()


def test_errors_that_are_not_allowed_are_not_found() -> None:
    z, classes, _ = predicted(False, 0.0, 0)
    labels = np.where(np.arange(len(z)) % 4 == 0, (classes + 1) % K, classes)
    allowed = allowed_errors(OVERLAP)
    levels = [level.noise for level in noise_levels([z], labels, allowed)]
    for noise in [estimate_noise([z], labels, allowed=allowed), *levels]:
        assert np.all(noise.T[OVERLAP] == 0)
        np.testing.assert_allclose(noise.T.sum(axis=1), 1.0)
    assert estimate_noise([z], labels).T[2, 3] > 0.15
    right = estimate_noise([z], labels, allowed=np.zeros((K, K)))
    np.testing.assert_array_equal(right.T, np.eye(K))
    assert right.epsilon == 0


def flipped(
    wrong: float, rare: float, blur: float, seed: int, n: int = 400
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions of two classes, one of them rare, labels of which a share is wrong, and the classes."""
    rng = np.random.default_rng(seed)
    classes = (rng.random(n) < rare).astype(int)
    z = 6.0 * np.eye(2)[classes] + blur * rng.standard_normal((n, 2))
    return z, np.where(rng.random(n) < wrong, 1 - classes, classes), classes


@pytest.mark.parametrize("seed", range(3))
def test_flips_that_leave_no_row_in_doubt_are_proven_whatever_trust_explains(seed: int) -> None:
    """A rare class: that features say little of labels explains these as well as noise does."""
    z, labels, classes = flipped(0.3, 0.08, 1.0, seed)
    verdict = label_verdict([z], labels, np.ones(len(z)))
    wrong = labels != classes
    assert verdict.noise.epsilon == pytest.approx(np.mean(wrong), abs=0.05)
    assert np.mean(verdict.keep()[wrong] == 0) > 0.95 and np.mean(verdict.keep()[~wrong] == 0) < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_labels_drawn_by_the_predictions_are_not_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = np.column_stack([np.zeros(400), 2.0 * rng.standard_normal(400)])
    labels = (rng.random(400) < expit(z[:, 1])).astype(int)
    assert label_verdict([z], labels, np.ones(400)).clean


@pytest.mark.parametrize("wary", [False, True])
def test_clear_classes_prove_nothing_where_they_had_to_look_so(wary: bool) -> None:
    """The treated and the others, and models that are sure of themselves."""
    z, labels, classes = flipped(0.25, 0.5, 0.0, 0)
    plain, noise = estimate_noise([z], labels, noisy=False), estimate_noise([z], labels)
    s, nothing = np.ones(len(z)), np.zeros((2, 2), dtype=bool)
    clear = Evidence([z], [z], labels, s)
    assert clear.odds(noise, plain, nothing).proven
    blind = Evidence([z], [z], labels, s, None if wary else classes, wary)
    assert not blind.odds(noise, plain, nothing).proven


def test_a_few_labels_that_are_very_unlikely_each_are_wrong_whatever_else_is_in_doubt() -> None:
    assert Odds(gain=5.0, wrong=2.0, doubt=6.0).proven
    assert not Odds(gain=5.0, wrong=20.0, doubt=60.0).proven


def test_shifted_labels_of_three_classes_in_few_rows_are_found() -> None:
    X, classes = load_wine(return_X_y=True)
    rng = np.random.default_rng(2)
    rows = rng.permutation(len(classes))[:118]
    X, classes = ((X - X.mean(axis=0)) / X.std(axis=0))[rows], classes[rows]
    wrong = np.isin(np.arange(118), rng.choice(118, 35, replace=False))
    found = ~TrimmedLogisticRegression(random_state=0).fit(X, np.where(wrong, (classes + 1) % 3, classes)).inlier_mask_
    assert found[wrong].mean() > 0.5 and found[~wrong].mean() < 0.05


def test_noise_that_leaves_no_row_in_doubt_is_proven() -> None:
    assert Odds(gain=0.0, wrong=1.0, doubt=0.0).proven and not Odds(gain=0.0, wrong=0.0, doubt=0.0).proven
