"""Losses whose rows lie elsewhere: how a worker makes that of its own rows, and what stands for all of them here."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, NoReturn, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.losses import Logistic
from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.homography import Homography
from trimlearn.losses.storage import Dense, Scratch
from trimlearn.losses.subspace import Subspace

LAYER = ("intercept", "center", "scale")  # what the linear layer of a loss has beside its rows


@final
@dataclass(frozen=True, eq=False)
class LossOf:
    """A kind of loss and its options: everything but the rows."""

    kind: type[Loss]
    options: dict[str, Any] = field(default_factory=dict)

    def make(self, V: Any, t: Any) -> Loss:
        """The loss of these rows."""
        more = {"part": True} if self.kind is Logistic else {}
        return self.kind(V, t, **self.options | more)  # type: ignore[call-arg]

    def centred(self, center: np.ndarray) -> LossOf:
        """The same about another centre."""
        return replace(self, options={**self.options, "center": center})


def loss_of(loss: Loss) -> LossOf:
    """What a loss in memory is but for its rows; ValueError where it cannot be cut into rows."""
    if not isinstance(loss, PredictionLoss) or isinstance(loss, (Homography, Subspace)):
        raise ValueError(
            f"engine='dask' takes losses of predictions with one target per row, not {type(loss).__name__}."
        )
    names = [name for name in signature(type(loss)).parameters if name not in ("V", "t", "layer")]
    options = {name: loss.K if name == "n_classes" else getattr(loss, name) for name in names}
    return LossOf(type(loss), options | {name: getattr(loss.linear, name) for name in LAYER})


@final
class WorkersStorage(Dense):
    """The rows of V on the workers: their number and width are known here, and nothing else."""

    def __init__(self, n: int, p: int, like: Array) -> None:
        self.V, self.n, self.p, self.like = None, n, p, like
        self.converts, self.scratch = False, Scratch()

    def fetch(self, rows: slice | Array) -> NoReturn:
        raise TypeError("the rows of this loss lie on the workers of a cluster; ask its engine.")


def standing_for(sample: Loss, n: int) -> Loss:
    """What stands for n rows of which ``sample`` has some: the shape of x, the start, and no row to be asked for."""
    assert isinstance(sample, PredictionLoss), "loss_of sees to that"
    loss = copy(sample)
    loss.linear = copy(sample.linear)
    loss.linear.storage = WorkersStorage(n, sample.linear.p, sample.like)
    loss.n = loss.linear.n = n
    return loss
