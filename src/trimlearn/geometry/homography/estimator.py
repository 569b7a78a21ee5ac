"""TrimmedHomography: the projective map that the matches between two images agree on."""

from __future__ import annotations

from math import exp, log
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.validation import check_choice, check_count, check_positive
from trimlearn._utils.warn import warn
from trimlearn.geometry.homography.dlt import dlt, four_best, trimmed_fit
from trimlearn.geometry.homography.noise import noise_of, noise_of_kept
from trimlearn.geometry.homography.points import (
    Bools,
    Floats,
    Sorted,
    check_pairs,
    check_points,
    check_spread,
    sort_pairs,
)
from trimlearn.geometry.homography.refine import refined
from trimlearn.geometry.homography.score import Judge, Marginal, Quota
from trimlearn.geometry.homography.search import CERTAIN, FIRST, Found, Search, samples_needed
from trimlearn.geometry.homography.transfer import squared_transfer, transform
from trimlearn.solution import Solution
from trimlearn.weights.projection import h_of

__all__ = ["TrimmedHomography"]

MOST = 250_000  # samples for contamination="auto": enough for 7.8 % of inliers
LIMIT = 3_000_000  # samples for any contamination: enough for 4.2 %
LINE = 0.2  # of the matches that agree off a line: where there are fewer, they must mean something by themselves


class TrimmedHomography(BaseEstimator):  # type: ignore[misc]
    """The homography H between two images, from matches of which an unknown part is wrong.

    Minimises 1/n Σ wᵢ‖Aᵢ vec(H)‖² over ‖H‖ = 1 and weights w with 0 ≤ w ≤ 1, Σwᵢ = h, where Aᵢ are the two DLT rows
    of a match in normalised coordinates: the h matches that one H explains best, and that H. It starts from the best of
    many homographies through four matches each, and ends with a refinement of the symmetric transfer error
    e² = ‖dst − π(H src)‖² + ‖src − π(H⁻¹ dst)‖², in pixels, over all inliers.

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of matches to trim. "auto" finds out.
    threshold : float, optional
        The largest e of an inlier, in pixels. None: what 99 % of the inliers keep to, by their estimated noise.
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

    Attributes
    ----------
    homography_ : (3, 3)
        Pixel (x, y, 1) of the first image to the second; H[2, 2] = 1 unless the origin has no image.
    threshold_ : float
        In pixels of e: `inlier_mask_` is ``outlier_scores_ <= threshold_``, for every ``refine``.
    weights_, raw_weights_ : (n,)
        1 for inliers, else 0; and the w of the trimmed fit.
    outlier_scores_ : (n,)
        e of the matches under ``homography_``, in pixels.
    contamination_ : float
        The share of wrong matches: estimated, or as given.
    raw_homography_, objective_, history_, n_iter_
        Of the trimmed fit.
    n_samples_ : int
        Samples drawn.

    References
    ----------
    Aravkin and Davis (2020), section 4.3. Hartley and Zisserman (2004), chapter 4. Chum and Matas (2005), PROSAC.
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
    >>> np.abs(model.predict([[500.0, 500.0]]) - 1010.0).max() < 1.0
    np.True_
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
    ) -> None:
        self.contamination = contamination
        self.threshold = threshold
        self.form = form
        self.refine = refine
        self.probability = probability
        self.max_samples = max_samples
        self.random_state = random_state

    def fit(self, src: Any, dst: Any, scores: Any = None) -> Self:
        """Fit to matches src and dst, (n, 2) pixels each. scores (n,), larger for likelier ones, guide the sampling."""
        with intact(self):
            self._check_parameters()
            pairs, guide = check_pairs(src, dst, scores)
            h = h_of(self.contamination, len(pairs), "matches")
            _check_four(h, self.contamination, len(pairs))
            share = None if h is None else h / len(pairs)
            data = sort_pairs(pairs, guide)
            check_spread(data.distinct)
            side = data.distinct.area**0.5
            judge: Judge = Marginal(side) if share is None else Quota(side, share)
            search = Search(data.distinct, judge, data.scores, self._seed())
            found = _believed(search.run(self._most(share), self.probability), search)
            h = _explained(data, found, search) if h is None else h
            raw = trimmed_fit(data.pairs, data.distinct.to_pixels(found.H), h, self.form)
            self.raw_weights_ = data.unsorted(raw.w)
            self.raw_homography_ = _scaled(data.pairs.to_pixels(raw.x))
            self.objective_, self.history_, self.n_iter_ = raw.objective, raw.history, raw.history[-1].k
            self.n_samples_ = search.drawn
            self.homography_ = _scaled(self._final(data, raw, found, search))
            self._judge(data, share, search)
            return self

    def _final(self, data: Sorted, raw: Solution, found: Found, search: Search) -> Floats:
        if self.refine is None:
            return data.pairs.to_pixels(raw.x)
        if self.refine == "paper":
            return four_best(data.pairs, raw.losses)
        worth = Marginal(search.chance.side)
        starts = (data.distinct.to_pixels(found.H), dlt(data.pairs, raw.w))
        best = max(starts, key=lambda H: worth.scores(squared_transfer(H, data.distinct), search.chance.s))
        return refined(best, data.distinct, search.chance, self.threshold)

    def _judge(self, data: Sorted, share: float | None, search: Search) -> None:
        """Inliers are what the homography says they are, whichever way it was found."""
        errors = np.sqrt(squared_transfer(self.homography_, data.pairs))
        self.outlier_scores_ = data.unsorted(errors)
        noise = noise_of(squared_transfer(self.homography_, data.distinct), search.chance)
        if self.refine != "inliers" and np.median(errors[self.raw_weights_[data.order] > 0]) > noise.threshold:
            noise = noise_of_kept(self.outlier_scores_, self.raw_weights_)
        self.threshold_ = noise.threshold if self.threshold is None else float(self.threshold)
        self.weights_ = (self.outlier_scores_ <= self.threshold_).astype(np.float64)
        self.contamination_ = noise.bad_share(errors, noise.threshold) if share is None else 1.0 - share
        if self.threshold is not None and self.refine == "inliers" and self.weights_.sum() < 4:
            warn(
                f"threshold={self.threshold:g} px leaves {self.weights_.sum():.0f} inliers; the noise of the matches "
                f"asks for about {noise.threshold:.2g} px.",
            )

    @property
    def inlier_mask_(self) -> Bools:
        """Which of the matches count: those within ``threshold_`` of ``homography_``."""
        check_is_fitted(self, "weights_")
        return np.asarray(self.weights_ > 0)

    def predict(self, src: Any) -> Floats:
        """Where points (n, 2) of the first image are in the second."""
        check_is_fitted(self, "homography_")
        return transform(self.homography_, check_points(src, "src"))

    def outlier_score(self, src: Any, dst: Any) -> Floats:
        """The symmetric transfer error e of matches, in pixels: larger is worse, above ``threshold_`` is an outlier."""
        check_is_fitted(self, "homography_")
        return np.asarray(np.sqrt(squared_transfer(self.homography_, check_pairs(src, dst)[0])))

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

    def _most(self, share: float | None) -> int:
        if self.max_samples is not None:
            return int(self.max_samples)
        needed = MOST if share is None else samples_needed(share, self.probability)
        return min(max(needed, FIRST), LIMIT)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))


def _check_four(h: float | None, contamination: Any, n: int) -> None:
    if h is not None and h < 4 <= n:
        raise ValueError(f"contamination={contamination!r} leaves {h:.3g} of {n} matches, and 4 are needed.")


def _explained(data: Sorted, found: Found, search: Search) -> float:
    """How many matches the homography found explains: as many are kept where nobody says how many."""
    limit = noise_of(found.e2, search.chance).threshold
    e2 = squared_transfer(data.distinct.to_pixels(found.H), data.pairs)
    return max(4.0, float(np.count_nonzero(e2 <= limit**2)))


def _believed(found: Found | None, search: Search) -> Found:
    """ValueError where no homography was found, or chance would find one as good."""
    n, tried = len(search.pairs), f"{search.drawn} samples of four"
    if found is None:
        raise ValueError(
            f"src and dst: none of {tried} of the {n} distinct matches fixes a homography: three of their points are "
            "nearly on a line, or lie in different order around each other in the two images."
        )
    k, e2, log_nfa = found.meaning
    if search.chance.n <= 4.5:  # four fit always: nothing to test
        return found
    if log_nfa > log(CERTAIN):
        raise ValueError(
            f"src and dst: no homography explains more of the {n} distinct matches than chance would. The best of "
            f"{tried} is within {e2**0.5:.3g} px of {k:.0f} of them; by chance one expects "
            f"{exp(min(log_nfa, 99.0)):.2g} as good, where {CERTAIN:g} would be convincing."
        )
    off = search.off_a_line()
    if off.k < LINE * k and off.log_nfa > log(CERTAIN):
        raise ValueError(
            f"src and dst: {k - off.k:.0f} of the {k:.0f} matches that agree are on a line, as far as their errors "
            "tell, which fixes no homography, and the others agree no better than by chance."
        )
    return found


def _scaled(H: Floats) -> Floats:
    """H with H[2, 2] = 1; of norm 1 where H[2, 2] is 0, because the origin has no image."""
    H = H / np.linalg.norm(H)
    return np.asarray(H / H[2, 2] if abs(H[2, 2]) > np.finfo(np.float64).eps else H)
