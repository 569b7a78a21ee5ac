"""`trim` and what it cannot use: each error names the argument and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from trimlearn.torch import trim  # noqa: E402

X, Y = torch.arange(40.0).view(20, 2) / 40, torch.arange(20) % 2
CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


def SPREAD(output: Any, y: Any) -> Any:
    """One number per row of what broadcasting makes of (m, 1) and (m,)."""
    return ((output - y) ** 2).mean(1)


def run(module: Any = None, loss: Any = CROSS_ENTROPY, dataset: Any = (X, Y), level: Any = 0.1, **options: Any) -> Any:
    torch.manual_seed(0)
    module = nn.Linear(2, 2) if module is None else module
    return trim(module, loss, dataset, level, **{"progress": False, "epochs": 2, **options})


class Endless(IterableDataset):  # type: ignore[type-arg]
    """Examples one after the other, without number."""

    def __iter__(self) -> Any:
        yield X[0], 0


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"loss": nn.CrossEntropyLoss()}, ValueError, "reduction='none'"),
    ({"loss": lambda out, y: out - X[: len(y)]}, ValueError, "take the mean over"),
    ({"loss": lambda out, y: 1.0}, TypeError, "must return a tensor"),
    ({"loss": 3}, TypeError, "loss_fn must be callable"),
    ({"dataset": Endless()}, TypeError, "must have a length"),
    ({"dataset": iter([1])}, TypeError, "must have a length"),
    ({"dataset": DataLoader(TensorDataset(X, Y))}, TypeError, "give loader.dataset"),
    ({"dataset": (X, Y[:5])}, ValueError, r"one row per example each, got \[20, 5\]"),
    ({"dataset": (X[:0], Y[:0])}, ValueError, "empty"),
    ({"dataset": []}, ValueError, "empty"),
    ({"dataset": (X, np.array(["a", "b"] * 10))}, TypeError, "number the classes from 0"),
    ({"dataset": (X, ["a", "b"] * 10)}, TypeError, "return_inverse"),
    ({"dataset": ([[1.0], [1.0, 2.0]], [0, 1])}, TypeError, "different lengths"),
    ({"dataset": [(X[i], "ab"[i % 2]) for i in range(20)]}, ValueError, "a tensor .20, 2. of float32, and the"),
    ({"dataset": [(X[i, : 1 + i % 2], 0) for i in range(20)]}, ValueError, "give collate_fn=, which pads"),
    ({"dataset": [(X[i], i % 2, i) for i in range(20)]}, ValueError, "all parts of an example but the last"),
    ({"dataset": [{"a": X[i], "b": X[i], "label": 0} for i in range(20)]}, ValueError, "entries a, b of an example"),
    ({"dataset": (X.double(), Y)}, ValueError, "different types, torch.float64 and torch.float32"),
    ({"dataset": (X[:, :1], Y)}, ValueError, "cannot be called with the inputs, a tensor"),
    ({"dataset": (X, Y + 1)}, ValueError, "number the classes from 0"),
    ({"dataset": (X, Y.float())}, ValueError, "loss_fn failed with the output, a tensor"),
    ({"module": nn.Linear(2, 1), "loss": nn.L1Loss(reduction="none"), "dataset": (X, X[:, 0])}, ValueError, "view_as"),
    ({"module": nn.Linear(2, 1), "loss": SPREAD, "dataset": (X, X[:, 0])}, ValueError, "with every target"),
    ({"module": lambda x: x}, TypeError, "must be a torch.nn.Module"),
    ({"module": nn.Identity()}, ValueError, "no parameters to fit"),
    ({"level": 1.0}, ValueError, "contamination must be"),
    ({"level": -0.1}, ValueError, "contamination must be"),
    ({"level": 20}, ValueError, "contamination must be"),
    ({"level": "most"}, ValueError, "contamination must be 'auto'"),
    ({"level": True}, ValueError, "contamination must be"),
    ({"level": float("nan")}, ValueError, "contamination must be"),
    ({"epochs": 0}, ValueError, "epochs"),
    ({"epochs": "many"}, ValueError, "epochs must be 'auto'"),
    ({"batch_size": 2.5}, ValueError, "batch_size"),
    ({"accumulate": 0}, ValueError, "accumulate"),
    ({"gradient": "exact"}, ValueError, "gradient"),
    ({"precision": "float8"}, ValueError, "precision"),
    ({"seed": -1}, ValueError, "seed"),
    ({"gradient": "variance-reduced", "precision": "float16"}, ValueError, "variance-reduced"),
    ({"groups": [0, 1]}, ValueError, "one entry per example"),
    ({"groups": np.zeros(20), "level": "auto"}, ValueError, "groups need a known contamination"),
    ({"optimizer": 0.1}, TypeError, "optimizer must be"),
    ({"optimizer": torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1)}, ValueError, "not the module's"),
    ({"labels": True, "loss": lambda out, y: (out[:, 0] - y) ** 2, "dataset": (X, X[:, 0])}, ValueError, "no labels"),
    ({"callback": 3}, TypeError, "callback must be callable"),
    ({"checkpoint": 3}, TypeError, "checkpoint must be a path"),
    ({"checkpoint": "/nowhere/at/all.pt"}, ValueError, "existing folder"),
    ({"num_workers": -1}, ValueError, "num_workers"),
]


@pytest.mark.parametrize(("given", "error", "said"), ERRORS, ids=[case[2] for case in ERRORS])
@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")  # PyTorch's own, of the same
def test_what_cannot_be_used_is_named_with_its_fix(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        run(**given)
    assert "\n" not in str(raised.value)


def test_examples_without_a_finite_loss_are_trimmed_first_and_counted() -> None:
    x = X.clone()
    x[[3, 7]] = float("nan")
    module = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with pytest.warns(UserWarning, match="2 of 20 examples have no finite loss; they are trimmed first"):
        result = run(module, dataset=(x, Y), level=4)
    assert result.n_invalid_ == 2 and not result.inlier_mask_[[3, 7]].any()
    assert np.isinf(result.outlier_scores_[[3, 7]]).all() and np.isclose(result.weights_.sum(), 16)
    assert all(bool(torch.isfinite(value).all()) for value in module.state_dict().values())
    assert set(result.table()["row"][:2].tolist()) == {3, 7}


def test_more_of_them_than_contamination_allows_are_left_out_all_the_same() -> None:
    x = X.clone()
    x[:5] = float("nan")
    with pytest.warns(UserWarning, match="more of them than contamination allows"):
        result = run(dataset=(x, Y), level=0.1)
    assert not result.inlier_mask_[:5].any() and result.inlier_mask_[5:].all()


def test_no_finite_loss_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no example has a finite loss"):
        run(dataset=(X * float("nan"), Y))


def test_a_fit_that_diverges_is_an_error() -> None:
    with pytest.raises(ValueError, match="lower learning rate"):
        run(
            nn.Linear(2, 1),
            lambda out, y: (out[:, 0] - y) ** 2,
            (X, X[:, 0]),
            optimizer=lambda p: torch.optim.SGD(p, lr=1e20),
            epochs=10,
        )


def test_a_file_of_another_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.pt"
    run(checkpoint=path)
    run(checkpoint=path)  # it goes on from its end
    with pytest.raises(ValueError, match=r"belongs to another fit.*module"):
        run(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)), checkpoint=path)
    with pytest.raises(ValueError, match=r"belongs to another fit.*contamination"):
        run(level=0.3, checkpoint=path)
    run(level=0.3, checkpoint=path, resume=False)
    path.write_bytes(b"not a file of torch's")
    with pytest.raises(ValueError, match="damaged or not one of trim's"):
        run(checkpoint=path)


def test_new_examples_with_labels_of_no_class_are_refused() -> None:
    with pytest.raises(ValueError, match="labels that the fit does not know"):
        run().outlier_score((X, Y + 5))


def test_a_picture_of_noise_needs_labels() -> None:
    with pytest.raises(ValueError, match="no noise matrix"):
        run(nn.Linear(2, 1), lambda out, y: (out[:, 0] - y) ** 2, (X, X[:, 0])).plot_noise_matrix()


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("level", ["auto", 0.2])
def test_a_handful_of_examples_is_fitted(n: int, level: Any) -> None:
    assert len(run(dataset=(X[:n], Y[:n]), level=level).weights_) == n
    squares = (X[:n], X[:n, 0])
    assert len(run(nn.Linear(2, 1), lambda out, y: (out[:, 0] - y) ** 2, squares, level).weights_) == n


def test_numbers_that_are_whole_are_no_labels_of_one_output() -> None:
    counts = (X, torch.arange(20))
    assert run(nn.Linear(2, 1), lambda out, y: (out[:, 0] - y) ** 2, counts).noise_matrix_ is None
