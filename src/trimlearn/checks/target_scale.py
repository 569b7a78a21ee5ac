"""The scale on which a numeric target is predicted: as it is, its logarithm, or the root of a count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.checks.spread import NORMAL_MAD, median_and_deviation
from trimlearn.checks.target_task import Target

Link = Literal["identity", "log", "root"]

ANSCOMBE = 3 / 8  # added to a count, whose root then has the standard deviation ½ (Anscombe 1948)
LIKE_COUNTS = (0.7, 1.6)  # σ of twice these roots about a prediction: 1 for Poisson, more with what is not explained
# By how much a row's log-likelihood must be better on the log scale, or by other features: 5 % of the size of errors
CLEARLY = 0.05


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

    def half_steps(self, z: Floats, step: float | None) -> Floats:
        """How far half a ``step`` of the numbers is on this scale, at z; 0 where they have none.

        >>> TargetScale("identity", 0.0, 2.0).half_steps(np.array([1.0, 7.0]), 1.0)
        array([0.25, 0.25])
        """
        if step is None:
            return np.zeros(len(z))
        y = self.back(z) if self.link == "identity" else np.maximum(self.back(z), step)  # these have no negative ones
        return self.to(y + step / 2) - self.to(y)

    def back(self, z: Floats) -> Floats:
        """From this scale to numbers; of counts, whole ones."""
        unscaled = np.asarray(z * self.scale + self.centre)
        if self.link == "log":
            return np.asarray(np.exp(unscaled), dtype=np.float64)
        if self.link == "root":
            return np.asarray(np.round(np.maximum((np.maximum(unscaled, 0.0) / 2) ** 2 - ANSCOMBE, 0.0)))
        return unscaled


def choose_scale(target: Target, lines: Sequence[Callable[[Floats], Floats]]) -> tuple[Target, TargetScale, int]:
    """The scale, the target as counts where it behaves like them, and which of the ``lines`` predicts it.

    lines: each gives predictions out of sample for numbers on any scale, from features of its own. Sums go with
    features as they are, products with logarithms on both sides: what fits is seen from the errors, by the likelihood
    of y with a robust size of them. The first line, and numbers as they are, stand where nothing is clearly better.
    """
    y = target.y
    if target.task == "regression" and not target.asked and target.may_be_counts and counts_behave(y, lines[0]):
        target = replace(target, task="count")
    if target.task == "count":
        return target, TargetScale.of("root", y), 0
    links: tuple[Link, ...] = ("identity",) if y.min() <= 0 or target.may_be_classes else ("identity", "log")
    costs = {
        (link, k): log_error(link, y, line) + CLEARLY * ((link == "log") + (k > 0))
        for link in links
        for k, line in enumerate(lines)
    }
    link, chosen = min(costs, key=lambda key: costs[key])
    return target, TargetScale.of(link, y), chosen


def log_error(link: Link, y: Floats, predict: Callable[[Floats], Floats]) -> float:
    """The logarithm of the size of errors, in the units of y: what a row's likelihood falls by."""
    found = float(np.log(max(_deviation(link, y, predict), 1e-300)))
    return found + float(np.mean(np.log(y))) if link == "log" else found


def counts_behave(y: Floats, predict: Callable[[Floats], Floats]) -> bool:
    """Whether whole numbers vary about their predictions as counts do."""
    return LIKE_COUNTS[0] <= _deviation("root", y, predict) <= LIKE_COUNTS[1]


def _deviation(link: Link, y: Floats, predict: Callable[[Floats], Floats]) -> float:
    """A robust standard deviation of the errors on a scale."""
    scale = TargetScale.of(link, y)
    z = scale.to(y)
    return NORMAL_MAD * scale.scale * float(np.median(np.abs(z - predict(z))))
