"""Flexible classifiers, each asked about the labels of rows that it was not fitted on.

A model that is too simple disagrees with right labels, in regions; wrong labels lie scattered among right ones. A
forest and the nearest neighbours, which fit almost anything, know the regions and cannot know the scattered ones. Both
predict out of sample at no extra cost: a forest by the trees that did not draw a row, neighbours by leaving it out.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array
from scipy.sparse import diags_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.extmath import randomized_svd

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.threads import jobs
from trimlearn._utils.validation import is_sparse
from trimlearn.robust.distinct import Hashes, row_hashes, taken_rows
from trimlearn.robust.labels.column_bounds import ColumnBounds, column_bounds
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.on_device import forest_probabilities, leading_directions

LEAST_ROWS = 20  # no more than a few neighbourhoods of NEIGHBOURS rows: fewer have no regions
ROWS = 4_000  # that the models see, a limit on time: a second's work
FEATURES = 40  # beyond which the features are projected to this many, a limit on time: a forest's grows with them
POWERS = 2  # of the randomised decomposition: enough for directions that only need to hold the regions (Halko 2011, §4)
TREES = 100  # scikit-learn's default; some 37 of them, 1/e, have not seen a row
# Of many rows: each tree draws half of those that the forest sees, so that 30, 1/√e, have not seen a row. On MNIST a
# quarter of the time, and the same rows are found: 96.6 % of the wrong labels, 0.7 % of the right ones.
TREES_OF_MANY, DRAWN = 50, 0.5
NEIGHBOURS = 15  # of which, where 20 % of labels are wrong, most are right in all but 1 of 240 cases (binomial)
NEAR, NEAR_ON_DEVICE = 128, 8_192  # rows whose distances are held at a time: 2 MB, a core's cache; and 131 MB
GROUP = 16  # distances of which the least is looked at first: to select among these takes a sixteenth of the time
LEAST = 1e-6  # a smaller probability is one of a class that none of the rows seen has, and one of 25,000 rows at most
BLOCK = 1_024  # rows projected or predicted at a time, a limit on memory: 1,024 × 1,000 numbers are 8 MB, a cache


def flexible_predictions(
    V: Any,
    labels: Labels,
    s: Floats,
    seed: int = 0,
    n_jobs: Any = None,
    hashes: Hashes | None = None,
    K: int | None = None,
) -> list[Floats]:
    """log-probabilities (n, K) of the classes, by a forest and by the nearest neighbours, each without the row itself;
    none at all where rows are few. V, dense, on a device or not, or CSR; s: sample weights; hashes: those of the rows,
    where they are known; K: how many classes there are, if some have no row. Of many rows the models see some thousand.

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
    hashes = row_hashes(V) if hashes is None else hashes
    there = there[np.argsort(hashes[there], kind="stable")]  # a forest depends on the order of its rows
    rng = np.random.default_rng(seed)
    seen = there if len(there) <= ROWS else there[np.sort(rng.choice(len(there), ROWS, replace=False))]
    F = _features(V, seen, seed)
    K = int(labels.max()) + 1 if K is None else K
    prior = np.bincount(labels[there], s[there], K) / s.sum()
    found = (_forest(F, seen, labels, s, K, seed, n_jobs), _neighbours(F, seen, labels, s, K))
    return [np.log(np.maximum((trust * P + prior) / (trust + 1), LEAST)) for P, trust in found]


def _forest(F: Array, seen: Labels, labels: Labels, s: Floats, K: int, seed: int, n_jobs: Any) -> tuple[Floats, float]:
    """P(class) of every row, by trees that have not seen it, and how many there are."""
    many = len(F) > len(seen)
    trees, drawn = (TREES_OF_MANY, DRAWN) if many else (TREES, 1.0)
    n_jobs = -1 if many and n_jobs is None else n_jobs  # one model at a time, on all cores where the data are large
    draws = max(1, round(drawn * len(seen)))
    here = not is_torch_array(F)
    forest = RandomForestClassifier(trees, oob_score=here, max_samples=draws, random_state=seed, n_jobs=n_jobs)
    weight = None if np.all(s[seen] == 1) else s[seen]
    with warnings.catch_warnings():  # a row that every tree has drawn, being heavy, gets the shares of the classes
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
        forest.fit(to_numpy(F[index_like(seen, F)]), labels[seen], sample_weight=weight)
    P = np.zeros((len(F), K))
    if not here:
        P[:, forest.classes_] = to_numpy(forest_probabilities(forest, F, seen))
        return P, trees * np.exp(-drawn)
    forest.n_jobs = None  # predictions of several jobs are added up in the order in which these end
    rest = np.setdiff1d(np.arange(len(F)), seen)
    if len(rest):
        blocks = [(rest[i : i + 4 * BLOCK],) for i in range(0, len(rest), 4 * BLOCK)]
        P[np.ix_(rest, forest.classes_)] = np.vstack(jobs(lambda rows: forest.predict_proba(F[rows]), blocks, n_jobs))
    P[np.ix_(seen, forest.classes_)] = np.nan_to_num(forest.oob_decision_function_)
    return P, trees * np.exp(-drawn)


def _neighbours(F: Array, seen: Labels, labels: Labels, s: Floats, K: int) -> tuple[Floats, float]:
    """P(class) of every row among its nearest neighbours, itself excepted, and how many there are."""
    k = min(NEIGHBOURS, len(seen) - 1)
    P = neighbour_votes(F, seen, np.eye(K)[labels[seen]] * s[seen, None], k)
    return P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300), float(k)


def neighbour_votes(F: Array, seen: Labels, votes: Floats, k: int) -> Floats:
    """For every row of F the sum of the ``votes`` (m, K) of its k nearest among the rows ``seen``, itself excepted.

    Of what is equally near, or nearly so, all count: the k nearest are what lies within the k-th smallest of the
    least distances of groups of rows, which is seldom one more.

    >>> F = np.array([[0.0], [1.0], [2.5], [9.0]])
    >>> neighbour_votes(F, np.arange(4), np.eye(4), 1).argmax(axis=1)
    array([1, 0, 1, 2])
    """
    xp, m = namespace(F), len(seen)
    size = max(1, min(GROUP, m // (GROUP * k)))  # so many more groups than neighbours that few hold two of them
    padding = -m % size
    R = xp.take(F, index_like(seen, F), axis=0)
    R = xp.concat([R, asarray_like(np.zeros((padding, R.shape[1])), F)])
    squares = xp.sum(R * R, axis=1)
    squares[m:] = np.inf
    votes = asarray_like(np.vstack([votes, np.zeros((padding, votes.shape[1]))]), F)
    place = np.full(F.shape[0], -1)
    place[seen] = np.arange(m)
    found, block = [], NEAR if is_numpy_array(F) else NEAR_ON_DEVICE
    for i in range(0, F.shape[0], block):
        D = squares - 2 * (F[i : i + block, :] @ R.T)  # the squared distance, less what a row of F adds to all
        own = place[i : i + block]
        among = np.flatnonzero(own >= 0)
        D[index_like(among, F), index_like(own[among], F)] = np.inf
        least = xp.min(xp.reshape(D, (D.shape[0], size, -1)), axis=1)
        kth = np.partition(least, k - 1, axis=1) if is_numpy_array(least) else xp.sort(least, axis=1)
        near = D <= kth[:, k - 1 : k]
        found.append(xp.astype(near, F.dtype) @ votes)
    return np.asarray(to_numpy(xp.concat(found)), dtype=np.float64)


def _features(V: Any, seen: Labels, seed: int) -> Array:
    """V in units of the spread of its columns, clipped to their bounds; its leading directions where it has many."""
    few = V.shape[1] <= FEATURES
    V = V.toarray() if few and is_sparse(V) else V
    sample = taken_rows(V, seen)
    bounds = column_bounds(sample, slice(None))
    if few:
        return bounds.standardise(V)
    unit = sample @ diags_array(1 / bounds.unit) if is_sparse(V) else bounds.standardise(sample)
    most = min(FEATURES, min(unit.shape) - 1)
    if is_torch_array(unit):
        directions = leading_directions(unit, most, POWERS, seed)
    else:
        directions = randomized_svd(unit.astype(np.float64), most, n_iter=POWERS, random_state=seed)[2].T
    return _projected(V, bounds, directions)


def _projected(V: Any, bounds: ColumnBounds, directions: Floats) -> Array:
    """All rows in these directions, in blocks. In float64: a forest splits where rounding says, and another product
    rounds otherwise."""
    blocks = [slice(i, i + BLOCK) for i in range(0, V.shape[0], BLOCK)]
    if is_sparse(V):
        return np.vstack([np.asarray(V[rows] @ (directions / bounds.unit[:, None])) for rows in blocks])
    xp, units = namespace(V), (bounds.standardise(V[rows, :]) for rows in blocks)
    return xp.concat([xp.astype(xp.astype(unit, xp.float64) @ directions, unit.dtype) for unit in units])
