"""Standard errors, tests and intervals after a reweighted fit, as R's lm and glm report them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtr, ndtri, stdtr, stdtrit
from sklearn.utils.validation import validate_data

from trimlearn._utils.threads import team
from trimlearn._utils.validation import check_choice
from trimlearn.inference.design import Matrix, design
from trimlearn.inference.doubt import rows_in_doubt, with_doubt
from trimlearn.inference.families import family
from trimlearn.inference.fitted import Fitted, Kept, kept
from trimlearn.inference.precision import Spread, spread, triangle
from trimlearn.inference.summary import Summary, flagged_share

Vector = NDArray[np.float64]

COVARIANCES = ("classical", "HC0", "HC1", "HC3")
# Operations, some 0.05 s: from there on QR gets one BLAS thread, as several wait for each other where cores are busy.
LARGE = 10**8
ALONE = 1e-10  # a leverage this near to 1: the row is fitted exactly, whatever its error (rounding, as in `precision`)


@final
@dataclass(frozen=True)
class Inference:
    """What can be said about the coefficients: all arrays in the order of ``names``, the intercept first.

    Statistics are t with ``df_resid`` degrees of freedom where a dispersion was estimated, z elsewhere. Multinomial
    coefficients are those of scikit-learn's softmax, one vector a class, centred: they sum to 0 over the classes,
    because only differences between classes are determined by data.
    """

    fit: Fitted
    rows: Kept
    spread: Spread
    scale: float  # √dispersion
    df_resid: float
    kind: str  # which covariance

    @property
    def names(self) -> tuple[str, ...]:
        return self.fit.terms

    @property
    def estimate(self) -> Vector:
        theta = self.fit.theta
        return np.asarray(theta - theta.mean(axis=0) if len(theta) > 1 else theta).ravel()

    @property
    def _contrasts(self) -> Matrix:
        """Coefficients from parameters without redundancy."""
        return np.asarray(np.kron(self.rows.C, np.eye(self.fit.theta.shape[1])), dtype=np.float64)

    @property
    def std_error(self) -> Vector:
        """inf where the data do not determine the coefficient (R's NA)."""
        return self.spread.deviation(self._contrasts)

    @property
    def covariance(self) -> Matrix:
        """Of the coefficients; one that is not determined has variance inf and covariances 0."""
        F, se = self.spread.F @ self._contrasts.T, self.std_error
        known = np.isfinite(se)
        C = np.where(known[:, None] & known, F.T @ F, 0.0)
        C[~known, ~known] = np.inf
        return C

    @property
    def statistic(self) -> Vector:
        """estimate/std_error; 0 where the coefficient is not determined, or is 0 exactly."""
        b, se = self.estimate, self.std_error
        ratio = np.divide(b, se, out=np.copysign(np.inf, b), where=se > 0)
        return np.where(b == 0, 0.0, ratio)

    @property
    def p_value(self) -> Vector:
        """Two-sided, of the hypothesis that the coefficient is 0."""
        t = -np.abs(self.statistic)
        return np.asarray(2 * (stdtr(self.df_resid, t) if self.fit.dispersed else ndtr(t)))

    def _quantile(self, level: float) -> float:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual.")
        share = (1 + level) / 2
        return float(stdtrit(self.df_resid, share) if self.fit.dispersed else ndtri(share))

    def conf_int(self, level: float = 0.95) -> Matrix:
        """(coefficients, 2): lower and upper ends."""
        half = self._quantile(level) * self.std_error
        return np.column_stack([self.estimate - half, self.estimate + half])

    def predict_interval(self, X: Any, level: float = 0.95, kind: str = "prediction") -> Matrix:
        """(rows of X, 2): where a new target (kind="prediction") or its mean (kind="mean") lies with this probability.

        An interval for the mean is symmetric on the scale of the linear predictor, so that it stays within bounds. One
        for a target has the quantiles of the residuals where it is known how probable it is that each row is right;
        else those of normal errors.
        """
        check_choice(kind, ("prediction", "mean"), "kind")
        if self.fit.family == "multinomial":
            raise ValueError("intervals need one prediction per row; a multinomial model has one per class.")
        if kind == "prediction" and self.fit.family != "normal":
            raise ValueError("kind='prediction' needs normal errors; use kind='mean'.")
        A, law = design(X, self.fit.has_intercept), family(self.fit.family)
        z, half = A @ self.fit.theta[0], self._quantile(level)
        ends, deviation = np.array([-half, half]), self.spread.deviation(A)
        if kind == "prediction":
            deviation = np.hypot(deviation, self.scale)
            if self.fit.innocence is not None and self.scale > 0:
                ends = self._of_residuals(ends)
        return np.asarray(law.mean(z[:, None] + deviation[:, None] * ends))

    def _of_residuals(self, t: Vector) -> Vector:
        """The quantiles of an error, in units of the scale, that Student's law has at t: those of the residuals.

        Each row counts as often as it is right, so that rows that were left out count beyond the others; and one of n
        lies at a share i/(n + 1), so that a new row is as likely between any two (Vovk, Gammerman and Shafer 2005); one
        that is there several times, from the share of its first copy to that of its last. Between rows quantiles are
        interpolated on the scale of that law, and beyond the last they go on as it does.
        """
        fit, rows = self.fit, self.rows
        s = np.ones(len(fit.weights)) if fit.sample_weight is None else np.asarray(fit.sample_weight, dtype=np.float64)
        right, on = np.asarray(fit.innocence, dtype=np.float64), s * fit.weights > 0
        mass, copies = s * right, (np.maximum(s - 1, 0) * right)[on]
        left = np.flatnonzero(~on & (mass > 0))
        below = design(fit.X[left], fit.has_intercept) @ fit.theta[0] > np.asarray(fit.y)[left]
        lever = rows.w * (self.spread.deviation(design(rows.X, fit.has_intercept)) / self.scale) ** 2
        r = -rows.r[:, 0] / self.scale / np.sqrt(np.maximum(1 - lever, 1 / s.sum()))
        order = np.argsort(r, kind="stable")
        last = mass[left] @ below + np.cumsum(mass[on][order])
        share = np.column_stack([last - copies[order], last]).ravel() / (mass.sum() + 1)
        r, at = np.repeat(r[order], 2), stdtrit(self.df_resid, share)
        return np.asarray(np.interp(t, at, r) + np.minimum(t - at[0], 0.0) + np.maximum(t - at[-1], 0.0))

    @property
    def deviance(self) -> float:
        """Of the rows that count; for normal errors the weighted sum of squared residuals."""
        return 2 * float(self.rows.sw @ self.rows.f)

    @property
    def deviance_explained(self) -> float:
        """1 − deviance / that of a constant, over the rows that count. 0 if all are equal.

        For normal errors that is R² = kF/(kF + df), by the error of the F test: the squares of the rows that count are
        too small where others were left out. (A penalised fit has no F: df·scale² then is what is not explained.)
        """
        null, left = self.rows.null_deviance, self.deviance
        if null <= 0:
            return 0.0
        found = replace(self, kind="classical").f_test
        if found is not None:
            F, k, df, _ = found
            return 1 - df / (k * F + df)
        if self.fit.family == "normal" and self.scale > 0:
            null, left = null - left + self.df_resid * self.scale**2, self.df_resid * self.scale**2
        return 1 - left / null

    @property
    def adjusted(self) -> float | None:
        """R², were it not for the number of coefficients; None unless errors are normal."""
        if self.fit.family != "normal":
            return None
        total = self.df_resid + self.spread.parameters - self.fit.has_intercept
        return 1 - (1 - self.deviance_explained) * total / self.df_resid

    @property
    def f_test(self) -> tuple[float, float, float, float] | None:
        """F, its two degrees of freedom and p, of the hypothesis that nothing but the intercept matters.

        None unless errors are normal, the covariance classical and nothing penalised.
        """
        k = self.spread.parameters - self.fit.has_intercept
        if self.fit.family != "normal" or self.fit.ridge > 0 or self.kind != "classical" or k < 0.5 or self.scale == 0:
            return None
        error = self.scale if self.fit.noise is None else self.fit.noise
        F = (self.rows.null_deviance - self.deviance) / k / error**2
        return F, k, self.df_resid, float(fdtrc(k, self.df_resid, F))

    @property
    def residual_quantiles(self) -> Vector:
        """Least, quartiles and greatest of the (deviance) residuals of the rows that count."""
        signs = -np.sign(self.rows.r[:, 0]) if self.rows.r.shape[1] == 1 else 1.0
        return np.quantile(signs * np.sqrt(2 * self.rows.f), [0, 0.25, 0.5, 0.75, 1])

    def summary(self, level: float = 0.95) -> Summary:
        """All of this as a table."""
        s = self.fit.sample_weight
        return Summary(
            name=self.fit.name, names=self.names, estimate=self.estimate, std_error=self.std_error,
            statistic=self.statistic, p_value=self.p_value, conf_int=self.conf_int(level), level=level,
            statistic_name="t" if self.fit.dispersed else "z", covariance=self.kind, scale=self.scale,
            df_resid=self.df_resid, df_model=self.spread.parameters, family=self.fit.family, ridge=self.fit.ridge,
            deviance=self.deviance, null_deviance=self.rows.null_deviance, deviance_explained=self.deviance_explained,
            adjusted=self.adjusted, f_test=self.f_test, residual_quantiles=self.residual_quantiles,
            n_rows=len(self.fit.weights) if s is None else int(np.count_nonzero(s)), n_kept=len(self.rows.w),
            contamination=self.fit.contamination, flagged_share=flagged_share(self.fit.weights, s),
            in_doubt=rows_in_doubt(self.fit),
        )  # fmt: skip


def infer(fit: Fitted, covariance: str = "classical") -> Inference:
    """The covariance of the coefficients and all that follows from it.

    "classical": dispersion × inverse Fisher information, which for least squares is σ²(AᵀWA)⁻¹; "HC0", "HC1", "HC3":
    sandwiches that do not trust the variance to be constant (White 1980; MacKinnon and White 1985). With a ridge
    penalty it is the spread around the estimate's own mean, H⁻¹GH⁻¹: bias is not in it. Coefficients that the data do
    not determine get infinite standard errors: where columns depend on each other, all that take part do, while R
    keeps the first ones and drops the others.

    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.1, 1.9, 3.2, 3.8])
    >>> found = infer(Fitted("normal", X, y, np.array([0.97]), 0.06, np.ones(5)))
    >>> found.std_error.round(4), found.conf_int().round(2)
    (array([0.1349, 0.0551]), array([[-0.37,  0.49],
           [ 0.79,  1.15]]))
    """
    check_choice(covariance, COVARIANCES, "covariance")
    rows = kept(fit)
    work = rows.root.size * rows.root.shape[2] * fit.theta.shape[1] ** 2
    with team(work > LARGE):
        return _infer(fit, rows, covariance)


def _infer(fit: Fitted, rows: Kept, covariance: str) -> Inference:
    ridge = np.full((rows.C.shape[1], fit.theta.shape[1]), fit.ridge, dtype=np.float64)
    ridge[:, : fit.has_intercept] = 0.0
    R = triangle(rows.X, fit.has_intercept, np.sqrt(rows.sw)[:, None, None] * rows.root)
    eps = float(np.finfo(fit.X.dtype).eps) if fit.X.dtype.kind == "f" else 0.0
    plain = spread(R, ridge.ravel(), eps=eps)
    df = float((rows.sw if fit.noise is None else rows.s).sum()) - plain.parameters
    if df <= 0 and (covariance == "HC1" or fit.dispersed):
        raise ValueError("as many coefficients as rows that count: no degrees of freedom are left to judge errors by.")
    scale = _scale(fit, rows, df)
    if covariance == "classical":
        found = plain.scaled(scale if fit.noise is None else fit.noise)
    else:
        found = spread(R, ridge.ravel(), _meat(fit, rows, plain, df, covariance), eps).scaled(fit.bread)
    if covariance == "classical" or fit.scatter is not None:
        found = with_doubt(fit, found, plain, scale, df)
    return Inference(fit, rows, found, scale, df, covariance)


def _scale(fit: Fitted, rows: Kept, df: float) -> float:
    if fit.scale is not None:
        return float(fit.scale)
    if not fit.dispersed:
        return 1.0
    return float(np.sqrt(rows.sw @ (rows.r / rows.root[:, :, 0])[:, 0] ** 2 / df))


def _meat(fit: Fitted, rows: Kept, plain: Spread, df: float, covariance: str) -> Matrix:
    """A root of Σ sᵢ(wᵢ·score)²: sᵢ rows, each of weight wᵢ."""
    r = rows.r
    if covariance == "HC1":
        r = r * np.sqrt(1 + plain.parameters / df)
    if covariance == "HC3":
        if fit.family == "multinomial":
            raise ValueError("covariance='HC3' needs one prediction per row; use 'HC0' or 'HC1'.")
        leverage = (np.sqrt(rows.w) * rows.root[:, 0, 0] * plain.deviation(design(rows.X, fit.has_intercept))) ** 2
        alone = leverage > 1 - ALONE  # nothing to be learnt from its residual
        r = np.where(alone, 0.0, r[:, 0] / np.where(alone, 1.0, 1 - leverage))[:, None]
    scores = (np.sqrt(rows.s) * rows.w)[:, None, None] * (r @ rows.C)[:, None, :]
    return triangle(rows.X, fit.has_intercept, scores)


class InferenceMixin(ABC):
    """``inference``, ``conf_int`` and ``summary`` for an estimator that says what it fitted."""

    @abstractmethod
    def _fitted(self, X: Any, y: Any) -> Fitted:
        """The last fit; X and y: its training data, or None where they are remembered."""

    def inference(self, covariance: str = "classical", X: Any = None, y: Any = None) -> Inference:
        """Standard errors and the rest, see `Inference`; after unpickling, give the training data again."""
        return infer(self._fitted(X, y), covariance)

    def conf_int(self, level: float = 0.95, covariance: str = "classical") -> Matrix:
        """Confidence intervals (coefficients, 2), the intercept first; multinomial: class by class."""
        return self.inference(covariance).conf_int(level)

    def summary(self, level: float = 0.95, covariance: str = "classical", X: Any = None, y: Any = None) -> Summary:
        """A table as R prints it; the numbers are its attributes."""
        return self.inference(covariance, X, y).summary(level)


class IntervalMixin(InferenceMixin):
    """Also intervals around predictions, for models with one prediction per row."""

    def predict_interval(self, X: Any, level: float = 0.95, kind: str = "prediction") -> Matrix:
        """(rows of X, 2): where a new target (kind="prediction") or its mean (kind="mean") lies."""
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        return self.inference().predict_interval(X, level, kind)
