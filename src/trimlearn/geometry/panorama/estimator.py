"""TrimmedPanorama: all images of a panorama at once, from all matches of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.inputs import check_index, refuse_weights, seed_of
from trimlearn.geometry.panorama.beginning import Beginning, begin, met, verified
from trimlearn.geometry.panorama.distortion import check_distortion, without_lens
from trimlearn.geometry.panorama.doubts import loose_ends, pair_reports, rivalries, strains
from trimlearn.geometry.panorama.joint import LAW, JointFit
from trimlearn.geometry.panorama.losses import RotationLoss
from trimlearn.geometry.panorama.models import STARTS, ModelStart, homography_start, rotation_start
from trimlearn.geometry.panorama.pairs import Pairs
from trimlearn.geometry.panorama.scene import Scene, Views, shift
from trimlearn.geometry.panorama.trees import central
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import REGULAR, Findings
from trimlearn.progress import stage
from trimlearn.robust.scale import p_values
from trimlearn.smart import svrg
from trimlearn.smart.method import Method
from trimlearn.smart.metrics import NewtonMetric
from trimlearn.solution import Solution
from trimlearn.weights.simplex import h_of

__all__ = ["TrimmedPanorama"]


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
    _views: Views

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
            known = verified(pairs, sizes, seed)
            if not known.pairs:
                known.largest()  # says why
            known.check_connected()
            h = h_of(self.contamination, Scene(known).S, "matches")
            return self._place(begin(known, self.model, self.distortion, seed), h, seed)

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
        m = len(self._views)
        return self._views.homography(check_index(i, m, "i"), check_index(j, m, "j"))

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
        m = len(self._views)
        return self._views.transfer(check_index(i, m, "i"), check_index(j, m, "j"), points)

    # ---- what the base asks for ----

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Scene:
        refuse_weights(sample_weight)
        sizes = self.pairs_.sizes if y is None and not isinstance(X, Pairs) else y
        pairs = verified(X, sizes, self._drawn_seed())
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
            if warm:
                return self._place(met(scene, self._present(scene)), h, seed)
            return self._place(begin(data.pairs, self.model, self.distortion, seed), h, seed)

    # ---- the parts of a fit ----

    def _drawn_seed(self) -> int:
        return int(check_random_state(seed_of(self.random_state)).randint(np.iinfo(np.int32).max))

    def _present(self, scene: Scene) -> ModelStart:
        """The model around what was fitted."""
        if self.rotations_ is not None and self.focals_ is not None:
            return rotation_start(scene, 0, (self.rotations_, self.focals_))
        return homography_start(scene, 0, self.homographies_ @ np.stack([shift(c) for c in scene.centres]))

    def _place(self, beginning: Beginning, h: float | None, seed: int) -> Self:
        """Trim, polish, and say what was found."""
        scene, start, found = beginning
        joint = JointFit(start.loss, scene, start.r2, found.agrees, h, self.threshold)
        stage("trimmed fit")
        method = svrg(metric=NewtonMetric(), momentum=0.0, finish=False) if self.method is None else self.method
        solution = joint.trim(found.x, method, seed)
        self._describe(joint, solution, joint.polish(solution) if self.polish else np.asarray(solution.x))
        of_model = [*start.doubts, *strains(scene, self.report_)]
        rivals = rivalries(scene, joint.agrees, self.outlier_scores_, self.threshold_)
        of_pairs = [*loose_ends(scene, found), *rivals]
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
        maps = plain = loss.maps(x)
        if isinstance(loss, RotationLoss) and self.distortion_.any():
            plain = without_lens(scene, loss.cameras(x), scene.core & joint.agrees[scene.pair])
        self._views = Views.of(scene, maps, plain)
        self.homographies_ = np.stack([self.pair_homography(k, self.reference_) for k in range(len(x))])
        self.rotations_, self.focals_ = None, None
        if isinstance(loss, RotationLoss):
            R, self.focals_ = loss.cameras(x)
            self.rotations_ = R @ R[self.reference_].T
        self.report_ = pair_reports(scene, joint.agrees, self.outlier_scores_, self.inlier_mask_)
        self.misfit_ = max(report.error for report in self.report_ if report.agrees)
