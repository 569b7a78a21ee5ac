"""A homography that the search has found, and what it explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import final

import numpy as np

from trimlearn.geometry.homography.a_contrario import Chance, Significance
from trimlearn.geometry.homography.noise import MatchNoise, noise_of
from trimlearn.geometry.homography.points import Floats, Ints

__all__ = ["CERTAIN", "Candidate"]

CERTAIN = 0.01  # homographies as good by chance, expected: of a hundred sets of random matches one is fitted, at most
SAME = 0.9  # of the matches that either explains, both do: noise moves no more, as nearly all are inside (a choice)


@final
@dataclass(frozen=True)
class Candidate:
    """A homography between normalised points, its score, its squared errors (px²), and what chance says to them."""

    H: Floats
    score: float
    e2: Floats
    chance: Chance

    @cached_property
    def significance(self) -> Significance:
        """The matches that chance explains worst."""
        return self.chance.best(self.e2)

    @cached_property
    def noise(self) -> MatchNoise:
        """That of these matches."""
        return noise_of(self.e2, self.chance, limit=self.significance.e2)

    @property
    def rows(self) -> Ints:
        """Which matches these are."""
        return np.flatnonzero(self.e2 <= self.significance.e2)

    @property
    def is_certain(self) -> bool:
        """Whether chance would hardly find one as good."""
        return self.significance.log_nfa <= log(CERTAIN)

    def agrees(self, other: Candidate) -> bool:
        """Whether another homography explains the same matches."""
        mine, others = self.e2 <= self.significance.e2, other.e2 <= self.significance.e2
        return bool(self.chance.s @ (mine & others) >= SAME * (self.chance.s @ (mine | others)))
