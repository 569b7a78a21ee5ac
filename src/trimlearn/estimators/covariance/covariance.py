"""TrimmedCovariance: location and covariance of the rows that agree, and how far each row is from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from numbers import Real
from typing import Any, Final, Self, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.validation import check_count
from trimlearn._utils.warn import warn
from trimlearn.estimators.covariance.scatter import TrimmedScatter
from trimlearn.estimators.covariance.trimming import FEW, ScatterCriterion, fit_trimmed
from trimlearn.estimators.detector import FeatureRows
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.scatter.categories import without_scatter
from trimlearn.robust.scatter.chance import LEVEL, log_groups_expected
from trimlearn.robust.scatter.explanations import explanation
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.judge import DistanceJudge, JudgedScatter
from trimlearn.robust.scatter.mcd import concentrated_scatter, mcd
from trimlearn.robust.scatter.two_groups import two_groups
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["TrimmedCovariance"]

# Bonferroni's bound on groups expected by chance is the less exact the more rows there are: (n/SLACK)³ of them, for at
# most so many rows, are met in one clean table of a hundred at most (`benchmarks.calibration scatter`).
SLACK, MOST = 125.0, 500.0
SHOWN: Final = 5  # features that a warning names, a limit on length


class TrimmedCovariance(TrimmedScatter):
    """Minimum covariance determinant: location and covariance of the rows that agree.

    Over weights 0 ≤ w ≤ 1 with Σ sᵢwᵢ = h it minimises

        log det Σ(w),   Σ(w) = 1/h Σ sᵢwᵢ(aᵢ − μ)(aᵢ − μ)ᵀ,   μ = 1/h Σ sᵢwᵢaᵢ,

    then readmits the rows that the result explains and takes their mean and covariance (``reweight``); rows near the
    cut-off hardly count where bad ones are proven and may be among them. Location and
    covariance stand up to almost half of the rows being wrong, and do not depend on the units, nor (up to rounding) on
    any other affine choice of coordinates.

    Parameters
    ----------
    contamination : "auto", float in [0, 1) or int, default="auto"
        Share or number of bad rows; "auto" starts from the h of the highest breakdown and estimates it.
    reweight : bool, default=True
        Whether to readmit what the trimmed fit explains.
    cutoff : "adaptive" or float in (0, 1), default="adaptive"
        Which rows are outliers: those the normal model cannot explain (Gervini and Yohai 2002), almost none on clean
        data; or those beyond this quantile of the distances of clean rows, such as 0.975.
    shrinkage : "auto" or float in [0, 1), default="auto"
        Share ρ of the regularised ρT + (1 − ρ)cΣ, T the diagonal of robust variances. "auto": 0 where there are five
        rows per feature, else as much as makes the condition number of the correlations 50 (MRCD). With "auto",
        features that are categories (more than half of the values are equal, and the others are many or repeat
        themselves) have no part in distances: half of the rows has no scatter there. ``covariance_`` has them.
    assume_centered : bool, default=False
        Whether the location is known to be 0.
    store_precision : bool, default=True
        Whether ``precision_`` is kept.
    n_starts : int, default=500
        Random starts, besides eight deterministic ones.
    random_state : int, RandomState instance or None, default=None
        For the random starts. Give an int for the same result in every call.
    verbose : bool or int, default=0
        Show on stderr what the fit is doing.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Robust location.
    covariance_ : ndarray of shape (n_features, n_features)
        Robust covariance.
    precision_ : ndarray of shape (n_features, n_features) or None
        Its inverse, 0 for features that have no part in distances; None with ``store_precision=False``.
    dist_ : ndarray of shape (n_samples,)
        Squared robust distances of the training rows.
    support_ : ndarray of shape (n_samples,)
        ``inlier_mask_``, by the name it has in sklearn.covariance.MinCovDet.
    weights_ : ndarray of shape (n_samples,)
        What each row counts in the end; of inliers that are doubted, 0.01.
    inlier_mask_ : ndarray of shape (n_samples,)
        Which rows count: ``weights_ > 0``.
    raw_location_, raw_covariance_, raw_weights_, raw_support_ : ndarray
        Of the trimmed fit. The covariance is made consistent for normal data.
    contamination_ : float
        The share of bad rows: estimated, or as given. It is not the share flagged.
    outlier_scores_ : ndarray of shape (n_samples,)
        Robust distances, not squared.
    outlier_probability_ : ndarray of shape (n_samples,)
        The probability that a row is wrong.
    threshold_ : float
        The distance beyond which an unseen row is an outlier.
    objective_ : float
        Value of log det Σ(w) of the trimmed fit.
    history_ : list of Record
        One record per concentration step of the trimmed fit.
    n_iter_ : int
        The number of these steps.
    shrinkage_ : float
        The share ρ that was used.
    n_features_in_ : int
        The number of features.

    References
    ----------
    P. J. Rousseeuw and K. Van Driessen, A fast algorithm for the minimum covariance determinant estimator,
    Technometrics 41 (1999). M. Hubert, P. J. Rousseeuw and T. Verdonck, A deterministic algorithm for robust location
    and scatter, J. Comput. Graph. Statist. 21 (2012). K. Boudt, P. J. Rousseeuw, S. Vanduffel and T. Verdonck, The
    minimum regularized covariance determinant estimator, Stat. Comput. 30 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[:20] += 8.0
    >>> model = TrimmedCovariance(random_state=0).fit(X)
    >>> round(model.contamination_, 1), bool(model.inlier_mask_[:20].any()), int(model.inlier_mask_.sum())
    (0.2, False, 80)
    """

    _raw: ScatterFit

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        reweight: bool = True,
        cutoff: float | str = "adaptive",
        shrinkage: float | str = "auto",
        assume_centered: bool = False,
        store_precision: bool = True,
        n_starts: int = 500,
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.reweight = reweight
        self.cutoff = cutoff
        self.shrinkage = shrinkage
        self.assume_centered = assume_centered
        self.store_precision = store_precision
        self.n_starts = n_starts
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, data: FeatureRows, h: float | None, warm: bool) -> Self:
        seed, starts = self._seed(), check_count(self.n_starts, "n_starts")
        if not warm:
            self._measured = self._features_with_scatter(data)
        used = data if self._measured is None else FeatureRows(data.X[:, self._measured], data.s)
        judge = DistanceJudge(used.X, used.s, _check_cutoff(self.cutoff))
        criterion = _Determinant(used, judge, self.assume_centered, self.shrinkage, starts, seed)
        shape = used.S, used.X.shape[1]
        found = fit_trimmed(criterion, shape, h, self._raw if warm else None, self.reweight)
        if self._publish(data, found, h) and h is None:
            self._doubt_errors(data)
        self.precision_ = self.get_precision() if self.store_precision else None
        self.shrinkage_ = found.raw.shrinkage.rho
        self.outlier_probability_ = row_probabilities(found.final.p_values, data.s)
        return self

    def _features_with_scatter(self, data: FeatureRows) -> np.ndarray | None:
        """The mask of the features that distances are measured by; None: all of them."""
        if self.shrinkage != "auto":
            return None
        left = without_scatter(data.X, data.s)
        if not left.any() or left.all():
            return None
        warn(
            f"more than half of the rows share one value of {_named(left, getattr(self, 'feature_names_in_', None))}, "
            "as of a category or a flag: distances are measured by the other features. Give shrinkage > 0 to measure "
            "by all of them.",
        )
        return ~left


@final
@dataclass(frozen=True)
class _Determinant(ScatterCriterion[ScatterFit]):
    """log det of the covariance of the rows kept."""

    data: FeatureRows
    judge_by: DistanceJudge
    centred: bool
    shrinkage: float | str
    starts: int
    seed: int

    def search(self, h: float) -> ScatterFit:
        data, p = self.data, self.data.X.shape[1]
        rho = _check_shrinkage(self.shrinkage, data.S, h, p)
        stage(f"{h:.0f} rows of least determinant, from many starts")
        found = mcd(data.X, data.s, h, shrinkage=rho, centred=self.centred, starts=self.starts, seed=self.seed)
        if found.rank < p:
            warn(
                f"the {h:g} rows that agree best vary in {found.rank} of {p} directions only: the covariance is "
                "singular, and rows off that plane are as good as infinitely far. Drop features that others "
                "determine, or give shrinkage > 0.",
            )
        return found

    def concentrate(self, model: ScatterFit, h: float) -> ScatterFit:
        stage(f"concentration steps, keeping {h:.0f} rows")
        found = concentrated_scatter(model, self.data.X, self.data.s, h, self.centred)
        if not found.converged:
            warn("the concentration steps stopped before a fixed point.", ConvergenceWarning)
        return found

    def doubts(self, judged: JudgedScatter[ScatterFit]) -> bool:
        model, p = judged.model, self.data.X.shape[1]
        if model.rank < p or not self._asked() or self.weight(model.w) < FEW * p:  # what is left may be ill-conditioned
            return False
        expected = (min(self.data.S, MOST) / SLACK) ** 3
        return self.weight(self.beyond_chance(model, ~judged.verdict.inliers, expected)) > 1.0

    def group(self) -> np.ndarray | None:
        X, s = self.data.X, self.data.s
        found = two_groups(X, s) if self._asked() and not self.centred and self.data.S >= FEW * X.shape[1] else None
        if found is None or log_groups_expected(RobustUnits.of(X, s, False).into(X), s, found) > log(LEVEL):
            return None
        return found if explanation(X, s, found) == "groups" else None

    def _asked(self) -> bool:
        """Whether bad rows may hide among the others: of one feature a skewed tail looks like a cluster, a shrunk
        covariance has no law, and a cut-off that was asked for is kept to."""
        return self.judge_by.quantile is None and self.shrinkage in ("auto", 0.0) and self.data.X.shape[1] > 1

    def beyond_chance(self, model: ScatterFit, off: np.ndarray, expected: float | None = None) -> np.ndarray:
        if model.shrinkage.rho or self.judge_by.quantile is not None:  # judged by fits without the row, or as asked
            return off
        return super().beyond_chance(model, off, expected)

    def judge(self, model: ScatterFit, h: float) -> JudgedScatter[ScatterFit]:
        return self.judge_by.trimmed(model, h)

    def refit(self, w: np.ndarray, near: ScatterFit, h: float) -> JudgedScatter[ScatterFit] | None:
        s, w = self.data.s, np.where(self.data.s > 0, w, 0.0)
        m = float(s @ w)
        stage(f"fit to the {m:.0f} rows explained")
        if m <= self.data.X.shape[1] + 2.0 and not near.shrinkage.rho:  # as good as nothing is explained
            return None
        return self.judge_by.fitted(near.refitted(self.data.X, s, w, self.centred), h)


def _named(features: np.ndarray, names: Any) -> str:
    """The first few features of a mask, by name or number.

    >>> _named(np.array([False, True, True]), None), _named(np.array([True]), ["sex"])
    ('features 1, 2', "feature 'sex'")
    """
    at = np.flatnonzero(features)
    shown = ", ".join(str(j) if names is None else repr(str(names[j])) for j in at[:SHOWN])
    return f"feature{'s' * (len(at) > 1)} {shown}" + f" and {len(at) - SHOWN} more" * (len(at) > SHOWN)


def _check_cutoff(cutoff: float | str) -> float | None:
    """The quantile; None to adapt the cut-off to the data."""
    if isinstance(cutoff, str) and cutoff == "adaptive":
        return None
    if isinstance(cutoff, Real) and 0.0 < cutoff < 1.0:
        return float(cutoff)
    raise ValueError(f'cutoff must be "adaptive" or a quantile between 0 and 1, got {cutoff!r}.')


def _check_shrinkage(shrinkage: float | str, S: float, h: float, p: int) -> float | None:
    """ρ; None to choose it by the data."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None if S < FEW * p else 0.0
    if not isinstance(shrinkage, Real) or isinstance(shrinkage, bool) or not 0.0 <= shrinkage < 1.0:
        raise ValueError(f'shrinkage must be "auto" or a number from 0 to below 1, got {shrinkage!r}.')
    if shrinkage == 0.0 and h <= p:
        raise ValueError(
            f"shrinkage=0 needs more than {p} kept rows for {p} features, and contamination leaves {h:g}; "
            'give shrinkage="auto", fewer features or more rows.'
        )
    return float(shrinkage)
