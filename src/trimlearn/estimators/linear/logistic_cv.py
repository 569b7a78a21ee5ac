"""Trimmed logistic regression that chooses its penalty by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.threads import jobs
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.logistic import TrimmedLogisticRegression
from trimlearn.estimators.penalty_choice import Split, check_grid, check_ratios, distinct_splits
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict

DECADES = -4.0, 4.0  # of the Cs when only their number is given: scikit-learn's, from 10⁻⁴ to 10⁴
PILOT = 1.0  # C of the models that judge labels before one is chosen: the default of the plain estimator
TOL = 1e-3  # of fits that are only compared: that of models which judge labels


class TrimmedLogisticRegressionCV(TrimmedLogisticRegression):
    """Trimmed logistic regression whose penalty is chosen by cross-validation that wrong labels do not mislead.

    `TrimmedLogisticRegression` as LogisticRegressionCV is to LogisticRegression. Labels are judged once, for all
    penalties. Models are fitted to what the labels of the other folds should have been, as far as is known, and scored
    by the log-likelihood of the labels held out,

        log Σₖ P(class k | v, x) T[k, label],

    in which T says how often labels are mistaken for which: a wrong label costs no model more than the noise explains.

    Parameters
    ----------
    contamination : float, int or "auto"
        As in `TrimmedLogisticRegression`.
    Cs : int or list of float
        The inverse strengths to choose from, or how many between 10⁻⁴ and 10⁴.
    penalty : {"l2", "l1", "elasticnet"}
        As scikit-learn's LogisticRegression has it, on the rows kept.
    l1_ratios : list of float or None
        The shares of L1 in penalty="elasticnet" to choose from; None: a half.
    cv : int, splitter, iterable or None
        Folds, as in scikit-learn; None: five. Folds of a number depend on the contents of rows, not on their order.
    class_weight : dict, "balanced" or None
        Multiplies sample_weight.
    balanced_trimming : bool
        Trim the same share of every class, so that a rare one is not wiped out.
    fit_intercept : bool
        Whether the model has an intercept; no penalty is laid on it.
    reweight : bool
        False: ``coef_`` is the trimmed fit itself, less efficient on clean data.
    max_passes : float, optional
        Passes over the data at most. None: as many as the size of the data allows.
    n_jobs : int or None
        Threads that fit folds side by side; None: one.
    random_state : int, RandomState or None
        Seed of starts and draws. Give an integer to get the same result again where these matter.
    verbose : bool or int
        Whether to show on stderr what the fit is doing.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The penalty chosen.
    Cs_ : ndarray of shape (n_cs,)
        The inverse strengths, from the least to the largest.
    scores_ : ndarray of shape (n_cs, n_folds) or (n_l1_ratios, n_cs, n_folds)
        The mean log-likelihood of the labels of every fold.
    coef_, intercept_ : ndarray of shape (K, p) and (K,), or (1, p) and (1,) for two classes
        The final fit; with it all that `TrimmedLogisticRegression` has.

    See Also
    --------
    TrimmedLogisticRegression : The same for a given penalty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from trimlearn import TrimmedLogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[10, 60]] = 2
    >>> model = TrimmedLogisticRegressionCV(Cs=[0.1, 1.0, 10.0], random_state=0).fit(X, y)
    >>> model.weights_[[10, 60]], model.scores_.shape
    (array([0., 0.]), (3, 5))
    """

    # What the plain estimator can be told, and this one decides.
    method = None
    tol = None
    warm_start = False

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        Cs: Any = 10,
        penalty: str = "l2",
        l1_ratios: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        balanced_trimming: bool = False,
        fit_intercept: bool = True,
        reweight: bool = True,
        max_passes: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.Cs = Cs
        self.penalty = penalty
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.class_weight = class_weight
        self.balanced_trimming = balanced_trimming
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def C(self) -> float:  # type: ignore[override]
        """The inverse strength chosen; before, that of the models which judge labels."""
        return float(vars(self).get("C_", PILOT))

    @property
    def l1_ratio(self) -> float:  # type: ignore[override]
        """The share of L1 chosen."""
        return float(vars(self).get("l1_ratio_", 0.5))

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """The penalty, unless there is one already (``warm``), and the fit under it."""
        if not warm:
            self._choose(data, h)
        return super()._fit(data, h, warm=True)  # which judges no labels again

    def _choose(self, data: Examples, h: float | None) -> None:
        """The penalty under which labels held out are most likely, by the models that allow for noise."""
        ratios = self._ratios()
        Cs = check_grid(self.Cs, "Cs", lambda count: np.logspace(DECADES[1], DECADES[0], count))[::-1]
        if not np.all(Cs > 0):
            raise ValueError(f"Cs must be positive, got {self.Cs!r}.")
        distinct = Distinct.of(data)
        pilot = self._sibling(PILOT, 0.5)
        rows, seed = pilot._drawn_in(distinct.rows), self._seed()
        judged = pilot._judge(rows, h, seed)
        self._judged, self._x = judged, judged.x
        splits = distinct_splits(self.cv, data.X, data.t, distinct.where, distinct.rows.n, classifier=True)
        work = [(ratio, split) for ratio in ratios for split in splits]
        found = jobs(partial(self._likelihoods, rows, judged.verdict, Cs, seed), work, self.n_jobs)
        s = np.ones(rows.n) if rows.s is None else rows.s.astype(np.float64)
        self.scores_ = np.swapaxes(np.reshape(found, (len(ratios), len(splits), len(Cs))), 1, 2)
        mean = np.average(self.scores_, axis=-1, weights=[s[test].sum() for _, test in splits])
        ratio, best = (int(place) for place in np.unravel_index(int(np.argmax(mean)), mean.shape))
        self.C_, self.l1_ratio_, self.Cs_ = float(Cs[best]), ratios[ratio], Cs
        if len(ratios) == 1:
            self.scores_ = self.scores_[0]

    def _likelihoods(
        self, rows: Examples, verdict: LabelVerdict, Cs: np.ndarray, seed: int, ratio: float, split: Split
    ) -> np.ndarray:
        """The mean log-likelihood of the labels of one split, for every C."""
        train, test = split
        s = np.ones(rows.n) if rows.s is None else rows.s.astype(np.float64)
        examples = replace(rows, s=np.where(train, s, 0.0).astype(rows.X.dtype))
        if not verdict.clean:
            examples = self._corrected(examples, verdict)
        noise = LabelNoise(verdict.noise.T, np.ones(1), np.zeros(len(self.classes_)), verdict.noise.epsilon)
        x: Array = np.asarray(self._loss(rows).start())
        values = []
        for C in Cs:
            plain = self._sibling(float(C), ratio)
            x = plain._solver(seed).refit(plain._problem(examples), x)
            z = two_columns(np.asarray(rows.X[test] @ plain._parts(x)[0].T + plain._parts(x)[1]))
            values.append(np.average(noise.log_likelihood([z], rows.t[test]), weights=s[test]))
        return np.array(values)

    def _sibling(self, C: float, l1_ratio: float) -> TrimmedLogisticRegression:
        """The plain estimator with this penalty."""
        plain = TrimmedLogisticRegression(
            self.contamination, penalty=self.penalty, C=C, l1_ratio=l1_ratio, fit_intercept=self.fit_intercept,
            balanced_trimming=self.balanced_trimming, max_passes=self.max_passes, tol=TOL, n_jobs=self.n_jobs,
        )  # fmt: skip
        plain.classes_, plain._class_weights, plain.class_weight = self.classes_, self._class_weights, self.class_weight
        return plain

    def _ratios(self) -> list[float]:
        given = self.penalty == "elasticnet" and self.l1_ratios is not None
        return check_ratios(self.l1_ratios, "l1_ratios") if given else [0.5]
