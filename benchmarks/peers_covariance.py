"""peers, location and covariance: TrimmedCovariance against scikit-learn's MinCovDet."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import chi2
from sklearn.covariance import MinCovDet

from benchmarks.common import NOTHING, Part, Table, Target, clock, say
from benchmarks.peers_linear import OBJECTIVE
from trimlearn.estimators.covariance.covariance import TrimmedCovariance

__all__ = ["covariance"]

QUANTILE = 0.975  # of χ², MinCovDet's users' cut-off: it has none of its own
SHARE, DISTANCE = 0.3, 5.0  # of bad rows; of their centre, in units of √p σ
MINE, SAME_H, OTHER = "TrimmedCovariance", "TrimmedCovariance, MinCovDet's h", "MinCovDet"
COLUMNS = [
    "n",
    "p",
    "method",
    "log det − MinCovDet's",
    "bad rows flagged, %",
    "clean rows flagged, %",
    "error of Σ / clean rows'",
    "seconds",
]


def covariance(shapes: Sequence[tuple[int, int]], seeds: Sequence[int]) -> Part:
    """The determinant of the trimmed fit, detection and error of the covariance, medians over the seeds."""
    table = Table(f"covariance, {SHARE:.0%} of the rows shifted: medians", COLUMNS)
    above = []
    for n, p in shapes:
        say(f"peers: covariance, n = {n:,}, p = {p}")
        pairs = [_pair(n, p, seed) for seed in seeds]
        above += [pair[SAME_H][0] - pair[OTHER][0] for pair in pairs]
        for name in (MINE, SAME_H, OTHER):
            beside = [[pair[name][0] - pair[OTHER][0], *pair[name][1:]] for pair in pairs]
            row = [n, p, name, *[median(column) for column in zip(*beside, strict=True)]]
            table.rows.append([*row[:3], NOTHING if name == MINE else row[3], *row[4:]])  # another h: not comparable
    what = "covariance: log det above MinCovDet's, worst"
    return Part([table], [Target(what, max(above), OBJECTIVE, goal=True)])


def _pair(n: int, p: int, seed: int) -> dict[str, list[float]]:
    """All on the same rows: log det of the trimmed covariance, detection, false positives, error, seconds."""
    X, bad, Sigma = _rows(n, p, seed)
    h = ceil((n + p + 1) / 2)
    models = {
        MINE: TrimmedCovariance(random_state=0),
        SAME_H: TrimmedCovariance(n - h, random_state=0),
        OTHER: MinCovDet(random_state=0),
    }
    found = {}
    for name, model in models.items():
        seconds = clock(lambda model=model: _quietly(model, X))  # type: ignore[misc]
        weights = model.raw_support_ if name == OTHER else model.raw_weights_
        flagged = ~model.inlier_mask_ if name != OTHER else model.dist_ > chi2.ppf(QUANTILE, p)
        error = _error(model.covariance_, Sigma) / _error(np.cov(X[~bad], rowvar=False), Sigma)
        rates = [100 * float(flagged[bad].mean()), 100 * float(flagged[~bad].mean())]
        found[name] = [_log_det(X, weights), *rates, error, seconds]
    return found


def _rows(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated normal rows, of which the first are drawn around a far centre."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((p, p)) / np.sqrt(p) + np.eye(p)
    bad = np.arange(n) < int(SHARE * n)
    Z = rng.standard_normal((n, p))
    towards = rng.standard_normal(p)
    Z[bad] += DISTANCE * np.sqrt(p) * towards / np.linalg.norm(towards)
    return Z @ B.T, bad, B @ B.T


def _quietly(model: Any, X: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)


def _log_det(X: np.ndarray, weights: np.ndarray) -> float:
    """Of the covariance of the rows kept, as it is, without consistency factors."""
    return float(np.linalg.slogdet(np.cov(X, rowvar=False, aweights=weights.astype(float), ddof=0))[1])


def _error(C: np.ndarray, Sigma: np.ndarray) -> float:
    """‖Σ^(−½) C Σ^(−½) − I‖, which does not depend on the units."""
    L = np.linalg.inv(np.linalg.cholesky(Sigma))
    return float(np.linalg.norm(L @ C @ L.T - np.eye(len(C))))
