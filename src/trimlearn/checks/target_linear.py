"""The linear opinion on a target: a plain and a trimmed model, their coefficients, and what the trimmed one flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn.checks.findings import Task
from trimlearn.checks.target_task import Target
from trimlearn.estimators.linear.glm import TrimmedGLM
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.linear.logistic import TrimmedLogisticRegression

__all__ = ["LinearFits", "fit_linear", "telling"]

FEATURES = 200  # a limit on time: beyond, those that tell least about the target are left out
CLIP = 3.0  # robust σ: what a wild cell may count when features are chosen
ROWS = 2_000  # that are fitted, a limit on time: 2 s. 50 coefficients are known to a sixth of a σ from them
COUNTS = 1_000  # the same of counts, whose trimmed fit takes several times as long
PER_COEFFICIENT = 5  # rows: with fewer, a penalty is needed (half of them are left to a trimmed fit)
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


def fit_linear(
    X: Floats,
    y: Array,
    names: tuple[str, ...],
    classes: tuple[str, ...],
    task: Task,
    usable: Flags,
    level: float,
    seed: int,
) -> LinearFits:
    """Fit both to the ``usable`` rows, or to a sample where they are many. level: the share of wrong labels."""
    rows = np.flatnonzero(usable)
    most = COUNTS if task == "count" else ROWS
    if len(rows) > most:
        rows = _sample(rows, y, bool(classes), most, seed)
    plain = new_plain(task).fit(X[rows], y[rows])
    trimmed = new_trimmed(task, len(rows), X.shape[1], level, seed).fit(X[rows], y[rows])
    flagged = np.asarray(trimmed.outlier_score(X, y) > trimmed.threshold_)
    flagged[rows] = ~trimmed.inlier_mask_
    return LinearFits(plain, trimmed, rows, flagged, _coefficients(plain, trimmed, names, classes))


def telling(X: Floats, target: Target) -> Array:
    """The features that correlate most with the target, or with any of its classes; all, unless they are many."""
    if X.shape[1] <= FEATURES:
        return np.arange(X.shape[1])
    y = np.eye(len(target.classes))[target.y] if target.classes else rankdata(target.y)[:, None]
    X, y = (a - a.mean(axis=0) for a in (np.clip(X, -CLIP, CLIP), y))
    spread = np.maximum(np.linalg.norm(X, axis=0)[:, None] * np.linalg.norm(y, axis=0), 1e-300)
    return np.sort(np.argsort(-np.max(np.abs(X.T @ y) / spread, axis=1), kind="stable")[:FEATURES])


def new_plain(task: Task) -> Any:
    """The model that trusts all rows."""
    if task == "classification":
        return LogisticRegression(max_iter=1000)
    return PoissonRegressor(alpha=TINY_RIDGE, max_iter=1000) if task == "count" else Ridge(TINY_RIDGE)


def new_trimmed(task: Task, n: int, p: int, level: float, seed: int) -> Any:
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
    ends = _intervals(trimmed)
    both = [np.column_stack([np.atleast_1d(m.intercept_), np.atleast_2d(m.coef_)]) for m in (plain, trimmed)]
    if len(both[0]) > 1:  # multinomial: only differences between classes are determined, so that they are centred
        both = [theta - theta.mean(axis=0) for theta in both]
    prefixes = [f"{label}: " for label in classes] if len(both[0]) > 1 else [""]
    terms = [prefix + term for prefix in prefixes for term in ("intercept", *names)]
    rows = zip(terms, both[0].ravel(), both[1].ravel(), ends(len(terms)), strict=True)
    return tuple(
        {"name": name, "plain": float(a), "trimmed": float(b), "low": _finite(low), "high": _finite(high)}
        for name, a, b, (low, high) in rows
    )


def _intervals(trimmed: Any) -> Callable[[int], Floats]:
    """95 % intervals of the coefficients; NaN where the data leave no degrees of freedom for any."""
    try:
        found = np.asarray(trimmed.conf_int())
    except ValueError:  # the estimator says why; the page shows coefficients without intervals
        return lambda terms: np.full((terms, 2), np.nan)
    return lambda terms: found if len(found) == terms else np.full((terms, 2), np.nan)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
