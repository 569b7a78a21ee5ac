"""The scale on which a numeric target is predicted: as it is, its logarithm, or the root of a count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.checks.target_task import Target

__all__ = ["TargetScale", "choose_log", "choose_scale", "counts_behave"]

Link = Literal["identity", "log", "root"]

ANSCOMBE = 3 / 8  # added to a count, whose root then has the standard deviation ½ (Anscombe 1948)
LIKE_COUNTS = (0.7, 1.6)  # σ of twice these roots about a prediction: 1 for Poisson, more with what is not explained
CLEARLY = 0.05  # by how much the log-likelihood of a row must be better on the log scale: 5 % of the size of errors
NORMAL_MAD = 1.4826  # a normal standard deviation in median absolute deviations


@final
@dataclass(frozen=True)
class TargetScale:
    """z = (link(y) − centre)/scale, which models predict, and back.

    Examples
    --------
    >>> scale = TargetScale.of("log", np.array([1.0, 10.0, 100.0]))
    >>> scale.back(scale.to(np.array([5.0]))).round(6)
    array([5.])
    """

    link: Link
    centre: float
    scale: float

    @classmethod
    def of(cls, link: Link, y: Floats) -> TargetScale:
        """With the median and a robust standard deviation of these numbers."""
        z = cls(link, 0.0, 1.0).to(y)
        centre = float(np.median(z))
        return cls(link, centre, NORMAL_MAD * float(np.median(np.abs(z - centre))) or float(np.std(z)))

    def to(self, y: Floats) -> Floats:
        """Onto this scale."""
        if self.link == "log":
            z = np.log(y)
        else:
            z = y if self.link == "identity" else 2 * np.sqrt(y + ANSCOMBE)
        return np.asarray((z - self.centre) / self.scale)

    def back(self, z: Floats) -> Floats:
        """From this scale to numbers; of counts, whole ones."""
        unscaled = np.asarray(z * self.scale + self.centre)
        if self.link == "log":
            return np.asarray(np.exp(unscaled), dtype=np.float64)
        if self.link == "root":
            return np.asarray(np.round(np.maximum((np.maximum(unscaled, 0.0) / 2) ** 2 - ANSCOMBE, 0.0)))
        return unscaled


def choose_scale(target: Target, predict: Callable[[Floats], Floats]) -> tuple[Target, TargetScale]:
    """The scale, and the target as counts where it behaves like them.

    predict: gives predictions out of sample for numbers on any scale.
    """
    y = target.y
    if target.task == "regression" and not target.asked and target.may_be_counts and counts_behave(y, predict):
        target = replace(target, task="count")
    if target.task == "count":
        return target, TargetScale.of("root", y)
    return target, TargetScale.of("log" if choose_log(y, predict) else "identity", y)


def choose_log(y: Floats, predict: Callable[[Floats], Floats]) -> bool:
    """Whether errors are smaller on the log scale: by the likelihood of y, with a robust size of the errors."""
    if y.min() <= 0:
        return False
    cost = []
    for link in ("identity", "log"):
        scale = TargetScale.of(link, y)
        z = scale.to(y)
        size = NORMAL_MAD * scale.scale * float(np.median(np.abs(z - predict(z))))
        cost.append(np.log(max(size, 1e-300)) + (float(np.mean(np.log(y))) if link == "log" else 0.0))
    return bool(cost[1] < cost[0] - CLEARLY)


def counts_behave(y: Floats, predict: Callable[[Floats], Floats]) -> bool:
    """Whether whole numbers vary about their predictions as counts do."""
    scale = TargetScale.of("root", y)
    z = scale.to(y)
    deviation = NORMAL_MAD * scale.scale * float(np.median(np.abs(z - predict(z))))
    return bool(LIKE_COUNTS[0] <= deviation <= LIKE_COUNTS[1])
