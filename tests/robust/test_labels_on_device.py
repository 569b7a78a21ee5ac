"""What judges labels gives the same numbers for tensors, computed where they lie, as for arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.extmath import randomized_svd

from trimlearn._utils import residence
from trimlearn.problem import lower_medians
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.column_bounds import column_bounds
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.robust.labels.noise_level import estimate_noise
from trimlearn.robust.labels.on_device import forest_probabilities, leading_directions

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
N, P, K = 501, 12, 3
LABELS = np.arange(N) % K


def table(dtype: str) -> np.ndarray:
    """Zeros of both signs, a column of nothing else, and an entry far away."""
    V = np.maximum(RNG.standard_normal((N, P)), 0.0).astype(dtype)
    V[:5, 3], V[:, 9], V[7, 2] = -0.0, 0.0, 1e6
    return V


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hashes_medians_and_bounds_are_the_same_bits(dtype: str, device: str) -> None:
    for V in (table(dtype), table(dtype)[1:]):  # an odd number of rows, and an even one
        there = torch.from_numpy(V).to(device)
        np.testing.assert_array_equal(row_hashes(there), row_hashes(V))
        s = RNG.integers(1, 4, len(V)).astype(float)
        np.testing.assert_array_equal(lower_medians(there, s), lower_medians(V, s))
        here, found = column_bounds(V), column_bounds(there)
        np.testing.assert_array_equal(found.centre, here.centre)
        np.testing.assert_array_equal(found.spread, here.spread)
        beyond = here.rows_beyond(V)
        assert beyond.any()
        np.testing.assert_array_equal(found.rows_beyond(there), beyond)
        np.testing.assert_array_equal(found.clip(there).cpu().numpy(), here.clip(V))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("drawn", [0.5, 1.0])
def test_a_forest_predicts_the_same(dtype: str, drawn: float, device: str) -> None:
    F, seen = table(dtype), RNG.permutation(N)[:300]
    draws = round(drawn * len(seen))
    forest = RandomForestClassifier(40, oob_score=True, max_samples=draws, random_state=0).fit(F[seen], LABELS[seen])
    expected = forest.predict_proba(F)
    expected[seen] = forest.oob_decision_function_
    found = forest_probabilities(forest, torch.from_numpy(F).to(device), seen)
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("rows", [400, 9], ids=["tall", "wide"])
def test_leading_directions_are_those_of_scikit_learn(rows: int, device: str) -> None:
    M = RNG.standard_normal((rows, P)) * np.linspace(0.5, 3.0, P)
    expected = randomized_svd(M, 4, n_iter=2, random_state=1)[2].T
    found = leading_directions(torch.from_numpy(M).to(device), 4, 2, 1)
    np.testing.assert_allclose(found.cpu().numpy(), expected, atol=1e-9)


def test_flexible_predictions(device: str) -> None:
    V = RNG.standard_normal((N, P)) + 2.0 * np.eye(K, P)[LABELS]
    expected = flexible_predictions(V, LABELS, np.ones(N))
    found = flexible_predictions(torch.from_numpy(V).to(device), LABELS, np.ones(N))
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"largest": False}, {"noisy": False}], ids=["level", "likely", "clean"])
def test_the_noise_model(options: dict[str, bool], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = RNG.integers(0, K, N)
    predictions = [scale * (4.0 * np.eye(K)[classes] + RNG.standard_normal((N, K))) for scale in (1.0, 0.6)]
    labels = np.where(np.arange(N) % 6 == 0, (classes + 1) % K, classes)
    s = RNG.integers(1, 3, N).astype(float)
    here = estimate_noise(predictions, labels, s, **options)
    told = [here.score, here.log_likelihood, here.classes, here.suggest]
    expected = [tell(predictions, labels) for tell in told]
    monkeypatch.setattr(residence, "WORTH", 0)
    monkeypatch.setattr(residence, "lies_on_device", lambda a: isinstance(a, torch.Tensor))
    asked: list[Any] = []
    sent = residence._Residence.copy
    monkeypatch.setattr(residence._Residence, "copy", lambda self, a: asked.append(a) or sent(self, a))
    with residence.residing(torch.zeros((N, P), device=device)):
        found = estimate_noise(predictions, labels, s, **options)
        for tell, right in zip(told, expected, strict=True):
            np.testing.assert_allclose(tell(predictions, labels), right, rtol=1e-9, atol=1e-9)
    assert asked  # the work was done there
    np.testing.assert_allclose(found.T, here.T, atol=1e-7)
    np.testing.assert_allclose(found.temperatures, here.temperatures, atol=1e-7)
    assert found.epsilon == pytest.approx(here.epsilon, abs=1e-7)
