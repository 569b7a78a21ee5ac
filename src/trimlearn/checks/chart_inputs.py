"""What charts of the target need beside the findings: distances of the predictors, and who leaves when.

Both come from the linear model's fit, which has seen a few thousand rows at most, so that they cost a second or two.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from trimlearn.checks.findings import Floats, TargetFindings
from trimlearn.estimators.linear.distances import feature_distances
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.path import TrimPath

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["chart_inputs"]

# Trimmed, one model each: close together where the first rows leave, and no further than checks can be trusted.
SHARES = np.array([0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4])
ROWS = 50_000  # of the table, up to which distances are worth it: the points of more rows are a blot, and take a second
NUMBERS = 30_000  # of the design, up to which the path is walked: some three seconds, on a table of 300 rows


def chart_inputs(target: TargetFindings, mended: pd.DataFrame, seed: int = 0) -> dict[str, Any]:
    """Arguments of `trimlearn.report.charts.charts` that are worth their time.

    Parameters
    ----------
    target : TargetFindings
        With "linear", "design" and "rows" (those of the table that the linear model was fitted to) among its fits;
        where one is missing, or
        rows are very many, nothing is returned.
    mended : DataFrame
        What the models saw.
    seed : int
        Of the robust covariance.

    Returns
    -------
    dict
        "distances" and "distance_limit", where some column has a scatter; "path", for a linear regression that is
        small. Logistic models would need a minute for it.

    Examples
    --------
    >>> from trimlearn.checks.findings import TargetFindings
    >>> no = np.zeros(3, dtype=bool)
    >>> nan = np.full(3, np.nan)
    >>> chart_inputs(TargetFindings("y", "regression", (), nan, no, nan, nan, no, no, 0.0), None)
    {}
    """
    fits = target.fits
    if not {"linear", "design", "rows"} <= fits.keys() or len(target.score) > ROWS:
        return {}
    seen = fits["design"].transform(mended.iloc[fits["rows"]])
    return {**_distances(fits, seen, mended, target, seed), **_path(fits["linear"])}


def _distances(
    fits: dict[str, Any], seen: Floats, mended: pd.DataFrame, target: TargetFindings, seed: int
) -> dict[str, Any]:
    found = feature_distances(seen, None, seed)
    if found is None:
        return {}
    judged = np.isfinite(target.score)
    distances = np.full(len(judged), np.nan)
    distances[judged] = found.of(fits["design"].transform(mended.iloc[np.flatnonzero(judged)]))
    return {"distances": distances, "distance_limit": found.limit}


def _path(linear: Any) -> dict[str, Any]:
    """The models for all shares, the most trimmed first: outliers are out before they can pull.

    `trim_path` walks back, too, and asks how much to trim; here the fit has said that already.
    """
    if not isinstance(linear, TrimmedLinearRegression):
        return {}
    data = linear._remembered(None, None)
    if np.prod(data.X.shape) > NUMBERS or len(data.X) < 2 * data.X.shape[1]:
        return {}
    start = clone(linear).set_params(contamination=float(SHARES[-1]), reweight=False)
    with warnings.catch_warnings():  # on models that are only drawn; of the one that counts the user has heard
        warnings.simplefilter("ignore", UserWarning)
        fitted = start.fit(data.X, data.t)
        weights = [np.array(fitted.weights_)]
        weights += [np.array(fitted.rethreshold(float(share)).weights_) for share in SHARES[-2::-1]]
    unknown = np.full(len(SHARES), np.nan)
    coef = np.empty((len(SHARES), 0))
    return {"path": TrimPath(SHARES, unknown, coef, np.array(weights[::-1]), unknown, float(linear.contamination_))}
