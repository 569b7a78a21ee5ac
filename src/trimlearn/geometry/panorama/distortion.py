"""Which lens the photographs were taken through: the κ with which turns of the camera explain the matches best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log
from numbers import Real
from typing import Any, final

import numpy as np

from trimlearn.geometry.homography.points import Bools, Floats, Ints
from trimlearn.geometry.panorama.consistency import Agreement
from trimlearn.geometry.panorama.focals import ROUNDING, ZOOM
from trimlearn.geometry.panorama.lens import magnification
from trimlearn.geometry.panorama.losses import Correspondences, Maps, RotationLoss
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.regularizers import Regularizer, Ridge

__all__ = ["check_distortion", "estimate_distortion", "without_lens"]

# κ looked for, what corners are drawn in (or out) by: action cameras have −0.3; at 1 a corner has no place any more.
SPAN = (-0.4, 0.2)
STEP, PARABOLAS = 0.04, 3  # of the search for it: few lenses need more than one step; a parabola more changes nothing
EXACT = 1e-3  # of κ: a tenth of a per cent at the corners, 0.4 px in 640 × 480, which is a detector's noise
POINTS = 150  # matches of a pair that are looked at: a limit on time; they tell the error to 8 %
KEPT = 0.75  # of a pair's matches: the best explained. What parallax moved must not decide about the lens (a choice)
ROUNDS, NEWTON = 2, 10  # of fits to those kept, and of Gauss–Newton steps in each: a limit on time
HALVED = 0.5 ** np.arange(6)  # lengths tried of a step
FLAT = 1e-4  # what a step must gain for another one: a tenth of what two κ that matter differ by
STIFF = 1e9  # px²: a ridge on log focal lengths, against errors of some px², under which they do not move
RANK = 1e-12  # of the largest singular value: turning the world, which changes nothing, is left alone
# Log-likelihood by which a lens must beat none, as in `focal`: 20 is far beyond chance where errors are independent,
# which those of a camera that moved a little are not. No lens is then seen where there is none, and one of 1 % is, in
# chains of five images (benchmarks/calibration/lenses.py).
CLEAR = 20.0


def check_distortion(value: Any) -> None:
    """ValueError unless it is "auto" or a κ that a lens may have."""
    if value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not SPAN[0] <= float(value) <= SPAN[1]:
        raise ValueError(f'distortion must be "auto" or a number from {SPAN[0]} to {SPAN[1]}, got {value!r}.')


def without_lens(scene: Scene, cameras: tuple[Floats, Floats], inliers: Bools) -> Maps:
    """Of cameras without a lens, of the focal lengths of ``cameras`` (R, f): those that explain the photographs best.

    Their turns are fitted anew to the pixels as they are; focal lengths, which a lens would falsify, stay.
    """
    loss = RotationLoss(Scene(scene.pairs).matches, *cameras)
    x = _refit(loss, inliers, Ridge(np.array([0.0, 0.0, 0.0, STIFF])), np.zeros(loss.x_shape))
    return loss.maps(x)


def estimate_distortion(
    scene: Scene, loss: RotationLoss, r2: Regularizer, found: Agreement
) -> tuple[Floats, tuple[Floats, Floats]]:
    """κ of each image (m,), 0 where a lens does not clearly pay, and the cameras (R, f) that go with it.

    Photographs of one size (either way up) and zoom are of one camera. κ minimises the mean squared error in px over
    the best explained ¾ of the matches of each pair that agrees with the others, the cameras being fitted anew for
    each κ. Pixels of a straightened image are larger or smaller than those of the photograph by `magnification`, which
    is divided out.
    """
    kappa, cameras = np.zeros(len(scene.pairs.sizes)), loss.cameras(found.x)
    rows = _some(scene, found.agrees)
    for camera in _cameras(scene, cameras[1]):
        profile = _Profile(scene, rows, r2, cameras, kappa)

        def error(value: float, at: Ints = camera, look: _Profile = profile) -> float:
            return look.error(np.where(np.isin(np.arange(len(kappa)), at), value, kappa))

        value, least = _lowest(error)
        gain = KEPT * len(rows) * log((profile.none + ROUNDING**2) / (least + ROUNDING**2))
        if gain > CLEAR and SPAN[0] < value < SPAN[1]:  # at an end the lens is of another kind, or there is none
            kappa[camera] = value
            profile.error(kappa)
            cameras = profile.cameras
    return kappa, cameras


def _lowest(error: Callable[[float], float]) -> tuple[float, float]:
    """Where a smooth function of κ is least, and its value there: steps until it is bracketed, then parabolas."""
    at = {k * STEP: error(k * STEP) for k in (0, -1, 1)}
    while (best := min(at, key=at.__getitem__)) in (min(at), max(at)):
        nearer = best + (STEP if best == max(at) else -STEP)
        if not SPAN[0] <= nearer <= SPAN[1]:
            return best, at[best]
        at[nearer] = error(nearer)
    for _ in range(PARABOLAS):
        order = sorted(at)
        k = order.index(min(at, key=at.__getitem__))
        left, middle, right = order[k - 1 : k + 2]
        a, b = (middle - left) * (at[middle] - at[right]), (middle - right) * (at[middle] - at[left])
        vertex = middle - 0.5 * ((middle - left) * a - (middle - right) * b) / (a - b) if a != b else middle
        if not left < vertex < right or abs(vertex - middle) < EXACT:
            break
        at[vertex] = error(vertex)
    best = min(at, key=at.__getitem__)
    return best, at[best]


@final
class _Profile:
    """The mean squared error in px of the best cameras, as a function of κ: each fit starts from that of the nearest κ.

    From a distant one, as from a fit that failed, a few steps do not lead to the cameras of this κ.
    """

    def __init__(
        self, scene: Scene, rows: Ints, r2: Regularizer, cameras: tuple[Floats, Floats], kappa: Floats
    ) -> None:
        self.scene, self.rows, self.r2 = scene, rows, r2
        self._fits = [(kappa, cameras, np.ones(len(rows), bool))]
        self.none = self.error(kappa)

    def error(self, kappa: Floats) -> float:
        """At these κ (m,)."""
        matches, enlarged = self._straightened(kappa)
        _, cameras, kept = min(reversed(self._fits), key=lambda fit: float(np.abs(fit[0] - kappa).max()))
        loss = RotationLoss(matches, *cameras)
        x = np.zeros(loss.x_shape)
        for _ in range(ROUNDS):
            x = _refit(loss, kept, self.r2, x)
            errors = loss.values(x) / enlarged
            kept = self._best(errors)
        self._fits.append((kappa, loss.cameras(x), kept))
        return float(np.mean(errors[kept]))

    @property
    def cameras(self) -> tuple[Floats, Floats]:
        """Of the last fit."""
        return self._fits[-1][1]

    def _straightened(self, kappa: Floats) -> tuple[Correspondences, Floats]:
        """The matches straightened, and by how much areas became larger there, on the average of both images."""
        scene, rows = replace(self.scene, distortion=tuple(kappa)), self.rows
        all_, raw = scene.matches, self.scene.matches
        some = Correspondences(all_.i[rows], all_.j[rows], all_.src[rows], all_.dst[rows], all_.images)
        here, there = (
            magnification(points[rows], kappa[of[rows]], scene.halves[of[rows]]) ** 2
            for points, of in ((raw.src, raw.i), (raw.dst, raw.j))
        )
        return some, (here + there) / 2

    def _best(self, errors: Floats) -> Bools:
        """The best explained share of the matches of each pair."""
        pair, kept = self.scene.pair[self.rows], np.zeros(len(errors), bool)
        for k in np.unique(pair):
            members = np.flatnonzero(pair == k)
            kept[members[np.argsort(errors[members], kind="stable")[: ceil(KEPT * len(members))]]] = True
        return kept


def _refit(loss: RotationLoss, kept: Bools, r2: Regularizer, x: Floats) -> Floats:
    """A few Gauss–Newton steps on the matches kept, as long as the objective falls."""
    c = kept / np.count_nonzero(kept)
    ridge = np.asarray(r2.gradient(np.ones(x.shape))).ravel()  # ∇r2 is linear
    value, g = loss.value_gradient(x, c)
    value += r2.value(x)
    for _ in range(NEWTON):
        H = loss.hessian(x, c) + np.diag(ridge)
        step = np.linalg.lstsq(H, g.ravel() + ridge * x.ravel(), rcond=RANK)[0].reshape(x.shape)
        for size in HALVED:
            new = x - size * step
            lower, slope = loss.value_gradient(new, c)
            lower += r2.value(new)
            if lower < value:
                break
        else:
            return x
        x, g, done = new, slope, lower > (1.0 - FLAT) * value
        value = lower
        if done:
            break
    return x


def _some(scene: Scene, agrees: Bools) -> Ints:
    """Some of the matches that pairs which agree explain by themselves."""
    groups = [np.flatnonzero((scene.pair == k) & scene.core) for k in np.flatnonzero(agrees)]
    return np.concatenate([g[np.linspace(0, len(g) - 1, min(POINTS, len(g))).astype(int)] for g in groups])


def _cameras(scene: Scene, focals: Floats) -> list[Ints]:
    """The images of each camera, those of most images first: of one size, either way up, and one zoom."""
    halves = scene.halves
    keys = [
        (*sorted(size), round(float(np.log(f / half)) / ZOOM))
        for size, f, half in zip(scene.pairs.sizes, focals / np.median(focals) * np.median(halves), halves, strict=True)
    ]
    groups = [np.array([i for i, other in enumerate(keys) if other == key]) for key in sorted(set(keys))]
    return sorted(groups, key=len, reverse=True)
