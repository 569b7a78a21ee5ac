"""peers, anomalies in real tables: TrimmedPCA() and TrimmedCovariance() at default against what people use today."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, skew
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.common import Part, Table, Target, say
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.pca import TrimmedPCA

__all__ = ["anomalies", "ecod"]

SETS = "thyroid", "cardio", "glass", "WDBC", "wine", "Stamps", "satimage-2"  # whose rare class is an anomaly
QUICK = ("wine",)
EXPLAINED = 0.8  # of the variance, by the components of the plain PCA whose reconstruction errors are ranked
WITHIN = 0.1  # of the share of anomalies: a contamination_ that is further off is told by a warning, or it is a miss

Score = Callable[[np.ndarray], np.ndarray]


def ecod(X: np.ndarray) -> np.ndarray:
    """Empirical cumulative distribution functions (Li, Zhao, Hu, Botta, Ionescu and Chen 2022): −Σ log of the tail
    probabilities of the features, left, right or on the side of the skewness, whichever is largest."""
    n = len(X)
    below, above = (np.column_stack([rankdata(side * x, "max") / n for x in X.T]) for side in (1.0, -1.0))
    left, right = -np.log(below), -np.log(above)
    skewed = np.where(skew(X, axis=0) < 0, left, right)
    return np.asarray(np.max([left.sum(axis=1), right.sum(axis=1), skewed.sum(axis=1)], axis=0))


def _reconstruction(X: np.ndarray) -> np.ndarray:
    model = PCA(EXPLAINED).fit(X)
    return np.asarray(np.sum((X - model.inverse_transform(model.transform(X))) ** 2, axis=1))


RIVALS: dict[str, Score] = {
    "EllipticEnvelope": lambda X: -EllipticEnvelope(random_state=0).fit(X).score_samples(X),
    "IsolationForest": lambda X: -IsolationForest(random_state=0).fit(X).score_samples(X),
    "LOF": lambda X: -LocalOutlierFactor().fit(X).negative_outlier_factor_,
    "PCA": _reconstruction,
    "ECOD": ecod,
}
OURS = {"TrimmedPCA": TrimmedPCA, "TrimmedCovariance": TrimmedCovariance}


def anomalies(folder: Path, quick: bool = False) -> Part:
    """AUROC of the anomalies' scores, mean ranks, and the estimated shares beside the true ones."""
    names = [*OURS, *RIVALS]
    ranking = Table("anomalies: AUROC", ["table", *names])
    shares = Table("anomalies: share of bad rows", ["table", "method", "true", "contamination_", "flagged", "warnings"])
    ranks, misses, near = [], 0, 0
    for name in QUICK if quick else SETS:
        say(f"peers: anomalies, {name}")
        with np.load(folder / f"{name}.npz") as table:
            X, y = table["X"].astype(np.float64), table["y"].astype(bool)
        areas = []
        for method, estimator in OURS.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model = estimator(random_state=0).fit(X)
            areas.append(float(roc_auc_score(y, model.outlier_scores_)))
            off = abs(model.contamination_ - y.mean()) > WITHIN
            near += not off
            misses += off and not told
            flagged = float(np.mean(~model.inlier_mask_))
            shares.rows.append([name, method, float(y.mean()), model.contamination_, flagged, len(told)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a singular covariance, ties of distances
            areas += [float(roc_auc_score(y, score(X))) for score in RIVALS.values()]
        ranking.rows.append([name, *areas])
        ranks.append(rankdata([-area for area in areas]))
    means = np.mean(ranks, axis=0)
    ranking.rows.append(["mean rank", *[float(mean) for mean in means]])
    ranking.rows.append(["mean", *np.mean([row[1:] for row in ranking.rows[:-1]], axis=0).tolist()])
    first = [int(place) for place in rankdata(means, "min")[: len(OURS)]]
    targets = [
        Target(f"anomalies: place of {name} by mean rank", place, 2, goal=True)
        for name, place in zip(OURS, first, strict=True)
    ]
    targets.append(Target("anomalies: shares more than 0.1 off, without a warning", float(misses), 0.0, goal=True))
    share_near = near / len(shares.rows)
    targets.append(Target("anomalies: share of estimates more than 0.1 off", 1.0 - share_near, 0.2, goal=True))
    return Part([ranking, shares], targets)
