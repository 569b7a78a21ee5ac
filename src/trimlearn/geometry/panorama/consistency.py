"""Where all pairs meet: a first joint fit, and which pairs cannot be reconciled with the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.pairs import components
from trimlearn.geometry.panorama.scene import Scene, spanning_tree
from trimlearn.geometry.panorama.transfer_loss import TransferLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart import alternating
from trimlearn.solve import solve
from trimlearn.weights import AllOnes

__all__ = ["Agreement", "agree", "ambiguous", "least_squares", "medians"]

TOLERANCE = 0.02  # of the diagonal: what lenses and small moves of the camera may put a pair off
SUSPECTS = 12  # pairs, those most off, that are left out one at a time where a fit is bad
RELIEF = 1 / 3  # what the strain of the others must fall to without a pair for it to be the culprit
ROOM = 1.5  # how much worse the worst pair may become for another to join


class Agreement(NamedTuple):
    """x (m, d), which pairs agree with it (P,), and which of the others are the wrong ones for sure."""

    x: Floats
    agrees: NDArray[np.bool_]
    convicted: NDArray[np.bool_]


def agree(loss: TransferLoss, scene: Scene, r2: Regularizer) -> Agreement:
    """The largest set of pairs found that one x explains, each with a median error of at most 2 % of the diagonal.

    It grows from the spanning tree that x = 0 was chained along. Pairs that a fit to the set explains join it. Of the
    others the nearest is tried: it stays if a fit with it still explains the whole set. That is how a loop closes,
    whose last pair may be a thousand pixels off where a chain of the others ends, because each of them is a little
    off; and why a pair that is wrong as a whole stays outside, as one that no small changes of the others can meet.

    A long loop may bend far enough to meet a wrong pair all the same. Where it had to bend a lot, pairs are left out
    one at a time: if the rest then fits, and fits without this pair alone, it is the wrong one, and the others are
    asked again.
    """
    zero = np.zeros(loss.x_shape)
    inside = _tree(scene, medians(_errors(loss, zero), scene))
    x = _fit(loss, scene, r2, inside, zero)
    limit = max(TOLERANCE * scene.diagonal, ROOM * float(medians(_errors(loss, x), scene)[inside].max()))
    convicted = np.zeros(len(inside), bool)
    found = _grown(loss, scene, r2, Agreement(x, inside, convicted), limit)
    while (k := _culprit(loss, scene, r2, found)) is not None:
        left = _with(found.agrees, k, False)
        start = Agreement(_fit(loss, scene, r2, left, found.x), left, _with(found.convicted, k, True))
        again = _grown(loss, scene, r2, start, limit)
        if not _connects(scene, again.agrees):
            break
        found = again
    return found


def _grown(loss: TransferLoss, scene: Scene, r2: Regularizer, start: Agreement, limit: float) -> Agreement:
    """The pairs that agree, and those that can be made to: none is then off by more than ``limit``, px."""
    x, inside, convicted = start
    tried = convicted
    while not (inside | tried).all():
        e = medians(_errors(loss, x), scene)
        joining = inside | ((e <= limit) & ~tried)
        if np.array_equal(joining, inside):
            nearest = int(np.argmin(np.where(inside | tried, np.inf, e)))
            tried, joining = _with(tried, nearest, True), _with(joining, nearest, True)
        new = _fit(loss, scene, r2, joining, x)
        if float(medians(_errors(loss, new), scene)[joining].max()) <= limit:
            x, inside = new, joining
        else:
            tried = tried | (joining & ~inside)
    return Agreement(x, inside, convicted)


def _culprit(loss: TransferLoss, scene: Scene, r2: Regularizer, found: Agreement) -> int | None:
    """The one pair without which the others fit, where they do not; None where they do, or no pair or several could be.

    Of a loop any pair may be left out, and a chain fits. What tells is that the matches of a wrong pair are seldom
    those of a camera that turns, at the focal length of the others.
    """
    strain = scene.strained(medians(_errors(loss, found.x), scene))
    worst = float(strain[found.agrees].max())
    if worst <= 1.0:
        return None
    strained = [k for k in np.argsort(-strain).tolist() if found.agrees[k]]
    suspects = [k for k in strained if _connects(scene, _with(~found.convicted, k, False))][:SUSPECTS]
    rest = []
    for k in suspects:
        left = _with(found.agrees, k, False)
        e = medians(_errors(loss, _fit(loss, scene, r2, left, found.x)), scene)
        rest.append(float(scene.strained(e)[left].max()))
    order = np.argsort(rest)
    if len(order) < 2 or rest[order[0]] > RELIEF * min(worst, rest[order[1]]):
        return None
    return int(suspects[order[0]])


def ambiguous(scene: Scene, found: Agreement) -> list[int]:
    """The pairs that disagree, of which it may as well be another that is wrong: what they contradict is a chain."""
    outside, inside = (np.flatnonzero(s).tolist() for s in (~found.agrees & ~found.convicted, found.agrees))
    return [k for k in outside if any(not _joined(scene, _with(found.agrees, b, False), k) for b in inside)]


def _with(flags: NDArray[np.bool_], k: int, value: bool) -> NDArray[np.bool_]:
    """The flags with the one at k set to ``value``."""
    new = flags.copy()
    new[k] = value
    return new


def _groups(scene: Scene, pairs: NDArray[np.bool_]) -> list[list[int]]:
    return components([e for e, there in zip(scene.edges, pairs, strict=True) if there], scene.matches.images)


def _connects(scene: Scene, pairs: NDArray[np.bool_]) -> bool:
    """Whether these pairs hold all images together."""
    return len(_groups(scene, pairs)) == 1


def _joined(scene: Scene, pairs: NDArray[np.bool_], k: int) -> bool:
    """Whether these pairs lead from one image of pair k to the other."""
    return any(set(scene.edges[k]) <= set(group) for group in _groups(scene, pairs))


def least_squares(loss: TransferLoss, s: Floats, r2: Regularizer, x: Floats) -> Floats:
    """min over x of 1/S Σ sᵢfᵢ(x) + r2(x), from x: damped Gauss–Newton steps."""
    method = alternating(iterations=10, inner="newton")
    return np.asarray(solve(Problem(loss, AllOnes(), r2, sample_weight=s), method, x0=x, max_passes=60).x)


def medians(errors: Floats, scene: Scene) -> Floats:
    """The median error of each pair's own inliers (P,)."""
    return np.array([np.median(errors[(scene.pair == k) & scene.core]) for k in range(len(scene.pairs))])


def _errors(loss: TransferLoss, x: Floats) -> Floats:
    return np.asarray(np.sqrt(loss.values(x)))


def _tree(scene: Scene, e: Floats) -> NDArray[np.bool_]:
    """The pairs of the spanning tree of least errors."""
    inside = np.zeros(len(e), bool)
    inside[spanning_tree(scene.edges, scene.matches.images, -e)] = True
    return inside


def _fit(loss: TransferLoss, scene: Scene, r2: Regularizer, pairs: NDArray[np.bool_], x: Floats) -> Floats:
    return least_squares(loss, (pairs[scene.pair] & scene.core).astype(np.float64), r2, x)
