"""The label-noise model, and the judgement of labels by models that have not seen them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.datasets import load_digits

from trimlearn.datasets import load_digits_contaminated
from trimlearn.losses import Logistic, Softmax
from trimlearn.robust.distinct import content_folds, row_hashes
from trimlearn.robust.labels.crossfit import judge_labels
from trimlearn.robust.labels.noise import two_columns
from trimlearn.robust.labels.noise_level import estimate_noise

KINDS = ("shift", "uniform", "one-sided")


def corrupt(y: np.ndarray, kind: str, share: float, K: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y) if kind != "one-sided" else np.flatnonzero(y == 1))
    rows = rows[: round(share * len(rows))]
    t = y.copy()
    t[rows] = (y[rows] + (rng.integers(1, K, len(rows)) if kind == "uniform" else 1)) % K
    return t


def mixture(K: int, n: int = 600, apart: float = 5.0, p: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, K, n)
    return rng.standard_normal((n, p)) + apart / np.sqrt(2) * np.eye(p)[y], y


def loss_of(V: Any, t: np.ndarray, K: int) -> Softmax | Logistic:
    return Logistic(V, t, intercept=True) if K == 2 else Softmax(V, t, K, intercept=True)


# -- the noise model, given predictions --------------------------------------------------------------------------------


def predictions(n: int = 20_000, K: int = 4, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """z whose softmax is P(class), and classes drawn from it."""
    rng = np.random.default_rng(1)
    z = scale * rng.standard_normal((n, K))
    return z, np.argmax(z + rng.gumbel(size=z.shape), axis=1)


def test_matrix_temperature_and_bias_are_recovered() -> None:
    z, y = predictions()
    T = np.array([[0.7, 0.3, 0, 0], [0, 1, 0, 0], [0.1, 0.1, 0.8, 0], [0, 0, 0.45, 0.55]])
    rng = np.random.default_rng(2)
    labels = np.array([rng.choice(4, p=T[k]) for k in y])
    noise = estimate_noise([z / 0.6 + [1.0, 0.0, 0.0, -1.0]], labels, largest=False)
    np.testing.assert_allclose(noise.T, T, atol=0.02)
    assert noise.temperatures[0] == pytest.approx(0.6, abs=0.02)
    assert noise.bias[0] - noise.bias[3] == pytest.approx(-1.2, abs=0.15)
    assert noise.epsilon == pytest.approx(np.mean(labels != y), abs=0.01)


def test_clean_labels_of_clear_classes_give_the_identity() -> None:
    y = np.repeat(np.arange(4), 50)
    noise = estimate_noise([9 * np.eye(4)[y] + np.random.default_rng(0).standard_normal((200, 4))], y)
    np.testing.assert_array_equal(noise.T, np.eye(4))
    assert noise.epsilon == 0


def test_probabilities_are_calibrated() -> None:
    z, y = predictions()
    labels = corrupt(y, "shift", 0.3, 4)
    wrong = expit(estimate_noise([z], labels).score([z], labels))
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        rows = (wrong >= low) & (wrong < low + 0.2)
        assert np.mean(labels[rows] != y[rows]) == pytest.approx(wrong[rows].mean(), abs=0.04)


def test_clean_labels_give_nearly_the_identity_even_where_classes_overlap() -> None:
    z, y = predictions(scale=1.0)
    noise = estimate_noise([z], y, largest=False)
    np.testing.assert_allclose(noise.T, np.eye(4), atol=0.05)
    assert noise.epsilon < 0.03
    assert np.mean(noise.score([z], y) > 0) < 0.01


def test_names_of_classes_order_of_rows_and_constants_per_row_do_not_matter() -> None:
    z, y = predictions(2000)
    labels = corrupt(y, "uniform", 0.2, 4)
    noise, names = estimate_noise([z], labels), np.array([2, 0, 3, 1])
    rows = np.random.default_rng(0).permutation(2000)
    other = estimate_noise([(z + 7.0)[rows][:, np.argsort(names)]], names[labels][rows])
    np.testing.assert_allclose(other.T[np.ix_(names, names)], noise.T, atol=1e-8)
    assert other.epsilon == pytest.approx(noise.epsilon, abs=1e-8)


def test_sample_weights_are_repetitions() -> None:
    z, y = predictions(600)
    labels, s = corrupt(y, "shift", 0.2, 4), np.random.default_rng(5).integers(0, 3, 600)
    weighted = estimate_noise([z], labels, s)
    repeated = estimate_noise([np.repeat(z, s, axis=0)], np.repeat(labels, s))
    np.testing.assert_allclose(weighted.T, repeated.T, atol=1e-8)
    assert weighted.epsilon == pytest.approx(repeated.epsilon, abs=1e-8)


def test_likelihood_sums_to_one_and_suggestions_agree_with_scores() -> None:
    z, y = predictions(500)
    labels = corrupt(y, "shift", 0.3, 4)
    noise = estimate_noise([z], labels)
    total = sum(np.exp(noise.log_likelihood([z], np.full(500, k))) for k in range(4))
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)
    flagged = noise.score([z], labels) > 0
    assert np.array_equal(noise.suggest([z], labels) != labels, flagged)
    assert np.mean(noise.suggest([z], labels)[flagged] == y[flagged]) > 0.8


def test_predictions_without_bound_and_a_class_nobody_has() -> None:
    y = np.repeat([0, 1], 50)
    noise = estimate_noise([1e6 * np.eye(3)[y]], y)
    assert np.all(np.isfinite(noise.T)) and np.all(np.isfinite(noise.score([1e6 * np.eye(3)[y]], y)))
    np.testing.assert_allclose(noise.T, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(softmax(two_columns(np.array([[2.0]])), axis=1)[0, 1], 1 / (1 + np.exp(-2.0)))


# -- labels judged by trimmed models -----------------------------------------------------------------------------------


# No noise is of no kind, and of two classes there is one other: the same labels are not judged twice. Little noise and
# much are of every kind; what lies between is judged by the same lines, once for either number of classes.
MIXTURES = [(2, 0.0, "shift"), (3, 0.0, "shift"), (2, 0.3, "one-sided"), (3, 0.2, "uniform")] + [
    (K, share, kind) for K in (2, 3) for share in (0.1, 0.4) for kind in KINDS if (K, kind) != (2, "uniform")
]


@pytest.mark.parametrize(("K", "share", "kind"), MIXTURES)
def test_share_of_wrong_labels_of_a_mixture(K: int, share: float, kind: str) -> None:
    V, y = mixture(K)
    t = corrupt(y, kind, share, K)
    judged = judge_labels(loss_of(V, t, K))
    assert judged.verdict.noise.epsilon == pytest.approx(np.mean(t != y), abs=0.03)
    assert np.mean(judged.verdict.keep()[t == y]) > 0.95
    if share:
        assert np.mean(judged.verdict.keep()[t != y] == 0) > 0.9


@pytest.mark.parametrize(("share", "n"), [(0.0, 900), (0.4, 1797)])  # 30 % below
def test_share_of_wrong_labels_of_digits(share: float, n: int) -> None:
    digits = load_digits_contaminated(share)
    judged = judge_labels(Softmax(digits.X[:n], digits.y[:n], intercept=True))
    assert judged.verdict.noise.epsilon == pytest.approx(share, abs=0.03)
    assert np.mean(judged.verdict.suggested == digits.y_true[:n]) > 0.93


def test_uniform_noise_is_found_however_thinly_it_is_spread() -> None:
    X, y = load_digits(return_X_y=True)
    judged = judge_labels(Softmax(X[:1000] / 16, corrupt(y[:1000], "uniform", 0.3, 10), intercept=True))
    assert judged.verdict.noise.epsilon == pytest.approx(0.3, abs=0.03)


def test_rare_class_is_not_taken_for_noise() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.03).astype(int)
    V = rng.standard_normal((4000, 3)) + 4.0 * y[:, None]
    judged = judge_labels(Logistic(V, y, intercept=True))
    assert judged.verdict.noise.epsilon < 0.01 and np.mean(judged.verdict.keep()[y == 1]) > 0.97


def test_more_features_than_rows() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    V = rng.standard_normal((200, 300))
    V[:, :30] += 1.5 * y[:, None]
    t = corrupt(y, "uniform", 0.2, 2)
    judged = judge_labels(Logistic(V, t, intercept=True))
    assert judged.verdict.noise.epsilon == pytest.approx(0.2, abs=0.06)
    assert np.mean(judged.verdict.keep()[t != y] == 0) > 0.8  # a model that judged its own rows would find none


@pytest.mark.usefixtures("quick_fits")  # the same judgement, whatever it is
def test_order_and_storage_do_not_matter() -> None:
    V, y = mixture(3, n=150)
    t = corrupt(y, "shift", 0.2, 3)
    judged = judge_labels(Softmax(V, t, intercept=True))
    rows = np.random.default_rng(0).permutation(150)
    shuffled = judge_labels(Softmax(V[rows], t[rows], intercept=True))
    np.testing.assert_allclose(shuffled.verdict.scores, judged.verdict.scores[rows], atol=1e-4)
    sparse = judge_labels(Softmax(sp.csr_array(V), t, intercept=True))
    np.testing.assert_allclose(sparse.verdict.scores, judged.verdict.scores, atol=1e-4)


def test_class_of_one_row_stays() -> None:
    V, y = mixture(3, n=200)
    t = np.concatenate([y, [3]])
    judged = judge_labels(Softmax(np.vstack([V, 9 * np.ones(4)]), t, intercept=True))
    assert np.all(np.isfinite(judged.verdict.scores)) and judged.verdict.keep()[-1] == 1


def test_keep_never_flags_more_than_asked_nor_what_is_likely_right() -> None:
    V, y = mixture(3)
    judged = judge_labels(Softmax(V, corrupt(y, "shift", 0.3, 3), intercept=True))
    assert np.mean(judged.verdict.keep(0.9) == 0) == pytest.approx(0.1, abs=1e-3)
    np.testing.assert_array_equal(judged.verdict.keep(0.5), judged.verdict.keep())
    assert np.all(judged.verdict.keep(1.0) == 1)


def test_folds_are_even_in_every_class_and_ignore_rows_of_weight_zero() -> None:
    V, y = mixture(3, n=301)
    s = np.ones(301)
    s[::3] = 0
    fold = content_folds(row_hashes(V), y, s, 4)
    for k in range(3):
        assert np.ptp(np.bincount(fold[(y == k) & (s > 0)], minlength=4)) <= 1
    np.testing.assert_array_equal(content_folds(row_hashes(V[s > 0]), y[s > 0], s[s > 0], 4), fold[s > 0])
    np.testing.assert_array_equal(content_folds(row_hashes(sp.csr_array(V)), y, s, 4), fold)


def test_opinions_that_say_nothing_do_not_spoil_the_calibration() -> None:
    rng = np.random.default_rng(0)
    z = np.column_stack([np.zeros(400), 3 * rng.standard_normal(400)])
    labels = (rng.uniform(size=400) < expit(z[:, 1])).astype(np.int64)
    others = [np.column_stack([np.zeros(400), 0.8 * z[:, 1] + rng.standard_normal(400)]) for _ in range(2)]

    def likelihood(predictions: list[np.ndarray]) -> float:
        noise = estimate_noise(predictions, labels, noisy=False)
        return float(noise.log_likelihood(predictions, labels).sum())

    assert likelihood([z, *others]) > likelihood([z]) - 0.5  # what the prior of the other temperatures costs
