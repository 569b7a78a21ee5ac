"""Trimmed fits of any loss of linear predictions to rows that are read from a disk, from a start that a sample gave.

Newton's steps: x is near its place already. Of each row its loss is kept, and its residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.digits import kth_by_digits
from trimlearn.losses.base import PredictionLoss
from trimlearn.robust.streamed_newton import (
    Newton,
    Weigh,
    crossing_curvature,
    evaluated,
    value_gradient,
    weighted_gradient,
)
from trimlearn.weights.simplex import snap_h

__all__ = ["ThresholdWeights", "kept_share", "newton_streamed", "trimmed_newton", "trimming"]

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

    def of(self, f: np.ndarray) -> np.ndarray:
        """The weights of losses f ≥ 0."""
        return kept_share(f, self.threshold, self.share)


def kept_share(a: np.ndarray, threshold: float, share: float) -> np.ndarray:
    """1 where |a| is below the threshold, ``share`` at it, 0 above and where a is NaN."""
    size = np.abs(a)
    w: np.ndarray = (size < threshold).astype(a.dtype)
    w[size == threshold] = share
    return w


def trimming(f: np.ndarray, h: float) -> ThresholdWeights:
    """The weights that keep the h smallest of the losses f ≥ 0."""
    n, h = len(f), snap_h(h, len(f))
    theta = inf if h >= n else kth_by_digits(f, ceil(h) - 1)
    below = tied = 0
    total_loss = 0.0
    for start in range(0, n, PIECE):
        a = f[start : start + PIECE]
        inside = a < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(a == theta))
        total_loss += float(np.sum(a, dtype=np.float64, where=inside))
    left = h - below
    return ThresholdWeights(
        theta, min(max(left / max(tied, 1), 0.0), 1.0), (total_loss + (left * theta if left > 0 else 0)) / n
    )


def trimmed_newton(
    loss: PredictionLoss, x: Array, h: float, ridge: float, lead: PredictionLoss | None = None
) -> tuple[Array, np.ndarray, list[float]]:
    """min over x and w of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², Σ wᵢ = h, the intercept exempt: x, the losses there, and F
    after each step.

    The best w for x, then a step of `Newton` for this w, in turn. lead: the loss of some rows, held in memory, to
    which all is done first, so that all rows are asked for one or two steps.
    """
    newton = Newton(loss, ridge, SETTLED)
    if lead is not None:
        before, h_lead = Newton(lead, ridge, AHEAD), h * lead.n / loss.n
        x, f, _ = _alternate(before, x, h_lead)
        found = trimming(f, h_lead)
        newton.go_on_from(before, x, _of(found, f), crossing_curvature(lead, x, f, found.threshold))
    return _alternate(newton, x, h)


def _alternate(newton: Newton, x: Array, h: float) -> tuple[Array, np.ndarray, list[float]]:
    objectives = list[float]()
    while True:
        f, r = evaluated(newton.loss, x)
        found = trimming(f, h)
        value = found.value + newton.half_square(x)
        if newton.too_high(value):
            x = newton.shorter()
            continue
        objectives.append(value)
        weigh = _of(found, f)
        there = newton.step(x, value, weigh, lambda weigh=weigh, r=r: weighted_gradient(newton.loss, weigh, r))  # type: ignore[misc]
        if there is None:
            return x, f, objectives
        x = there


def _of(found: ThresholdWeights, f: np.ndarray) -> Weigh:
    return lambda at: found.of(f[at])


def newton_streamed(
    loss: PredictionLoss, x: Array, weigh: Weigh, ridge: float, lead: tuple[PredictionLoss, Weigh] | None = None
) -> Array:
    """min over x of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², the intercept exempt, w as given. lead: as in `trimmed_newton`, with
    its own weights."""
    newton = Newton(loss, ridge, SETTLED)
    if lead is not None:
        before = Newton(lead[0], ridge, AHEAD)
        x = _descend(before, x, lead[1])
        newton.go_on_from(before, x, lead[1], None)
    return _descend(newton, x, weigh)


def _descend(newton: Newton, x: Array, weigh: Weigh) -> Array:
    while True:
        value, gradient = value_gradient(newton.loss, x, weigh)
        value += newton.half_square(x)
        if newton.too_high(value):
            x = newton.shorter()
            continue
        there = newton.step(x, value, weigh, lambda gradient=gradient: gradient)  # type: ignore[misc]
        if there is None:
            return newton.last(x)
        x = there
