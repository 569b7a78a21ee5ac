"""Estimators that are handed CUDA tensors: the same fits, and answers where the question lies."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from trimlearn import TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression, TrimmedPCA
from trimlearn._utils import residence

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 5))
Z = X @ RNG.standard_normal((5, 3))
LABELS = Z.argmax(axis=1)
LABELS[:40] = (LABELS[:40] + 1) % 3
TARGET = Z[:, 0] + 0.1 * RNG.standard_normal(400)
TARGET[:40] += 10.0


@pytest.fixture(params=["as if", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A device; without one, the host's memory counts as such."""
    monkeypatch.setattr(residence, "WORTH", 0)  # however small, take the way of large data
    if request.param == "cuda":
        return "cuda"
    cuda = "trimlearn.engines.cuda."
    for name in ("trimlearn._utils.residence", "trimlearn.solve", cuda + "engine"):
        monkeypatch.setattr(import_module(name), "lies_on_device", lambda a: isinstance(a, torch.Tensor))
    monkeypatch.setattr(import_module(cuda + "engine"), "open_device", lambda device: torch.device("cpu"))
    return "cpu"


def there(a: Any, device: str) -> Any:
    return torch.from_numpy(a).to(device)


@pytest.mark.parametrize("labels", [LABELS, LABELS > 0], ids=["three classes", "two"])
@pytest.mark.usefixtures("quick_fits")
def test_logistic_regression(labels: np.ndarray, device: str) -> None:
    here = TrimmedLogisticRegression(random_state=0).fit(X, labels)
    model = TrimmedLogisticRegression(random_state=0).fit(there(X, device), there(labels, device))
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.outlier_scores_, here.outlier_scores_, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(model.inlier_mask_, here.inlier_mask_)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        found, expected = getattr(model, name)(there(X, device)), getattr(here, name)(X)
        assert isinstance(found, torch.Tensor) and found.device.type == device, name
        assert tuple(found.shape) == expected.shape
        np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-3, atol=1e-4)
        assert isinstance(getattr(model, name)(X), np.ndarray)
    scores = model.outlier_score(there(X, device), there(labels, device))
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.cpu().numpy(), here.outlier_score(X, labels), rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("quick_fits")
def test_other_estimators_take_tensors_too(device: str) -> None:
    counts = np.round(np.exp(0.3 * Z[:, 0]))
    for make, target in ((TrimmedLinearRegression, TARGET), (TrimmedGLM, counts)):
        here = make(random_state=0).fit(X, target)
        model = make(random_state=0).fit(there(X, device), there(target, device), there(np.ones(400), device))
        np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-3, atol=1e-4)
        assert isinstance(model.predict(there(X, device)), torch.Tensor)
    model = TrimmedPCA(2, random_state=0).fit(there(X, device))
    assert isinstance(model.score_samples(there(X, device)), torch.Tensor)
    np.testing.assert_allclose(model.components_, TrimmedPCA(2, random_state=0).fit(X).components_, atol=1e-4)


@pytest.mark.usefixtures("quick_fits")
def test_labels_that_are_text_come_back_as_text(device: str) -> None:
    names = np.array(["a", "b", "c"])[LABELS]
    found = TrimmedLogisticRegression(random_state=0).fit(there(X, device), names).predict(there(X, device))
    assert isinstance(found, np.ndarray) and set(found) <= {"a", "b", "c"}


@pytest.mark.usefixtures("quick_fits")
def test_16_bit_tensors_are_read_as_float32(device: str) -> None:
    half = there(X, device).to(torch.bfloat16)
    model = TrimmedLogisticRegression(random_state=0).fit(half, LABELS)
    plain = TrimmedLogisticRegression(random_state=0).fit(half.float().cpu().numpy(), LABELS)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-2, atol=1e-3)
    assert tuple(model.predict_proba(half).shape) == (400, 3)


@pytest.mark.usefixtures("quick_fits")
def test_an_array_is_moved_once(device: str) -> None:
    tensor = there(X, device)
    with residence.residing(tensor):
        host = residence.on_host(tensor)
        assert residence.on_host(tensor) is host and residence.copy_on_device(host) is not None
        assert residence.copy_on_device(host).data_ptr() == tensor.data_ptr()
        other = host + 1.0
        assert residence.copy_on_device(other) is residence.copy_on_device(other)
    assert residence.copy_on_device(host) is None
