"""Losses whose rows lie elsewhere: how a worker makes that of its own rows, and what stands for all of them here.

What estimators ask of shards beside an engine's operations: summaries and moments of residuals, a number per row.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, NoReturn, final

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.engines.shard import Shard
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


EXACT = 200_000  # rows up to which residuals come here as they are: a limit on what travels, 3 MB a round

KEPT = 12  # bits of a fraction that a tally of many rows keeps: residuals are known to one part in 4,096


@final
@dataclass(frozen=True, eq=False)
class Tally:
    """Different numbers, and how many rows each stands for. Tallies add up."""

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, counts: np.ndarray | None) -> Tally:
        """Each different value once, in order."""
        found, place = np.unique(values, return_inverse=True)
        return cls(found, np.bincount(place.ravel(), counts, len(found)).astype(np.float64))

    def __add__(self, other: Tally) -> Tally:
        return Tally.of(np.concatenate([self.values, other.values]), np.concatenate([self.counts, other.counts]))


def residuals(shard: Shard, x: Array) -> np.ndarray:
    """t − z of its rows, in the dtype of x."""
    loss: Any = shard.engine.problem.loss
    parts = [loss.residual(loss.linear.predict(x, rows), rows)[:, 0] for _, rows in loss.linear.pieces()]
    return -to_numpy(np.concatenate(parts))


def tally(shard: Shard, x: Array, exact: bool) -> tuple[Tally]:
    """Its residuals at x, tallied."""
    return (tally_of(residuals(shard, x), shard.engine.problem.s, exact),)


def tally_of(r: np.ndarray, s: np.ndarray | None, exact: bool) -> Tally:
    """Numbers as they are, or to one part in 4,096. NaN counts as infinity."""
    r = np.where(np.isnan(r), np.inf, r).astype(np.float64)
    if not exact:
        scale = np.exp2(np.frexp(r)[1] - (KEPT + 1.0))
        with np.errstate(invalid="ignore"):
            r = np.where(np.isfinite(r), np.round(r / scale) * scale, r)
    return Tally.of(r, s)


def edge(value: float, exact: bool) -> float:
    """The largest number that a value of a tally may stand for."""
    return value if exact else value * (1 + 0.5**KEPT)


def weighted_moments(
    shard: Shard, x: Array, weigh: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Σ wᵢaᵢaᵢᵀ, Σ wᵢrᵢaᵢ and Σ wᵢ at x, with w = weigh(r), r = t − z."""
    problem = shard.engine.problem
    loss: Any = problem.loss
    c = weigh(residuals(shard, x)).astype(to_numpy(x).dtype)
    c = c if problem.s is None else c * problem.s
    gradient = to_numpy(loss.gradient(x, c)).astype(np.float64)
    return loss.hessian(x, c), -gradient.ravel(), float(c.sum(dtype=np.float64))
