"""Fits of any loss of linear predictions to rows that are read from a disk, trimmed or not, from a start that a sample
gave.

Newton's steps: x is near its place already. Of each row its loss is kept, and each step reads the rows once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, nan
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.digits import kth_by_digits
from trimlearn._utils.threads import filled
from trimlearn.losses.base import PredictionLoss
from trimlearn.robust.streamed_newton import (
    Newton,
    Weigh,
    crossing_curvature,
    evaluated,
    trimmed_gradient,
    value_gradient,
)
from trimlearn.weights.simplex import CappedSimplex, snap_h

__all__ = [
    "StreamedSum",
    "ThresholdWeights",
    "TrimmedHere",
    "WeighedHere",
    "WeighedSum",
    "newton_streamed",
    "pieces_of",
    "trimming",
]

SETTLED = 1e-6  # share of F that the next step could gain, or the last one has, when there is no other
AHEAD = 1e-5  # the same for rows that go ahead: what is best for them differs from what is best for all by more
PIECE = 1 << 18  # losses compared with a threshold in one go: a limit on memory, 2 MB


@final
@dataclass(frozen=True)
class ThresholdWeights:
    """Weight 1 below a threshold, ``share`` at it, 0 above; and the mean of the weighted losses."""

    threshold: float
    share: float
    value: float

    def of(self, a: np.ndarray) -> np.ndarray:
        """The weights of losses, or of residuals by their size: 0 where these are NaN."""
        size = np.abs(a)
        w: np.ndarray = (size < self.threshold).astype(a.dtype)
        w[size == self.threshold] = self.share
        return w


def trimming(a: np.ndarray, h: float, loss: Callable[[np.ndarray], np.ndarray] = lambda size: size) -> ThresholdWeights:
    """The weights that keep the h smallest of |a|; loss: of such a size, which it is itself by default."""
    n, h = len(a), snap_h(h, len(a))
    theta = inf if h >= n else kth_by_digits(a, ceil(h) - 1)
    below = tied = 0
    total_loss = 0.0
    for at in pieces_of(n):
        size = np.abs(a[at])
        inside = size < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(size == theta))
        total_loss += float(np.sum(loss(size), dtype=np.float64, where=inside))
    left = h - below
    value = total_loss + (left * float(loss(np.array(theta))) if left > 0 else 0.0)
    return ThresholdWeights(theta, min(max(left / max(tied, 1), 0.0), 1.0), value / n)


def pieces_of(n: int) -> list[slice]:
    """n numbers in pieces."""
    return [slice(i, min(i + PIECE, n)) for i in range(0, n, PIECE)]


def _all(at: Any) -> float:
    """Every row counts once."""
    return 1.0


def _of(found: ThresholdWeights, f: np.ndarray) -> Weigh:
    return lambda at: found.of(f[at])


class StreamedSum(ABC):
    """1/n Σ wᵢfᵢ over all rows of a loss, wherever they lie: w stays, or is the best at each x.

    loss: what stands for the losses, and for the shape of x. weigh: the weights at the last x; only asked for where no
    rows went ahead. threshold: the loss at which weights end, NaN where they stay.
    """

    loss: Any
    weigh: Weigh
    threshold: float = nan

    @abstractmethod
    def value(self, x: Array) -> float:
        """The sum at x."""

    @abstractmethod
    def slope(self) -> np.ndarray:
        """Its gradient at that x, as one vector."""

    def expect(self, threshold: float) -> None:  # noqa: B027
        """Losses will be kept up to about this one, which may save a read of the rows."""

    def crossing(self, x: Array) -> np.ndarray | None:
        """The curvature that rows at the threshold take away."""
        return None

    def last(self, newton: Newton, x: Array) -> Array:
        """Where steps end that found x to be where it should be: with the best weights there, at x."""
        return x


@final
class TrimmedHere(StreamedSum):
    """A share of the weights is kept, of rows in this process. s: sample weights; then 1/n Σ is a mean by these."""

    def __init__(self, loss: PredictionLoss, share: float, s: np.ndarray | None = None) -> None:
        self.loss, self.share, self.s = loss, share, None if s is None else s / np.mean(s, dtype=np.float64)
        self.f, self.weigh = np.zeros(0), _all
        self._x, self._expected, self._sums = np.zeros(0), nan, np.zeros(0)

    def expect(self, threshold: float) -> None:
        self.threshold = threshold

    def value(self, x: Array) -> float:
        self._x, self._expected = x, self.threshold
        self.f, self._sums = evaluated(self.loss, x, self._expected, self.s)
        if self.s is None:
            found = trimming(self.f, self.share * self.loss.n)
            self.weigh, self.threshold = _of(found, self.f), found.threshold
            return found.value
        w = CappedSimplex(self.share * self.loss.n).minimise(self.f, self.s) * self.s
        self.weigh, self.threshold = w.__getitem__, float(self.f[w > 0].max())
        return float(np.sum(w * self.f, dtype=np.float64, where=w > 0) / self.loss.n)

    def slope(self) -> np.ndarray:
        thresholds = self._expected, self.threshold
        return trimmed_gradient(self.loss, self._x, self.f, self.weigh, thresholds, self._sums, self.s)

    def weights(self) -> np.ndarray:
        """The best weights of all rows."""
        return filled(np.empty_like(self.f), self.weigh, pieces_of(len(self.f)))

    def crossing(self, x: Array) -> np.ndarray | None:
        return crossing_curvature(self.loss, x, self.f, self.threshold, self.s)


class WeighedSum(StreamedSum):
    """One in which the weights stay."""

    _gradient: np.ndarray

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[float, np.ndarray]:
        """The sum at x, and its gradient as one vector."""

    @final
    def value(self, x: Array) -> float:
        value, self._gradient = self.value_gradient(x)
        return value

    @final
    def slope(self) -> np.ndarray:
        return self._gradient

    @final
    def last(self, newton: Newton, x: Array) -> Array:
        return newton.last(x)


@final
class WeighedHere(WeighedSum):
    """The same in this process, in memory or mapped."""

    def __init__(self, loss: PredictionLoss, weigh: Weigh = _all) -> None:
        self.loss, self.weigh = loss, weigh

    def value_gradient(self, x: Array) -> tuple[float, np.ndarray]:
        return value_gradient(self.loss, x, self.weigh)


def newton_streamed(
    rows: StreamedSum, x: Array, ridge: float, lead: StreamedSum | None = None
) -> tuple[Array, list[float]]:
    """min over x, and over w where rows are trimmed, of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², the intercept exempt: x, and F
    after each step. The rows have the weights that belong to x.

    The best w for x, then a step of `Newton` for this w, in turn. lead: some of the rows, held in memory, to which all
    is done first, so that all rows are asked for one or two steps.
    """
    newton = Newton(rows.loss, ridge, SETTLED)
    if lead is not None:
        before = Newton(lead.loss, ridge, AHEAD)
        x, _ = _descend(lead, before, x)
        newton.go_on_from(before, x, lead.weigh, lead.crossing(x))
        rows.expect(lead.threshold)
    return _descend(rows, newton, x)


def _descend(rows: StreamedSum, newton: Newton, x: Array) -> tuple[Array, list[float]]:
    objectives = list[float]()
    while True:
        value = rows.value(x) + newton.half_square(x)
        if newton.too_high(value):
            x = newton.shorter()
            continue
        objectives.append(value)
        there = newton.step(x, value, rows.weigh, rows.slope)
        if there is None:
            return rows.last(newton, x), objectives
        x = there
