"""The linear opinion on a target: a plain and a trimmed model, their coefficients, what the trimmed one flags, and how
well they predict rows that they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn.checks.findings import ModelScore, Task
from trimlearn.checks.target_task import Target
from trimlearn.estimators.linear.glm import TrimmedGLM
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.linear.logistic import TrimmedLogisticRegression

FEATURES = 200  # a limit on time: beyond, those that tell least about the target are left out
CLIP = 3.0  # robust σ: what a wild cell may count when features are chosen
ROWS = 2_000  # that are fitted, a limit on time: 2 s. 50 coefficients are known to a sixth of a σ from them
COUNTS = 1_000  # the same of counts, whose trimmed fit takes several times as long
PER_COEFFICIENT = 5  # rows: with fewer, a penalty is needed (half of them are left to a trimmed fit)
FOLDS = 5  # of cross-validation, as is usual; fewer where a class has fewer rows
FITS: tuple[Literal["plain", "trimmed"], ...] = ("plain", "trimmed")
# Whole numbers are names where one direction, that of a line fitted to them, mistakes this many times as many as all
# directions do, and by so many standard errors. Of grades, ratings and counts it was 0.7 to 1.1 times and at most 1.6,
# of classes 2.2 and more, and 3 and more, but for those that lie in a line, in order.
NAMES, SURELY = 1.5, 3.0
MEMBERS = 0.9  # of the rows are in classes of which each fold has one: rarer numbers are no names (a choice)
SHRUNK = 1e-3  # of a covariance, so that it can be inverted where columns are the same
TINY_RIDGE = 1e-6  # plain least squares but where columns are the same: no other coefficient changes by as much


@final
@dataclass(frozen=True)
class LinearFits:
    """Both models, and the trimmed one's verdict on all rows.

    Parameters
    ----------
    plain, trimmed : estimator
        Fitted to ``rows``.
    rows : ndarray of int
        All, or a sample.
    flagged : ndarray of bool
        Rows that the trimmed model does not explain.
    coefficients : tuple of dict
        name, plain, trimmed, low, high.
    """

    plain: Any
    trimmed: Any
    rows: Array
    flagged: Flags
    coefficients: tuple[dict[str, Any], ...]


def fit_linear(X: Floats, y: Array, target: Target, names: tuple[str, ...], level: float, seed: int) -> LinearFits:
    """Fit both to the rows that nobody calls wrong, or to a sample where they are many.

    ``y``: the target on the scale that is linear; ``level``: the share of wrong labels.
    """
    rows, task = np.flatnonzero(~target.pinned_wrong), target.task
    most = COUNTS if task == "count" else ROWS
    if len(rows) > most:
        rows = _sample(rows, y, bool(target.classes), most, seed)
    plain = _new_plain(task).fit(X[rows], y[rows])
    trimmed = _new_trimmed(task, len(rows), X.shape[1], level, seed).fit(X[rows], y[rows])
    flagged = np.asarray(trimmed.outlier_score(X, y) > trimmed.threshold_)
    flagged[rows] = ~trimmed.inlier_mask_
    return LinearFits(plain, trimmed, rows, flagged, _coefficients(plain, trimmed, names, target.classes))


def telling(X: Floats, target: Target) -> Array:
    """The features that correlate most with the target, or with any of its classes; all, unless they are many."""
    if X.shape[1] <= FEATURES:
        return np.arange(X.shape[1])
    y = np.eye(len(target.classes))[target.y] if target.classes else rankdata(target.y)[:, None]
    X, y = (a - a.mean(axis=0) for a in (np.clip(X, -CLIP, CLIP), y))
    spread = np.maximum(np.linalg.norm(X, axis=0)[:, None] * np.linalg.norm(y, axis=0), 1e-300)
    return np.sort(np.argsort(-np.max(np.abs(X.T @ y) / spread, axis=1), kind="stable")[:FEATURES])


def names_classes(X: Floats, y: Array, seed: int) -> bool:
    """Whether whole numbers y are the names of classes rather than a quantity: the features tell them apart, but no
    direction along which a quantity could grow does.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 4, 300)
    >>> corners = np.array([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0], [9.0, 0.0]])
    >>> X = rng.normal(size=(300, 2))
    >>> names_classes(X + corners[y], y, 0), names_classes(X + 2.0 * y[:, None], y, 0)
    (True, False)
    """
    rows = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    rows = rows[np.argsort(y[rows], kind="stable")]  # so that folds have their share of each class
    _, place, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    if np.mean(counts[place] >= FOLDS) < MEMBERS:
        return False
    rows = rows[counts[place] >= FOLDS]
    X, y = np.clip(X[rows], -CLIP, CLIP), y[rows]
    wrong, fold = np.zeros((2, len(y)), dtype=bool), np.arange(len(y)) % FOLDS
    for k in range(FOLDS):
        out = fold == k
        line = Ridge(TINY_RIDGE).fit(X[~out], y[~out]).predict(X)[:, None]
        for i, features in enumerate((X, line)):
            model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRUNK).fit(features[~out], y[~out])
            wrong[i, out] = model.predict(features[out]) != y[out]
    every, one = wrong.sum(axis=1)
    lost, gained = wrong.sum(axis=1) - np.sum(wrong[0] & wrong[1])
    return bool(one >= NAMES * every and gained - lost >= SURELY * np.sqrt(gained + lost))


def _new_plain(task: Task) -> Any:
    """The model that trusts all rows."""
    if task == "classification":
        return LogisticRegression(max_iter=1000)
    return PoissonRegressor(alpha=TINY_RIDGE, max_iter=1000) if task == "count" else Ridge(TINY_RIDGE)


def _new_trimmed(task: Task, n: int, p: int, level: float, seed: int) -> Any:
    """The model that trusts those it explains."""
    if task == "classification":
        return TrimmedLogisticRegression(contamination=round(level * n), random_state=seed)
    penalty = None if n > PER_COEFFICIENT * p else "l2"
    if task == "count":
        return TrimmedGLM("poisson", penalty=penalty, random_state=seed)
    return TrimmedLinearRegression(penalty=penalty, random_state=seed)


def _sample(rows: Array, y: Array, labels: bool, most: int, seed: int) -> Array:
    """Some of the rows; of labels some of every class."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(rows)
    if not labels:
        return np.sort(drawn[:most])
    classes, counts = np.unique(y[rows], return_counts=True)
    share = np.minimum(counts, np.maximum(10, most * counts // len(rows)))
    return np.sort(np.concatenate([drawn[y[drawn] == k][:size] for k, size in zip(classes, share, strict=True)]))


def _coefficients(
    plain: Any, trimmed: Any, names: tuple[str, ...], classes: tuple[str, ...]
) -> tuple[dict[str, Any], ...]:
    both = [np.column_stack([np.atleast_1d(m.intercept_), np.atleast_2d(m.coef_)]) for m in (plain, trimmed)]
    if len(both[0]) > 1:  # multinomial: only differences between classes are determined, so that they are centred
        both = [theta - theta.mean(axis=0) for theta in both]
    prefixes = [f"{label}: " for label in classes] if len(both[0]) > 1 else [""]
    terms = [prefix + term for prefix in prefixes for term in ("intercept", *names)]
    rows = zip(terms, both[0].ravel(), both[1].ravel(), _intervals(trimmed, len(terms)), strict=True)
    return tuple(
        {"name": name, "plain": float(a), "trimmed": float(b), "low": _finite(low), "high": _finite(high)}
        for name, a, b, (low, high) in rows
    )


def _intervals(trimmed: Any, terms: int) -> Floats:
    """95 % intervals of the coefficients; NaN where the data leave no degrees of freedom for any."""
    try:
        found = np.asarray(trimmed.conf_int())
    except ValueError:  # the estimator says why; the page shows coefficients without intervals
        found = np.zeros((0, 2))
    return found if len(found) == terms else np.full((terms, 2), np.nan)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def linear_predictions(X: Floats, y: Array, task: Task, fits: LinearFits, seed: int) -> tuple[Array, Array]:
    """What the plain and the trimmed linear model predict for ``fits.rows``, each fitted on the other folds.

    In the folds the trimmed model is the plain one fitted with the trimmed one's weights: its last step.
    """
    rows = fits.rows
    X, y, n = X[rows], y[rows], len(rows)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    found = []
    everybody, trimmed = np.ones(n), np.asarray(fits.trimmed.weights_, dtype=np.float64)
    for w in (everybody, trimmed if trimmed.any() else everybody):  # of rounded numbers it may believe none
        predicted = np.zeros(n, dtype=y.dtype)
        for k in range(FOLDS):
            inside = (fold != k) & (w > 0)
            if len(np.unique(y[inside])) < 2:  # a class that is always the answer
                predicted[fold == k] = y[inside][0]
                continue
            model = _new_plain(task).fit(X[inside], y[inside], sample_weight=w[inside])
            predicted[fold == k] = model.predict(X[fold == k])
        found.append(predicted)
    return found[0], found[1]


def model_scores(
    y: Array, task: Task, good: Flags, predicted: dict[str, tuple[Array, Array, Array]]
) -> tuple[ModelScore, ...]:
    """Of both models, plain and trimmed, on the ``good`` ones of the rows each was asked about.

    ``predicted``: of each model these rows, and what it says plain and trimmed, in the units of the table.
    """
    found: list[ModelScore] = []
    for model, (rows, *both) in predicted.items():
        on = good[rows]
        for fit, said in zip(FITS, both, strict=True):
            if task == "classification":
                share = float(np.mean(said[on] == y[rows][on]))
                found.append(ModelScore(model, fit, "share of labels predicted", share, "higher"))
            else:
                error = float(np.median(np.abs(said[on] - y[rows][on])))
                found.append(ModelScore(model, fit, "median absolute error", error, "lower"))
    return tuple(found)
