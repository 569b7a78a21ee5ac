"""TrimmedEstimator around skorch's nets, and around what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
skorch = pytest.importorskip("skorch", reason="skorch is not installed: pip install skorch")

from trimlearn import TrimmedEstimator  # noqa: E402
from trimlearn.estimators.meta.nets import is_net  # noqa: E402

N, WRONG = 300, 45


class Net(torch.nn.Module):  # type: ignore[misc]
    """A hidden layer; ``flat``: one number per row, not a column."""

    def __init__(self, outputs: int = 2, flat: bool = False) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs))
        self.flat = flat

    def forward(self, X: Any) -> Any:
        return self.layers(X)[:, 0] if self.flat else self.layers(X)


def settings(epochs: int) -> dict[str, Any]:
    adam = {"optimizer": torch.optim.Adam, "optimizer__lr": 0.03}
    return {"max_epochs": epochs, "train_split": None, "verbose": 0, "batch_size": 64, **adam}


def classifier(**options: Any) -> Any:
    return skorch.NeuralNetClassifier(Net, criterion=torch.nn.CrossEntropyLoss, **settings(8), **options)


def regressor(**options: Any) -> Any:
    return skorch.NeuralNetRegressor(Net, module__outputs=1, **{**settings(15), **options})


def made_up() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes, numbers: those of the first rows are wrong."""
    X = np.random.default_rng(0).standard_normal((N, 3)).astype(np.float32)
    labels = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
    numbers = (X[:, 0] - 2 * X[:, 1]).astype(np.float32)
    labels[:WRONG] = 1 - labels[:WRONG]
    numbers[:WRONG] += 20
    return X, labels, numbers


def test_wrong_labels_of_a_net_are_found() -> None:
    X, y, _ = made_up()
    model = TrimmedEstimator(classifier(), random_state=0, max_iter=3).fit(X, y)
    assert (~model.inlier_mask_[:WRONG]).mean() > 0.7 and model.inlier_mask_[WRONG:].mean() > 0.97
    assert model.contamination_ == pytest.approx(WRONG / N, abs=0.04)
    assert np.mean(model.predict(X)[:WRONG] != y[:WRONG]) > 0.9
    table = model.outlier_table()
    assert len(table) == N and (np.asarray(table["row"])[:20] < WRONG).all()


def test_a_random_state_gives_the_same_nets_every_time(quick_fits: None) -> None:
    X, _, y = made_up()
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = TrimmedEstimator(regressor(module__flat=True, max_epochs=2), 0.15, max_iter=1, random_state=0)
        found.append(model.fit(X, y).outlier_scores_)
    assert np.array_equal(*found)


@pytest.mark.parametrize("flat", [False, True])
def test_wrong_numbers_of_a_net_are_found(flat: bool) -> None:
    X, _, y = made_up()
    y = y if flat else y[:, None]
    model = TrimmedEstimator(regressor(module__flat=flat), random_state=0, max_iter=2, contamination=0.15).fit(X, y)
    assert not model.inlier_mask_[:WRONG].any() and model.inlier_mask_[WRONG:].mean() > 0.9
    assert model.predict(X).shape == y.shape
    assert np.abs(model.predict(X) - y)[WRONG:].mean() < 0.5
    assert model.outlier_table().columns  # as many as for other regressors


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("flat", [False, True])
def test_a_column_compared_with_a_row_is_an_error(flat: bool) -> None:
    X, _, y = made_up()
    y = y[:, None] if flat else y
    fix = r"pass y.ravel\(\)" if flat else r"pass y.reshape\(-1, 1\)"
    with pytest.raises(ValueError, match=f"so that its loss compares every row with every other; {fix}"):
        TrimmedEstimator(regressor(module__flat=flat), max_iter=1, random_state=0).fit(X, y)


def test_a_pipeline_may_end_in_a_net(quick_fits: None) -> None:
    X, y, _ = made_up()
    model = TrimmedEstimator(make_pipeline(StandardScaler(), classifier()), 0.15, random_state=0, max_iter=2).fit(X, y)
    assert is_net(model.estimator) and (~model.inlier_mask_[:WRONG]).mean() > 0.7


@pytest.mark.parametrize("module", [Net(), Net, torch.nn.Linear(3, 2)], ids=["object", "class", "layer"])
def test_a_bare_module_is_told_where_to_go(module: Any) -> None:
    X, y, _ = made_up()
    with pytest.raises(
        ValueError, match=r"bare torch module, (Net|Linear): wrap it in skorch.*or train it by trimlearn"
    ):
        TrimmedEstimator(module).fit(X, y)
