"""Fits of any loss of linear predictions to rows read from a disk, trimmed or not, begun where a sample's fit ended.

Newton's steps: x is near its place already. Of each row its loss is kept, and each step reads the rows once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import nan
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
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
from trimlearn.robust.trimming import pieces_of, trimming
from trimlearn.weights.simplex import CappedSimplex

SETTLED = 1e-6  # share of F that the next step could gain, or the last one has, when there is no other
AHEAD = 1e-5  # the same for rows that go ahead: what is best for them differs from what is best for all by more


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
        self.f = np.zeros(0)
        self._x, self._expected, self._sums = np.zeros(0), nan, np.zeros(0)

    def expect(self, threshold: float) -> None:
        self.threshold = threshold

    def value(self, x: Array) -> float:
        self._x, self._expected = x, self.threshold
        f, self._sums = evaluated(self.loss, x, self._expected, self.s)
        self.f, h = f, self.share * self.loss.n
        if self.s is None:
            found = trimming(f, h)
            self.weigh, self.threshold = lambda at: found.of(f[at]), found.threshold
            return found.value
        w = CappedSimplex(h).minimise(f, self.s) * self.s
        self.weigh, self.threshold = w.__getitem__, float(f[w > 0].max())
        return float(np.sum(w * f, dtype=np.float64, where=w > 0) / self.loss.n)

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
    """The same in this process, in memory or mapped. w: the weights; None: all are 1."""

    def __init__(self, loss: PredictionLoss, w: np.ndarray | None = None) -> None:
        self.loss = loss
        self.weigh = (lambda at: 1.0) if w is None else w.__getitem__

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
