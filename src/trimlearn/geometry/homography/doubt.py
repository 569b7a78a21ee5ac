"""What leaves a homography in doubt: a rival that explains about as many matches, or too few to tell."""

from __future__ import annotations

from math import inf, log
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.a_contrario import EXACT, Chance
from trimlearn.geometry.homography.candidate import CERTAIN
from trimlearn.geometry.homography.dlt import PairMoments
from trimlearn.geometry.homography.four_point import four_point
from trimlearn.geometry.homography.noise import MatchNoise
from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs
from trimlearn.geometry.homography.score import WIDE, MarginalScore
from trimlearn.geometry.homography.search import FIRST, GLANCE, MEAGRE, SURVIVORS, SampleSearch, samples_needed, some_of
from trimlearn.geometry.homography.transfer import one_way_errors, squared_errors, transform

__all__ = ["Rival", "rival_of", "uncertainty"]

# Of the inliers: another homography with fewer of its own leaves no doubt which one is meant. A choice: with 0.3 a
# plane with a quarter of the matches is told of, with 0.8 one with two fifths is not (benchmarks/calibration/
# homographies.py, as for what follows).
RIVAL = 0.5
SURE = 0.99  # that a sample of such a rival's matches only is drawn: the usual 99 %
QUARTER = 4  # of the search's own samples are spent on it at most: a limit on time; with a 32nd some rivals are missed
# Of a rival's matches: what a homography through four, which magnifies noise, shows. A choice, on the safe side: of ten
# scenes with a rival none is missed with a quarter or with all either.
ROUGH = 0.5
SEED = 0  # of the samples, so that whether there is a rival does not depend on random_state


class Rival(NamedTuple):
    """Another homography, in pixels, how many matches agree with it, and whether more meet it precisely."""

    H: Floats
    matches: int
    is_better: bool


def rival_of(pairs: PointPairs, e2: Floats, limit: float, chance: Chance, drawn: int) -> Rival | None:
    """What those of the distinct matches agree on that are further than ``limit`` from the homography of errors ``e2``.

    None unless these are RIVAL of its inliers, by cells and one by one, more than chance explains, and most of them
    beyond their own noise from the homography found, as it is else the same one, and beyond WIDE, as lenses do so much.
    ``drawn``: the samples that the search took. It is a better one where the search was led by scores that a smaller
    plane had, and left early.
    """
    rows = (e2 > limit**2).nonzero()[0]
    others = float(chance.s[rows].sum())
    kept = chance.n - others
    if kept <= 4.5 or others < max(RIVAL * kept, 5.0):  # four matches always agree
        return None
    share = RIVAL * kept / others
    count = min(samples_needed(share, SURE), max(samples_needed(RIVAL, SURE), drawn // QUARTER))
    if not _promising(pairs, rows, chance, count, share):
        return None
    rest = pairs[rows]
    some = some_of(PointPairs(rest.src, rest.dst))
    apart = Chance(some)
    found = SampleSearch(some, MarginalScore(apart.side), apart, SEED).run(max(drawn, FIRST), SURE)
    if found is None or not found.is_certain or found.significance.k < share * apart.n:
        return None
    H = some.to_pixels(found.H)
    there = squared_errors(H, pairs)
    near = there[rows] <= found.noise.threshold**2
    count = int(near.sum())
    same = count == 0 or np.median(e2[rows[near]]) <= max(found.noise.threshold, WIDE * chance.side) ** 2
    if same or count < RIVAL * (len(pairs) - len(rows)):
        return None
    own, others = MarginalScore(chance.side).scores(np.array([e2, there]), chance.s).tolist()
    return Rival(H, count, others > own)


def _promising(pairs: PointPairs, rows: Ints, chance: Chance, count: int, share: float) -> bool:
    """Whether one of a ``count`` of samples of these rows explains a good part of this ``share`` of them, and more than
    chance would: a glance at a few, which costs little where there is nothing."""
    places = np.random.default_rng(SEED).integers(len(rows), size=(4, count))
    places.sort(axis=0)
    H = four_point(pairs.normalised, rows[places[:, (places[1:] != places[:-1]).all(axis=0)].T])
    if not len(H):
        return False
    seen = rows[:: max(1, len(rows) // GLANCE)]
    few, apart, score = pairs[seen], chance.among(seen), MarginalScore(chance.side)
    H = pairs.to_pixels(H)
    if len(H) > SURVIVORS:
        H = H[np.argsort(-score.scores(one_way_errors(H, few), apart.s), kind="stable")[:SURVIVORS]]
    e2 = squared_errors(H, few)
    best = apart.best(e2[np.argmax(score.scores(e2, apart.s))])
    return best.log_nfa <= log(CERTAIN) and best.k >= ROUGH * share * apart.n


def uncertainty(H: Floats, pairs: PointPairs, inliers: Bools, chance: Chance, noise: MatchNoise) -> float:
    """By how many pixels H may be off at the corners of the rectangle around the inliers; 0 where that is no doubt, ∞
    where no more than four of several matches are inliers.

    The variance of H there, by that of the noise, times what 99 % of the errors keep to, which knows how few matches
    the noise was estimated from: of MEAGRE and fewer it is worth a look. Beyond WIDE a right match is not told from a
    wrong one. Five matches have one to spare, which does not tell how large their noise is unless there is none.
    """
    kept = float(chance.s[inliers].sum())
    if chance.n <= 4.5 or kept > MEAGRE:
        return 0.0
    if kept <= 4.5:
        return inf
    if noise.scale <= 2.0 * EXACT * chance.side:
        return 0.0
    src = pairs.src[inliers]
    (left, top), (right, bottom) = src.min(axis=0), src.max(axis=0)
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
    both = PointPairs(np.vstack([src, corners]), np.vstack([pairs.dst[inliers], transform(H, corners)]))
    weights = np.append(chance.s[inliers], np.zeros(4))
    spread = PairMoments(both.normalised).leverages(weights)[-4:].max()
    off = float(noise.threshold * spread**0.5)
    return off if off > WIDE * chance.side or kept < 5.5 else 0.0
