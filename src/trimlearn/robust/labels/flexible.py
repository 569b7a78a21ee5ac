"""Flexible classifiers, each asked about the labels of rows that it was not fitted on.

A model that is too simple disagrees with right labels, in regions; wrong labels lie scattered among right ones. A
forest and the nearest neighbours, which fit almost anything, know the regions and cannot know the scattered ones. Both
predict out of sample at no extra cost: a forest by the trees that did not draw a row, neighbours by leaving it out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import diags_array
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from trimlearn._utils.validation import is_sparse
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.column_bounds import column_bounds
from trimlearn.robust.labels.noise import Floats, Labels

__all__ = ["flexible_predictions"]

LEAST_ROWS = 20  # no more than a few neighbourhoods of NEIGHBOURS rows: fewer have no regions
ROWS = 4_000  # that the models see, a limit on time: a second's work
FEATURES = 40  # beyond which the features are projected to this many, a limit on time: a forest's grows with them
TREES = 100  # scikit-learn's default; some 37 of them, 1/e, have not seen a row
NEIGHBOURS = 15  # of which, where 20 % of labels are wrong, most are right in all but 1 of 240 cases (binomial)
LEAST = 1e-6  # a smaller probability is one of a class that none of the rows seen has, and one of 25,000 rows at most
BLOCK = 8_192  # rows projected at a time, a limit on memory: 8,192 × 1,000 numbers are 66 MB


def flexible_predictions(V: Any, labels: Labels, s: Floats, seed: int = 0, n_jobs: Any = None) -> list[Floats]:
    """log-probabilities (n, K) of the classes, by a forest and by the nearest neighbours, each without the row itself;
    none at all where rows are few. V, dense or CSR; s: sample weights. Of many rows the models see some thousand.

    >>> rng = np.random.default_rng(0)
    >>> ring = rng.uniform(0, 7, 400)
    >>> V = np.column_stack([np.cos(ring), np.sin(ring)]) * (1 + np.arange(400) % 2)[:, None]
    >>> labels = np.arange(400) % 2  # the inner ring and the outer one: no line parts them
    >>> [float(np.mean(z.argmax(axis=1) == labels)) > 0.95 for z in flexible_predictions(V, labels, np.ones(400))]
    [True, True]
    """
    there = np.flatnonzero(s > 0)
    if len(there) < LEAST_ROWS:
        return []
    there = there[np.argsort(row_hashes(V)[there], kind="stable")]  # a forest depends on the order of its rows
    rng = np.random.default_rng(seed)
    seen = there if len(there) <= ROWS else there[np.sort(rng.choice(len(there), ROWS, replace=False))]
    F = _features(V, seen, seed)
    K = int(labels.max()) + 1
    prior = np.bincount(labels[there], s[there], K) / s.sum()
    found = (_forest(F, seen, labels, s, K, seed, n_jobs), _neighbours(F, seen, labels, s, K))
    return [np.log(np.maximum((trust * P + prior) / (trust + 1), LEAST)) for P, trust in found]


def _forest(F: Floats, seen: Labels, labels: Labels, s: Floats, K: int, seed: int, n_jobs: Any) -> tuple[Floats, float]:
    """P(class) of every row, by trees that have not seen it, and how many there are."""
    forest = RandomForestClassifier(TREES, oob_score=True, random_state=seed, n_jobs=n_jobs)
    weight = None if np.all(s[seen] == 1) else s[seen]
    forest.fit(F[seen], labels[seen], sample_weight=weight)
    forest.n_jobs = None  # predictions of several jobs are added up in the order in which these end
    P = np.zeros((len(F), K))
    rest = np.setdiff1d(np.arange(len(F)), seen)
    if len(rest):
        P[np.ix_(rest, forest.classes_)] = forest.predict_proba(F[rest])
    P[np.ix_(seen, forest.classes_)] = np.nan_to_num(forest.oob_decision_function_)
    return P, TREES * np.exp(-1)


def _neighbours(F: Floats, seen: Labels, labels: Labels, s: Floats, K: int) -> tuple[Floats, float]:
    """P(class) of every row among its nearest neighbours, itself excepted, and how many there are."""
    k = min(NEIGHBOURS, len(seen) - 1)
    index = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(F[seen])
    near = seen[index.kneighbors(F, return_distance=False)]
    own = near == np.arange(len(F))[:, None]
    own[~own.any(axis=1), -1] = True  # a row that is not among its nearest has one neighbour too many
    near = near[~own].reshape(len(F), k)
    P = np.stack([np.sum((labels[near] == j) * s[near], axis=1) for j in range(K)], axis=1)
    return P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300), float(k)


def _features(V: Any, seen: Labels, seed: int) -> Floats:
    """V in units of the spread of its columns, clipped to their bounds; its leading directions where it has many."""
    few = V.shape[1] <= FEATURES
    V = V.toarray() if few and is_sparse(V) else V
    bounds = column_bounds(V, seen)
    if few:
        return bounds.standardise(V)
    unit = V[seen] @ diags_array(1 / bounds.unit) if is_sparse(V) else bounds.standardise(V[seen])
    directions = TruncatedSVD(min(FEATURES, min(unit.shape) - 1), random_state=seed).fit(unit).components_.T
    blocks = [slice(i, i + BLOCK) for i in range(0, V.shape[0], BLOCK)]
    if is_sparse(V):
        return np.vstack([np.asarray(V[rows] @ (directions / bounds.unit[:, None])) for rows in blocks])
    return np.vstack([bounds.standardise(V[rows]) @ directions for rows in blocks])
