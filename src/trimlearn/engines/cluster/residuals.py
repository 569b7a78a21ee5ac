"""What estimators ask of shards beside an engine's operations: residuals, their tallies and their moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.engines.shard import Shard

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
