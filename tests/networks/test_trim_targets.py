"""What `trim` reads as inputs, as targets and as labels, whatever form they come in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from torch import nn  # noqa: E402

from trimlearn.torch import trim  # noqa: E402
from trimlearn.torch.targets import find_labels  # noqa: E402

N = 120
TRUTH = torch.arange(N) % 3
WRONG = torch.arange(N) % 6 == 0
X = 6.0 * nn.functional.one_hot(TRUTH, 3) + torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
Y = torch.where(WRONG, (TRUTH + 1) % 3, TRUTH)
CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))


def fitted(dataset: Any, loss: Any = CROSS_ENTROPY, make: Any = network) -> Any:
    torch.manual_seed(0)
    return trim(make(), loss, dataset, int(WRONG.sum()), progress=False, epochs=3)


class Named(nn.Module):
    """A module that returns its logits by name, or as the first of two."""

    def __init__(self, pair: bool) -> None:
        super().__init__()
        self.net, self.pair = network(), pair

    def forward(self, x: Any) -> Any:
        z = self.net(x)
        return (z, x) if self.pair else {"hidden": x, "logits": z}


FORMS: dict[str, tuple[Any, Any, Any]] = {
    "a list of pairs": (list(zip(X, Y, strict=True)), CROSS_ENTROPY, network),
    "a list of dicts": ([{"x": x, "label": y} for x, y in zip(X, Y, strict=True)], CROSS_ENTROPY, network),
    "lists": ((X.tolist(), Y.tolist()), CROSS_ENTROPY, network),
    "32-bit numbers": ((X.numpy().astype(np.float64), Y.numpy().astype(np.int32)), CROSS_ENTROPY, network),
    "one-hot": ((X, nn.functional.one_hot(Y, 3).float()), CROSS_ENTROPY, network),
    "logits by name": ((X, Y), lambda out, y: CROSS_ENTROPY(out["logits"], y), lambda: Named(False)),
    "logits first": ((X, Y), lambda out, y: CROSS_ENTROPY(out[0], y), lambda: Named(True)),
}


@pytest.fixture(scope="module")
def reference() -> Any:
    """The fit to two tensors."""
    return fitted((X, Y))


@pytest.mark.parametrize("form", FORMS)
def test_labels_are_read_in_every_form(form: str, reference: Any) -> None:
    dataset, loss, make = FORMS[form]
    result = fitted(dataset, loss, make)
    assert np.array_equal(result.suggested_labels_, reference.suggested_labels_)  # None of numbers
    assert np.allclose(result.outlier_scores_, reference.outlier_scores_, atol=1e-3)
    assert np.allclose(result.outlier_score(dataset), reference.outlier_score((X, Y)), atol=1e-3)


def test_a_frame_and_a_series_are_read(reference: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = fitted((pandas.DataFrame(X.numpy()), pandas.Series(Y.numpy())))
    assert np.array_equal(frame.weights_, reference.weights_)


def test_a_one_hot_table_names_classes_by_number() -> None:
    result = fitted((X, nn.functional.one_hot(Y, 3).float()))
    assert set(result.suggested_labels_) <= {0, 1, 2}
    assert len(result.table()) == N
    other = X[:3], nn.functional.one_hot(Y[:3], 3).float()
    assert result.outlier_score(other).shape == (3,)
    with pytest.raises(ValueError, match="does not know"):
        result.outlier_score((X[:3], torch.full((3, 3), 0.5)))


SOFT = 0.9 * nn.functional.one_hot(Y, 3).float() + 0.1 / 3
DOUBTS = {
    "probabilities of 3 classes": (SOFT, torch.zeros(4, 3)),
    "none of the classes 0 … 2": (torch.where(WRONG, -100, Y), torch.zeros(4, 3)),
    "returns a str": (Y, "a picture"),
}


@pytest.mark.parametrize("said", DOUBTS)
def test_what_looks_like_labels_and_is_not_read_as_such_is_said(said: str) -> None:
    targets, output = DOUBTS[said]
    with pytest.warns(UserWarning, match=said):
        assert find_labels(targets, output, None) is None


def test_numbers_are_no_doubtful_labels() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for targets, columns in ((torch.randn(9), 1), (torch.arange(9), 1), (torch.randn(9, 3), 3), (None, 3)):
            assert find_labels(targets, torch.zeros(4, columns), None) is None
        assert find_labels(Y, "a picture", False) is None


def test_labels_may_be_asked_for_where_the_output_says_nothing() -> None:
    labels = find_labels(Y, "a picture", True)
    assert labels is not None
    assert labels.K == 3


def test_a_loss_that_mixes_examples_is_said() -> None:
    def mixing(output: Any, y: Any) -> Any:
        f = CROSS_ENTROPY(output, y)
        return f - f.mean()

    with pytest.warns(UserWarning, match="where other examples are beside it"):
        fitted((X, Y), mixing)
