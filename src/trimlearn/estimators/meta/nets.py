"""What networks need to be wrapped as scikit-learn's estimators are: skorch's nets, known without importing skorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline


def is_net(estimator: Any) -> bool:
    """Is this, or a pipeline's last step, one of skorch's nets?

    >>> from sklearn.linear_model import Ridge
    >>> is_net(Ridge())
    False
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return any(cls.__module__.partition(".")[0] == "skorch" for cls in type(last).__mro__)


def check_no_module(estimator: Any) -> None:
    """ValueError for a torch module, which has neither fit nor predict, or for the class of one."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    if any(f"{cls.__module__}.{cls.__name__}" == "torch.nn.modules.module.Module" for cls in kind.__mro__):
        raise ValueError(
            f"estimator is a bare torch module, {kind.__name__}: wrap it in skorch.NeuralNetClassifier or "
            "NeuralNetRegressor, or train it by trimlearn.torch.trim."
        )


def check_shapes(estimator: Any, predicted: np.ndarray, y: np.ndarray) -> None:
    """ValueError where a net predicts a column and y is none, or the reverse: its loss has compared all pairs of rows.

    >>> check_shapes(None, np.zeros((3, 1)), np.zeros(3))  # no net: scikit-learn's estimators see to that
    """
    if is_net(estimator) and predicted.ndim != y.ndim:
        fix = "pass y.reshape(-1, 1)" if y.ndim == 1 else "pass y.ravel()"
        raise ValueError(
            f"the net predicts shape {predicted.shape} for y of shape {y.shape}, so that its loss compares every row "
            f"with every other; {fix}, or let the module return what y has."
        )


@contextmanager
def seeded_net(estimator: Any, seed: int) -> Iterator[None]:
    """In the block a net's first weights, batches and dropout are drawn from ``seed``; nothing else notices."""
    if not is_net(estimator):
        yield
        return
    import torch

    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
