"""Logistic regression for labels of which some are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import places
from trimlearn.estimators.inputs import check_data, check_labels_known
from trimlearn.estimators.label_assessment import LabelAssessment
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.predictor import Data, Fit, TrimmedPredictor
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import InferenceMixin
from trimlearn.inference.table import Findings, TopFeatures, logit_parts
from trimlearn.losses import Logistic, Softmax
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.regularizers import Regularizer
from trimlearn.robust.labels.column_bounds import column_bounds
from trimlearn.robust.labels.crossfit import Judged, judge_labels
from trimlearn.robust.labels.noise_model import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.smart.method import Method
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

__all__ = ["TrimmedLogisticRegression"]


class TrimmedLogisticRegression(InferenceMixin, ClassifierMixin, TrimmedPredictor):  # type: ignore[misc]
    """Logistic regression, binary or multinomial, that fits the rows whose labels it can explain,

        min over x, w of  C Σ wᵢ fᵢ(x) + ½‖x‖²,   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,   fᵢ = −log P(yᵢ | vᵢ, x),

    then, with ``reweight``, the fit to all rows whose labels are more likely right than wrong.

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of rows to trim. "auto": models that have not seen a row judge its label, and a noise
        model (which labels are mistaken for which, how often) calibrates them: see docs/logistic.md.
    penalty : {"l2", "l1", "elasticnet", None}
        With ``C`` and ``l1_ratio`` as scikit-learn's LogisticRegression has them, on the rows kept.
    class_weight : dict or "balanced", optional
        Multiplies sample_weight.
    balanced_trimming : bool
        Trim the same share of every class, so that a rare one is not wiped out.
    fit_intercept, reweight, method, max_passes, tol, random_state, warm_start, verbose
        As in `TrimmedLinearRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_ : as scikit-learn's; raw_coef_, raw_intercept_ : the trimmed fit
    weights_, raw_weights_, inlier_mask_ : how much each row counts, and whether it does
    contamination_ : float, the share of wrong labels
    noise_matrix_ : (K, K), the share of rows of class k that are labelled j
    outlier_scores_ : (n,), log-odds that a label is wrong, by a model that has not seen it
    suggested_labels_ : (n,), what that model takes the labels to be
    objective_, history_, n_iter_ : of the trimmed fit

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from trimlearn import TrimmedLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[10, 60]] = 2
    >>> model = TrimmedLogisticRegression().fit(X, y)
    >>> model.weights_[[10, 60]], model.suggested_labels_[[10, 60]]
    (array([0., 0.]), array([0, 1]))
    """

    enough: ClassVar[float] = 20  # more do not predict better: on MNIST 92.8 % after 20, 92.6 % after 160
    falling: ClassVar[float] = 0.1  # F still falls by 4 % in the last five of them there, and prediction gains nothing
    classes_: np.ndarray
    _judged: Judged

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        penalty: str | None = "l2",
        C: float = 1.0,
        l1_ratio: float = 0.5,
        class_weight: Any = None,
        balanced_trimming: bool = False,
        fit_intercept: bool = True,
        reweight: bool = True,
        method: Method | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = 0,
        warm_start: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.class_weight = class_weight
        self.balanced_trimming = balanced_trimming
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def decision_function(self, X: Any) -> np.ndarray:
        """Predictions z: (n,) for two classes, (n, K) for more."""
        z = np.asarray(self._checked(X) @ self.coef_.T + self.intercept_)
        return z[:, 0] if len(self.classes_) == 2 else z

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of every row of X."""
        z = self.decision_function(X)
        best = z > 0 if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(np.intp)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(class), (n, K)."""
        return np.asarray(log_softmax(self._linear(self._checked(X)), axis=1))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class), (n, K)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def outlier_score(self, X: Any, y: Any) -> np.ndarray:
        """The log-odds that a label is wrong, for rows seen or unseen. Larger is worse, 0 undecided."""
        z = self._linear(self._checked(X))
        return self._ruler.score([z], self._codes(np.asarray(column_or_1d(y, warn=True))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "coef_")
        return check_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))

    def _linear(self, X: Any) -> np.ndarray:
        """Predictions (n, K) for rows that were checked, K = 2 included."""
        return np.asarray(two_columns(X @ self.coef_.T + self.intercept_))

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _fit_rows(self, data: Data, h: float | None, warm: bool) -> None:
        given, data = data, self._tame(data)
        known = warm and hasattr(self, "_judged") and len(self._judged.verdict.labels) == data.n
        judged = self._judged if known else self._judge(data, h)
        verdict = judged.verdict
        if h is None and verdict.clean:  # nothing to correct: the plain fit, to the data as they are
            data = given
        share = 1 - verdict.noise.epsilon if h is None else h / data.S
        raw = self._trimmed(data, share * data.S, self._x if warm else judged.x)
        self._warn_of_lost_classes(data, raw.w)
        x, weights = raw.x, raw.w
        if self.reweight and share < 1:
            weights = verdict.keep(None if h is None else share).astype(data.X.dtype)
            x = self._corrected(data, verdict, judged.x).x if h is None else self._untrimmed(data, weights, judged.x).x
        if h is None and verdict.warning:
            warn(verdict.warning)
        self._judged, self._rulings = judged, LabelAssessment.of(verdict)
        self._publish(raw, x, weights, 1 - share)
        self.noise_matrix_, self.outlier_scores_ = verdict.noise.T, verdict.scores
        self.threshold_ = verdict.cut(None if h is None else share)
        self._say()

    def _tame(self, data: Data) -> Data:
        """The data with wild cells drawn in, so that they steer no model. Only where there are any is X copied, and
        what lies on a disk never is."""
        self._reach = column_bounds(data.X)
        if isinstance(data.X, np.memmap) or not self._reach.rows_beyond(data.X).any():
            return data
        return replace(data, X=self._reach.clip(data.X))

    def _say(self) -> None:
        """What is known about the labels of all rows."""
        self.outlier_probability_ = self._rulings.probability
        self.suggested_labels_ = self.classes_[self._rulings.suggested]

    def _corrected(self, data: Data, verdict: LabelVerdict, x0: Array) -> Fit:
        """The fit to what the labels should have been, as far as is known: their probabilities given all opinions."""
        P = verdict.classes
        loss = self._loss(replace(data, t=P[:, 1] if len(self.classes_) == 2 else P))
        problem = Problem(loss, AllOnes(), self._r2(data.S, data.S), data.s)
        fit = self._solve(problem, x0)
        self._warn(fit)
        return fit

    def _spread_out(self, data: Data, where: np.ndarray) -> None:
        gone = where < 0
        self._rulings = self._rulings.spread(where, self._rule(Data(data.X[gone], data.t[gone], None)))
        self._say()

    def _warn_of_lost_classes(self, data: Data, w: np.ndarray) -> None:
        s = w if data.s is None else w * data.s
        lost = self.classes_[np.bincount(data.t, s, len(self.classes_)) == 0]
        if len(lost):
            warn(
                f"the trimmed fit keeps no row of {', '.join(map(str, lost[:5]))}: more is trimmed than such a class "
                "has. Lower contamination, or set balanced_trimming=True.",
            )

    def _judge(self, data: Data, h: float | None) -> Judged:
        stage("labels judged out of sample")
        return judge_labels(
            self._loss(data),
            data.s,
            C=self.C,
            trusted=None if h is None else h / data.S,
            balanced=self.balanced_trimming,
            method=self.method,
            seed=self._seed(),
            tol=1e-3 if self.tol is None else self.tol,
        )

    @property
    def _ruler(self) -> LabelNoise:
        """What unseen rows are judged by: the final model, as sure of itself as it is, and the noise that was found."""
        K, noise = len(self.classes_), self._judged.verdict.noise
        return LabelNoise(noise.T, np.ones(1), np.zeros(K), noise.epsilon, noise.floor)

    def _scores(self, data: Data) -> np.ndarray:
        return self._ruler.score([self._linear(data.X)], data.t)

    def _findings(self, data: Data, scores: np.ndarray, off: np.ndarray) -> Findings:
        training, given = data is vars(self).get("_training"), data.t
        rulings = self._rulings if training else self._rule(data)
        P = self._linear(data.X)
        others = np.where(np.arange(P.shape[1]) == given[:, None], -np.inf, P)
        rival = np.where(rulings.suggested == given, others.argmax(axis=1), rulings.suggested)
        center = np.asarray(data.X.mean(axis=0), dtype=np.float64).ravel()
        top = TopFeatures(data.X, lambda A, rows: logit_parts(A, self.coef_, center, given[rows], rival[rows]))
        return rulings.findings(given, self.classes_, off, self._reach.rows_beyond(data.X), top)

    def _rule(self, data: Data) -> LabelAssessment:
        """On rows that were not fitted."""
        return LabelAssessment.of(LabelVerdict(self._ruler, [self._linear(data.X)], data.t, np.ones(data.n)))

    def _fitted(self, X: Any, y: Any) -> Fitted:
        data = self._remembered(X, y)
        binary = len(self.classes_) == 2
        intercept = self.intercept_ if self.fit_intercept else None
        return Fitted(
            family="binomial" if binary else "multinomial",
            X=data.X,
            y=data.t,
            coef=self.coef_[0] if binary else self.coef_,
            intercept=intercept[0] if binary and intercept is not None else intercept,
            weights=self.weights_,
            sample_weight=data.s,
            ridge=1 / self.C if self.penalty == "l2" else 0.0,
            penalty=self.penalty,
            reweighted=self.reweight,
            feature_names=getattr(self, "feature_names_in_", None),
            classes=list(self.classes_),
            contamination=self.contamination_,
            name=type(self).__name__,
        )

    # -- the hooks of TrimmedPredictor --------------------------------------------------------------------------------

    def _checks(self) -> dict[str, Any]:
        return {"ensure_min_samples": 2}

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Data:
        check_positive(self.C, "C")
        check_labels_known(y)
        if self.penalty is not None:
            check_choice(self.penalty, ("l2", "l1", "elasticnet"), "penalty")
        data = super()._validate(X, y, sample_weight, reset)
        if self.class_weight is None:
            return data
        cw = compute_sample_weight(self.class_weight, self.classes_[data.t]).astype(data.X.dtype)
        return Data(data.X, data.t, cw if data.s is None else cw * data.s)

    def _target(self, y: np.ndarray, dtype: Any, reset: bool) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if reset:
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y holds one class only, {self.classes_[0]}; a classifier needs two at least.")
        return self._codes(y)

    def _resumes(self, data: Data) -> bool:
        K = len(self.classes_)
        return super()._resumes(data) and self._x.shape[1:] == (() if K == 2 else (K,))

    def _codes(self, y: np.ndarray) -> np.ndarray:
        codes = places(y, self.classes_)
        if np.any(codes < 0):
            raise ValueError(f"y holds labels that were not seen in fit: {np.unique(y[codes < 0])[:5].tolist()}.")
        return codes

    def _loss(self, data: Data) -> Softmax | Logistic:
        if len(self.classes_) == 2:
            return Logistic(data.X, data.t, intercept=self.fit_intercept)
        return Softmax(data.X, data.t, len(self.classes_), intercept=self.fit_intercept)

    def _weight_set(self, data: Data, h: float) -> WeightSet:
        return GroupCappedSimplex(data.t, h) if self.balanced_trimming else CappedSimplex(h)

    def _r2(self, kept: float, S: float) -> Regularizer:
        return make_penalty(self.penalty, 1.0, self.l1_ratio, 1 / (self.C * S))

    def _parts(self, x: Array) -> tuple[Any, Any]:
        x = np.asarray(x)
        x = x[:, None] if x.ndim == 1 else x
        return (x[:-1].T, x[-1]) if self.fit_intercept else (x.T, np.zeros(x.shape[1], x.dtype))
