"""What a homography is worth, by the transfer errors it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import final

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.weights.simplex import select_smallest

__all__ = ["HomographyScore", "MarginalScore", "TrimmedScore"]

# Thresholds between which inliers are counted, of the image's side: of 1000 pixels 0.5, the precision of a detector,
# and 20, more than noise, lenses and a little parallax put a right match off. The score is uniform in their logarithm.
NARROW, WIDE = 0.0005, 0.02


class HomographyScore(ABC):
    """What squared transfer errors e² (..., n) of matches with shares s are worth; ``side``: of the image, in px."""

    falling: bool  # whether weights fall with the error, or are alike for all that have one

    def __init__(self, side: float) -> None:
        self.low, self.high = (NARROW * side) ** 2, (WIDE * side) ** 2

    @abstractmethod
    def scores(self, e2: Floats, s: Floats) -> Floats:
        """The worth of each homography: larger is better."""

    @abstractmethod
    def weights(self, e2: Floats, s: Floats) -> Floats:
        """The weights w of a concentration step away from these errors."""


@final
class MarginalScore(HomographyScore):
    """Where neither the share of inliers nor their noise is known.

    The score is the number of matches within a threshold t, averaged over all t from NARROW to WIDE, uniform in log t:
    Σ sᵢ log(high/max(eᵢ², low)) over eᵢ² < high, up to a factor. Its derivative by eᵢ² gives the weights.

    >>> score = MarginalScore(side=1000.0)
    >>> score.weights(np.array([0.0, 0.25, 1.0, 1000.0]), np.ones(4))
    array([1.  , 1.  , 0.25, 0.  ])
    """

    falling = True

    def scores(self, e2: Floats, s: Floats) -> Floats:
        return np.asarray(np.log(self.high / np.minimum(np.maximum(e2, self.low), self.high)) @ s)

    def weights(self, e2: Floats, s: Floats) -> Floats:
        return np.where(e2 < self.high, self.low / np.maximum(e2, self.low), 0.0)


@final
class TrimmedScore(HomographyScore):
    """Where the share h/n of inliers is given: minus the trimmed mean of e², each counting for WIDE² at most."""

    falling = False

    def __init__(self, side: float, share: float) -> None:
        super().__init__(side)
        self.share = share

    def scores(self, e2: Floats, s: Floats) -> Floats:
        near = np.minimum(e2, self.high)
        if np.all(s == 1.0):  # a partition for many at once
            k = max(4, ceil(self.share * len(s)))
            return np.asarray(-np.partition(near, k - 1, axis=-1)[..., :k].mean(axis=-1))
        if near.ndim > 1:
            return np.array([self.scores(row, s) for row in near])
        w = s * self.weights(near, s)
        return np.asarray(-(w @ near) / w.sum())

    def weights(self, e2: Floats, s: Floats) -> Floats:
        if e2.ndim > 1:
            return np.array([self.weights(row, s) for row in e2])
        return np.asarray(select_smallest(e2, s, max(4.0, self.share * s.sum())))
