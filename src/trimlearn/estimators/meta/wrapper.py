"""Any scikit-learn regressor or classifier, trimmed: fit what is explained ↔ ask who is explained."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from trimlearn._utils.intact import intact
from trimlearn._utils.validation import check_magnitude
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed, check_counts, places, row_names
from trimlearn.estimators.inputs import check_labels_known, numbers
from trimlearn.estimators.meta.crossfit import Rows, fit_weighted, given_folds, weight_argument
from trimlearn.estimators.meta.rounds import Alternation
from trimlearn.estimators.meta.targets import Finding, Labels, Loss, Reading, Residuals
from trimlearn.estimators.rulings import Rulings
from trimlearn.inference.table import Findings
from trimlearn.progress import stage
from trimlearn.robust.labels.opinions import flexible_opinions
from trimlearn.weights import CappedSimplex, GroupCappedSimplex

__all__ = ["TrimmedEstimator"]


def _wrapped_has(name: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has this method; AttributeError, as scikit-learn wants it, if not."""

    def check(self: TrimmedEstimator) -> bool:
        getattr(vars(self).get("estimator_", self.estimator), name)
        return True

    return check


class TrimmedEstimator(MetaEstimatorMixin, Trimmed):  # type: ignore[misc]
    """Any scikit-learn regressor or classifier, fitted to the examples it can explain:

        min over model, w of  1/S Σ sᵢwᵢ f(yᵢ, model(xᵢ)),   0 ≤ wᵢ ≤ 1,  Σ sᵢwᵢ = h,

    by turns: the model is fitted with weights s·w, then w keeps the smallest losses. h starts at S, where nothing is
    trimmed, and falls to its target. A tree or a forest explains everything it is fitted on, right or wrong, so
    the losses that w sees are those of models fitted on *other* rows (cross-fitting). Then, with ``reweight``, the
    rows that the model explains come back: those whose residual is not too large for the robust scale, or whose label
    is more likely right than wrong under a label-noise model; and the model is fitted again.

    Parameters
    ----------
    estimator : a scikit-learn regressor or classifier, or a Pipeline that ends in one
        Rows of weight 0 are left out of its fit. Other weights than 0 and 1 (``sample_weight``, or rows that share a
        place) are passed as ``sample_weight``, to a pipeline's last step; an estimator that takes none cannot be given
        any, and keeps rows that share a place whole.
    contamination : float, int or "auto"
        The share, or number, of rows to trim. "auto": find out.
    reweight : bool
        False: the model is fitted to the h rows of the trimmed fit.
    loss : "auto" or callable(y, prediction) -> one number per row
        What w sees. "auto": ½(y − prediction)² for regressors; for classifiers −log p of the label, p from
        predict_proba, or from decision_function as if it were log-odds. A callable gets predict's output, or the
        probabilities (n, classes). For regressors √(2·loss) is judged like a residual.
    cv : int, None or a scikit-learn splitter
        Folds of the cross-fitting. An int gives folds that depend on the rows' contents, not on their order. None: rows
        are judged by the model fitted on them, which is three times faster and right for models of few parameters.
    balanced_trimming : bool
        Classifiers: each class keeps the same share h/S of its rows while trimming, so that a rare one is not lost.
    max_iter : int
        Rounds at most, for the trimmed fit and again for the reweighting; each fits cv models.
    tol : float
        A stage ends when at most this share of the rows changes its weight, or F no longer falls.
    random_state : int
        For the folds, and for every random_state of the estimator that is None.
    verbose : bool or int
        Show on stderr what the fit is doing.

    Attributes
    ----------
    estimator_ : the final fit. predict, predict_proba, decision_function, score, … are its own.
    weights_, raw_weights_ : (n,), how much each row counts in the final fit and in the trimmed one
    inlier_mask_ : (n,), weights_ > 0
    contamination_ : float, the share of bad rows
    outlier_scores_ : (n,), larger is worse, out of sample: |residual|/scale_, or the log-odds that the label is wrong
    scale_ : float, regressors: the robust standard deviation of the errors, out of sample
    threshold_ : float, the score beyond which a row is not explained
    noise_matrix_ : classifiers: [k, j] = P(labelled j | of class k)
    outlier_probability_, suggested_labels_ : classifiers: (n,), the probability that a label is wrong, and what it
        should be: the label itself, unless it is more likely wrong than right
    classes_ : classifiers
    objective_ : float, F at the trimmed fit (out of sample)
    history_, n_iter_ : one `Round` per round, and how many

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from trimlearn.estimators.meta.wrapper import TrimmedEstimator
    >>> X, y = make_friedman1(300, noise=0.5, random_state=0)
    >>> y[:60] += 100
    >>> model = TrimmedEstimator(HistGradientBoostingRegressor(max_iter=30)).fit(X, y)
    >>> bool(model.inlier_mask_[:60].any()), float(model.inlier_mask_[60:].mean()) > 0.95
    (False, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        contamination: float | int | str = "auto",
        reweight: bool = True,
        loss: str | Loss = "auto",
        cv: Any = 3,
        balanced_trimming: bool = False,
        max_iter: int = 20,
        tol: float = 0.005,
        random_state: Any = 0,
        verbose: bool | int = 0,
    ) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.reweight = reweight
        self.loss = loss
        self.cv = cv
        self.balanced_trimming = balanced_trimming
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit; X goes to the estimator as it is. sample_weight: 2 is the row twice, 0 its removal."""
        with intact(self):
            rows = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            return self._refit(rows, self.contamination, warm=False)

    def outlier_score(self, X: Any, y: Any) -> np.ndarray:
        """How badly the model explains y, also for unseen rows: on the scale of ``outlier_scores_``."""
        check_is_fitted(self, "estimator_")
        reading = self._reading(vars(self).get("classes_"))
        t = self._labels(y, reading.classes) if isinstance(reading, Labels) else np.asarray(y)
        check_consistent_length(X, t)
        return reading.score(reading.predict(self.estimator_, X), t, self._ruler)

    # -- the estimator's own methods ----------------------------------------------------------------------------------

    @available_if(_wrapped_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """The final fit's predict."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    @available_if(_wrapped_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The final fit's predict_proba."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    @available_if(_wrapped_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The final fit's predict_log_proba."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_log_proba(X)

    @available_if(_wrapped_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The final fit's decision_function."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @available_if(_wrapped_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The final fit's score."""
        check_is_fitted(self, "estimator_")
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **weights))

    @property
    def n_features_in_(self) -> int:
        """As the final fit saw them."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """As the final fit saw them."""
        return np.asarray(self.estimator_.feature_names_in_)

    def __sklearn_tags__(self) -> Any:
        tags = deepcopy(get_tags(self.estimator))
        tags.transformer_tags, tags.array_api_support = None, False  # rows are chosen by NumPy
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
            tags.target_tags.multi_output = False
        return tags

    # -- data ---------------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        self._check_parameters()
        if y is None:
            raise ValueError("TrimmedEstimator requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True) if not get_tags(self).target_tags.multi_output else np.asarray(y)
        if is_classifier(self.estimator):
            check_labels_known(y)
        assert_all_finite(y, input_name="y")
        if len(y) == 0:
            raise ValueError("X and y have no rows: at least one is needed, and two of different classes to classify.")
        s = check_counts(sample_weight, X)
        if weight_argument(self.estimator) is None and np.any((s != 0) & (s != 1)):
            raise ValueError(
                f"fit of {type(self.estimator).__name__} takes no sample_weight, so that every row counts 0 or 1: "
                "leave sample_weight out, or wrap an estimator that takes it."
            )
        if is_classifier(self.estimator):
            check_classification_targets(y)
            if not reset:
                return Rows(X, y, self._labels(y, self.classes_), s, self.classes_)
            classes = np.unique(y[s > 0])
            if len(classes) < 2:
                raise ValueError(f"y holds one class only, {classes[0]}; a classifier needs two at least.")
            return Rows(X, y, places(y, classes), s, classes)
        check_magnitude(y, "y")
        return Rows(X, y, y, s, None)

    def _check_parameters(self) -> None:
        if not (is_classifier(self.estimator) or is_regressor(self.estimator)):
            raise ValueError(
                f"estimator must be a scikit-learn regressor or classifier, or a Pipeline that ends in one, "
                f"got {self.estimator!r}."
            )
        if self.loss != "auto" and not callable(self.loss):
            raise ValueError(f"loss must be 'auto' or a callable(y, prediction), got {self.loss!r}.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")
        if self.balanced_trimming and not is_classifier(self.estimator):
            raise ValueError("balanced_trimming is for classifiers: regression has no classes; leave it False.")

    def _reading(self, classes: np.ndarray | None, rows: Rows | None = None, seed: int = 0) -> Reading:
        """How predictions are read; ``rows``: the training data, on which flexible models are asked too."""
        loss = None if isinstance(self.loss, str) else self.loss
        if classes is None:
            return Residuals(loss)
        X = None if rows is None else numbers(rows.X)
        return Labels(loss, classes, None if rows is None or X is None else flexible_opinions(X, rows.t, rows.s, seed))

    def _labels(self, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
        t = places(column_or_1d(y), classes)
        if np.any(t < 0):
            raise ValueError(f"y has labels that are not among classes_ = {classes.tolist()}.")
        return t

    # -- what is known about each row ---------------------------------------------------------------------------------

    def _predictions(self, data: Rows) -> np.ndarray:
        """For the training data those of models that have not seen them."""
        training = data is vars(self).get("_training")
        return self._P if training else self._reading(data.classes).predict(self.estimator_, data.X)

    def _scores(self, data: Rows) -> np.ndarray:
        return self._reading(data.classes).score(self._predictions(data), data.t, self._ruler)

    def _findings(self, data: Rows, scores: np.ndarray, off: np.ndarray) -> Findings:
        if data.classes is not None and data is vars(self).get("_training"):
            return self._rulings.findings(data.t, data.classes, off)
        return self._reading(data.classes).findings(self._predictions(data), data.t, self._ruler, off)

    # -- fits ---------------------------------------------------------------------------------------------------------

    def _fit(self, rows: Rows, h: float | None, warm: bool) -> Self:
        run = self._alternation(rows)
        h0 = run.reading.robust_h(rows.S) if h is None else h
        w, F = run.trim(h0, run.reading.losses(self._P, rows.t) if warm and len(self._P) == len(rows.s) else None)
        clean = h is not None and h >= rows.S  # the user says so: there is nobody to readmit
        final, found = (w, run.judge(w, h0)) if clean or not (self.reweight or h is None) else run.readmit(w, h0)
        self.contamination_ = found.contamination if h is None else 1 - h / rows.S
        if h is None and found.verdict is not None and found.verdict.warning:
            warn(found.verdict.warning)
        if h is None and not self.reweight:  # no more than what is explained: the estimate may hold part of a bad row
            w, F = run.trim(min(rows.S * (1 - found.contamination), float(rows.s @ final)), run.losses(final))
            found = run.judge(w, h0)
        self.raw_weights_, self.objective_ = w, F
        self.weights_ = final if self.reweight else w
        self.history_, self.n_iter_ = run.history, len(run.history)
        stage(f"final fit to {np.count_nonzero(self.weights_)} rows")
        self.estimator_ = fit_weighted(self.estimator, rows, self.weights_, run.seed)
        self._training = rows
        self._conclude(run, found)
        return self

    def _alternation(self, rows: Rows) -> Alternation:
        seed = self._seed()
        return Alternation(
            estimator=self.estimator,
            rows=rows,
            reading=self._reading(rows.classes, rows, seed),
            folds=given_folds(rows, self.cv, seed),
            weight_set=partial(GroupCappedSimplex, rows.t) if self.balanced_trimming else CappedSimplex,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=seed,
        )

    def _conclude(self, run: Alternation, found: Finding) -> None:
        """The attributes about each row, and what unseen rows are measured with."""
        t, P = run.rows.t, run.last
        self._P, self._ruler, self.threshold_ = P, found.ruler, found.threshold
        if isinstance(found.ruler, float):
            self.outlier_scores_ = run.reading.score(P, t, found.ruler)
            self.scale_ = found.ruler
            return
        classes, verdict = run.rows.classes, found.verdict
        assert classes is not None, "only labels have such a ruler"
        assert verdict is not None, "labels are judged by a verdict"
        self.noise_matrix_, self.classes_ = verdict.noise.T, classes
        self._rulings = Rulings.of(verdict)
        self.outlier_scores_ = np.where(t >= 0, verdict.scores, np.inf)
        self.outlier_probability_ = self._rulings.probability
        self.suggested_labels_ = classes[self._rulings.suggested]
