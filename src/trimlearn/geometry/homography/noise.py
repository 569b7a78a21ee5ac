"""The noise of the inliers: how far from a homography a right match may be."""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from trimlearn.geometry.homography.a_contrario import EXACT, Chance
from trimlearn.geometry.homography.points import Floats, ordered_quantile
from trimlearn.geometry.homography.score import WIDE

__all__ = ["MatchNoise", "noise_of", "noise_of_kept"]

MISSED = 0.01  # the share of the inliers beyond the threshold: the usual 99 %
ROUNDS = 100  # of EM at most: a limit on time, a hundred times n numbers
ENOUGH = 4096  # matches that tell the noise: to √(1/4096) = 1.6 % of it, a limit on time
SETTLED = 1e-5  # relative change of the variance that ends EM: its standard error is √(2/4096) = 2 % at least
RARE = 1e-6  # the share of inliers, and of others, is no less: EM would not move away from 0 (a choice)


class MatchNoise(NamedTuple):
    """Errors e of inliers are Rayleigh with a ``scale`` that was estimated from ``freedom`` degrees of freedom.

    So e²/(2 scale²) has the F distribution with 2 and ``freedom``: P(e > t) = (1 + t²/(freedom·scale²))^(−freedom/2),
    which is exp(−t²/(2 scale²)) where there are many.
    """

    scale: float
    freedom: float = inf
    share: float = 0.5  # of the errors below WIDE, those that are theirs

    def p_values(self, errors: Any) -> Any:
        """P(e > error) for each."""
        x, half = 0.5 * np.square(errors / self.scale), self.freedom / 2.0
        return np.exp(-x) if half == inf else (1.0 + x / half) ** -half

    def exceeded(self, share: float) -> float:
        """The error that this share of the inliers exceeds."""
        half = self.freedom / 2.0
        x = -log(share) if half == inf else half * (share ** (-1.0 / half) - 1.0)
        return float(self.scale * (2.0 * x) ** 0.5)

    @property
    def threshold(self) -> float:
        """99 % of the inliers have a smaller error."""
        return self.exceeded(MISSED)

    def bad_share(self, errors: Floats, threshold: float) -> float:
        """1 − the share of inliers, of whom a known part is within ``threshold``."""
        within = int(np.count_nonzero(errors <= threshold)) / len(errors) / (1.0 - float(self.p_values(threshold)))
        return max(1.0 - within, 0.0)


def noise_of(e2: Floats, chance: Chance, start: MatchNoise | None = None, limit: float | None = None) -> MatchNoise:
    """Maximum likelihood by EM among errors below WIDE, where e² is exponential for inliers and uniform for others.

    It starts from the median of the errors that chance explains worst, those up to ``limit`` where that is known, or
    from the noise given. A homography takes
    eight degrees of freedom from the 2k of k matches: the four smallest errors may be 0 and do not count for the
    median, and E e² is Σe²/(k − 4). Of many matches, which are in lexicographic order, every few are enough.
    """
    if (step := len(e2) // ENOUGH) > 1:
        e2, chance = e2[::step], chance.among(slice(None, None, step))
    wide, least = (WIDE * chance.side) ** 2, (EXACT * chance.side) ** 2
    near = e2[e2 < wide]
    start = start or _first(near, limit or chance.best(e2).e2)
    if start is None or not len(near):
        return MatchNoise(least**0.5)
    v, share, total = max(2.0 * start.scale**2, 2.0 * least), start.share, 0.0  # v: the mean of e²
    for _ in range(ROUNDS):
        p = np.exp(near * (-1.0 / v))
        p /= p + (1.0 - share) * v / (share * wide)
        total, before = float(p.sum()), v
        v, share = max(float(p @ near) / max(total - 4.0, 1.0), 2.0 * least), _possible(total / len(near))
        if abs(v - before) <= SETTLED * v:
            break
    return MatchNoise((v / 2.0) ** 0.5, 2.0 * max(total - 4.0, 1.0), share)


def _possible(share: float) -> float:
    """A share that is neither none nor all."""
    return min(max(share, RARE), 1.0 - RARE)


def _first(near: Floats, limit: float) -> MatchNoise | None:
    """By the median of what is within the limit, less the four smallest; None where there is no more."""
    inner = near[near <= limit]
    inner.sort()
    inner = inner[4:]
    if not len(inner):
        return None
    variance = 0.5 * float(ordered_quantile(inner, 0.5)) / log(2.0)
    return MatchNoise(variance**0.5, share=_possible(len(inner) / len(near)))


def noise_of_kept(errors: Floats, w: Floats) -> MatchNoise:
    """By the median error of the matches kept: for a homography that may be off by more than WIDE."""
    return MatchNoise(float(np.median(errors[w > 0])) / (2.0 * log(2.0)) ** 0.5)
