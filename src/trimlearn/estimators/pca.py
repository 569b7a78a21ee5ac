"""TrimmedPCA: principal components of the rows that a common subspace explains."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Final, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.intact import intact
from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice, check_count
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import row_names
from trimlearn.estimators.detector import FeatureRows
from trimlearn.estimators.doubtful_rows import (
    warn_of_another_explanation,
    warn_of_doubtful_rows,
    warn_of_exact_subspace,
    warn_of_rows_far_within,
)
from trimlearn.estimators.subspace import TrimmedSubspace
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.scatter.explanations import axes_told
from trimlearn.robust.scatter.tails import TailLaw
from trimlearn.robust.subspace.components import principal_components
from trimlearn.robust.subspace.flat import Flat, Points
from trimlearn.robust.subspace.judge import JudgedFlat, fit_and_judge
from trimlearn.robust.subspace.search import FlatSearch
from trimlearn.robust.subspace.units import SCALES, feature_scales
from trimlearn.smart.method import Method, concentration_records

__all__ = ["TrimmedPCA"]

TRIES: Final = 3  # numbers of components tried to explain a share of the variance, a limit on time: each is a search


class TrimmedPCA(TrimmedSubspace):
    """Principal component analysis of data of which an unknown part of the rows is wrong.

    Minimises 1/S Σ sᵢwᵢ ½‖(I − UUᵀ)(aᵢ − m)‖² over U with k orthonormal columns, weights w with 0 ≤ w ≤ 1 and
    Σ sᵢwᵢ = h, and the mean m: the h rows nearest to a k-dimensional affine subspace, and that subspace.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components, or the share of the inliers' variance they shall explain, or all: the first parameter as
        in sklearn.decomposition.PCA.
    contamination : "auto", float in [0, 1) or int, default="auto"
        The share, or number, of rows to trim. "auto" finds out.
    reweight : bool, default=True
        Whether rows that the trimmed fit explains are readmitted, and mean and subspace fitted again.
    center : {"trimmed", "mean"} or None, default="trimmed"
        What m is: the mean of the rows kept; the plain mean, which one bad row can carry anywhere; or the origin.
    scale : {"auto", "mad", "std"} or None, default="auto"
        What features are divided by, so that distances do not depend on their units: the median absolute deviation,
        which bad rows cannot carry off; the standard deviation, which they can; or nothing, as in scikit-learn's PCA.
        "auto": nothing where ``n_components`` is given; else "mad" where the features' scales differ more than ten
        times and features are fewer than rows. Components and variances are those of the scaled features.
    method : trimlearn.smart.Method or None, default=None
        How to minimise. None: exact concentration steps where p ≤ 2000 or the data are small, else SMART-SVRG.
    max_iter : int, default=100
        Concentration steps at most.
    random_state : int, RandomState instance or None, default=None
        For the random starts. Give an int for the same result in every call.
    verbose : bool or int, default=0
        Show on stderr what the fit is doing.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Principal axes Uᵀ of the inliers, by decreasing variance; the largest entry of each is positive. Orthonormal,
        for features divided by ``feature_scales_``.
    mean_ : ndarray of shape (n_features,)
        The point m, in the units of the data.
    feature_scales_ : ndarray of shape (n_features,)
        What features are divided by, see ``scale``; 1 where nothing is scaled.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (n_components_,)
        Of the inliers.
    noise_variance_ : float
        The inliers' mean variance along the axes left out.
    n_components_ : int
        The number of components.
    n_trimming_components_ : int
        The dimension of the subspace whose distances decide who is trimmed: n_components_, or fewer where that is all
        of the space and nothing could be far from it. As many as explain 80 %, at most 10 (Hubert et al. 2005).
    weights_, raw_weights_ : ndarray of shape (n_samples,)
        Final weights, and those of the trimmed fit.
    inlier_mask_ : ndarray of shape (n_samples,)
        Which rows count: ``weights_ > 0``.
    contamination_ : float
        The share of bad rows: estimated, or as given. It is not the share flagged.
    scale_ : float
        Standard deviation σ of the inliers' residuals along an axis left out.
    outlier_scores_ : ndarray of shape (n_samples,)
        Orthogonal distances to the subspace in units of ``scale_``; flagged above ``threshold_``. In small data those
        of rows fitted to are distances to a subspace fitted without them, a little larger than `outlier_score` has it.
    threshold_ : float
        The score above which an unseen row is an outlier.
    outlier_probability_ : ndarray of shape (n_samples,)
        The probability that a row is wrong.
    score_distances_ : ndarray of shape (n_samples,)
        Distances √Σ zⱼ²/λⱼ within the subspace. With outlier_scores_ this is the outlier map of Hubert et al. (2005):
        far within the subspace is good leverage, far from it as well is bad.
    objective_ : float
        The minimum of the trimmed fit.
    history_ : list of Record
        One record per concentration step of the trimmed fit.
    n_iter_ : int
        The number of these steps.
    n_features_in_ : int
        The number of features.

    References
    ----------
    A. Aravkin and D. Davis, Trimmed statistical estimation via variance reduction, Math. Oper. Res. 45 (2020), section
    4.2. M. Hubert, P. J. Rousseeuw and K. Vanden Branden, ROBPCA: a new approach to robust principal component
    analysis, Technometrics 47 (2005).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.outer(rng.standard_normal(100), [3.0, 4.0, 0.0]) + 0.1 * rng.standard_normal((100, 3))
    >>> X[:20] = [0.0, 0.0, 50.0] + rng.standard_normal((20, 3))
    >>> pca = TrimmedPCA(n_components=1, random_state=0).fit(X)
    >>> pca.components_[0, :2].round(1), bool(pca.inlier_mask_[:20].any()), round(pca.contamination_, 1)
    (array([0.6, 0.8]), False, 0.2)
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        contamination: float | int | str = "auto",
        reweight: bool = True,
        center: str | None = "trimmed",
        scale: str | None = "auto",
        method: Method | None = None,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.n_components = n_components
        self.contamination = contamination
        self.reweight = reweight
        self.center = center
        self.scale = scale
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the subspace and who is far from it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows: dense, memory-mapped or CSR.
        y : Ignored
            Not used, present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: 2 is the row twice, 0 its removal.

        Returns
        -------
        object
            The fitted estimator.
        """
        with intact(self):
            check_choice(self.center, ("trimmed", "mean"), "center", or_none=True)
            check_choice(self.scale, SCALES, "scale", or_none=True)
            check_count(self.max_iter, "max_iter")
            data = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            return self._refit(data, self.contamination, warm=False)

    def _fit(self, data: FeatureRows, h: float | None, warm: bool) -> Self:
        with team():
            seed = self._seed()
            asked = None if self.scale == "auto" and self.n_components is not None else self.scale
            units = feature_scales(Points(data.X), data.s, asked, seed)
            points = Points(data.X, units)
            self.feature_scales_ = np.ones(points.p) if units is None else units
            center = self._fixed_center(points, data.s)
            search = FlatSearch(points, data.s, center, seed, self.max_iter, self.method)
            found, flat = self._find(search, h, self._flat if warm else None)
            self._flat, self._law, self.n_trimming_components_ = found.flat, found.law, found.flat.U.shape[1]
            self._describe(flat, data, found.w, *points.both(flat))
        self._training = data
        self.weights_, self.raw_weights_ = found.w, found.raw.w
        self.contamination_ = found.verdict.contamination if h is None else 1.0 - h / data.S
        self.objective_, self.n_iter_ = found.raw.objective, len(found.raw.history)
        self.history_ = concentration_records(found.raw.history, found.h)
        self.scale_, self.threshold_, self._exact = found.verdict.scale, found.verdict.cutoff, found.exact
        self.outlier_scores_ = np.sqrt(found.distances2) / self.scale_
        # σ was found from so many numbers: hence F, and not χ², which is its limit for many.
        freedom = self._law.k * max(1.0, float(data.s @ found.w) - self.n_trimming_components_ - 1.0)
        law = TailLaw(self._law.k, min(self._law.m, freedom))
        self.outlier_probability_ = row_probabilities(law.survival(self.outlier_scores_), data.s)
        if h is None and found.exact:
            warn_of_exact_subspace(self.contamination_, self.n_trimming_components_)
        elif h is None:
            self._doubt_errors(found, points, data.s)
        if not found.raw.converged:
            warn(
                f"TrimmedPCA stopped after {self.n_iter_} steps before the objective had settled. Raise max_iter.",
                ConvergenceWarning,
            )
        return self

    def _doubt_errors(self, found: JudgedFlat, points: Points, s: np.ndarray) -> None:
        """Say so where the rows called bad may be no errors, or rows far within the subspace are not called bad.

        Rows are judged by Euclidean distances, of which the leading axes of many do not tell.
        """
        rows, beside = (self.contamination_, self.outlier_scores_, found.w <= 0, s), points.p - found.flat.U.shape[1]
        if warn_of_doubtful_rows(*rows, found.normal_contamination) or (
            beside <= axes_told(float(s.sum()))
            and warn_of_another_explanation(*rows, lambda at: points.residuals(found.flat, at), points.p)
        ):
            return
        warn_of_rows_far_within(int(found.far_within.sum()), len(s))

    def _fixed_center(self, points: Points, s: np.ndarray) -> np.ndarray | None:
        if self.center == "trimmed":
            return None
        return points.mean(s) if self.center == "mean" else np.zeros(points.p)

    def _find(self, search: FlatSearch, h: float | None, start: Flat | None) -> tuple[JudgedFlat, Flat]:
        """What was found, and the flat of the components: of more dimensions where that trimmed by has too few."""
        points = search.points
        k = _count(self.n_components, min(points.n, points.p), search.dimensions())
        by = k if k is not None and k < min(points.p, (search.S + k + 1) / 2 - 1) else search.useful()

        def found_by(by: int) -> JudgedFlat:
            stage(f"trimmed subspace of {by} dimensions")
            near = start if start is not None and start.U.shape[1] == by else None
            return fit_and_judge(search, by, h, self.reweight, near)

        found = found_by(by)
        for _ in range(TRIES if k is None else 0):  # a share of the variance of inliers, who depend on the dimension
            k = search.axes(search.s * found.w, found.flat, float(self.n_components or 0.0))
            if k == by or k >= points.p:
                break
            by, found = k, found_by(k)
        k = by if k is None else k
        flat = found.flat if k == by else search.settle(search.s * found.w, found.flat, k)
        return found, flat if self.n_components is None else flat.completed(k)

    def _describe(self, flat: Flat, data: FeatureRows, w: np.ndarray, z: np.ndarray, d2: np.ndarray) -> None:
        """The components of the flat, in which rows have coordinates z and from which they are √d2."""
        found = principal_components(flat, data.s * w, z, d2, determined=self.n_components is None)
        dtype = data.X.dtype if data.X.dtype == np.float32 else np.float64
        self.components_ = found.axes.T.astype(dtype)
        self.mean_ = (flat.m * self.feature_scales_).astype(dtype)
        self.n_components_, self.score_distances_ = found.k, found.distances
        self.explained_variance_, self.explained_variance_ratio_ = found.variances, found.ratios
        self.singular_values_, self.noise_variance_ = found.singular_values, found.noise(*data.X.shape)


def _count(n_components: Any, most: int, every: int) -> int | None:
    """How many components are asked for; None for a share of the variance."""
    if n_components is None:
        return every
    if isinstance(n_components, Integral) and not isinstance(n_components, bool):
        return check_count(n_components, "n_components", most)
    if isinstance(n_components, Real) and 0 < float(n_components) < 1:
        return None
    raise ValueError(
        f"n_components must be an integer from 1 to {most}, a share of the variance in (0, 1) or None, "
        f"got {n_components!r}."
    )
