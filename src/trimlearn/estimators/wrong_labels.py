"""Wrong labels from anybody's probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trimlearn._utils.warn import warn
from trimlearn.estimators.inputs import check_labels_known, places
from trimlearn.estimators.label_assessment import LabelAssessment
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.table import make_table
from trimlearn.robust.labels.verdict import label_verdict

LEAST = 1e-12  # of a probability: a forest may say 0, whose logarithm is not finite; far below 1/n of any n
ROUNDING = 1e-3  # by which probabilities may sum to something else than 1: three decimals are what people save


@dataclass(frozen=True)
class LabelErrors:
    """What `label_errors` found.

    Parameters
    ----------
    contamination_ : float
        The share of wrong labels.
    noise_matrix_ : ndarray of shape (K, K)
        [k, j] = P(labelled j | of class k).
    scores_ : ndarray of shape (n,)
        Log-odds that a label is wrong: larger is worse.
    probability_ : ndarray of shape (n,)
        The probability that a label is wrong.
    mask_ : ndarray of shape (n,)
        Which labels are called wrong: more likely wrong than right, and few right ones expected among them.
    suggested_labels_ : ndarray of shape (n,)
        The label itself, unless it is more likely wrong than right.
    classes_ : ndarray of shape (K,)
        What the columns of the probabilities stand for.

    See Also
    --------
    label_errors : Makes it.

    Examples
    --------
    >>> y = np.repeat([0, 1], 50)
    >>> p = np.where(y[:, None] == [0, 1], 0.99, 0.01)
    >>> y[[3, 20, 70, 90]] = 1, 1, 0, 0
    >>> np.flatnonzero(label_errors(y, p).mask_)
    array([ 3, 20, 70, 90])
    """

    contamination_: float
    noise_matrix_: np.ndarray
    scores_: np.ndarray
    probability_: np.ndarray
    mask_: np.ndarray
    suggested_labels_: np.ndarray
    classes_: np.ndarray
    _given: np.ndarray
    _assessment: LabelAssessment

    def table(self) -> OutlierTable:
        """List the rows, worst first, with given and suggested label.

        Returns
        -------
        OutlierTable
            Columns as in ``outlier_table()`` of a trimmed classifier.
        """
        findings = self._assessment.findings(self._given, self.classes_, self.mask_)
        return make_table(replace(findings, probability=self.probability_), 1.0 - self.mask_)


def label_errors(y: Any, pred_probs: Any, *, classes: Any = None, sample_weight: Any = None) -> LabelErrors:
    """Tell which labels are wrong, given the probabilities of any model for rows it was not fitted on.

    Probabilities of a model that has seen the rows find nothing: it knows the wrong labels by heart. Take those of
    cross-validation (`sklearn.model_selection.cross_val_predict` with method="predict_proba").

    Probabilities in two groups far apart are taken for two classes, and labels of the other group for wrong ones. Where
    a column of few values makes the groups, and chance decides within them, ask an estimator that sees the columns.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    pred_probs : array-like of shape (n, K)
        P(class), a column for each of the classes in the order of their names.
    classes : array-like of shape (K,), optional
        What the columns stand for, where y does not hold every class.
    sample_weight : array-like of shape (n,), optional
        2 is the row twice, 0 its removal.

    Returns
    -------
    LabelErrors
        The share of wrong labels, the noise matrix, and for every row the score, the probability and the label
        suggested.

    See Also
    --------
    TrimmedLogisticRegression : Makes such probabilities itself, and fits the labels that are right.
    TrimmedEstimator : The same for any scikit-learn classifier.

    References
    ----------
    J. Bootkrajang and A. Kabán (2012), Label-noise robust logistic regression and its applications, ECML PKDD.
    C. Northcutt, L. Jiang and I. Chuang (2021), Confident learning, Journal of Artificial Intelligence Research 70.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(["cat", "dog"], 100)
    >>> p = 1 / (1 + np.exp(-4 * np.where(truth == "dog", 1, -1) + rng.standard_normal(200)))  # of a dog
    >>> y = truth.copy()
    >>> y[::10] = np.where(truth[::10] == "cat", "dog", "cat")  # a tenth is wrong
    >>> found = label_errors(y, np.column_stack([1 - p, p]))
    >>> round(found.contamination_, 1), bool(np.all(found.suggested_labels_ == truth))
    (0.1, True)
    """
    check_labels_known(y)
    y, P = np.asarray(y), np.asarray(pred_probs, dtype=np.float64)
    if P.ndim != 2 or y.shape != (len(P),) or P.shape[1] < 2:
        raise ValueError(
            f"pred_probs must have a row for every label and a column for every class; got {P.shape} for {y.shape}."
        )
    if not np.all(P >= 0) or not np.allclose(P.sum(axis=1), 1.0, atol=ROUNDING):
        raise ValueError("pred_probs must hold probabilities: numbers >= 0, every row with the sum 1.")
    names = _names(y, P.shape[1], classes)
    labels = places(y, names)
    if np.any(labels < 0):
        raise ValueError(f"y holds labels that are not in classes: {np.unique(y[labels < 0])[:5].tolist()}.")
    s = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if s.shape != y.shape or np.any(s < 0) or not s.sum() > 0:
        raise ValueError("sample_weight must hold one number >= 0 per label, not all of them 0.")
    verdict = label_verdict([np.log(np.maximum(P, LEAST))], labels, s)
    if verdict.warning:
        warn(verdict.warning)
    assessment, mask = LabelAssessment.of(verdict), verdict.keep() == 0
    return LabelErrors(
        contamination_=verdict.noise.epsilon,
        noise_matrix_=verdict.noise.T,
        scores_=verdict.scores,
        probability_=assessment.probability,
        mask_=mask,
        suggested_labels_=names[assessment.suggested],
        classes_=names,
        _given=labels,
        _assessment=assessment,
    )


def _names(y: np.ndarray, K: int, classes: Any) -> np.ndarray:
    """The classes, sorted as `places` wants them and as the columns are."""
    if classes is None:
        names = np.unique(y)
        if len(names) < K and y.dtype.kind in "iu" and 0 <= y.min() and y.max() < K:
            names = np.arange(K)
    else:
        names = np.asarray(classes)
        if np.any(names[1:] <= names[:-1]):
            raise ValueError("classes must be sorted, and pred_probs have its columns in that order.")
    if len(names) != K:
        raise ValueError(f"pred_probs has {K} columns for {len(names)} classes in y; name them all by classes=.")
    return names
