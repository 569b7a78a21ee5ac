"""Logistic regression for labels of which some are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from trimlearn._utils.residence import floating_copy
from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.inputs import check_labels_known
from trimlearn.estimators.linear.classifier import LinearClassifier, warn_of_lost_classes
from trimlearn.estimators.linear.examples import Distinct, Examples, check_examples
from trimlearn.estimators.linear.on_dask_labels import fit_logistic_on_dask
from trimlearn.estimators.linear.problems import Solver, make_penalty
from trimlearn.estimators.linear.streamed_labels import fit_logistic_rows, fit_logistic_stream
from trimlearn.losses import Logistic, Softmax
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.robust.labels.column_bounds import column_bounds
from trimlearn.robust.labels.crossfit import JudgedLabels, judge_labels
from trimlearn.robust.labels.judges import is_large
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.smart.method import Method
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

# Passes over large data, and over very large ones, from the mean of the judges: more do not predict better. On MNIST
# 92.6 to 92.8 % are right after 5, 8 and 20.
ENOUGH, ENOUGH_OF_MANY = 20, 8
FALLING = 0.1  # share of F by which it may still fall then: on MNIST 3 % in the last two, and prediction gains nothing
OPINION_TOL = 1e-3  # of the models that judge labels: the tol of fits to large data


class TrimmedLogisticRegression(LinearClassifier):
    """Logistic regression, binary or multinomial, that fits the rows whose labels it can explain.

    It solves

        min over x, w of  C Σ wᵢ fᵢ(x) + ½‖x‖²,   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,   fᵢ = −log P(yᵢ | vᵢ, x),

    then, with ``reweight``, the fit to all rows whose labels are more likely right than wrong; with
    contamination="auto" to what the labels should have been, as far as is known.

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of rows to trim. "auto": models that have not seen a row judge its label, and a noise
        model (which labels are mistaken for which, how often) calibrates them: see docs/logistic.md.
    penalty : {"l2", "l1", "elasticnet"} or None
        As scikit-learn's LogisticRegression has it, on the rows kept.
    C : float
        The inverse of the penalty's strength.
    l1_ratio : float
        The share of L1 in penalty="elasticnet".
    class_weight : dict, "balanced" or None
        Multiplies sample_weight in the fits. With contamination="auto" labels are judged without it: what a class is
        worth says nothing about which of its labels are wrong. "balanced" is then that of the labels as corrected.
    balanced_trimming : bool
        Trim the same share of every class, so that a rare one is not wiped out.
    fit_intercept : bool
        Whether the model has an intercept; no penalty is laid on it.
    reweight : bool
        False: ``coef_`` is the trimmed fit itself, less efficient on clean data.
    method : Method, optional
        How to solve, one of `trimlearn.smart`. None: as `trimlearn.solve` sees fit.
    n_jobs : int or None
        Models of folds and starts that are fitted at a time, in threads; None: one after the other, each on all cores
        where the data are large. The result is the same.
    max_passes : float, optional
        Passes over the data at most. None: as many as the size of the data allows.
    tol : float, optional
        As in `trimlearn.solve`. None: from 10⁻⁹, where passes cost nothing, to 10⁻³ on large data.
    random_state : int, RandomState or None
        Seed of starts and draws. Give an integer to get the same result again where these matter.
    warm_start : bool
        Whether to begin where the last fit ended.
    verbose : bool or int
        Whether to show on stderr what the fit is doing.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    coef_, intercept_ : ndarray of shape (K, p) and (K,), or (1, p) and (1,) for two classes
        The final fit.
    raw_coef_, raw_intercept_ : as coef_ and intercept_
        The trimmed fit.
    weights_, raw_weights_ : ndarray of shape (n,)
        How much each row counts in the final fit, and in the trimmed one.
    inlier_mask_ : ndarray of shape (n,)
        Which rows count: ``weights_ > 0``.
    contamination_ : float
        The estimated share of wrong labels.
    noise_matrix_ : ndarray of shape (K, K)
        The share of rows of class k that are labelled j.
    outlier_scores_ : ndarray of shape (n,)
        Log-odds that a label is wrong, by models that have not seen it.
    suggested_labels_ : ndarray of shape (n,)
        What those models take the labels to be.
    outlier_probability_ : ndarray of shape (n,)
        The probability that a label is wrong.
    threshold_ : float
        The score beyond which a label is called wrong: see docs/logistic.md.
    objective_ : float
        The trimmed objective F at the trimmed fit.
    history_ : list of Record
        One record per w-step of the trimmed fit.
    n_iter_ : int
        How many steps that are, at least 1.

    References
    ----------
    Aravkin and Davis (2020), Trimmed statistical estimation via variance reduction, Mathematics of Operations
    Research 45.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from trimlearn import TrimmedLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[10, 60]] = 2
    >>> model = TrimmedLogisticRegression(random_state=0).fit(X, y)
    >>> model.weights_[[10, 60]], model.suggested_labels_[[10, 60]]
    (array([0., 0.]), array([0, 1]))
    """

    _class_weights: np.ndarray | None = None  # of each class; None where all count alike
    _fit_on_dask = fit_logistic_on_dask
    _fit_stream = fit_logistic_stream

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
        n_jobs: int | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = None,
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
        self.n_jobs = n_jobs
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        check_positive(self.C, "C")
        check_labels_known(y)
        if self.penalty is not None:
            check_choice(self.penalty, ("l2", "l1", "elasticnet"), "penalty")
        data = check_examples(self, X, y, sample_weight, reset=reset)
        check_classification_targets(data.t)
        if reset:
            self.classes_ = np.unique(data.t)
        data = replace(data, t=self._codes(data.t))
        self._class_weights = None
        if self.class_weight is not None:
            known = self.classes_[data.t]
            self._class_weights = compute_class_weight(self.class_weight, classes=self.classes_, y=known)
            data = data.weighed(self._class_weights[data.t])
        there = self.classes_[np.unique(data.t if data.s is None else data.t[data.s > 0])]
        if reset and len(there) < 2:
            only = ", ".join(map(str, there)) or "none"
            if isinstance(self.class_weight, dict) and len(self.classes_) > 1:
                raise ValueError(
                    f"class_weight leaves fewer than two classes ({only}); give two at least a weight above 0."
                )
            raise ValueError(f"y holds one class only, {only}; a classifier needs two at least.")
        return data

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """A verdict on all labels, a trimmed fit, and a fit to what the labels should have been, as far as is known."""
        if data.many and not warm and fit_logistic_rows(self, data, h):
            return self
        self._training = data
        distinct = Distinct.of(data)
        rows = self._drawn_in(distinct.rows)
        loss = self._loss(rows)
        solver = self._solver(self._seed(), ENOUGH_OF_MANY if is_large(loss) else ENOUGH)
        warm = warm and self._x.shape == loss.x_shape
        known = warm and len(self._judged.verdict.labels) == rows.n
        judged = self._judged if known else self._judge(rows, h, solver.seed)
        verdict = judged.verdict
        if h is None and verdict.clean:  # nothing to correct: the plain fit, to the data as they are
            rows = distinct.rows
        share = 1 - verdict.noise.epsilon if h is None else h / rows.S
        kept = share * rows.S
        raw = solver.trimmed(self._problem(rows, kept), kept, [self._x if warm else judged.x])
        s = raw.w if rows.s is None else raw.w * rows.s
        there, left = (np.bincount(rows.t, mass, len(self.classes_)) for mass in (rows.s, s))
        warn_of_lost_classes(self.classes_, there, left, "Lower contamination, or set balanced_trimming=True.")
        x, weights = raw.x, raw.w
        if self.reweight and share < 1:
            weights = verdict.keep(None if h is None else share).astype(data.X.dtype)
            corrected = self._corrected(rows, verdict) if h is None else rows.weighed(weights)
            x = solver.refit(self._problem(corrected), judged.x)
        if h is None and verdict.warning:
            warn(verdict.warning)

        self._set_fits(raw.x, raw.objective, raw.history, self._parts(raw.x), self._parts(x))
        self.contamination_, self.noise_matrix_ = 1 - share, verdict.noise.T
        self.threshold_ = verdict.cut(None if h is None else share)
        self._judged = judged
        unseen = self._verdict_on(distinct.gone)
        self.outlier_scores_, suggested, self.weights_, self.raw_weights_ = distinct.spread(
            (verdict.scores, unseen.scores),
            (verdict.suggested, unseen.suggested),
            (weights, unseen.scores <= self.threshold_),
            (raw.w, 0.0),
        )
        self.outlier_probability_ = np.asarray(expit(self.outlier_scores_), dtype=np.float64)
        self.suggested_labels_ = self.classes_[suggested]
        return self

    def _corrected(self, rows: Examples, verdict: LabelVerdict) -> Examples:
        """The rows with what their labels should have been, as far as is known: probabilities given all opinions. A row
        counts as the classes that it may be of do."""
        P = verdict.classes
        if self._class_weights is not None and (s := self._evidence(rows)) is not None:
            mass = s @ P
            weights = s.sum() / (len(mass) * mass) if self.class_weight == "balanced" else self._class_weights
            worth = P @ weights
            P = P * weights / np.where(worth > 0, worth, 1.0)[:, None]
            rows = replace(rows, s=(s * worth).astype(rows.X.dtype))
        return replace(rows, t=P[:, 1] if len(self.classes_) == 2 else P)

    def _evidence(self, rows: Examples) -> np.ndarray | None:
        """How many observations each row stands for: its weight but for that of its class."""
        if self._class_weights is None or rows.s is None:
            return rows.s
        of_class = self._class_weights[rows.t]
        s = np.where(of_class > 0, rows.s / np.where(of_class > 0, of_class, 1.0), 0.0)
        whole = np.rint(s)  # copies of a row are a whole number of them, but for rounding
        return np.asarray(np.where(np.isclose(s, whole), whole, s))

    def _solver(self, seed: int, enough: float = ENOUGH) -> Solver:
        name = type(self).__name__
        return Solver(name, self.method, self.max_passes, self.tol, seed, enough=enough, falling=FALLING)

    def _problem(self, rows: Examples, h: float | None = None) -> Problem:
        """The trimmed problem that keeps h; None: all rows as they are weighted."""
        r1: WeightSet = AllOnes()
        if h is not None:
            r1 = GroupCappedSimplex(rows.t, h) if self.balanced_trimming else CappedSimplex(h)
        r2 = None
        if self.penalty is not None:
            r2 = make_penalty(self.penalty, 1.0, self.l1_ratio, 1 / (self.C * rows.S))
        return Problem(self._loss(rows), r1, r2, rows.s)

    def _loss(self, rows: Examples) -> Softmax | Logistic:
        if len(self.classes_) == 2:
            return Logistic(rows.X, rows.t, intercept=self.fit_intercept)
        return Softmax(rows.X, rows.t, len(self.classes_), intercept=self.fit_intercept)

    def _drawn_in(self, rows: Examples) -> Examples:
        """The rows with wild cells drawn in, so that they steer no model, on the device where the fit takes place on
        one. Only where there are any is X copied, and what lies on a disk never is."""
        X = floating_copy(rows.X)
        self._bounds = column_bounds(X)
        if isinstance(X, np.memmap) or not self._bounds.rows_beyond(X).any():
            return rows
        return replace(rows, X=self._bounds.clip(X))

    def _judge(self, rows: Examples, h: float | None, seed: int) -> JudgedLabels:
        stage("labels judged out of sample")
        return judge_labels(
            self._loss(rows),
            self._evidence(rows) if h is None else rows.s,
            C=self.C,
            trusted=None if h is None else h / rows.S,
            balanced=self.balanced_trimming,
            method=self.method,
            seed=seed,
            tol=OPINION_TOL if self.tol is None else self.tol,
            n_jobs=self.n_jobs,
        )
