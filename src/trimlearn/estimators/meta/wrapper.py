"""Any scikit-learn regressor or classifier, trimmed: fit what is explained ↔ ask who is explained."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from trimlearn._utils.intact import intact
from trimlearn._utils.validation import check_magnitude
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed, row_names
from trimlearn.estimators.inputs import (
    as_numbers,
    check_counts,
    check_labels_known,
    places,
    refuse_collections,
)
from trimlearn.estimators.label_assessment import LabelAssessment
from trimlearn.estimators.meta.appeal import Appeal
from trimlearn.estimators.meta.crossfit import EncodedExamples, fit_weighted, given_splits, weight_argument
from trimlearn.estimators.meta.foretold import features_as_numbers
from trimlearn.estimators.meta.nets import check_no_module, is_net
from trimlearn.estimators.meta.rounds import Alternation
from trimlearn.estimators.meta.targets import InlierModel, Judgement, LabelTarget, Loss, NumericTarget, TargetKind
from trimlearn.inference.table import Findings
from trimlearn.progress import stage
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.few_values import cells_of
from trimlearn.robust.labels.flexible import flexible_predictions
from trimlearn.weights import CappedSimplex, GroupCappedSimplex


def _wrapped_has(name: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has this method; AttributeError, as scikit-learn wants it, if not."""

    def check(self: TrimmedEstimator) -> bool:
        getattr(vars(self).get("estimator_", self.estimator), name)
        return True

    return check


def _is_model(estimator: Any) -> bool:
    """Whether this is a regressor or a classifier; scikit-learn raises for what is no estimator at all, or a class."""
    try:
        return bool(is_classifier(estimator) or is_regressor(estimator))
    except (AttributeError, TypeError):
        return False


def _own_method(name: str) -> Any:
    """A method of X that is the final fit's; there is none where the wrapped estimator has none."""

    def method(self: TrimmedEstimator, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return getattr(self.estimator_, name)(X)

    method.__name__, method.__doc__ = name, f"The final fit's {name}."
    return available_if(_wrapped_has(name))(method)


class TrimmedEstimator(MetaEstimatorMixin, Trimmed):  # type: ignore[misc]
    """Any scikit-learn regressor or classifier, fitted to the examples it can explain.

    It minimises, over the model and one weight per row,

        1/S Σ sᵢwᵢ f(yᵢ, model(xᵢ)),   0 ≤ wᵢ ≤ 1,  Σ sᵢwᵢ = h,

    by turns: the model is fitted with weights s·w, then w keeps the smallest losses. h starts at S, where nothing is
    trimmed, and falls to its target. A tree or a forest explains everything it is fitted on, right or wrong, so
    the losses that w sees are those of models fitted on *other* rows (cross-fitting). Then, with ``reweight``, the
    rows that the model explains come back: those whose residual is not too large for the robust scale, or whose label
    is more likely right than wrong under a label-noise model; and the model is fitted again. What X
    predicts is no wrong number: rows that a regressor of all rows comes nearer to than to scattered ones count again.

    Parameters
    ----------
    estimator : estimator object
        A scikit-learn regressor or classifier, or a Pipeline that ends in one. Rows of weight 0 are left out of its
        fit. Other weights than 0 and 1 (``sample_weight``, or rows that share a place) are passed as
        ``sample_weight``, to a pipeline's last step; an estimator that takes none cannot be given any, and keeps rows
        that share a place whole.
    contamination : float, int or "auto", default="auto"
        The share, or number, of rows to trim. "auto": find out.
    loss : "auto" or callable, default="auto"
        What w sees. "auto": ½(y − prediction)² for regressors; for classifiers −log p of the label, p from
        predict_proba, or from decision_function as if it were log-odds. A callable(y, prediction) gets predict's
        output, or the probabilities (n, classes), and gives one number per row. For regressors √(2·loss) is judged
        like a residual.
    cv : int, None or a scikit-learn splitter, default=3
        Folds of the cross-fitting. An int gives folds that depend on the rows' contents, not on their order. None:
        rows are judged by the model fitted on them, which is three times faster and right for models of few
        parameters.
    balanced_trimming : bool, default=False
        Classifiers: each class keeps the same share h/S of its rows while trimming, so that a rare one is not lost.
    reweight : bool, default=True
        False: the model is fitted to the h rows of the trimmed fit.
    max_iter : int, default=20
        Rounds at most, for the trimmed fit and again for the reweighting; each fits cv models.
    tol : float, default=0.005
        A stage ends when at most this share of the rows changes its weight, or F no longer falls.
    random_state : int, RandomState instance or None, default=None
        For the folds, and for every random_state of the estimator that is None. An int gives the same fit every time.
        Labels are judged with 0 in its place, so that what is said of them hangs on the rows alone.
    n_jobs : int or None, default=None
        Models of folds that are fitted at a time, in processes, as in scikit-learn; None: one, -1: as many as there
        are cores. The result is the same.
    verbose : bool or int, default=0
        Show on stderr what the fit is doing.

    Attributes
    ----------
    estimator_ : estimator object
        The final fit. predict, predict_proba, decision_function, score, … are its own.
    weights_, raw_weights_ : ndarray of shape (n,)
        How much each row counts in the final fit and in the trimmed one.
    inlier_mask_ : ndarray of shape (n,)
        Which rows count: weights_ > 0.
    contamination_ : float
        The share of bad rows.
    outlier_scores_ : ndarray of shape (n,)
        Larger is worse, out of sample: |residual|/scale_, or the log-odds that the label is wrong.
    threshold_ : float
        The score beyond which a row is not explained.
    scale_ : float
        Regressors: the robust standard deviation of the errors, out of sample.
    noise_matrix_ : ndarray of shape (K, K)
        Classifiers: [k, j] = P(labelled j | of class k).
    outlier_probability_ : ndarray of shape (n,)
        Classifiers: the probability that a label is wrong.
    suggested_labels_ : ndarray of shape (n,)
        Classifiers: the label itself, unless it is more likely wrong than right.
    classes_ : ndarray of shape (K,)
        Classifiers: the labels that y holds.
    objective_ : float
        F at the trimmed fit, out of sample.
    history_ : list of Record
        One per round: ``h``, ``objective``, and as ``stationarity_w`` the share of the rows whose weight changed.
    n_iter_ : int
        The number of rounds.

    See Also
    --------
    TrimmedLinearRegression : Least trimmed squares, which bad leverage points do not capture.
    TrimmedLogisticRegression : The same judgement of labels for a linear classifier.
    label_errors : Which labels are wrong, from probabilities that are there already.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from trimlearn import TrimmedEstimator
    >>> X, y = make_friedman1(300, noise=0.5, random_state=0)
    >>> y[:60] += 100
    >>> model = TrimmedEstimator(HistGradientBoostingRegressor(max_iter=30), random_state=0).fit(X, y)
    >>> bool(model.inlier_mask_[:60].any()), float(model.inlier_mask_[60:].mean()) > 0.95
    (False, True)
    """

    _inlier_model: InlierModel
    _last_seed: int

    def __init__(
        self,
        estimator: Any,
        contamination: float | int | str = "auto",
        *,
        loss: str | Loss = "auto",
        cv: Any = 3,
        balanced_trimming: bool = False,
        reweight: bool = True,
        max_iter: int = 20,
        tol: float = 0.005,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.loss = loss
        self.cv = cv
        self.balanced_trimming = balanced_trimming
        self.reweight = reweight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit; X goes to the estimator as it is. sample_weight: 2 is the row twice, 0 its removal."""
        refuse_collections(self, X, y)
        with intact(self):
            rows = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            return self._refit(rows, self.contamination, warm=False)

    def outlier_score(self, X: Any, y: Any) -> np.ndarray:
        """How badly the model explains y, also for unseen rows: on the scale of ``outlier_scores_``."""
        check_is_fitted(self, "estimator_")
        target = self._target_kind(vars(self).get("classes_"))
        t = self._labels(y, target.classes) if isinstance(target, LabelTarget) else np.asarray(y)
        check_consistent_length(X, t)
        return target.score(target.predict(self.estimator_, X), t, self._inlier_model)

    # -- the estimator's own methods ----------------------------------------------------------------------------------

    predict = _own_method("predict")
    predict_proba = _own_method("predict_proba")
    predict_log_proba = _own_method("predict_log_proba")
    decision_function = _own_method("decision_function")

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

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> EncodedExamples:
        self._check_parameters()
        if y is None:
            raise ValueError("TrimmedEstimator requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        columns = get_tags(self).target_tags.multi_output or (is_net(self.estimator) and is_regressor(self.estimator))
        y = np.asarray(y) if columns else column_or_1d(y, warn=True)
        if is_classifier(self.estimator):
            check_labels_known(y)
        elif y.dtype.kind not in "biufc":
            y = as_numbers(y, np.float64, type(self).__name__)
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
                return EncodedExamples(X, y, self._labels(y, self.classes_), s, self.classes_)
            classes = np.unique(y[s > 0])
            if len(classes) < 2:
                raise ValueError(f"y holds one class only, {classes[0]}; a classifier needs two at least.")
            return EncodedExamples(X, y, places(y, classes), s, classes)
        check_magnitude(y, "y")
        return EncodedExamples(X, y, y, s, None)

    def _check_parameters(self) -> None:
        check_no_module(self.estimator)
        if not _is_model(self.estimator):
            last = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
            for mixin in (RegressorMixin, ClassifierMixin):
                if isinstance(last, mixin):
                    name = type(last).__name__
                    raise ValueError(
                        f"{name} is not known to be a regressor or a classifier, because its bases are in the wrong "
                        f"order: write class {name}({mixin.__name__}, BaseEstimator), the mixin first."
                    )
            raise ValueError(
                f"estimator must be a scikit-learn regressor or classifier, or a Pipeline that ends in one, "
                f"as in TrimmedEstimator(Ridge()), got {self.estimator!r}."
            )
        if self.loss != "auto" and not callable(self.loss):
            raise ValueError(f"loss must be 'auto' or a callable(y, prediction), got {self.loss!r}.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")
        if self.balanced_trimming and not is_classifier(self.estimator):
            raise ValueError("balanced_trimming is for classifiers: regression has no classes; leave it False.")

    def _target_kind(self, classes: np.ndarray | None) -> NumericTarget | LabelTarget:
        """How predictions are confronted with y, apart from what is known about the training data."""
        loss = None if isinstance(self.loss, str) else self.loss
        return NumericTarget(loss) if classes is None else LabelTarget(loss, classes)

    def _labels(self, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
        t = places(column_or_1d(y), classes)
        if np.any(t < 0):
            raise ValueError(f"y has labels that are not among classes_ = {classes.tolist()}.")
        return t

    # -- what is known about each row ---------------------------------------------------------------------------------

    def _predictions(self, data: EncodedExamples) -> np.ndarray:
        """For the training data those of models that have not seen them."""
        training = data is vars(self).get("_training")
        return self._P if training else self._target_kind(data.classes).predict(self.estimator_, data.X)

    def _scores(self, data: EncodedExamples) -> np.ndarray:
        return self._target_kind(data.classes).score(self._predictions(data), data.t, self._inlier_model)

    def _findings(self, data: EncodedExamples, scores: np.ndarray, off: np.ndarray) -> Findings:
        if data.classes is not None and data is vars(self).get("_training"):
            return self._assessment.findings(data.t, data.classes, off)
        target = self._target_kind(data.classes)
        return target.findings(self._predictions(data), data.t, self._inlier_model, off)

    # -- fits ---------------------------------------------------------------------------------------------------------

    def _fit(self, rows: EncodedExamples, h: float | None, warm: bool) -> Self:
        seed = self._last_seed if warm else self._seed()
        run = self._alternation(rows, seed if rows.classes is None else 0)  # what is said of labels hangs on rows alone
        h0 = run.target.robust_h(rows.t, rows.s) if h is None else h
        w, F = run.trim(h0, run.target.losses(self._P, rows.t) if warm and len(self._P) == len(rows.s) else None)
        clean = h is not None and h >= rows.S  # the user says so: there is nobody to readmit
        final, found = (w, run.judge(w, h0)) if clean or not (self.reweight or h is None) else run.readmit(w, h0)
        if h is None and rows.classes is None:
            final, found = Appeal(run, h0).decide(final, found)
        self.contamination_ = found.contamination if h is None else 1 - h / rows.S
        if h is None and found.labels is not None and found.labels.warning:
            warn(found.labels.warning)
        if h is None and not self.reweight:  # no more than what is explained: the estimate may hold part of a bad row
            w, F = run.trim(min(rows.S * (1 - found.contamination), float(rows.s @ final)), run.losses(final))
            found = run.judge(w, h0)
        self.raw_weights_, self.objective_ = w, F
        self.weights_ = final if self.reweight else w
        self.history_, self.n_iter_ = run.history, len(run.history)
        stage(f"final fit to {np.count_nonzero(self.weights_)} rows")
        self.estimator_ = fit_weighted(self.estimator, rows, self.weights_, seed)
        self._training, self._last_seed = rows, seed
        self._conclude(run, found)
        return self

    def _alternation(self, rows: EncodedExamples, seed: int) -> Alternation:
        target: TargetKind = self._target_kind(rows.classes)
        if isinstance(target, LabelTarget) and (X := features_as_numbers(rows.X)) is not None:
            hashes = row_hashes(X)
            target = replace(
                target,
                flexible=flexible_predictions(X, rows.t, rows.s, seed, hashes=hashes),
                boosted=BoostedOpinion(X, rows.t, rows.s, seed, hashes),
                cells=cells_of(X, rows.t, rows.s),
            )
        return Alternation(
            estimator=self.estimator,
            rows=rows,
            target=target,
            splits=given_splits(rows, self.cv, seed),
            weight_set=partial(GroupCappedSimplex, rows.t) if self.balanced_trimming else CappedSimplex,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def _conclude(self, run: Alternation, found: Judgement) -> None:
        """The attributes about each row, and what unseen rows are measured by."""
        t, classes, verdict = run.rows.t, run.rows.classes, found.labels
        self._P, self._inlier_model, self.threshold_ = run.last, found.inlier_model, found.threshold
        if isinstance(found.inlier_model, float):
            self.outlier_scores_ = run.target.score(run.last, t, found.inlier_model)
            self.scale_ = found.inlier_model
            return
        assert classes is not None, "only labels are judged by a noise model"
        assert verdict is not None, "and this is what it says"
        self.noise_matrix_, self.classes_ = verdict.noise.T, classes
        self._assessment = LabelAssessment.of(verdict)
        self.outlier_scores_ = np.where(t >= 0, verdict.scores, np.inf)
        self.outlier_probability_ = self._assessment.probability
        self.suggested_labels_ = classes[self._assessment.suggested]
