"""Trimmed fits of any loss of linear predictions to rows that are read from a disk, from a start that a sample gave.

Newton's steps: x is near its place already. Of each row its loss is kept, and each step reads the rows once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, nan
from typing import Any, Protocol, final

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
    "RowsHere",
    "ThresholdWeights",
    "TrimmedRows",
    "WeighedHere",
    "WeighedRows",
    "newton_streamed",
    "pieces_of",
    "trimmed_newton",
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


class TrimmedRows(Protocol):
    """All rows of a loss, wherever they lie, of which the best are kept. loss: what stands for them, the shape of x."""

    @property
    def loss(self) -> Any: ...

    def expect(self, threshold: float) -> None:
        """Losses will be kept up to about this one, which may save a read of the rows."""

    def best(self, x: Array, share: float) -> float:
        """1/n Σ wᵢfᵢ(x) with the best weights, 1/n Σ wᵢ being the share."""

    def slope(self) -> np.ndarray:
        """1/n Σ wᵢ∇fᵢ with these weights at that x, as one vector."""

    @property
    def weigh(self) -> Weigh:
        """These weights; only asked for where no rows went ahead."""


class WeighedRows(Protocol):
    """All rows of a loss, wherever they lie, with weights that stay. loss: what stands for them, the shape of x."""

    @property
    def loss(self) -> Any: ...

    def value_gradient(self, x: Array) -> tuple[float, np.ndarray]:
        """1/n Σ wᵢfᵢ(x) and its gradient, as one vector."""

    @property
    def weigh(self) -> Weigh:
        """The weights; only asked for where no rows went ahead."""


@final
class RowsHere:
    """`TrimmedRows` in this process, in memory or mapped. s: sample weights; then 1/n Σ is a mean by these."""

    def __init__(self, loss: PredictionLoss, s: np.ndarray | None = None) -> None:
        self.loss, self.s = loss, None if s is None else s / np.mean(s, dtype=np.float64)
        self.f, self.threshold = np.zeros(0), nan
        self.weigh: Weigh = _all
        self._x, self._expected, self._sums = np.zeros(0), nan, np.zeros(0)

    def expect(self, threshold: float) -> None:
        self.threshold = threshold

    def best(self, x: Array, share: float) -> float:
        self._x, self._expected = x, self.threshold
        self.f, self._sums = evaluated(self.loss, x, self._expected, self.s)
        if self.s is None:
            found = trimming(self.f, share * self.loss.n)
            self.weigh, self.threshold = _of(found, self.f), found.threshold
            return found.value
        w = CappedSimplex(share * self.loss.n).minimise(self.f, self.s) * self.s
        self.weigh, self.threshold = w.__getitem__, float(self.f[w > 0].max())
        return float(np.sum(w * self.f, dtype=np.float64, where=w > 0) / self.loss.n)

    def slope(self) -> np.ndarray:
        thresholds = self._expected, self.threshold
        return trimmed_gradient(self.loss, self._x, self.f, self.weigh, thresholds, self._sums, self.s)

    def weights(self) -> np.ndarray:
        """The best weights of all rows."""
        return filled(np.empty_like(self.f), self.weigh, pieces_of(len(self.f)))

    def crossing(self, x: Array) -> np.ndarray | None:
        """The curvature that rows at the threshold take away."""
        return crossing_curvature(self.loss, x, self.f, self.threshold, self.s)


@final
@dataclass(frozen=True)
class WeighedHere:
    """`WeighedRows` in this process, in memory or mapped."""

    loss: PredictionLoss
    weigh: Weigh = _all

    def value_gradient(self, x: Array) -> tuple[float, np.ndarray]:
        return value_gradient(self.loss, x, self.weigh)


def trimmed_newton(
    rows: TrimmedRows, x: Array, share: float, ridge: float, lead: RowsHere | None = None
) -> tuple[Array, list[float]]:
    """min over x and w of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², 1/n Σ wᵢ = share, the intercept exempt: x, for which the rows
    have their best weights, and F after each step.

    The best w for x, then a step of `Newton` for this w, in turn. lead: some of the rows, held in memory, to which all
    is done first, so that all rows are asked for one or two steps.
    """
    newton = Newton(rows.loss, ridge, SETTLED)
    if lead is not None:
        before = Newton(lead.loss, ridge, AHEAD)
        x, _ = _alternate(lead, before, x, share)
        newton.go_on_from(before, x, lead.weigh, lead.crossing(x))
        rows.expect(lead.threshold)
    return _alternate(rows, newton, x, share)


def _alternate(rows: TrimmedRows, newton: Newton, x: Array, share: float) -> tuple[Array, list[float]]:
    objectives = list[float]()
    while True:
        value = rows.best(x, share) + newton.half_square(x)
        if newton.too_high(value):
            x = newton.shorter()
            continue
        objectives.append(value)
        there = newton.step(x, value, rows.weigh, rows.slope)
        if there is None:
            return x, objectives
        x = there


def newton_streamed(rows: WeighedRows, x: Array, ridge: float, lead: WeighedHere | None = None) -> Array:
    """min over x of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², the intercept exempt, w as given. lead: as in `trimmed_newton`."""
    newton = Newton(rows.loss, ridge, SETTLED)
    if lead is not None:
        before = Newton(lead.loss, ridge, AHEAD)
        x = _descend(lead, before, x)
        newton.go_on_from(before, x, lead.weigh, None)
    return _descend(rows, newton, x)


def _descend(rows: WeighedRows, newton: Newton, x: Array) -> Array:
    while True:
        value, gradient = rows.value_gradient(x)
        value += newton.half_square(x)
        if newton.too_high(value):
            x = newton.shorter()
            continue
        there = newton.step(x, value, rows.weigh, lambda gradient=gradient: gradient)  # type: ignore[misc]
        if there is None:
            return newton.last(x)
        x = there
