"""Flexible classifiers of a sample, asked about other rows in blocks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from trimlearn.losses import Softmax
from trimlearn.robust import streamed_newton
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.flexible_models import FlexibleModels, calibrated
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed_newton import Newton


def signs(n: int, p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    V = np.random.default_rng(0).standard_normal((n, p))
    return V, (V[:, 0] * V[:, 1] > 0).astype(np.int64)


@pytest.mark.parametrize("p", [5, 60])
def test_rows_of_the_sample_are_predicted_without_themselves(p: int) -> None:
    """As `flexible_predictions` has it, where all rows but those that are seen are others."""
    V, labels = signs(6000, p)
    labels = np.where(np.random.default_rng(1).random(6000) < 0.3, 1 - labels, labels)
    known = flexible_predictions(V, labels, np.ones(6000), seed=3)
    models = FlexibleModels.of(V, labels, 2, seed=3)
    for z, theirs in zip(models.predictions(V), known, strict=True):
        np.testing.assert_allclose(z, theirs, atol=1e-6)


def test_blocks_copies_and_float32_change_nothing() -> None:
    V, labels = signs(1500)
    V = V.astype(np.float32)
    models = FlexibleModels.of(V[:600].astype(np.float64), labels[:600], 2, boosted=True)
    whole = models.predictions(V)
    assert len(whole) == 3
    elsewhere = pickle.loads(pickle.dumps(models))
    for at in (slice(0, 700), slice(700, 1500)):
        for z, part in zip(whole, elsewhere.predictions(V[at]), strict=True):
            np.testing.assert_allclose(part, z[at], atol=1e-5)
    assert np.mean(whole[2][600:].argmax(axis=1) == labels[600:]) > 0.9


def test_boosting_asks_the_half_that_has_not_seen_a_row() -> None:
    V, labels = signs(1000)
    boosted = BoostedOpinion(V, labels, np.ones(1000), 0, row_hashes(V))
    np.testing.assert_array_equal(boosted.of_others(V), boosted.predictions)


@pytest.mark.parametrize("K", [2, 3])
def test_several_predictions_are_one_when_calibrated(K: int) -> None:
    rng = np.random.default_rng(0)
    z, labels = [rng.standard_normal((50, K)) for _ in range(3)], rng.integers(K, size=50)
    T = 0.8 * np.eye(K) + 0.2 / K
    noise = LabelNoise(T, np.array([0.5, 1.5, 0.2]), rng.standard_normal(K), 0.1, 1e-4)
    alone = LabelNoise(T, np.ones(1), np.zeros(K), 0.1, 1e-4)
    a = calibrated(noise, z)
    a = np.column_stack([np.zeros(50), a]) if K == 2 else a
    np.testing.assert_allclose(alone.score([a], labels), noise.score(z, labels))


def test_a_hessian_that_float32_has_made_indefinite_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Softmax has directions that change nothing: sums in float32 may curve them a little downwards."""
    rng = np.random.default_rng(0)
    loss = Softmax(rng.standard_normal((60, 2)), rng.integers(3, size=60), 3, intercept=True)
    Q = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    H = (Q * np.r_[-1e-6, np.linspace(0.5, 2, 8)]) @ Q.T
    monkeypatch.setattr(streamed_newton, "_hessian", lambda *_: H)
    newton = Newton(loss, 1e-12, 1e-6)
    newton.go_on_from(newton, np.zeros((3, 3)), lambda _: 1.0, 0.1 * np.eye(9))
    assert newton._hessian is not None and np.all(np.isfinite(newton._hessian))
