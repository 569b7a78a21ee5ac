"""TrimmedCovariance: location and covariance of the rows that agree, and how far each row is from them."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.validation import check_count
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Table
from trimlearn.estimators.covariance.scatter import Floats, TrimmedScatter
from trimlearn.inference.probability import row_probabilities
from trimlearn.progress import stage
from trimlearn.robust.scatter.factors import consistency, small_sample
from trimlearn.robust.scatter.judge import Jury
from trimlearn.robust.scatter.mcd import Fit, concentrate, default_h, mcd
from trimlearn.robust.scatter.steps import Shape
from trimlearn.robust.verdict import Verdict

__all__ = ["TrimmedCovariance"]

ROUNDS = 10  # of judging and fitting again, at most
FEW = 5  # rows per feature below which shrinkage="auto" looks whether the covariance is well conditioned


class TrimmedCovariance(TrimmedScatter):
    """Minimum covariance determinant: over weights 0 ≤ w ≤ 1 with Σ sᵢwᵢ = h, minimise

        log det Σ(w),   Σ(w) = 1/h Σ sᵢwᵢ(aᵢ − μ)(aᵢ − μ)ᵀ,   μ = 1/h Σ sᵢwᵢaᵢ,

    then readmit the rows that the result explains and take their mean and covariance (``reweight``). Location and
    covariance stand up to almost half of the rows being wrong, and do not depend on the units, nor (up to rounding) on
    any other affine choice of coordinates.

    Parameters
    ----------
    contamination : "auto", float in [0, 1) or int
        Share or number of bad rows; "auto" starts from the h of the highest breakdown and estimates it.
    reweight : bool
        Whether to readmit what the trimmed fit explains.
    cutoff : "adaptive" or float in (0, 1)
        Which rows are outliers: those the normal model cannot explain (Gervini and Yohai 2002), almost none on clean
        data; or those beyond this quantile of the distances of clean rows, such as 0.975.
    shrinkage : "auto" or float in [0, 1)
        ρ of the regularised ρT + (1 − ρ)cΣ, T the diagonal of robust variances. "auto": 0 where there are five rows
        per feature, else as much as makes the condition number of the correlations 50 (MRCD).
    assume_centered : bool
        Whether the location is known to be 0.
    store_precision : bool
        Whether ``precision_`` is kept.
    n_starts : int
        Random starts, besides eight deterministic ones.
    random_state : int, RandomState or None
    verbose : bool or int
        Show on stderr what the fit is doing.

    Attributes
    ----------
    location_, covariance_, precision_, dist_, support_
        As in sklearn.covariance.MinCovDet; ``dist_`` are squared distances, ``support_`` is ``inlier_mask_``.
    raw_location_, raw_covariance_, raw_weights_, raw_support_
        Of the trimmed fit. The covariance is made consistent for normal data.
    weights_, contamination_, outlier_scores_, objective_, history_, n_iter_
        ``outlier_scores_`` are distances (not squared); ``objective_`` is log det Σ(w) of the trimmed fit.
    threshold_ : the distance beyond which an unseen row is an outlier
    shrinkage_ : ρ

    References: Rousseeuw and Van Driessen, A fast algorithm for the minimum covariance determinant estimator (1999);
    Hubert, Rousseeuw and Verdonck, A deterministic algorithm for robust location and scatter (2012); Boudt, Rousseeuw,
    Vanduffel and Verdonck, The minimum regularized covariance determinant estimator (2020).

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[:30] += 8.0
    >>> model = TrimmedCovariance().fit(X)
    >>> round(model.contamination_, 2), bool(model.inlier_mask_[:30].any()), int(model.inlier_mask_.sum())
    (0.3, False, 70)
    """

    _raw: Fit
    _fitted: Fit

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
        random_state: Any = 0,
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

    def get_precision(self) -> Floats:
        """The inverse of the covariance; where that is singular, of the nearest regular one."""
        check_is_fitted(self, "weights_")
        T = self._fitted.whitening
        return np.asarray(T @ T.T)

    def _squared_distances(self, X: Floats) -> Floats:
        return self._fitted.squared_distances(X)

    def _log_det(self) -> float:
        return self._fitted.log_det

    def _fit(self, data: Table, h: float | None, warm: bool) -> Self:
        jury = Jury(data.s, self._quantile(), self._seed())
        keep = default_h(data.S, data.X.shape[1]) if h is None else h
        raw = self._concentrate(self._raw, data, keep) if warm else self._search(data, keep)
        verdict = jury.raw(raw, raw.squared_distances(data.X), keep)
        if h is None:  # the share of bad rows is known now: more can be kept
            keep = max(keep, data.S * (1.0 - verdict.contamination))
            raw = self._concentrate(raw, data, keep)
            verdict = jury.raw(raw, raw.squared_distances(data.X), keep)
        self._training, self._raw = data, raw
        final = _consistent(raw, keep, data.S, verdict.contamination)
        self.raw_weights_, self.raw_support_ = raw.w, raw.w > 0
        self.raw_location_, self.raw_covariance_ = final.location, final.covariance
        self.objective_, self.history_, self.n_iter_ = raw.log_det, list(raw.history), len(raw.history)
        d2, plain = final.squared_distances(data.X), replace(verdict, scale=1.0)
        reach, unlikely = jury.reach(final, d2, keep, plain), jury.p_values(final, d2, keep, plain)
        if self.reweight:
            final, verdict = self._readmit(data, final, verdict, jury, keep)
            d2 = final.squared_distances(data.X)
            reach, unlikely = jury.reach(final, d2, keep, verdict), jury.p_values(final, d2, keep, verdict)
            final = final if final.shape.rho else final.scaled(verdict.scale**2)
        self.contamination_ = verdict.contamination if h is None else 1.0 - h / data.S
        self._describe(final, data, reach)
        self.outlier_probability_ = row_probabilities(unlikely, data.s)
        return self

    def _describe(self, final: Fit, data: Table, reach: float) -> None:
        self._fitted, self.weights_ = final, final.w
        self.location_, self.covariance_ = final.location, final.covariance
        self.precision_ = self.get_precision() if self.store_precision else None
        self.dist_ = final.squared_distances(data.X)
        self.outlier_scores_ = np.sqrt(self.dist_)
        self.threshold_ = sqrt(reach)
        self.shrinkage_ = final.shape.rho

    def _search(self, data: Table, h: float) -> Fit:
        p = data.X.shape[1]
        rho, starts = self._rho(data.S, h, p), check_count(self.n_starts, "n_starts")
        centred = self.assume_centered
        stage(f"{h:.0f} rows of least determinant, from many starts")
        found = mcd(data.X, data.s, h, shrinkage=rho, centred=centred, starts=starts, seed=self._seed())
        if found.rank < p:
            warn(
                f"the {h:g} rows that agree best vary in {found.rank} of {p} directions only: the covariance is "
                "singular, and rows off that plane are as good as infinitely far. Drop features that others "
                "determine, or give shrinkage > 0.",
            )
        return found

    def _concentrate(self, fit: Fit, data: Table, h: float) -> Fit:
        stage(f"concentration steps, keeping {h:.0f} rows")
        found = concentrate(fit, data.X, data.s, h, self.assume_centered)
        if not found.converged:
            warn("the concentration steps stopped before a fixed point.", ConvergenceWarning)
        return found

    def _readmit(self, data: Table, raw: Fit, verdict: Verdict, jury: Jury, h: float) -> tuple[Fit, Verdict]:
        """Mean and covariance of the rows that the last fit explains, until these are the same."""
        fit = raw
        for _ in range(ROUNDS):
            w = (verdict.inliers & (data.s > 0)).astype(np.float64)
            m = float(data.s @ w)
            stage(f"fit to the {m:.0f} rows explained")
            if m <= len(raw.mu) + 2.0 and not raw.shape.rho:  # as good as nothing is explained
                break
            shape = Shape(raw.shape.rho, 1.0 if self.assume_centered else m / max(m - 1.0, 1.0))
            fit = Fit.of(raw.frame, shape, data.X, data.s, w, self.assume_centered)
            verdict = jury.final(fit, fit.squared_distances(data.X), h)
            if np.array_equal(verdict.inliers & (data.s > 0), w > 0):
                break
        return fit, verdict

    # -- parameters ---------------------------------------------------------------------------------------------------

    def _quantile(self) -> float | None:
        if isinstance(self.cutoff, str) and self.cutoff == "adaptive":
            return None
        if isinstance(self.cutoff, Real) and 0.0 < self.cutoff < 1.0:
            return float(self.cutoff)
        raise ValueError(f'cutoff must be "adaptive" or a quantile between 0 and 1, got {self.cutoff!r}.')

    def _rho(self, S: float, h: float, p: int) -> float | None:
        """ρ; None to choose it by the data."""
        if isinstance(self.shrinkage, str) and self.shrinkage == "auto":
            return None if S < FEW * p else 0.0
        if not isinstance(self.shrinkage, Real) or isinstance(self.shrinkage, bool) or not 0.0 <= self.shrinkage < 1.0:
            raise ValueError(f'shrinkage must be "auto" or a number from 0 to below 1, got {self.shrinkage!r}.')
        if self.shrinkage == 0.0 and h <= p:
            raise ValueError(
                f"shrinkage=0 needs more than {p} kept rows for {p} features, and contamination leaves {h:g}; "
                'give shrinkage="auto", fewer features or more rows.'
            )
        return float(self.shrinkage)


def _consistent(raw: Fit, h: float, S: float, contamination: float) -> Fit:
    """The trimmed fit with the covariance that normal data would have had untrimmed, bad rows being so many."""
    if raw.shape.rho:
        return raw
    p = len(raw.mu)
    clean = max(h, S * (1.0 - contamination))
    return raw.scaled(consistency(h / clean, p) * small_sample(h, clean, p))
