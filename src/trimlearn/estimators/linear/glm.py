"""Trimmed generalised linear models, and regression with the classical robust losses."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.linear.predictor import Data
from trimlearn.estimators.linear.regressor import TrimmedRegressor
from trimlearn.inference.families import Family, family
from trimlearn.inference.fitted import Fitted
from trimlearn.losses import Gamma, Huber, Logistic, Poisson, SmoothL1, StudentT
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.linear import Layer
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import Judged, judge_labels
from trimlearn.robust.scale import judge, rounding_floor
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Method
from trimlearn.smart.sizes import SMALL

__all__ = ["TrimmedGLM"]

FAMILIES = {"poisson": Poisson, "gamma": Gamma, "binomial": Logistic}
SHAPES = {"huber": 1.345, "student_t": 4.0, "l1": 0.01}  # the robust losses, and what ``shape`` is by default
USUAL = 2.5  # the score above which a label is called an outlier where none of the training data was
TINY = 1e-150
RANGES = {"poisson": (0.0, inf, "counts >= 0"), "gamma": (0.0, inf, "amounts > 0"), "binomial": (0.0, 1.0, "0 to 1")}


class TrimmedGLM(TrimmedRegressor):
    """A generalised linear model that fits the rows it can explain,

        min over x, w of  1/n Σ wᵢ fᵢ(x) + penalty(x),   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,

    where fᵢ is half the unit deviance of yᵢ (FAST-TLE, Neykov and Müller 2003), or a classical robust loss of the
    residual; then, with ``reweight``, the same fit to all rows whose deviance residual is not too large.

    Parameters
    ----------
    loss : {"poisson", "gamma", "binomial", "huber", "student_t", "l1"}
        The first three are families, with links log, log and logit; y of "binomial" are labels 0, 1 or proportions.
        The others are losses of y − z, in units of a robust scale of the errors found by least trimmed squares.
    shape : float, optional
        huber: where the loss turns linear (1.345). student_t: degrees of freedom (4). l1: half-width of the rounded
        tip (0.01).
    contamination, penalty, alpha, l1_ratio, fit_intercept, reweight, method, max_passes, tol, random_state, warm_start,
    verbose
        As in `TrimmedLinearRegression`; alpha stands beside the mean loss, as in scikit-learn's PoissonRegressor.
        contamination=0 with a robust loss is the classical M-estimator.

    Attributes
    ----------
    coef_, intercept_, raw_coef_, raw_intercept_, weights_, raw_weights_, inlier_mask_, contamination_, objective_,
    history_, n_iter_
        As in `TrimmedLinearRegression`.
    scale_ : float, the robust scale of the deviance residuals; at least 1 where the family knows it to be 1
    outlier_scores_ : (n,), |deviance residual|/scale_

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedGLM
    >>> x = np.linspace(0, 2, 40)
    >>> y = np.round(np.exp(1 + x))
    >>> y[[3, 9]] = 200
    >>> model = TrimmedGLM("poisson").fit(x[:, None], y)
    >>> model.coef_.round(1), np.flatnonzero(~model.inlier_mask_)
    (array([1.]), array([3, 9]))
    """

    def __init__(
        self,
        loss: str = "poisson",
        contamination: float | int | str = "auto",
        *,
        shape: float | None = None,
        penalty: str | None = None,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        reweight: bool = True,
        method: Method | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = 0,
        warm_start: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        self.loss = loss
        self.contamination = contamination
        self.shape = shape
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in FAMILIES
        return tags

    # -- the hooks of TrimmedPredictor and TrimmedRegressor -----------------------------------------------------------

    @property
    def _family(self) -> Family:
        return family(self.loss if self.loss in FAMILIES else "normal")

    def _fitted(self, X: Any, y: Any) -> Fitted:
        if self.loss not in FAMILIES:
            raise ValueError(f"loss={self.loss!r} is no likelihood: no standard errors; use TrimmedLinearRegression.")
        return super()._fitted(X, y)

    def _residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        if self.loss not in FAMILIES:
            return np.asarray(t - z)
        z = z.astype(np.float64)
        f, slope = self._family.evaluate(z, t.astype(np.float64))
        return np.asarray(-np.sign(slope) * np.sqrt(2 * np.maximum(f, 0)))

    def _least_scale(self, t: np.ndarray) -> float:
        if self.loss in FAMILIES:
            # Counts and labels have a spread that is known; proportions come from unknown numbers of trials.
            known = not self._family.dispersed and (self.loss != "binomial" or _labels(t))
            return 1.0 if known else rounding_floor(np.ones(1))
        return rounding_floor(t)

    def _begin(self, data: Data) -> None:
        self._judged: Judged | None = None
        check_choice(self.loss, (*FAMILIES, *SHAPES), "loss")
        if self.loss in FAMILIES:
            low, high, words = RANGES[self.loss]
            bad = (data.t <= low) if self.loss == "gamma" else (data.t < low) | (data.t > high)
            if bad.any():
                raise ValueError(f"Some value(s) of y are out of the valid range of loss={self.loss!r}: {words}.")
            return
        check_positive(SHAPES[self.loss] if self.shape is None else self.shape, "shape")
        h = super()._robust_h(data)
        x = self._lts(data, data.t, h)
        unit = judge(self._residuals_at(data, x), h, self._parameters, data.s, floor=rounding_floor(data.t)).scale
        self._unit = unit if unit > TINY else 1.0  # an exact fit: any will do
        self._x_lts = x

    def _verdict(self, data: Data, x: Array, h: float | None) -> Verdict:
        """By the law of the residuals; labels, which have none, by models that have not seen them."""
        if self.loss != "binomial" or not _labels(data.t):
            return super()._verdict(data, x, h)
        judged = self._judge(data)
        inliers = judged.verdict.keep(None if h is None else h / data.S) > 0
        scores = np.abs(self._residuals_at(data, x))
        cutoff = float(scores[~inliers].min()) * (1 - 1e-9) if not inliers.all() else max(USUAL, float(scores.max()))
        return Verdict(1.0, cutoff, inliers, judged.verdict.noise.epsilon)

    def _judge(self, data: Data) -> Judged:
        """The verdicts on labels, found once for a fit."""
        if self._judged is None:
            loss = self._loss(data)
            assert isinstance(loss, Logistic), "binomial"
            stage("labels judged out of sample")
            self._judged = judge_labels(loss, data.s, seed=self._seed())
            if self._judged.verdict.warning:
                warn(self._judged.verdict.warning)
        return self._judged

    def _loss(self, data: Data) -> PredictionLoss:
        X, t, layer = data.X, data.t, Layer(intercept=self.fit_intercept)
        if self.loss in FAMILIES:
            make: Callable[..., PredictionLoss] = FAMILIES[self.loss]
            return make(X, t, **layer)
        shape, unit = SHAPES[self.loss] if self.shape is None else self.shape, self._unit
        if self.loss == "huber":
            return Huber(X, t, delta=shape * unit, **layer)
        if self.loss == "student_t":
            return StudentT(X, t, nu=shape, sigma=unit, **layer)
        return SmoothL1(X, t, eps=shape * unit, **layer)

    def _robust_h(self, data: Data) -> float:
        """Half of the rows, and of counts half of those that are not 0: a fit to rows that are all 0 explains them
        perfectly, by a mean of 0. Of labels, as many as are right."""
        half = super()._robust_h(data)
        if self.loss == "binomial" and _labels(data.t):
            return max(half, data.S * (1 - self._judge(data).verdict.noise.epsilon))
        if self.loss != "poisson":
            return half
        s = np.ones(data.n) if data.s is None else data.s
        return max(half, data.S - float(s[data.t > 0].sum()) // 2)

    def _starts(self, data: Data, h: float) -> list[str | Array]:
        if self.loss not in FAMILIES:
            return [self._x_lts, "continuation"]
        small = data.n * self._parameters <= SMALL and self.method is None
        return ["continuation", "concentration"] if small else ["continuation"]


def _labels(t: np.ndarray) -> bool:
    return bool(np.all((t == 0) | (t == 1)))
