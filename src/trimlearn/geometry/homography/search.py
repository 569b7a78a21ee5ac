"""The search: homographies through many samples of four matches, scored in stages, the best ones polished."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations
from math import ceil, comb, inf, log, log1p
from typing import Any, final

import numpy as np

from trimlearn.geometry.homography.a_contrario import Chance, Significance, no_strip_holds
from trimlearn.geometry.homography.candidate import CERTAIN, Candidate
from trimlearn.geometry.homography.dlt import PairMoments
from trimlearn.geometry.homography.four_point import EXTREME, SINGULAR, THIN, four_point
from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs
from trimlearn.geometry.homography.score import HomographyScore
from trimlearn.geometry.homography.transfer import ENTRIES, one_way_errors, squared_errors, zooms

__all__ = ["ALL", "FIRST", "REPEATED", "SampleSearch", "samples_needed", "some_of"]

# Samples at a time: limits on time. Half of the matches wrong need 143 samples for 99.99 %, as many as the first batch
# has; each following one is GROWTH times what was drawn before. One of 8192 leaves some 1,200 homographies, as one
# sample in seven keeps its orientation.
FIRST, GROWTH, BATCH = 192, 3, 8192
SPARE = 1.1  # times the samples that are lacking are drawn: of 60 matches every tenth sample has one twice
# Homographies of the first batch that are looked at. A seventh of its samples, 27, keep their orientation by chance:
# where there are 40 a third is right, and 32 of them hold none with probability (2/3)³² = 2·10⁻⁶.
ORIENTED = 32
FIFTH = 5  # the share of a batch's homographies that a glance leaves: some 1,200 / SIGHTED
GLANCE, SUBSET = 128, 512  # matches that score all homographies, and the best: inliers to √(¼/128) = 4 %, and 2 %
SIGHTED = 256  # homographies that the SUBSET scores: a fifth of 1,200, more than the first score errs
SURVIVORS = 16  # of a batch, which all matches score: a limit on time
POLISHED = (4, 2)  # of these while there is no best, and then: limits on time. Of the first batch a glance chooses them
ABREAST = 2  # polished together: two that meet are the best from two starts, and a call for two costs little more
ROUNDS = 10  # of concentration at most: a limit on time; in random scenes four of five candidates stop by themselves
# Relative gain of such a round that is not worth another, where two starts have met and where they have not: the
# refinement follows anyway.
SETTLED = (1e-2, 1e-3)
ALL = 30_000  # samples up to which each possible one is tried, unless a few are enough: those of 30 matches
PREFIXES = 10  # of the matches by score, each with a count of the samples inside: tenths, as PROSAC has every length
# The number of samples is that for which one is of inliers only. Noise may spoil that one, if inliers are on a narrow
# strip: until the best homography is reached from a second start, ten times as many are drawn, about 100 good ones, as
# seeds differ on 2 of 10 strips with no more. Of MEAGRE inliers, twice the numbers in H, a wrong H may have as many,
# and many starts that lead to it: ten times, too; with 8, 2 of 100 seeds are wrong on ExtremeZoom, with 16 none
# (benchmarks/calibration/homographies.py).
REPEATED, MEAGRE = 10, 16
# Inliers up to which these are searched once more, rounds of it, samples in each, and rounds in vain that end it:
# limits on time, some 20 ms. With more inliers the tops that noise makes are lower than their standard error.
CLEAR, CLOSER, INNER, IDLE = 1000, 5, 512, 2
# Of the matches, those that agree: from such a share on one start is enough, if it is sharp. It saves two thirds of the
# work where up to 60 % are wrong, a half would not, a tenth saves no more, and none of 90 scenes is worse for it
# (benchmarks/calibration/homographies.py).
PLAIN = 0.25
SHARP = 0.5  # of the noise's variance: that of H at any match, if no closer look is needed (a choice: less than one)
# Of the matches within WIDE those within the noise, from which on no wider fit is tried: noise leaves one in a hundred
# out, lenses and planes that are none more. A choice: in 846 random scenes, on three strips and on ten photographs of
# Oxford's no result changes by 1 %.
CLEAN = 0.95
WIDER = 3  # fits with equal weights: a limit on time
MANY = 4096  # matches that the samples are drawn from and scored by: a share of 5 % is known to √(0.05/4096) = 0.3 %
# Where fewer than this share of the matches that agree lie off one line, they must mean something by themselves: those
# on it agree whatever H does elsewhere, and with a fifth of strangers among them 5 of 60 lines were taken for planes.
LINE = 0.5


def samples_needed(share: float, probability: float) -> int:
    """How many samples of four hold one of inliers only with ``probability``, where ``share`` are inliers.

    >>> samples_needed(0.2, 0.9999)
    5752
    """
    good = share**4
    return 1 if good >= probability else ceil(log1p(-probability) / log1p(-max(good, 1e-15)))


def some_of(pairs: PointPairs) -> PointPairs:
    """About MANY of the matches, which are in lexicographic order: evenly from all, half of them the best by scores."""
    n = len(pairs)
    if n <= 2 * MANY:
        return pairs
    if pairs.scores is None:
        return pairs[:: n // MANY]
    chosen = np.zeros(n, dtype=bool)
    chosen[:: 2 * n // MANY] = True
    chosen[_top(pairs.scores, MANY // 2)] = True
    return pairs[chosen]


@final
class SampleSearch:
    """Over samples of four distinct ``pairs``, drawn by cells, half of them from those of the best scores if any."""

    def __init__(self, pairs: PointPairs, score: HomographyScore, chance: Chance, seed: int) -> None:
        self.pairs, self.score, self.chance = pairs, score, chance
        self.best: Candidate | None = None
        self.on_a_line: Candidate | None = None  # the best of those whose matches fix no homography
        self.drawn = 0
        self._reached = 0  # how often the best was
        self._off_line = 0.0  # the share of its matches that are off one line: where it is large, all like it are fixed
        self._sharp: tuple[Candidate | None, bool] = (None, False)  # the best that was asked about, and the answer
        self._rng = np.random.default_rng(seed)
        self._moments = PairMoments(pairs.normalised)
        self._guided = pairs.scores is not None
        self._order = np.arange(len(pairs)) if pairs.scores is None else (-pairs.scores).argsort(kind="stable")
        self._mass = self.chance.s[self._order].cumsum()  # matches by score: how many cells up to here
        self._alone = self._mass[-1] == len(pairs)  # each in a cell of its own: that many matches
        self._ends = np.arange(1, PREFIXES + 1) * len(pairs) // PREFIXES if self._guided else np.array([len(pairs)])
        self._inside = np.zeros(len(self._ends), dtype=np.int64)  # samples of the matches up to each of these
        self._glance, self._subset = self._some()

    def _some(self) -> tuple[PointPairs, PointPairs]:
        """GLANCE and SUBSET of the matches, all where there are no more."""
        n = len(self.pairs)
        if n <= GLANCE:
            return self.pairs, self.pairs
        luck = np.log(self._rng.random(n)) / self.chance.s  # largest first: draws without replacement ∝ s
        rows = np.argsort(-luck)
        return self.pairs[rows[:GLANCE]], self.pairs if n <= SUBSET else self.pairs[rows[:SUBSET]]

    def run(self, limit: int, probability: float, exhaust: int = ALL) -> Candidate | None:
        """The best homography of as many samples as a good one needs, ``limit`` at most; of all where that is no more
        than ``exhaust`` and a few leave doubt."""
        n = len(self.pairs)
        every = comb(n, 4) if comb(n, 4) <= exhaust else None
        while self.drawn < limit and (lacking := self._lacking(probability)) > 0:
            asked = max(SPARE * lacking, FIRST)
            count = int(min(max(GROWTH * self.drawn, FIRST), BATCH, limit - self.drawn, asked))
            if every is not None and every <= self.drawn + count:
                break
            self._try(self._draw(count, limit), THIN)
        if every is not None and (self._lacking(probability) > 0 or not self._is_sharp()):
            self.best, self.on_a_line, self._reached, self.drawn = None, None, 0, every  # without a word from the seed
            self._try(_all_fours(n), EXTREME)
            return self.best
        self._look_beside()
        self._look_closer()
        self._widen()
        return self.best

    def _widen(self) -> None:
        """DLT on all matches within the best homography's noise, weighed alike, as long as that leads further up.

        Weights that fall with the error hold on to a part of an image that a bent lens leaves sharp.
        """
        for _ in range(WIDER):
            before = self.best
            if before is None or not before.is_certain or self._is_clear(before):
                return
            found = self._fitted(before.e2 <= before.noise.threshold**2)
            self._compare(found)
            if found.score - before.score <= SETTLED[1] * abs(before.score):
                return

    def _look_beside(self) -> None:
        """Where most that agree are on a line, samples of two of these and two of the others (Chum, Werner and Matas
        2005, DEGENSAC): few are off the line, and a sample of any four seldom has two of them."""
        for _ in range(CLOSER):
            line = self.on_a_line
            if line is None or (self.best is not None and self.best.score > line.score):
                return
            others = np.setdiff1d(np.arange(len(self.pairs)), line.rows)
            if len(others) < 2:
                return
            samples = np.column_stack([self._twos(line.rows), self._twos(others)])
            H = four_point(self.pairs.normalised, samples, EXTREME)
            if len(H):
                self._polish(H[_top(self._worth(H, self.pairs, one_way_errors), ABREAST)], to_the_top=True)

    def _twos(self, rows: Ints) -> Ints:
        """Two distinct ones of these rows, INNER times: (INNER, 2)."""
        first = self._rng.integers(len(rows), size=INNER)
        second = (first + self._rng.integers(1, len(rows), size=INNER)) % len(rows)
        return np.asarray(rows[np.column_stack([first, second])])

    def _look_closer(self) -> None:
        """Samples of the inliers only, as long as they lead further up (Chum, Matas and Kittler 2003, LO-RANSAC).

        Where inliers are few, the score has several tops near each other, and chance would decide which is reached.
        """
        idle = 0
        for _ in range(CLOSER):
            if self.best is None:
                return
            before, rows = self.best.score, self.best.rows
            if not 4 < len(rows) <= CLEAR or self._is_sharp():
                return
            places = np.sort(self._rng.integers(len(rows), size=(4, INNER)), axis=0)
            samples = rows[places[:, (places[1:] != places[:-1]).all(axis=0)].T]
            H = four_point(self.pairs.normalised, samples, EXTREME)
            if len(H):
                self._polish(H[_top(self._worth(H, self.pairs, one_way_errors), ABREAST)], to_the_top=True)
            idle = idle + 1 if self.best.score - before <= SETTLED[1] * abs(before) else 0
            if idle == IDLE:
                return

    def _draw(self, count: int, limit: int) -> Ints:
        """Samples of four distinct matches. Every second one is guided: these grow from the best scores to all (PROSAC,
        Chum 2005)."""
        reach = np.ones(count)
        if self._guided:
            reach[::2] = ((self.drawn + 2.0 * np.arange(1, (count + 1) // 2 + 1)) / limit) ** 0.25
        cells = self._rng.random((4, count)) * reach * self._mass[-1]
        places = cells.astype(np.int64) if self._alone else np.searchsorted(self._mass, cells, side="right")
        places = np.minimum(places, len(self._mass) - 1)
        places.sort(axis=0)
        places = places[:, (places[1:] != places[:-1]).all(axis=0)]
        self._inside += (places[3] < self._ends[:, None]).sum(axis=1)
        self.drawn += count
        return np.asarray(self._order[places.T])

    def _lacking(self, probability: float) -> float:
        """How many samples are lacking until one of the prefixes has as many as its share of inliers asks for; ∞ where
        nothing is found yet, or is not yet reached again: then batches stay large."""
        found = self.best or self.on_a_line
        if found is None or not found.is_certain:
            return inf
        hit = self.chance.s * (found.e2 <= min(found.significance.e2, self.score.high))  # what the score counts
        times = 1 if self._is_settled() and hit.sum() > MEAGRE else REPEATED
        shares = (hit[self._order].cumsum() / self._mass)[self._ends - 1].tolist()
        asked = (times * samples_needed(share, probability) for share in shares)
        lacking = min(a - searched for a, searched in zip(asked, self._inside.tolist(), strict=True))
        return inf if times > 1 and lacking > 0 else lacking

    def _is_settled(self) -> bool:
        """Whether no other start need be tried: the best was reached from two, or it is plain and sharp, so that a
        start near it has no other top to go to."""
        if self._reached > 1:
            return True
        return self.best is not None and self._is_plain(self.best.significance) and self._is_sharp()

    def _is_plain(self, found: Significance) -> bool:
        return self.score.falling and found.k >= PLAIN * self.chance.n

    def _is_plain_from(self, H: Floats) -> bool:
        """Whether the best that need be looked for is near H: DLT on what H explains, weighed alike, since a sample of
        four magnifies its noise, and then concentration as long as that leads up, if weights matter."""
        e2 = self._scored(H)[1]
        first = self.chance.best(e2)
        if not self._is_plain(first):
            return False
        found = self._fitted(e2 <= first.e2)
        for _ in range(0 if self._is_clear(found) else ROUNDS):
            before, found = found, self._fitted(self.score.weights(found.e2, self.chance.s))
            if found.score - before.score <= SETTLED[0] * abs(before.score):
                found = max(found, before, key=lambda candidate: candidate.score)
                break
        if self._is_plain(found.significance):
            self._compare(found)
        return self._is_settled()

    def _is_clear(self, found: Candidate) -> bool:
        """Whether hardly any match is beyond the noise and yet near enough to be weighed: then all weights tell the
        same matches, and lead to the same H."""
        near = np.count_nonzero(found.e2 < self.score.high)
        return bool(np.count_nonzero(found.e2 <= found.noise.threshold**2) >= CLEAN * near)

    def _fitted(self, w: Floats | Bools) -> Candidate:
        """DLT with these weights."""
        x = self._moments.minimiser(self.chance.s * w)
        return Candidate(x, *self._scored(x), self.chance)

    def _is_sharp(self) -> bool:
        """Whether the matches of the best fix H so well wherever a match may belong to them that no other top could
        explain more. A PLAIN share leaves out those further off than what noise, their own and that of H, can do."""
        if self.best is None:
            return False
        if self.best is not self._sharp[0]:
            e2, (k, limit, _) = self.best.e2, self.best.significance
            spread = self._moments.leverages(self.chance.s * (e2 <= limit))
            if k >= PLAIN * self.chance.n:
                spread = spread[e2 <= max(limit, self.best.noise.threshold**2) * np.square(1.0 + np.sqrt(spread))]
            self._sharp = self.best, bool(spread.max() <= SHARP)
        return self._sharp[1]

    def _try(self, samples: Ints, thin: float) -> None:
        H = four_point(self.pairs.normalised, samples, thin, ORIENTED if self.drawn <= FIRST else None)
        count = POLISHED[self.best is not None]
        if len(H) > SURVIVORS:
            kept = count if self.drawn <= FIRST else min(max(len(H) // FIFTH, SURVIVORS), SIGHTED)
            H = H[_top(self._worth(H, self._glance, one_way_errors), kept)]
        if len(H) > SURVIVORS:
            H = H[_top(self._worth(H, self._subset, squared_errors), SURVIVORS)]
        if len(H) > count:
            H = H[_top(self._worth(H, self.pairs, squared_errors), count)]
        if len(H) and self.drawn <= FIRST and self._is_plain_from(H[0]):
            return
        for i in range(0, len(H), ABREAST):
            self._polish(H[i : i + ABREAST])
            if self._reached > 1:
                break

    def _worth(self, H: Floats, pairs: PointPairs, errors: Callable[[Floats, PointPairs], Floats]) -> Floats:
        pixels, step = self.pairs.to_pixels(H), max(1, (2 if errors is one_way_errors else 1) * ENTRIES // len(pairs))
        s = self.chance.s if pairs is self.pairs else np.ones(len(pairs))
        pieces = (errors(pixels[i : i + step], pairs) for i in range(0, len(H), step))
        return np.concatenate([self.score.scores(e2, s) for e2 in pieces])

    def _polish(self, H: Floats, to_the_top: bool = False) -> None:
        """Concentration of a few, (m, 3, 3): the best w for H, the best H for w, as long as the scores rise; if not
        ``to_the_top``, until one explains the matches of the best, or two of them the same."""
        score, e2 = self._scored(H)
        for _ in range(ROUNDS):
            x = self._moments.minimiser(self.chance.s * self.score.weights(e2, self.chance.s))
            better, after = self._scored(x)
            gain = better - score
            rest, slow = (not np.any(gain > settled * np.abs(score)) for settled in SETTLED[::-1])
            up = gain > 0
            H, e2 = np.where(up[:, None, None], x, H), np.where(up[:, None], after, e2)
            score = np.where(up, better, score)
            found = [Candidate(H[i], float(score[i]), e2[i], self.chance) for i in _top(score, len(H))]
            if rest or (not to_the_top and self._met(found, slow)):
                break
        for candidate in found:
            self._compare(candidate)

    def _met(self, found: list[Candidate], slow: bool) -> bool:
        """Whether one of these is the best again, or, where there is no best yet and they rise slowly, their first."""
        if self.best is None:
            return slow and any(found[0].agrees(other) for other in found[1:])
        return any(self.best.agrees(other) for other in found)

    def _compare(self, found: Candidate) -> None:
        """Whether this is the best again, a better one, or one that its matches do not fix."""
        before = self.best
        again = before is not None and before.agrees(found)
        self._reached += again
        if before is not None and found.score <= before.score:
            return
        if (again and self._off_line >= LINE) or self._is_fixed(found):
            self.best, self._reached = found, self._reached if again else 1
        elif self.on_a_line is None or found.score > self.on_a_line.score:
            self.on_a_line = found

    def _is_fixed(self, found: Candidate) -> bool:
        """Whether the matches that agree are on more than one line in both images, by the width noise gives a line.

        If all of an error is one point's, that one is e/√2 pixels of the coarser image off, and more in the finer one.
        """
        if self.chance.n <= 4.5 or not found.is_certain:  # four fit always; chance is judged elsewhere
            self._off_line = 0.0
            return True
        k, limit, _ = found.significance
        within, width = found.e2 <= limit, 0.5**0.5 * found.noise.threshold
        pixels = np.maximum(1.0, 1.0 / np.maximum(zooms(self.pairs.to_pixels(found.H), self.pairs), SINGULAR)) ** 0.5
        inner, widest = self.pairs.both[:, :2, within], width * pixels[:, within].max(axis=1)
        clear = no_strip_holds((1.0 - LINE) * k, inner, widest)  # no line need be looked for
        self._off_line = LINE  # at least
        for points, pixel in [(self.pairs.src, pixels[0]), (self.pairs.dst, pixels[1])] if not clear.all() else []:
            off = self.chance.off_a_line(within, limit, points, width, pixel, LINE * k)
            if off.log_nfa > log(CERTAIN):
                return False
            self._off_line = min(self._off_line, off.k / k)
        return True

    def _scored(self, H: Floats) -> tuple[Any, Floats]:
        """The scores, a number for one H, and the squared errors."""
        e2 = squared_errors(self.pairs.to_pixels(H), self.pairs)
        scores = self.score.scores(e2, self.chance.s)
        return (scores if scores.ndim else float(scores)), e2


def _all_fours(n: int) -> Ints:
    """Every sample of four of n matches: (C(n, 4), 4)."""
    return np.fromiter(chain.from_iterable(combinations(range(n), 4)), dtype=np.int64).reshape(-1, 4)


def _top(values: Floats, count: int) -> Ints:
    """The places of the largest values, largest first."""
    return (-values).argsort(kind="stable")[:count]
