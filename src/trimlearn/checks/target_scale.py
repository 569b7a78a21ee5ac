"""The scale on which a numeric target is predicted: as it is, its logarithm, or the root of a count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.checks.spread import NORMAL_MAD, median_and_deviation
from trimlearn.checks.target_task import Target

Link = Literal["identity", "log", "root"]

ANSCOMBE = 3 / 8  # added to a count, whose root then has the standard deviation ½ (Anscombe 1948)
LIKE_COUNTS = (0.7, 1.6)  # σ of twice these roots about a prediction: 1 for Poisson, more with what is not explained
CLEARLY = 0.05  # by how much the log-likelihood of a row must be better on the log scale: 5 % of the size of errors


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
        return cls(link, *median_and_deviation(cls(link, 0.0, 1.0).to(y)))

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
    plain, log = (np.log(max(_deviation(link, y, predict), 1e-300)) for link in ("identity", "log"))
    return bool(log + float(np.mean(np.log(y))) < plain - CLEARLY)


def counts_behave(y: Floats, predict: Callable[[Floats], Floats]) -> bool:
    """Whether whole numbers vary about their predictions as counts do."""
    return LIKE_COUNTS[0] <= _deviation("root", y, predict) <= LIKE_COUNTS[1]


def _deviation(link: Link, y: Floats, predict: Callable[[Floats], Floats]) -> float:
    """A robust standard deviation of the errors on a scale."""
    scale = TargetScale.of(link, y)
    z = scale.to(y)
    return NORMAL_MAD * scale.scale * float(np.median(np.abs(z - predict(z))))
