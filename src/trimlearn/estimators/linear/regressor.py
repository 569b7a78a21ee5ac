"""What trimmed regressions share: prediction, residuals in units of a robust scale, and the judgement by them."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import stdtr
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_magnitude
from trimlearn._utils.warn import warn
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.inputs import check_data, check_numbers
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.predictor import Data, Fit, TrimmedPredictor
from trimlearn.inference.design import design
from trimlearn.inference.families import Family
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import IntervalMixin
from trimlearn.inference.precision import leverages
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import Findings, TopFeatures, distance_parts, leverage_kinds, prediction_parts
from trimlearn.progress import stage
from trimlearn.regularizers import Regularizer
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.scale import Chi, judge, raw_scale
from trimlearn.robust.verdict import Verdict

__all__ = ["TrimmedRegressor"]

WRITTEN_OUT = 20_000_000  # entries up to which a sparse X is written out to look for a start
FAR = 0.025  # share of clean rows beyond the distance from which on a row is a leverage point
EXACT = 0.85  # share of rows on an exact fit, below which the others are too many to be mere outliers
ROUNDS = 5  # of judging and fitting again, at most


class TrimmedRegressor(IntervalMixin, RegressorMixin, TrimmedPredictor):  # type: ignore[misc]
    """A regression y ~ μ(z), z = ⟨v, coef_⟩ + intercept_."""

    penalty: str | None
    alpha: float
    l1_ratio: float

    _covariance: TrimmedCovariance | None

    @property
    @abstractmethod
    def _family(self) -> Family:
        """The law of y given z."""

    @abstractmethod
    def _residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Residuals, signed, that are about normal where the model holds."""

    @abstractmethod
    def _least_scale(self, t: np.ndarray) -> float:
        """What the scale of the residuals cannot be below."""

    def _begin(self, data: Data) -> None:
        """Check the parameters, and what they ask of the data."""
        return

    def predict(self, X: Any) -> np.ndarray:
        """The mean of y for every row of X."""
        return np.asarray(self._family.mean(self._predictor(X)))

    def outlier_score(self, X: Any, y: Any) -> np.ndarray:
        """|residual|/scale_ for rows seen or unseen: how many standard deviations they are off. Larger is worse."""
        z = self._predictor(X)
        return np.asarray(np.abs(self._residuals(self._target(np.asarray(y), z.dtype, reset=False), z)) / self.scale_)

    def _predictor(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        X = check_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit_rows(self, data: Data, h: float | None, warm: bool) -> None:
        """A trimmed fit, a judgement of all rows by it, a fit to those it explains."""
        x0 = self._x if warm else None
        self._covariance = None
        check_magnitude(data.X, "X")
        if self._family.name == "normal":
            check_magnitude(data.t, "y")
        self._begin(data)
        raw = self._trimmed(data, self._robust_h(data) if h is None else h, x0)
        verdict = self._verdict(data, raw.x, h)
        if h is None and self._by_chance(data, verdict):
            verdict = replace(verdict, inliers=np.ones(data.n, dtype=bool), contamination=0.0)
        if h is None and not self.reweight:
            raw = self._trimmed(data, data.S * (1 - verdict.contamination), raw.x)
        x, weights = self._readmit(data, raw, verdict, h) if self.reweight else (raw.x, raw.w)
        self.raw_scale_ = self._raw_scale(data, raw)
        self._publish(raw, x, weights, verdict.contamination if h is None else 1 - h / data.S)
        final = self._verdict(data, x, None)
        self.scale_, self.threshold_ = final.scale, final.cutoff
        self.outlier_scores_ = np.abs(self._residuals_at(data, x)) / final.scale
        if self._family.dispersed and final.scale <= self._least_scale(data.t) and np.mean(weights > 0) < EXACT:
            warn(
                f"{np.mean(weights > 0):.0%} of the rows lie exactly on the fit, the others count as outliers. If y "
                "is rounded, or holds few values, give a contamination, or use another model.",
            )

    def _fit(self, data: Data, h: float | None, warm: bool) -> Self:
        super()._fit(data, h, warm)
        self.outlier_probability_ = row_probabilities(self._unlikely(data), data.s)
        return self

    def _unlikely(self, data: Data) -> np.ndarray:
        """p-values of the training rows. A normal error is judged by Student's law, for σ was found from few rows, and
        in units of its own spread: rows that the fit was made for lie nearer to it than others, the more the higher
        their leverage."""
        if self._family.name != "normal":
            mean = self._family.mean(np.asarray(data.X @ self.coef_ + self.intercept_, dtype=np.float64))
            return self._family.p_values(data.t.astype(np.float64), mean, self.scale_)
        s = np.ones(data.n) if data.s is None else data.s
        freedom = max(1.0, float(s @ self.weights_) - self._parameters)
        spread = np.ones(data.n)
        if not data.large:  # elsewhere leverages are small
            inside = self.weights_ > 0
            leverage = leverages(self._design(data), s * self.weights_)
            spread = np.where(inside, np.maximum(1.0 - leverage, 1.0 / (1.0 + freedom)), 1.0 + leverage)
        return np.asarray(2.0 * stdtr(freedom, -self.outlier_scores_ / np.sqrt(spread)))

    def _by_chance(self, data: Data, verdict: Verdict) -> bool:
        """Whether clean data would look the same."""
        return False

    def _readmit(self, data: Data, raw: Fit, verdict: Verdict, h: float | None) -> tuple[Array, np.ndarray]:
        """Fit to the rows that the last fit explains, until these are the same."""
        x, inliers = raw.x, verdict.inliers
        if inliers.all():
            return self._untrimmed(data, np.ones(data.n, data.t.dtype), x).x, np.ones(data.n, data.t.dtype)
        for _ in range(ROUNDS):
            x = self._untrimmed(data, inliers.astype(data.t.dtype), x).x
            before, inliers = inliers, self._verdict(data, x, h).inliers
            if np.array_equal(before, inliers):
                break
        return x, before.astype(data.t.dtype)

    # -- the hooks of TrimmedPredictor --------------------------------------------------------------------------------

    def _checks(self) -> dict[str, Any]:
        return {"y_numeric": True, "ensure_min_samples": 2}

    def _target(self, y: np.ndarray, dtype: Any, reset: bool) -> np.ndarray:
        return check_numbers(y, dtype, type(self).__name__)

    def _r2(self, kept: float, S: float) -> Regularizer:
        return make_penalty(self.penalty, self.alpha, self.l1_ratio, kept / S)

    def _parts(self, x: Array) -> tuple[Any, Any]:
        x = np.asarray(x)
        return (x[:-1], float(x[-1])) if self.fit_intercept else (x, 0.0)

    @property
    def _parameters(self) -> int:
        return int(self.n_features_in_ + self.fit_intercept)

    def _robust_h(self, data: Data) -> float:
        return min(data.S, (data.S + self._parameters + 1) // 2)

    def _verdict(self, data: Data, x: Array, h: float | None) -> Verdict:
        return judge(
            self._residuals_at(data, x),
            self._robust_h(data) if h is None else h,
            self._parameters,
            data.s,
            intercept=self.fit_intercept,
            floor=self._least_scale(data.t),
        )

    def _raw_scale(self, data: Data, raw: Fit) -> float:
        """Of the trimmed fit, as R's ltsReg has it: consistent if what was trimmed is the tail of clean residuals."""
        h = float((raw.w if data.s is None else raw.w * data.s).sum(dtype=np.float64))
        r = self._residuals_at(data, raw.x)
        return raw_scale(r, h, self._parameters, data.s, intercept=self.fit_intercept)

    def _residuals_at(self, data: Data, x: Array) -> np.ndarray:
        coef, intercept = self._parts(x)
        return self._residuals(data.t, np.asarray(data.X @ coef + intercept)).astype(np.float64)

    # -- what is known about each row ---------------------------------------------------------------------------------

    def _scores(self, data: Data) -> np.ndarray:
        return np.asarray(np.abs(self._residuals(data.t, data.X @ self.coef_ + self.intercept_)) / self.scale_)

    def _findings(self, data: Data, scores: np.ndarray, off: np.ndarray) -> Findings:
        spread = self._spread()
        X, p = data.X, self.n_features_in_
        mean = self._family.mean(np.asarray(X @ self.coef_ + self.intercept_, dtype=np.float64))
        p_values = self._family.p_values(data.t.astype(np.float64), mean, self.scale_)
        if spread is None:  # no robust distances: what speaks for a prediction, then
            center = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
            top = TopFeatures(X, lambda A, _: prediction_parts(A, self.coef_, center))
            return Findings(scores, p_values, leverage_kinds(off, np.zeros_like(off)), top=top)
        distance = np.sqrt(spread.mahalanobis(X))
        far = distance > Chi(p).upper(FAR)
        precision, center = spread.get_precision(), spread.location_
        top = TopFeatures(X, lambda A, _: distance_parts(A, center, precision))
        return Findings(scores, p_values, leverage_kinds(off, far), distance=distance, top=top)

    def _spread(self) -> TrimmedCovariance | None:
        """The robust covariance of the training features, found when first asked for; None where there is none: in
        sparse or few data, and among dummies of categories, most rows being alike in a rare one."""
        data = vars(self).get("_training")
        if self._covariance is None and data is not None and not issparse(data.X) and data.n >= 5 * data.X.shape[1]:
            with warnings.catch_warnings():  # that it is singular is no fault of the regression
                warnings.simplefilter("ignore", UserWarning)
                found = TrimmedCovariance(random_state=self.random_state).fit(data.X, sample_weight=data.s)
            self._covariance = found if found._raw.rank == data.X.shape[1] else None
        return self._covariance

    # -- inference ----------------------------------------------------------------------------------------------------

    def _fitted(self, X: Any, y: Any) -> Fitted:
        data = self._remembered(X, y)
        return Fitted(
            family=self._family.name,
            X=data.X,
            y=data.t,
            coef=self.coef_,
            intercept=self.intercept_ if self.fit_intercept else None,
            weights=self.weights_,
            sample_weight=data.s,
            scale=self._dispersion,
            ridge=self._ridge(data) if self.penalty == "l2" else 0.0,
            penalty=self.penalty,
            reweighted=self.reweight,
            feature_names=getattr(self, "feature_names_in_", None),
            contamination=self.contamination_,
            name=type(self).__name__,
        )

    @property
    def _dispersion(self) -> float | None:
        """√φ of the family; None: known, or to be found."""
        return float(self.scale_) if self._family.name == "normal" else None

    def _ridge(self, data: Data) -> float:
        """What stands before ½‖coef‖² where Σ sᵢwᵢfᵢ stands beside it."""
        weights = self.weights_ if data.s is None else self.weights_ * data.s
        return float(self.alpha * weights.sum(dtype=np.float64))

    # -- starts -------------------------------------------------------------------------------------------------------

    def _too_large(self, data: Data) -> bool:
        return bool(issparse(data.X)) and data.n * self._parameters > WRITTEN_OUT

    def _design(self, data: Data) -> np.ndarray:
        """The rows Aᵢ written out, the intercept's column last."""
        A = design(data.X, intercept=False)
        return np.column_stack([A, np.ones(data.n)]) if self.fit_intercept else A

    def _lts(self, data: Data, t: np.ndarray, h: float) -> np.ndarray:
        """The model of least trimmed squares."""
        stage("least trimmed squares from many starts")
        found = least_trimmed_squares(self._design(data), t.astype(np.float64), h, data.s, seed=self._seed())
        return np.asarray(found.coef)
