"""The weights that keep the least of many numbers, found in pieces: by a threshold, so that none are sorted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import final

import numpy as np

from trimlearn._utils.digits import kth_by_digits
from trimlearn.weights.simplex import snap_h

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


def pieces_of(n: int, size: int = PIECE) -> list[slice]:
    """n numbers, or rows, in pieces of this size."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
