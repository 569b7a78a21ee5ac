"""TrimmedPanorama: all images of a panorama at once, from all matches of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.geometry.homography.points import Bools, Floats
from trimlearn.geometry.inputs import check_index, check_seed, check_sizes, refuse_weights
from trimlearn.geometry.panorama.consistency import Agreement, agree, ambiguous
from trimlearn.geometry.panorama.distortion import check_distortion, estimate_distortion, without_lens
from trimlearn.geometry.panorama.joint_fit import LAW, JointFit
from trimlearn.geometry.panorama.lens import bend, straight
from trimlearn.geometry.panorama.losses import RotationLoss, homogeneous
from trimlearn.geometry.panorama.models import STARTS, ModelStart, homography_start, rotation_start
from trimlearn.geometry.panorama.pairs import Pairs, make_pairs
from trimlearn.geometry.panorama.scene import Scene, shift
from trimlearn.geometry.panorama.trees import central
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import REGULAR, Findings
from trimlearn.progress import stage
from trimlearn.robust.scale import p_values
from trimlearn.smart import svrg
from trimlearn.smart.method import Method
from trimlearn.smart.newton_metric import NewtonMetric
from trimlearn.solution import Solution
from trimlearn.weights.simplex import h_of

__all__ = ["PairReport", "TrimmedPanorama"]

# Of the diagonal: a median error of a pair beyond which the model is in doubt, 12 px in 640 × 480. Twice what lenses do
# to right pairs (benchmarks/calibration/panoramas.py).
MISFIT = 0.015
FLAT = 1e-6  # of the largest entry: H[2, 2] below is rounding, and H is scaled by its norm instead


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


class TrimmedPanorama(Trimmed):
    """All images of a panorama at once: one trimmed problem over all matches of all pairs.

    ::

        min over w, x   1/N Σ wᵢ fᵢ(x) + r2(x),    0 ≤ w ≤ 1,  Σ_{i in pair p} wᵢ = h_p

    fᵢ is the squared symmetric transfer error, in px², of one of the N matches, right or wrong, under x: rotation and
    log focal length of each image (``model="rotation"``, r2 a weak ridge on the latter), or one homography per image
    (``model="homography"``, for planes, or where the camera moved). It is solved by SMART-SVRG in the metric of its
    Gauss–Newton matrix. A lens that bends lines is found beforehand, and taken out of the matches.

    Parameters
    ----------
    contamination : "auto", float or int
        "auto" finds how many matches h_p of each pair the panorama explains, so that a pair of few matches is not given
        up for a better fit of the others, and keeps none of a pair that contradicts the others. A share or a number of
        matches is trimmed wherever it is: Σ wᵢ = h over all pairs.
    model : {"rotation", "homography"}
        A camera that turns about its centre, or one homography per image.
    distortion : "auto" or float
        What the lens draws the corners of a photograph in by, as a share (κ < 0: a barrel; see `distortion_`). "auto"
        finds it, one for all photographs of a camera (of one size and zoom), where it clearly pays; 0 is none.
    threshold : float, optional
        The largest error of an inlier in px. None: found from the errors.
    method : Method, optional
        One of `trimlearn.smart`; None: ``svrg(metric=NewtonMetric(), momentum=0, finish=False)``.
    polish : bool
        End with Gauss–Newton steps on the inliers alone.
    random_state : int, RandomState, Generator or None
        For the spanning trees tried and SMART's draws.
    verbose : bool or int
        Show on stderr what the fit is doing.

    Attributes
    ----------
    rotations_ : ndarray of shape (m, 3, 3)
        World to camera, the reference image's the identity; None for homographies.
    focals_ : ndarray of shape (m,)
        Focal lengths in px; None for homographies.
    distortion_ : ndarray of shape (m,)
        κ of each image's lens: a point p, from the centre and in half diagonals, is where a lens without distortion
        would show p/(1 + κ‖p‖²). 0 where no lens was needed, and for homographies.
    homographies_ : ndarray of shape (m, 3, 3)
        Pixels of each image to pixels of the reference image; z > 0 is in front of both. See `pair_homography`.
    weights_ : ndarray of shape (N,)
        1 for inliers, else 0, of every match, the pairs' matches one after the other; ``inlier_mask_`` is
        ``weights_ > 0``.
    outlier_scores_ : ndarray of shape (N,)
        Symmetric transfer errors in px, the lens taken out.
    outlier_probability_ : ndarray of shape (N,)
        The probability that a match is wrong, from the p-value of its error under the noise of the inliers.
    threshold_ : float
        Every inlier is within it, px.
    scale_ : float
        The noise σ of the inliers in px: their errors are about σχ₂.
    raw_weights_ : ndarray of shape (N,)
        The w of the trimmed fit.
    objective_ : float
        The objective of the trimmed fit.
    history_ : list of Record
        Its course.
    n_iter_ : int
        How many records there are.
    contamination_ : float
        The share of the matches that are wrong: estimated, or as given.
    polish_shift_ : float
        By how many px the polish moved the inliers, root mean square.
    misfit_ : float
        The largest median error of a pair that agrees with the others, px: large where no x explains all of them.
    pairs_ : Pairs
        The verified pairs fitted to.
    agrees_ : ndarray of shape (P,)
        Which of the pairs agree with the others.
    reference_ : int
        The image in the middle.
    report_ : list of PairReport
        What became of each pair.
    doubts_ : list of str
        What the fit warned of.

    See Also
    --------
    match_pairs : The pairs of photographs that overlap.
    stitch : All of it, and the picture.

    Notes
    -----
    Where the methods that all trimmed estimators share take X and y, a panorama takes pairs and sizes, as in `fit`:
    ``outlier_table(pairs)``, ``rethreshold(contamination, pairs)``. `rethreshold` starts from the present cameras.

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

    _examples = "matches"

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        model: str = "rotation",
        distortion: float | str = "auto",
        threshold: float | None = None,
        method: Method | None = None,
        polish: bool = True,
        random_state: Any = 0,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.model = model
        self.distortion = distortion
        self.threshold = threshold
        self.method = method
        self.polish = polish
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, pairs: Pairs | Sequence[Any], sizes: Sequence[tuple[int, int]] | None = None) -> Self:
        """Place all images, and find the matches that are right.

        Parameters
        ----------
        pairs : Pairs, or sequence of (i, j, src, dst)
            What `match_pairs` found, or matches of your own: src (n, 2) in image i is said to be dst (n, 2) in image j.
        sizes : sequence of (w, h), optional
            Of all images, in px; to be given with matches of your own.

        Returns
        -------
        TrimmedPanorama
            The estimator itself.
        """
        check_choice(self.model, tuple(STARTS), "model")
        check_distortion(self.distortion)
        if self.threshold is not None:
            check_positive(self.threshold, "threshold")
        seed = self._drawn_seed()
        with self._fitting(pairs), team():  # matrices are too small for threads
            stage("pairs")
            verified = _verified(pairs, sizes, seed)
            if not verified.pairs:
                verified.largest()  # says why
            verified.check_connected()
            h = h_of(self.contamination, Scene(verified).S, "matches")
            return self._place(*self._start(verified, seed), h, seed)

    def outlier_score(self, pairs: Pairs | Sequence[Any]) -> Floats:
        """The symmetric transfer errors of the matches of pairs, which are verified as in `fit`.

        Parameters
        ----------
        pairs : Pairs, or sequence of (i, j, src, dst)
            Among the images fitted to.

        Returns
        -------
        ndarray of shape (n,)
            Errors in px, the pairs' one after the other: above ``threshold_`` is an outlier.
        """
        check_is_fitted(self, "weights_")
        return self._scores(self._validate(pairs, None, None, reset=False))

    def pair_homography(self, i: int, j: int) -> Floats:
        """Pixel of image i to pixel of image j, also where they do not overlap.

        No homography bends lines: where the lens does (``distortion_``), this is what cameras without a lens, of the
        focal lengths found, see, turned so that they explain the photographs' own pixels best. `transfer` is exact.

        Parameters
        ----------
        i : int
            The number of an image.
        j : int
            The number of another.

        Returns
        -------
        ndarray of shape (3, 3)
            The homography; z > 0 is in front of both.
        """
        check_is_fitted(self, "weights_")
        m = len(self._to_pixels)
        H = self._to_pixels[check_index(j, m, "j")] @ self._to_world[check_index(i, m, "i")]
        corner = abs(H[2, 2])
        return np.asarray(H / (corner if corner > FLAT * np.abs(H[2]).max() else np.linalg.norm(H)))

    def transfer(self, i: int, j: int, points: Floats) -> Floats:
        """Where image j shows what image i shows at some points, through the lens of either.

        Parameters
        ----------
        i : int
            The number of an image.
        j : int
            The number of another.
        points : ndarray of shape (n, 2)
            Pixels of image i.

        Returns
        -------
        ndarray of shape (n, 2)
            Pixels of image j; NaN for what lies behind it.
        """
        check_is_fitted(self, "weights_")
        scene, m = Scene(self.pairs_), len(self.distortion_)
        i, j = check_index(i, m, "i"), check_index(j, m, "j")
        flat = straight(np.asarray(points, np.float64) - scene.centres[i], self.distortion_[i], scene.halves[i])
        u = homogeneous(flat) @ (self._from_world[j] @ self._into_world[i]).T
        there = u[:, :2] / np.where(u[:, 2:] > 0, u[:, 2:], np.nan)
        return np.asarray(bend(there, self.distortion_[j], scene.halves[j]) + scene.centres[j])

    # ---- what the base asks for ----

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Scene:
        refuse_weights(sample_weight)
        sizes = self.pairs_.sizes if y is None and not isinstance(X, Pairs) else y
        pairs = _verified(X, sizes, self._drawn_seed())
        if pairs.sizes != self.pairs_.sizes:
            raise ValueError(f"the images of pairs must be those fitted to, of sizes {list(self.pairs_.sizes)}.")
        if not pairs.pairs:
            raise ValueError("pairs must hold matches that agree on a homography; those of no pair do.")
        return Scene(pairs, tuple(self.distortion_))

    def _scores(self, data: Scene) -> Floats:
        loss = self._present(data).loss
        return np.asarray(np.sqrt(loss.values(np.zeros(loss.x_shape))))

    def _findings(self, data: Scene, scores: Floats, off: np.ndarray) -> Findings:
        left_out = {edge for edge, good in zip(self.pairs_.edges, self.agrees_, strict=True) if not good}
        wrong = np.array([edge in left_out for edge in data.edges])[data.pair]
        kind = np.select([off & wrong, off], ["wrong overlap", "outlier"], REGULAR)
        return Findings(scores, p_values(scores / self.scale_, LAW), kind)

    def _fit(self, data: Scene, h: float | None, warm: bool) -> Self:
        scene, seed = Scene(data.pairs, data.distortion), self._drawn_seed()  # the training data stay as they are
        with team():
            return self._place(*(_met(scene, self._present(scene)) if warm else self._start(data.pairs, seed)), h, seed)

    # ---- the parts of a fit ----

    def _drawn_seed(self) -> int:
        return int(check_random_state(check_seed(self.random_state)).randint(np.iinfo(np.int32).max))

    def _present(self, scene: Scene) -> ModelStart:
        """The model around what was fitted."""
        if self.rotations_ is not None and self.focals_ is not None:
            return rotation_start(scene, 0, (self.rotations_, self.focals_))
        return homography_start(scene, 0, self.homographies_ @ np.stack([shift(c) for c in scene.centres]))

    def _start(self, pairs: Pairs, seed: int) -> tuple[Scene, ModelStart, Agreement]:
        """Where the fit starts, without a lens, then with the one that is seen from there; and the pairs that agree."""
        given = 0.0 if self.model != "rotation" or self.distortion == "auto" else float(self.distortion)
        scene = Scene(pairs, (given,) * len(pairs.sizes))
        scene, start, found = _met(scene, STARTS[self.model](scene, seed))
        if not isinstance(start.loss, RotationLoss) or self.distortion != "auto" or start.doubts:
            return scene, start, found  # images that do not tell the focal length tell no lens either
        stage("lens")
        kappa, cameras = estimate_distortion(scene, start.loss, start.r2, found)
        if not kappa.any():
            return scene, start, found
        scene = Scene(pairs, tuple(kappa))
        return _met(scene, rotation_start(scene, seed, cameras)._replace(doubts=start.doubts))

    def _place(self, scene: Scene, start: ModelStart, found: Agreement, h: float | None, seed: int) -> Self:
        """Trim, polish, and say what was found."""
        joint = JointFit(start.loss, scene, start.r2, found.agrees, h, self.threshold)
        stage("trimmed fit")
        method = svrg(metric=NewtonMetric(), momentum=0.0, finish=False) if self.method is None else self.method
        solution = joint.trim(found.x, method, seed)
        self._describe(joint, solution, joint.polish(solution) if self.polish else np.asarray(solution.x))
        of_model, of_pairs = [*start.doubts, *self._strains(scene)], _loose_ends(scene, found)
        self.doubts_ = of_model + of_pairs
        advice = ' For a camera that moves along a plane use model="homography".' if self.model == "rotation" else ""
        for doubt in [*(doubt + advice for doubt in of_model), *of_pairs]:
            warn(doubt)
        return self

    def _describe(self, joint: JointFit, solution: Solution, x: Floats) -> None:
        """All that is known at x."""
        scene, loss = joint.scene, joint.loss
        self._training, self.pairs_ = Scene(scene.pairs, scene.distortion), scene.pairs
        self.agrees_, self.distortion_ = joint.agrees, np.array(scene.distortion)
        self._row_names = np.array(scene.titles)[scene.pair]
        self.threshold_, self.contamination_, self.scale_ = joint.cut(x, solution.w)
        self.outlier_scores_ = joint.errors(x)
        self.weights_ = (self.outlier_scores_ <= self.threshold_).astype(np.float64)
        self.outlier_probability_ = row_probabilities(p_values(self.outlier_scores_ / self.scale_, LAW))
        self.raw_weights_, self.objective_, self.history_ = solution.w, solution.objective, solution.history
        self.n_iter_ = len(solution.history)
        moved = (loss.predict(x) - loss.predict(solution.x))[self.inlier_mask_]
        self.polish_shift_ = float(np.sqrt(np.mean(np.sum(moved**2, axis=1))))
        self.reference_ = central([e for e, good in zip(scene.edges, joint.agrees, strict=True) if good], len(x))
        maps = loss.maps(x)
        self._into_world, self._from_world = maps.A, maps.B  # of pixels from the centre, the lens taken out
        if isinstance(loss, RotationLoss) and self.distortion_.any():
            maps = without_lens(scene, loss.cameras(x), scene.core & joint.agrees[scene.pair])
        self._to_world = np.stack([A @ shift(-c) for A, c in zip(maps.A, scene.centres, strict=True)])
        self._to_pixels = np.stack([shift(c) @ B for B, c in zip(maps.B, scene.centres, strict=True)])
        self.homographies_ = np.stack([self.pair_homography(k, self.reference_) for k in range(len(x))])
        self.rotations_, self.focals_ = None, None
        if isinstance(loss, RotationLoss):
            R, self.focals_ = loss.cameras(x)
            self.rotations_ = R @ R[self.reference_].T
        self.report_ = _reports(scene, joint.agrees, self.outlier_scores_, self.inlier_mask_)
        self.misfit_ = max(report.error for report in self.report_ if report.agrees)

    def _strains(self, scene: Scene) -> list[str]:
        """A fit that leaves some pair far off where it is, or much further than the pair's own homography does."""
        errors = np.array([r.error if r.agrees else 0.0 for r in self.report_])
        strain = np.maximum(scene.strained(errors), errors / (MISFIT * scene.diagonal))
        worst = int(np.argmax(strain))
        if strain[worst] <= 1.0:
            return []
        return [
            f"the model is {errors[worst]:.0f} px off where {scene.titles[worst]} overlap, which by themselves match "
            f"to {scene.own_errors[worst]:.1g} px: the camera may have moved, its lens may bend lines, or an overlap, "
            "this or another, may be wrong as a whole."
        ]


def _met(scene: Scene, start: ModelStart) -> tuple[Scene, ModelStart, Agreement]:
    """A start, and the pairs that agree from there."""
    stage("pairs that agree")
    return scene, start, agree(start.loss, scene, start.r2)


def _loose_ends(scene: Scene, found: Agreement) -> list[str]:
    """Pairs that were left out, where it could as well have been another."""
    return [
        f"the overlap of {scene.titles[pair]} contradicts the others and is not used; but these form a chain, of which "
        "another may be the wrong one. Look at the result, or add images that overlap more."
        for pair in ambiguous(scene, found)
    ]


def _verified(pairs: Pairs | Sequence[Any], sizes: Sequence[tuple[int, int]] | None, seed: int) -> Pairs:
    """Pairs of images of these sizes, verified by their homographies."""
    if isinstance(pairs, Pairs):
        if sizes is not None and check_sizes(sizes) != list(pairs.sizes):
            raise ValueError(f"sizes must be those of pairs, {list(pairs.sizes)}, or left out.")
        return pairs
    if sizes is None:
        raise ValueError("sizes must be given with matches of your own: (w, h) of each image, in px.")
    return make_pairs(pairs, sizes, random_state=seed)


def _reports(scene: Scene, agrees: Bools, errors: Floats, inside: Bools) -> list[PairReport]:
    inliers = np.bincount(scene.pair[inside], minlength=len(scene.pairs))
    numbers = zip(scene.pairs.pairs, scene.inliers, inliers, scene.medians(errors), agrees, strict=True)
    return [PairReport(p.i, p.j, len(p), int(o), int(n), float(e), bool(a)) for p, o, n, e, a in numbers]
