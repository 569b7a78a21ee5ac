"""The search: homographies through many samples of four matches, scored in stages, the best ones polished."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, log, log1p
from typing import final

import numpy as np

from trimlearn.geometry.homography.a_contrario import Chance, Significance
from trimlearn.geometry.homography.minimal import EXTREME, THIN, four_point
from trimlearn.geometry.homography.points import Floats, Ints, PointPairs
from trimlearn.geometry.homography.score import HomographyScore
from trimlearn.geometry.homography.transfer import squared_errors
from trimlearn.losses import Homography
from trimlearn.regularizers import Sphere

__all__ = ["CERTAIN", "FIRST", "Candidate", "SampleSearch", "samples_needed"]

CERTAIN = 0.01  # homographies as good by chance, expected: of a hundred sets of random matches one is fitted, at most
# Samples at a time: limits on time. Clean matches need no more than the first; a batch of 8192 leaves some 1,200
# homographies (one sample in seven keeps its orientation), whose errors on SUBSET matches are 5 MB.
FIRST, BATCH = 1024, 8192
SUBSET = 512  # matches every homography is scored by at first: shares of inliers are known to √(¼/512) = 2 %
SURVIVORS = 64  # of a batch, which all matches score: 5 % of the 1,200, more than the first score errs
POLISHED = (8, 2)  # of these, in the first batch and in the others: limits on time, a fit to all matches each
ROUNDS = 10  # of concentration at most: a limit on time; in random scenes four of five candidates stop by themselves
SETTLED = 1e-3  # relative gain of such a round that is not worth another: the refinement follows anyway
ENTRIES = 12_000  # errors at a time: 96 kB, which stay in the cache of one core and are no new pages to the system
ALL = 30_000  # samples up to which each possible one is tried: those of 30 matches; less than four batches
PREFIXES = 10  # of the matches by score, each with a count of the samples inside: tenths, as PROSAC has every length


@final
@dataclass(frozen=True)
class Candidate:
    """A homography between normalised points, its score, its squared errors (px²), and what chance says to them."""

    H: Floats
    score: float
    e2: Floats
    significance: Significance


def samples_needed(share: float, probability: float) -> int:
    """How many samples of four hold one of inliers only with ``probability``, where ``share`` are inliers.

    >>> samples_needed(0.2, 0.9999)
    5752
    """
    good = share**4
    return 1 if good >= probability else ceil(log1p(-probability) / log1p(-max(good, 1e-15)))


@final
class SampleSearch:
    """Over samples of four distinct ``pairs``, drawn by cells, half of them from those of the best scores if any."""

    def __init__(self, pairs: PointPairs, score: HomographyScore, chance: Chance, seed: int) -> None:
        self.pairs, self.score, self.chance = pairs, score, chance
        self.best: Candidate | None = None
        self.drawn = 0
        self._rng = np.random.default_rng(seed)
        self._loss = Homography(pairs.normalised.src, pairs.normalised.dst)
        self._guided = pairs.scores is not None
        self._order = np.arange(len(pairs)) if pairs.scores is None else np.argsort(-pairs.scores, kind="stable")
        self._mass = np.cumsum(self.chance.s[self._order])  # matches by score: how many cells up to here
        self._inside = np.zeros(PREFIXES, dtype=np.int64)  # samples by the prefix that holds all four
        luck = np.log(self._rng.random(len(pairs))) / self.chance.s  # largest first: draws without replacement ∝ s
        self._subset = pairs[np.sort(np.argsort(-luck)[:SUBSET])]

    def run(self, limit: int, probability: float) -> Candidate | None:
        """The best homography of as many samples as a good one needs, ``limit`` at most."""
        n = len(self.pairs)
        if comb(n, 4) <= ALL:
            samples = np.array(list(combinations(range(n), 4)))
            self.drawn = len(samples)
            self._try(samples, EXTREME)
            return self.best
        while self.drawn < limit and not self._enough(probability):
            count = min(BATCH if self.drawn else FIRST, limit - self.drawn)
            self._try(self._draw(count, limit), THIN)
        return self.best

    def off_a_line(self) -> Significance:
        """Of the matches that agree with the best homography, those that are not on one line with most of these."""
        assert self.best is not None
        e2 = self.best.e2
        images = (self.pairs.src, self.pairs.dst)
        return min((self.chance.off_a_line(e2, points, self._rng) for points in images), key=lambda off: off.k)

    def _draw(self, count: int, limit: int) -> Ints:
        """Samples of four distinct matches. The guided half grows from the best scores to all (PROSAC, Chum 2005)."""
        reach = np.ones(count)
        if self._guided:
            guided = count // 2
            reach[:guided] = ((self.drawn + 2.0 * np.arange(1, guided + 1)) / limit) ** 0.25
        places = np.searchsorted(self._mass, self._rng.random((4, count)) * reach * self._mass[-1], side="right")
        places = np.sort(np.minimum(places, len(self._mass) - 1), axis=0)
        places = places[:, (places[1:] != places[:-1]).all(axis=0)]
        prefix = np.minimum(places[3] * PREFIXES // len(self._mass), PREFIXES - 1)
        self._inside += np.bincount(prefix, minlength=PREFIXES)
        self.drawn += count
        return np.asarray(self._order[places.T])

    def _enough(self, probability: float) -> bool:
        """Whether one of the prefixes has been searched as much as its share of inliers asks for."""
        if self.best is None or self.best.significance.log_nfa > log(CERTAIN):
            return False
        hit = self.chance.s * (self.best.e2 <= self.best.significance.e2)
        edges = np.arange(1, PREFIXES + 1) * len(self._mass) // PREFIXES - 1
        shares = np.cumsum(hit[self._order])[edges] / self._mass[edges]
        searched = np.cumsum(self._inside)
        tested = range(PREFIXES) if self._guided else (PREFIXES - 1,)
        return any(searched[i] >= samples_needed(shares[i], probability) for i in tested)

    def _try(self, samples: Ints, thin: float) -> None:
        H = four_point(self.pairs.normalised, samples, thin)
        if not len(H):
            return
        H = H[_top(self._worth(H, self._subset, np.ones(len(self._subset))), SURVIVORS)]
        for i in _top(self._worth(H, self.pairs, self.chance.s), POLISHED[self.best is not None]):
            self._polish(H[i])

    def _worth(self, H: Floats, pairs: PointPairs, s: Floats) -> Floats:
        pixels, step = self.pairs.to_pixels(H), max(1, ENTRIES // len(pairs))
        pieces = (squared_errors(pixels[i : i + step], pairs) for i in range(0, len(H), step))
        return np.concatenate([self.score.scores(e2, s) for e2 in pieces])

    def _polish(self, H: Floats) -> None:
        """Concentration: the best w for H, the best H for w, as long as the score rises."""
        e2, score = self._scored(H)
        for _ in range(ROUNDS):
            x = np.asarray(self._loss.minimiser(self.chance.s * self.score.weights(e2, self.chance.s), Sphere(), H))
            after, better = self._scored(x)
            gain, enough = better - score, SETTLED * abs(score)
            if gain > 0:
                H, e2, score = x, after, better
            if gain <= enough:
                break
        if self.best is None or score > self.best.score:
            self.best = Candidate(H, score, e2, self.chance.best(e2))

    def _scored(self, H: Floats) -> tuple[Floats, float]:
        e2 = squared_errors(self.pairs.to_pixels(H), self.pairs)
        return e2, float(self.score.scores(e2, self.chance.s))


def _top(values: Floats, count: int) -> Ints:
    """The places of the largest values, largest first."""
    return np.argsort(-values, kind="stable")[:count]
