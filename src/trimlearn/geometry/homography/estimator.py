"""TrimmedHomography: the projective map that the matches between two images agree on."""

from __future__ import annotations

from functools import cached_property
from math import exp, inf
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.validation import check_choice, check_count, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.geometry.homography.a_contrario import Chance
from trimlearn.geometry.homography.candidate import CERTAIN, Candidate
from trimlearn.geometry.homography.doubt import Rival, rival_of, uncertainty
from trimlearn.geometry.homography.four_point import THIN, four_point
from trimlearn.geometry.homography.noise import MatchNoise, noise_of, noise_of_kept
from trimlearn.geometry.homography.points import (
    Floats,
    PointPairs,
    SortedPairs,
    check_pairs,
    check_points,
    check_spread,
    scaled,
    sort_pairs,
)
from trimlearn.geometry.homography.refine import refined
from trimlearn.geometry.homography.score import WIDE, HomographyScore, MarginalScore, TrimmedScore
from trimlearn.geometry.homography.search import ALL, FIRST, SampleSearch, samples_needed, some_of
from trimlearn.geometry.homography.transfer import squared_errors, transform
from trimlearn.geometry.homography.trimmed import TrimmedFit, four_best, trimmed_fit
from trimlearn.geometry.inputs import refuse_weights, seed_of
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import Findings, plain_kinds
from trimlearn.progress import stage
from trimlearn.smart.method import Record
from trimlearn.weights.simplex import h_of

__all__ = ["TrimmedHomography", "fitted_near"]

MOST = 250_000  # samples for contamination="auto": a limit on time, about 1 s, which is enough for 7.8 % of inliers
LIMIT = 3_000_000  # samples for any contamination: a limit on time, about 15 s, which is enough for 4.2 %


class TrimmedHomography(Trimmed):
    """The homography H between two images, from matches of which an unknown part is wrong.

    Minimises 1/n Σ wᵢ‖Aᵢ vec(H)‖² over ‖H‖ = 1 and weights w with 0 ≤ w ≤ 1, Σwᵢ = h, where Aᵢ are the two DLT rows
    of a match in normalised coordinates: the h matches that one H explains best, and that H. It starts from the best of
    many homographies through four matches each, and ends with a refinement over all inliers of the symmetric transfer
    error e² = rᵀM⁻¹r + r′ᵀM′⁻¹r′ with r = dst − π(H src), r′ = src − π(H⁻¹ dst), and M, M′ what noise of one pixel in
    the coarser image does to them: where H keeps lengths, e² = ‖r‖² + ‖r′‖².

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of matches to trim. "auto" finds out.
    threshold : float, optional
        The largest e of an inlier, in pixels of the coarser image. None: what 99 % of the inliers keep to, by their
        estimated noise.
    form : {"algebraic", "printed"}
        The loss: ‖Aᵢ vec(H)‖², or as the paper prints it ‖H b₁ᵢ − b₂ᵢ‖², which fixes the scale of H twice and is worse.
    refine : {"inliers", "paper", None}
        What follows the trimmed fit: a refinement over all inliers, the paper's DLT on the four best, which magnifies
        their noise and can be many pixels off, or nothing.
    probability : float
        With which one of the samples shall consist of inliers.
    max_samples : int, optional
        None: as many as the contamination asks for, 250,000 for "auto" (7.8 % of inliers). Fewer are drawn once an H
        is found that explains more matches than that.
    random_state : int, RandomState or None
        For the samples.
    verbose : bool or int
        Show on stderr what the fit is doing.

    Attributes
    ----------
    homography_ : ndarray of shape (3, 3)
        Pixel (x, y, 1) of the first image to the second; H[2, 2] = 1 unless the origin has no image.
    threshold_ : float
        In pixels of e: ``inlier_mask_`` is ``outlier_scores_ <= threshold_``, for every ``refine``.
    scale_ : float
        The noise of the inliers, in pixels of the coarser image: their e is about Rayleigh with this scale.
    weights_ : ndarray of shape (n,)
        1 for inliers, else 0; ``inlier_mask_`` is ``weights_ > 0``.
    raw_weights_ : ndarray of shape (n,)
        The w of the trimmed fit.
    outlier_scores_ : ndarray of shape (n,)
        e of the matches under ``homography_``, in pixels of the coarser image.
    outlier_probability_ : ndarray of shape (n,)
        The probability that a match is wrong, from the p-value of its e under the noise of the inliers.
    contamination_ : float
        The share of wrong matches: estimated, or as given.
    raw_homography_ : ndarray of shape (3, 3)
        The H of the trimmed fit.
    objective_ : float
        The objective of the trimmed fit.
    history_ : list of Record
        Its course.
    n_iter_ : int
        Its steps.
    n_samples_ : int
        Samples drawn.

    See Also
    --------
    match_images : Matches of two photographs.
    TrimmedPanorama : Many images at once.

    Notes
    -----
    Where the methods that all trimmed estimators share take X and y, a homography takes src and dst:
    ``outlier_table(src, dst)``, ``rethreshold(contamination, src, dst)``. `rethreshold` starts from ``homography_``
    and draws no samples.

    References
    ----------
    Aravkin and Davis (2020), section 4.3. Hartley and Zisserman (2004), chapter 4. Chum and Matas (2005), PROSAC. Chum,
    Matas and Kittler (2003), LO-RANSAC.
    Moisan and Stival (2004): the test that refuses what chance explains.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> src, dst = rng.uniform(0, 1000, (2, 200, 2))
    >>> dst[:60] = 2.0 * src[:60] + 10.0 + rng.standard_normal((60, 2))  # 70 % of the matches are random
    >>> model = TrimmedHomography().fit(src, dst)
    >>> bool(model.inlier_mask_[60:].any()), round(model.contamination_, 1)
    (False, 0.7)
    >>> bool(np.abs(model.predict([[500.0, 500.0]]) - 1010.0).max() < 1.0)
    True
    """

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        threshold: float | None = None,
        form: str = "algebraic",
        refine: str | None = "inliers",
        probability: float = 0.9999,
        max_samples: int | None = None,
        random_state: Any = 0,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.threshold = threshold
        self.form = form
        self.refine = refine
        self.probability = probability
        self.max_samples = max_samples
        self.random_state = random_state
        self.verbose = verbose

    homography_: Floats
    _noise: MatchNoise
    _start: tuple[Floats, float | None]  # of the trimmed fit: the H that the search found, and the h asked for
    _trimmed_fit: TrimmedFit  # once it was asked for
    _examples = "matches"

    def fit(self, src: Any, dst: Any, scores: Any = None) -> Self:
        """Find the homography that takes src to dst, and the matches that it explains.

        Parameters
        ----------
        src : array-like of shape (n, 2), or (n, 1, 2) as OpenCV has it
            Pixels (x, y) of the first image.
        dst : array-like of shape (n, 2), or (n, 1, 2) as OpenCV has it
            The pixels of the second image that they are said to be.
        scores : array-like of shape (n,), optional
            Larger for likelier matches; they guide the sampling.

        Returns
        -------
        TrimmedHomography
            The estimator itself.
        """
        with self._fitting(src):
            self._check_parameters()
            pairs = check_pairs(src, dst, scores)
            return self._fit(pairs, h_of(self.contamination, len(pairs), "matches"), warm=False)

    def predict(self, src: Any) -> Floats:
        """Where points of the first image are in the second.

        Parameters
        ----------
        src : array-like of shape (n, 2)
            Pixels (x, y) of the first image.

        Returns
        -------
        ndarray of shape (n, 2)
            Pixels of the second image.
        """
        check_is_fitted(self, "homography_")
        return transform(self.homography_, check_points(src, "src"))

    def outlier_score(self, src: Any, dst: Any) -> Floats:
        """The scaled symmetric transfer error e of matches: larger is worse, above ``threshold_`` is an outlier.

        Parameters
        ----------
        src : array-like of shape (n, 2)
            Pixels (x, y) of the first image.
        dst : array-like of shape (n, 2)
            The pixels of the second image that they are said to be.

        Returns
        -------
        ndarray of shape (n,)
            The errors, in pixels of the coarser image.
        """
        check_is_fitted(self, "homography_")
        return self._scores(check_pairs(src, dst))

    # ---- what the base asks for ----

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> PointPairs:
        refuse_weights(sample_weight)
        return check_pairs(X, y)

    def _scores(self, data: PointPairs) -> Floats:
        return np.asarray(np.sqrt(squared_errors(self.homography_, data)))

    def _findings(self, data: PointPairs, scores: Floats, off: np.ndarray) -> Findings:
        return Findings(scores, self._noise.p_values(scores), plain_kinds(off))

    def _fit(self, data: PointPairs, h: float | None, warm: bool) -> Self:
        n = len(data)
        if h is not None and h < 4 <= n:
            raise ValueError(f"contamination takes {n - h:g} of {n} matches and leaves {h:.3g}, where 4 are needed.")
        share = None if h is None else h / n
        matches = sort_pairs(data)
        check_spread(matches.distinct)
        chance = Chance(matches.distinct)
        H, noise = (self.homography_, None) if warm else self._search(matches.distinct, chance, share)
        self._training = PointPairs(data.src, data.dst)
        for late in ("_trimmed_fit", "outlier_probability_"):
            self.__dict__.pop(late, None)
        self._settle(matches, (H, h), share, chance, noise)
        if not warm and self.refine == "inliers":  # the paper's ways are off by themselves
            rival = self._rival(matches, chance)
            if rival is not None and rival.is_better:
                self._settle(matches, (rival.H, h), share, chance, None)
                rival = self._rival(matches, chance)
            self._warn_of_doubt(matches, chance, rival)
        return self

    def _settle(
        self,
        matches: SortedPairs,
        start: tuple[Floats, float | None],
        share: float | None,
        chance: Chance,
        noise: MatchNoise | None,
    ) -> None:
        """The homography near a start, and all that it says."""
        self._start = start
        self.homography_, noise = self._final(matches, start[0], chance, noise)
        self._describe(matches, share, chance, noise)

    @cached_property
    def outlier_probability_(self) -> Floats:  # type: ignore[override]  # made when it is first asked for
        """The probability that a match is wrong."""
        check_is_fitted(self, "weights_")
        return row_probabilities(self._noise.p_values(self.outlier_scores_))

    # ---- the trimmed fit ----

    @property
    def raw_weights_(self) -> Floats:
        """The w of the trimmed fit."""
        return self._trimmed(None).weights

    @property
    def raw_homography_(self) -> Floats:
        """The H of the trimmed fit."""
        return self._trimmed(None).H

    @property
    def objective_(self) -> float:
        """The objective of the trimmed fit."""
        return self._trimmed(None).solution.objective

    @property
    def history_(self) -> list[Record]:
        """The course of the trimmed fit."""
        return self._trimmed(None).solution.history

    @property
    def n_iter_(self) -> int:
        """The steps of the trimmed fit."""
        return self.history_[-1].k

    def __getstate__(self) -> dict[str, Any]:
        """With the trimmed fit, as the matches that it is made from stay behind."""
        if "homography_" in vars(self):
            self._trimmed(None)
        return super().__getstate__()

    def _trimmed(self, matches: SortedPairs | None) -> TrimmedFit:
        """The trimmed fit from where the search ended, made when it is first asked for: a refinement needs none."""
        check_is_fitted(self, "_start")
        if "_trimmed_fit" not in vars(self):
            matches = sort_pairs(self._training) if matches is None else matches
            H, h = self._start
            h = _explained(matches, H, Chance(matches.distinct)) if h is None else h
            self._trimmed_fit = trimmed_fit(matches, H, h, self.form)
        return self._trimmed_fit

    # ---- the parts of a fit ----

    def _search(self, pairs: PointPairs, chance: Chance, share: float | None) -> tuple[Floats, MatchNoise]:
        """The homography, in pixels, of the best of many samples, and its noise; ValueError if chance explains it."""
        stage("homographies through four matches")
        some = some_of(pairs)
        score: HomographyScore = MarginalScore(chance.side) if share is None else TrimmedScore(chance.side, share)
        search = SampleSearch(some, score, Chance(some) if some is not pairs else chance, seed_of(self.random_state))
        most = MOST if share is None else samples_needed(share, self.probability)
        limit = min(max(most, FIRST), LIMIT) if self.max_samples is None else int(self.max_samples)
        exhaust = ALL if self.max_samples is None else min(ALL, limit)
        found = _significant(search.run(limit, self.probability, exhaust), search)
        self.n_samples_ = search.drawn
        return some.to_pixels(found.H), found.noise

    def _final(
        self, matches: SortedPairs, H: Floats, chance: Chance, noise: MatchNoise | None
    ) -> tuple[Floats, MatchNoise | None]:
        """The homography returned, and the noise where a refinement has told it."""
        if self.refine == "inliers":
            stage("refinement")
            H, noise = refined(H, matches.distinct, chance, self.threshold, noise)
            return scaled(H), noise
        stage("trimmed fit")
        raw = self._trimmed(matches)
        return raw.H if self.refine is None else scaled(four_best(matches.pairs, raw.solution.losses)), None

    def _describe(self, matches: SortedPairs, share: float | None, chance: Chance, noise: MatchNoise | None) -> None:
        """Inliers are what the homography says they are, whichever way it was found."""
        e2 = squared_errors(self.homography_, matches.pairs)
        errors = np.sqrt(e2)
        self.outlier_scores_ = matches.unsorted(errors)
        noise = noise_of(e2[matches.first], chance, noise)
        if self.refine != "inliers" and np.median(errors[self.raw_weights_[matches.order] > 0]) > noise.threshold:
            noise = noise_of_kept(self.outlier_scores_, self.raw_weights_)
        self._noise, self.scale_ = noise, noise.scale
        self.threshold_ = noise.threshold if self.threshold is None else float(self.threshold)
        self.weights_ = (self.outlier_scores_ <= self.threshold_).astype(np.float64)
        self.contamination_ = noise.bad_share(errors, noise.threshold) if share is None else 1.0 - share
        if self.threshold is not None:
            self._warn_of_threshold(self.threshold, chance)

    def _warn_of_threshold(self, threshold: float, chance: Chance) -> None:
        """Where the threshold given is more than noise can be, or leaves no more than any four, which always agree."""
        if threshold > WIDE * chance.side:
            warn(
                f"threshold={threshold:g} px is more than {WIDE:.0%} of the images' side: wrong matches that far off "
                "count as right, and draw the homography towards them. threshold=None asks the matches.",
            )
        if self.refine == "inliers" and self.weights_.sum() < min(5, len(self.weights_)):
            warn(
                f"threshold={threshold:g} px leaves {self.weights_.sum():.0f} inliers; the noise of the matches asks "
                f"for about {self._noise.threshold:.2g} px.",
            )

    def _distinct_errors(self, matches: SortedPairs) -> tuple[Floats, float]:
        """Those of the distinct matches, and up to which they are inliers' by the noise, too."""
        errors = self.outlier_scores_[matches.order][matches.first]
        return errors, max(self.threshold_, self._noise.threshold)

    def _rival(self, matches: SortedPairs, chance: Chance) -> Rival | None:
        """Another homography that other matches agree on."""
        errors, limit = self._distinct_errors(matches)
        return rival_of(matches.distinct, np.square(errors), limit, chance, self.n_samples_)

    def _warn_of_doubt(self, matches: SortedPairs, chance: Chance, rival: Rival | None) -> None:
        """Where other matches agree on another homography, or the inliers are too few to tell."""
        errors, limit = self._distinct_errors(matches)
        count = int(self.weights_.sum())
        if count < min(5, len(self.weights_)) and self.threshold is not None:  # which was said to leave too few
            return
        if rival is not None:
            warn(
                f"{rival.matches} matches agree with another homography than the {count} inliers do, as those of a "
                "second plane, of things nearer to a camera that moved, or of repeated structure would: which of both "
                "is meant cannot be told.",
            )
        if off := uncertainty(self.homography_, matches.distinct, errors <= limit, chance, self._noise):
            by = "any number of" if off == inf else f"{off:.2g}"
            warn(
                f"{count} inliers are too few to tell noise from a wrong match: where they lie, the homography may be "
                f"off by {by} px.",
            )

    def _check_parameters(self) -> None:
        check_choice(self.form, ("algebraic", "printed"), "form")
        if self.refine is not None:
            check_choice(self.refine, ("inliers", "paper"), "refine")
        if self.threshold is not None:
            check_positive(self.threshold, "threshold")
        if self.max_samples is not None:
            check_count(self.max_samples, "max_samples")
        if check_positive(self.probability, "probability") >= 1:
            raise ValueError(f"probability must be below 1, got {self.probability}: no number of samples is certain.")


def fitted_near(H: Floats, src: Floats, dst: Floats) -> TrimmedHomography:
    """The fit to matches of which a homography is nearly known: no samples are drawn, and no doubt is looked for."""
    model = TrimmedHomography()
    model.homography_ = H
    return model._fit(check_pairs(src, dst), None, warm=True)


def _explained(matches: SortedPairs, H: Floats, chance: Chance) -> float:
    """How many matches a homography explains: as many are kept where nobody says how many."""
    limit = noise_of(squared_errors(H, matches.distinct), chance).threshold
    return max(4.0, float(np.count_nonzero(squared_errors(H, matches.pairs) <= limit**2)))


def _significant(found: Candidate | None, search: SampleSearch) -> Candidate:
    """What was found; ValueError where that is no homography, or chance would find one as good."""
    n, tried = len(search.pairs), f"{search.drawn} samples of four"
    if search.on_a_line is not None and (found is None or not found.is_certain):
        raise ValueError(
            f"src and dst: the {search.on_a_line.significance.k:.0f} matches that agree are on a line, as far as their "
            "errors tell, which fixes no homography, and the others agree no better than by chance."
        )
    if found is None:
        raise ValueError(
            f"src and dst: none of {tried} of the {n} distinct matches fixes a homography: three of their points are "
            "nearly on a line, or lie in different order around each other in the two images."
        )
    k, e2, log_nfa = found.significance
    if search.chance.n <= 4.5:  # four fit always: nothing to test
        if n == 4 and not len(four_point(search.pairs.normalised, np.arange(4)[None])):
            warn(
                "src and dst: three of the four points are nearly on a line, so that the homography magnifies an error "
                f"of one of them more than {1 / THIN:.0f} times elsewhere. Give more matches, or others.",
            )
        return found
    if not found.is_certain:
        raise ValueError(
            f"src and dst: no homography explains more of the {n} distinct matches than chance would. The best of "
            f"{tried} is within {e2**0.5:.3g} px of {k:.0f} of them; by chance one expects "
            f"{exp(min(log_nfa, 99.0)):.2g} as good, where {CERTAIN:g} would be convincing."
        )
    return found
