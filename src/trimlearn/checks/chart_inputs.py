"""What charts of the target need beside the findings: distances of the predictors, and who leaves when.

Both come from the linear model's fit, which has seen a few thousand rows at most, so that they cost a second or two.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from trimlearn._utils.arrays import Array, Floats
from trimlearn.checks.findings import TargetFindings
from trimlearn.estimators.linear.distances import feature_distances
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.linear.logistic import TrimmedLogisticRegression
from trimlearn.estimators.path import TrimPath

if TYPE_CHECKING:
    import pandas as pd

# Trimmed, one model each: close together where the first rows leave, and no further than checks can be trusted.
SHARES = np.array([0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4])
ROWS = 50_000  # whose distances are taken, all that are flagged among them: the points of more are a blot
NUMBERS = 30_000  # of the design, up to which the path is walked: some three seconds, on a table of 300 rows
STEPS = 2  # fits of labels for each share, from one that has trimmed more: hardly a row moves in a third


def chart_inputs(target: TargetFindings, mended: pd.DataFrame, seed: int = 0) -> dict[str, Any]:
    """Arguments of `trimlearn.report.charts.charts` that are worth their time.

    Parameters
    ----------
    target : TargetFindings
        With "linear", "design" and "rows" (those of the table that the linear model was fitted to) among its fits;
        where one is missing, nothing is returned.
    mended : DataFrame
        What the models saw.
    seed : int
        Of the robust covariance.

    Returns
    -------
    dict
        "distances" and "distance_limit", where some column has a scatter, NaN for rows that are too many to be drawn;
        "path", for a linear or logistic regression that is small.

    Examples
    --------
    >>> from trimlearn.checks.findings import TargetFindings
    >>> no = np.zeros(3, dtype=bool)
    >>> nan = np.full(3, np.nan)
    >>> chart_inputs(TargetFindings("y", "regression", (), nan, no, nan, nan, no, no, 0.0), None)
    {}
    """
    fits = target.fits
    if not {"linear", "design", "rows"} <= fits.keys():
        return {}
    seen = fits["design"].transform(mended.iloc[fits["rows"]])
    return {**_distances(fits, seen, mended, target, seed), **_path(fits["linear"])}


def _distances(
    fits: dict[str, Any], seen: Floats, mended: pd.DataFrame, target: TargetFindings, seed: int
) -> dict[str, Any]:
    found = feature_distances(seen, None, seed)
    if found is None:
        return {}
    drawn = _drawn(target, seed)
    distances = np.full(len(target.score), np.nan)
    distances[drawn] = found.of(fits["design"].transform(mended.iloc[drawn]))
    return {"distances": distances, "distance_limit": found.limit}


def _drawn(target: TargetFindings, seed: int) -> Array:
    """The rows that were judged; of very many those that are flagged, and some of the others."""
    judged = np.flatnonzero(np.isfinite(target.score))
    if len(judged) <= ROWS:
        return judged
    others = judged[~target.flagged[judged]]
    more = max(ROWS - (len(judged) - len(others)), ROWS // 2)
    some = np.random.default_rng(seed).choice(others, min(more, len(others)), replace=False)
    return np.sort(np.concatenate([judged[target.flagged[judged]], some]))


def _path(linear: Any) -> dict[str, Any]:
    """The models for all shares, the most trimmed first: outliers are out before they can pull.

    `trim_path` walks back, too, and asks how much to trim; here the fit has said that already.
    """
    if not isinstance(linear, (TrimmedLinearRegression, TrimmedLogisticRegression)):
        return {}
    data = linear._remembered(None, None)
    if np.prod(data.X.shape) > NUMBERS or len(data.X) < 2 * data.X.shape[1]:
        return {}
    labels = isinstance(linear, TrimmedLogisticRegression)
    weights = _of_labels(data, linear.outlier_scores_) if labels else _of_numbers(linear, data)
    unknown = np.full(len(SHARES), np.nan)
    coef = np.empty((len(SHARES), 0))
    return {"path": TrimPath(SHARES, unknown, coef, weights, unknown, float(linear.contamination_))}


def _of_numbers(linear: TrimmedLinearRegression, data: Any) -> Floats:
    """The weights for each share."""
    start = clone(linear).set_params(contamination=float(SHARES[-1]), reweight=False)
    with warnings.catch_warnings():  # on models that are only drawn; of the one that counts the user has heard
        warnings.simplefilter("ignore", UserWarning)
        fitted = start.fit(data.X, data.t)
        weights = [np.array(fitted.weights_)]
        weights += [np.array(fitted.rethreshold(float(share)).weights_) for share in SHARES[-2::-1]]
    return np.array(weights[::-1])


def _of_labels(data: Any, losses: Floats) -> Floats:
    """The same, by plain fits to the labels that the last one explains best: C-steps, which take a second or less.

    Of each class the best explained half stays, so that none vanishes.
    """
    n, y = len(data.X), np.asarray(data.t, dtype=np.int64)
    losses, weights = np.asarray(losses, dtype=np.float64), []
    always = np.zeros(n, dtype=bool)
    for k in np.unique(y):
        members = np.flatnonzero(y == k)
        always[members[np.argsort(losses[members], kind="stable")[: -(-len(members) // 2)]]] = True
    for share in SHARES[::-1]:
        for _ in range(STEPS):
            kept = always.copy()
            kept[np.argsort(np.where(always, -np.inf, losses), kind="stable")[: n - int(share * n)]] = True
            model = LogisticRegression(max_iter=300).fit(data.X[kept], y[kept])
            losses = -model.predict_log_proba(data.X)[np.arange(n), np.searchsorted(model.classes_, y)]
        weights.append(kept.astype(np.float64))
    return np.array(weights[::-1])
