"""TrimmedPanorama: all images of a panorama at once, from all matches of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.inputs import check_index, check_seed, check_sizes
from trimlearn.geometry.panorama.consistency import Agreement, agree, ambiguous, medians
from trimlearn.geometry.panorama.joint_fit import JointFit
from trimlearn.geometry.panorama.models import HomographyModel, Model, RotationModel
from trimlearn.geometry.panorama.newton_metric import NewtonMetric
from trimlearn.geometry.panorama.pairs import Pairs, make_pairs
from trimlearn.geometry.panorama.rotation_loss import RotationLoss
from trimlearn.geometry.panorama.scene import Scene, central, shift
from trimlearn.smart import svrg
from trimlearn.smart.method import Method
from trimlearn.solution import Solution
from trimlearn.weights.projection import h_of

__all__ = ["PairReport", "TrimmedPanorama"]

MISFIT = 0.015  # of the diagonal: a median error beyond which the model is in doubt


class PairReport(NamedTuple):
    """What became of one pair: its matches, those its own homography explains, those the panorama explains, the median
    error of the former in px, and whether the pair agrees with the others."""

    i: int
    j: int
    matches: int
    own_inliers: int
    inliers: int
    error: float
    agrees: bool


class TrimmedPanorama(BaseEstimator):  # type: ignore[misc]
    """All images of a panorama at once: one trimmed problem over all matches of all pairs.

    ::

        min over w, x   1/N Σ wᵢ fᵢ(x) + r2(x),    0 ≤ w ≤ 1,  Σ_{i in pair p} wᵢ = h_p

    fᵢ is the squared symmetric transfer error, in px², of one of the N matches, right or wrong, under x: rotation and
    log focal length of each image (``model="rotation"``, r2 a weak ridge on the latter), or one homography per image
    (``model="homography"``, for planes, or where the camera moved). It is solved by SMART-SVRG in the metric of its
    Gauss–Newton matrix.

    Parameters
    ----------
    model : {"rotation", "homography"}
    contamination : "auto", float or int
        "auto" finds how many matches h_p of each pair the panorama explains, so that a pair of few matches is not given
        up for a better fit of the others, and keeps none of a pair that contradicts the others. A share or a number of
        matches is trimmed wherever it is: Σ wᵢ = h over all pairs.
    threshold : float, optional
        The largest error of an inlier in px. None: found from the errors.
    method : Method, optional
        One of `trimlearn.smart`; None: ``svrg(metric=NewtonMetric(), momentum=0, finish=False)``.
    polish : bool
        End with Gauss–Newton steps on the inliers alone.
    random_state : int, RandomState, Generator or None
        For the spanning trees tried and SMART's draws.

    Attributes
    ----------
    rotations_, focals_ : (m, 3, 3), (m,)
        World to camera, the reference image's the identity, and focal lengths in px; None for homographies.
    homographies_ : (m, 3, 3)
        Pixels of each image to pixels of the reference image; z > 0 is in front of both.
    weights_, inlier_mask_, outlier_scores_ : (N,)
        Of every match, the pairs' matches one after the other; scores are symmetric transfer errors in px.
    threshold_ : float
        Every inlier is within it, px.
    raw_weights_, objective_, history_, n_iter_ : of the trimmed fit
    contamination_ : float
        The share of the matches that are wrong.
    polish_shift_ : float
        By how many px the polish moved the inliers, root mean square.
    misfit_ : float
        The largest median error of a pair that agrees with the others, px: large where no x explains all of them.
    pairs_, reference_, report_ : Pairs, int, list of PairReport
    doubts_ : list of str
        What the fit warned of.

    References
    ----------
    M. Brown and D. Lowe, Automatic panoramic image stitching using invariant features, IJCV 2007. R. Szeliski and
    H.-Y. Shum, Creating full view panoramic image mosaics and environment maps, SIGGRAPH 1997.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> turn = np.array([[np.cos(0.3), 0, -np.sin(0.3)], [0, 1, 0], [np.sin(0.3), 0, np.cos(0.3)]])
    >>> K = np.array([[600, 0, 319.5], [0, 600, 239.5], [0, 0, 1.0]])
    >>> src = rng.uniform([200, 0], [639, 479], (80, 2))
    >>> seen = np.column_stack([src, np.ones(80)]) @ (K @ turn @ np.linalg.inv(K)).T
    >>> dst = seen[:, :2] / seen[:, 2:]
    >>> dst[:30] = rng.uniform(0, 400, (30, 2))  # wrong matches
    >>> panorama = TrimmedPanorama().fit([(0, 1, src, dst)], [(640, 480), (640, 480)])
    >>> panorama.focals_.round(), int(panorama.inlier_mask_.sum())
    (array([600., 600.]), 50)
    """

    def __init__(
        self,
        model: str = "rotation",
        *,
        contamination: float | int | str = "auto",
        threshold: float | None = None,
        method: Method | None = None,
        polish: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.contamination = contamination
        self.threshold = threshold
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def fit(self, pairs: Pairs | Sequence[Any], sizes: Sequence[tuple[int, int]] | None = None) -> Self:
        """Fit to `Pairs`, or to (i, j, src, dst) of each pair together with the sizes (w, h) of all images."""
        check_choice(self.model, ("rotation", "homography"), "model")
        threshold = None if self.threshold is None else check_positive(self.threshold, "threshold")
        seed = int(check_random_state(check_seed(self.random_state)).randint(np.iinfo(np.int32).max))
        with intact(self), team():  # matrices are too small for several threads
            scene = Scene.of(_connected(pairs, sizes, seed))
            model: Model = RotationModel(scene) if self.model == "rotation" else HomographyModel()
            loss, r2 = model.start(scene, seed), model.r2(len(scene.pair))
            found = agree(loss, scene, r2)
            joint = JointFit(loss, scene, r2, found.agrees, h_of(self.contamination, loss.n, "matches"), threshold)
            method = svrg(metric=NewtonMetric(), momentum=0.0, finish=False) if self.method is None else self.method
            solution = joint.trim(found.x, method, seed)
            self._describe(joint, solution, joint.polish(solution) if self.polish else np.asarray(solution.x))
            of_model, of_pairs = [*_unknown_focals(model), *self._strains(scene)], _loose_ends(scene, found)
            self.doubts_ = of_model + of_pairs
        advice = ' For a camera that moves along a plane use model="homography".' if self.model == "rotation" else ""
        for doubt in [*(doubt + advice for doubt in of_model), *of_pairs]:
            warn(doubt)
        return self

    def _describe(self, joint: JointFit, solution: Solution, x: Floats) -> None:
        """All that is known at x."""
        scene, loss = joint.scene, joint.loss
        self.threshold_, self.contamination_ = joint.cut(x, solution.w)
        self.outlier_scores_ = joint.errors(x)
        self.weights_ = (self.outlier_scores_ <= self.threshold_).astype(np.float64)
        self.raw_weights_, self.objective_, self.history_ = solution.w, solution.objective, solution.history
        self.n_iter_ = len(solution.history)
        moved = (loss.predict(x) - loss.predict(solution.x))[self.inlier_mask_]
        self.polish_shift_ = float(np.sqrt(np.mean(np.sum(moved**2, axis=1))))
        self.pairs_, self.agrees_ = scene.pairs, joint.agrees
        self.reference_ = central([e for e, good in zip(scene.edges, joint.agrees, strict=True) if good], len(x))
        maps = loss.maps(x)
        self._to_world = np.stack([A @ shift(-c) for A, c in zip(maps.A, scene.centres, strict=True)])
        self._to_pixels = np.stack([shift(c) @ B for B, c in zip(maps.B, scene.centres, strict=True)])
        self.homographies_ = np.stack([self.pair_homography(k, self.reference_) for k in range(len(x))])
        self.rotations_, self.focals_ = None, None
        if isinstance(loss, RotationLoss):
            R, self.focals_ = loss.cameras(x)
            self.rotations_ = R @ R[self.reference_].T
        self.report_ = _reports(scene, joint.agrees, self.outlier_scores_, self.inlier_mask_)
        self.misfit_ = max(report.error for report in self.report_ if report.agrees)

    @property
    def inlier_mask_(self) -> NDArray[np.bool_]:
        """Which matches are within `threshold_` of the panorama."""
        check_is_fitted(self, "weights_")
        return np.asarray(self.weights_ > 0)

    def pair_homography(self, i: int, j: int) -> Floats:
        """Pixel of image i to pixel of image j, also where they do not overlap; z > 0 is in front of both."""
        check_is_fitted(self, "weights_")
        m = len(self._to_pixels)
        H = self._to_pixels[check_index(j, m, "j")] @ self._to_world[check_index(i, m, "i")]
        corner = abs(H[2, 2])
        return np.asarray(H / (corner if corner > 1e-6 * np.abs(H[2]).max() else np.linalg.norm(H)))

    def _strains(self, scene: Scene) -> list[str]:
        """A fit that leaves some pair far off where it is, or much further than the pair's own homography does."""
        errors = np.array([r.error if r.agrees else 0.0 for r in self.report_])
        strain = np.maximum(scene.strained(errors), errors / (MISFIT * scene.diagonal))
        worst = int(np.argmax(strain))
        if strain[worst] <= 1.0:
            return []
        i, j = (scene.pairs.names[k] for k in scene.edges[worst])
        return [
            f"the model is {errors[worst]:.0f} px off where {i} and {j} overlap, which by themselves match to "
            f"{scene.own_errors[worst]:.1g} px: the camera may have moved, its lens may bend lines, or an overlap, "
            "this or another, may be wrong as a whole."
        ]


def _unknown_focals(model: Model) -> list[str]:
    if not isinstance(model, RotationModel) or model.focals.known:
        return []
    return [
        "the overlaps do not tell the focal length (images that do not turn, or hardly): a typical one, "
        f"{np.median(model.focals.focals):.0f} px, was the start."
    ]


def _loose_ends(scene: Scene, found: Agreement) -> list[str]:
    """Pairs that were left out, where it could as well have been another."""
    pairs = [" and ".join(scene.pairs.names[k] for k in scene.edges[pair]) for pair in ambiguous(scene, found)]
    return [
        f"the overlap of {pair} contradicts the others and is not used; but these form a chain, of which another may "
        "be the wrong one. Look at the result, or add images that overlap more."
        for pair in pairs
    ]


def _connected(pairs: Pairs | Sequence[Any], sizes: Sequence[tuple[int, int]] | None, seed: int) -> Pairs:
    """Verified pairs that connect all images."""
    if not isinstance(pairs, Pairs):
        if sizes is None:
            raise ValueError("sizes must be given with matches of your own: (w, h) of each image, in px.")
        pairs = make_pairs(pairs, sizes, random_state=seed)
    elif sizes is not None and check_sizes(sizes) != list(pairs.sizes):
        raise ValueError(f"sizes must be those of pairs, {list(pairs.sizes)}, or left out.")
    if not pairs.pairs:
        pairs.largest()  # says why
    pairs.check_connected()
    return pairs


def _reports(scene: Scene, agrees: NDArray[np.bool_], errors: Floats, inside: NDArray[np.bool_]) -> list[PairReport]:
    inliers = np.bincount(scene.pair[inside], minlength=len(scene.pairs))
    numbers = zip(scene.pairs.pairs, scene.inliers, inliers, medians(errors, scene), agrees, strict=True)
    return [PairReport(p.i, p.j, len(p), int(o), int(n), float(e), bool(a)) for p, o, n, e, a in numbers]
