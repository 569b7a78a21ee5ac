"""Where all pairs meet: a first joint fit, and which pairs cannot be reconciled with the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from trimlearn.geometry.homography.points import Bools, Floats
from trimlearn.geometry.panorama.losses import TransferLoss
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.geometry.panorama.trees import components, spanning_tree
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart import alternating
from trimlearn.solve import solve
from trimlearn.weights import AllOnes

# Of the diagonal: what lenses and small moves may put a pair off in the median. Right pairs are off by 0.64 %
# where the lens bends lines by 6 %, wrong ones by far more (benchmarks/calibration/panoramas.py); three times it.
TOLERANCE = 0.02
CANDIDATES = 12  # pairs, those most off, that are left out one at a time where a fit is bad: a limit on time
RELIEF = 1 / 3  # what the strain of the others must fall to without a pair for it to be the wrong one (cf. the tests)
ROOM = 1.5  # how much worse the worst pair may become for another to join: half as much again (a choice)
STEPS, PASSES = 10, 60  # of Gauss and Newton between two looks at the objective, and in all: limits on time


class Agreement(NamedTuple):
    """x (m, d), which pairs agree with it (P,), and which of the others are wrong for sure."""

    x: Floats
    agrees: Bools
    wrong: Bools


def agree(loss: TransferLoss, scene: Scene, r2: Regularizer) -> Agreement:
    """The largest set of pairs found that one x explains, each with a median error of at most 2 % of the diagonal.

    It grows from the spanning tree that x = 0 was chained along. Pairs that a fit to the set explains join it. Of the
    others the nearest is tried: it stays if a fit with it still explains the whole set. That is how a loop closes,
    whose last pair may be a thousand pixels off where a chain of the others ends, because each of them is a little
    off; and why a pair that is wrong as a whole stays outside, as one that no small changes of the others can meet.

    A long loop may be deformed far enough to meet a wrong pair all the same. Where it had to be, pairs are left out
    one at a time: if the rest then fits, and fits without this pair alone, it is the wrong one, and the others are
    asked again.
    """
    fits, zero = _PairFits(loss, scene, r2), np.zeros(loss.x_shape)
    inside = np.isin(np.arange(len(scene.pairs)), spanning_tree(scene.edges, loss.matches.images, -fits.errors(zero)))
    x = fits.fit(inside, zero)
    limit = max(TOLERANCE * scene.diagonal, ROOM * float(fits.errors(x)[inside].max()))
    found = fits.grown(Agreement(x, inside, np.zeros(len(inside), bool)), limit)
    while (k := fits.wrong_pair(found)) is not None:
        left = _with(found.agrees, k, False)
        again = fits.grown(Agreement(fits.fit(left, found.x), left, _with(found.wrong, k, True)), limit)
        if not _connects(scene, again.agrees):
            break
        found = again
    return found


@final
@dataclass(frozen=True)
class _PairFits:
    """Joint fits to some of the pairs, and what they say about all of them."""

    loss: TransferLoss
    scene: Scene
    r2: Regularizer

    def fit(self, pairs: Bools, x: Floats) -> Floats:
        """Least squares over what these pairs' own homographies explain, from x."""
        return least_squares(self.loss, (pairs[self.scene.pair] & self.scene.core).astype(np.float64), self.r2, x)

    def errors(self, x: Floats) -> Floats:
        """The median error of each pair at x (P,), px."""
        return self.scene.medians(np.sqrt(self.loss.values(x)))

    def grown(self, start: Agreement, limit: float) -> Agreement:
        """The pairs that agree, and those that can be made to: none is then off by more than ``limit``, px."""
        x, inside, wrong = start
        tried = wrong
        while not (inside | tried).all():
            e = self.errors(x)
            joining = inside | ((e <= limit) & ~tried)
            if np.array_equal(joining, inside):
                nearest = int(np.argmin(np.where(inside | tried, np.inf, e)))
                tried, joining = _with(tried, nearest, True), _with(joining, nearest, True)
            new = self.fit(joining, x)
            if float(self.errors(new)[joining].max()) <= limit:
                x, inside = new, joining
            else:
                tried = tried | (joining & ~inside)
        return Agreement(x, inside, wrong)

    def wrong_pair(self, found: Agreement) -> int | None:
        """The one pair without which the others fit, where they do not; None where they do, or none or several may be.

        Of a loop any pair may be left out, and a chain fits. What tells is that the matches of a wrong pair are seldom
        those of a camera that turns, at the focal length of the others.
        """
        strain = self.scene.strained(self.errors(found.x))
        worst = float(strain[found.agrees].max())
        if worst <= 1.0:
            return None
        strained = [k for k in np.argsort(-strain).tolist() if found.agrees[k]]
        candidates = [k for k in strained if _connects(self.scene, _with(~found.wrong, k, False))][:CANDIDATES]
        rest = []
        for k in candidates:
            left = _with(found.agrees, k, False)
            rest.append(float(self.scene.strained(self.errors(self.fit(left, found.x)))[left].max()))
        order = np.argsort(rest)
        if len(order) < 2 or rest[order[0]] > RELIEF * min(worst, rest[order[1]]):
            return None
        return int(candidates[order[0]])


def ambiguous(scene: Scene, found: Agreement) -> list[int]:
    """The pairs that disagree, of which it may as well be another that is wrong: what they contradict is a chain."""
    outside, inside = (np.flatnonzero(s).tolist() for s in (~found.agrees & ~found.wrong, found.agrees))
    return [k for k in outside if any(not _joined(scene, _with(found.agrees, b, False), k) for b in inside)]


def least_squares(loss: TransferLoss, s: Floats, r2: Regularizer, x: Floats) -> Floats:
    """min over x of 1/S Σ sᵢfᵢ(x) + r2(x), from x: damped Gauss–Newton steps."""
    method = alternating(iterations=STEPS, inner="newton")
    return np.asarray(solve(Problem(loss, AllOnes(), r2, sample_weight=s), method, x0=x, max_passes=PASSES).x)


def _with(flags: Bools, k: int, value: bool) -> Bools:
    """The flags with the one at k set to ``value``."""
    new = flags.copy()
    new[k] = value
    return new


def _groups(scene: Scene, pairs: Bools) -> list[list[int]]:
    return components([e for e, there in zip(scene.edges, pairs, strict=True) if there], scene.matches.images)


def _connects(scene: Scene, pairs: Bools) -> bool:
    """Whether these pairs hold all images together."""
    return len(_groups(scene, pairs)) == 1


def _joined(scene: Scene, pairs: Bools, k: int) -> bool:
    """Whether these pairs lead from one image of pair k to the other."""
    return any(set(scene.edges[k]) <= set(group) for group in _groups(scene, pairs))
