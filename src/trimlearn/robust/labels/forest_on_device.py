"""What flexible classifiers ask of scikit-learn, where a tensor lies: leading directions, and a forest's predictions.

Both give what scikit-learn gives, up to rounding: the same algorithm with the same random numbers, and the same trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from trimlearn._utils.arrays import Array, asarray_like, namespace

__all__ = ["forest_probabilities", "leading_directions"]

OVERSAMPLED = 10  # directions beyond those asked for: scikit-learn's default (Halko 2011, §4.2)


def leading_directions(M: Array, most: int, powers: int, seed: int) -> Array:
    """The leading right singular vectors of M (m, p), as columns (p, most): `sklearn.utils.extmath.randomized_svd`."""
    xp = namespace(M)
    M = xp.astype(M, xp.float64)
    wide = M.shape[0] < M.shape[1]
    A = M.T if wide else M
    drawn = check_random_state(seed).normal(size=(A.shape[1], most + OVERSAMPLED))
    Q = asarray_like(drawn, M)
    for _ in range(powers):
        Q = A.T @ (A @ Q)
    Q = xp.linalg.qr(A @ Q)[0]
    U, _, Vt = xp.linalg.svd(Q.T @ A, full_matrices=False)
    left, found = (Vt.T, Q @ U) if wide else (Q @ U, Vt.T)
    # The sign of a direction is free: the largest entry of its left singular vector is positive.
    columns = xp.arange(most, device=M.device)
    largest = left[xp.argmax(xp.abs(left[:, :most]), axis=0), columns]
    return found[:, :most] * xp.sign(largest)


def forest_probabilities(forest: Any, F: Array, seen: np.ndarray) -> Array:
    """P(class) of every row of F by the trees of a `RandomForestClassifier` that have not drawn it. It was fitted to
    the rows ``seen``. All trees are walked down at once; 0 for a row that every tree has drawn."""
    xp = namespace(F)
    trees = [estimator.tree_ for estimator in forest.estimators_]
    first = np.cumsum([0, *(tree.node_count for tree in trees)])

    def joined(name: str, moved: bool = False) -> np.ndarray:
        parts = [getattr(tree, name) for tree in trees]
        return np.concatenate([part + at * moved for part, at in zip(parts, first, strict=False)])

    leaf, own = joined("children_left") < 0, np.arange(first[-1])
    whole, number = xp.int64, xp.float64
    sides = (np.where(leaf, own, joined(f"children_{side}", True)) for side in ("left", "right"))
    left, right = (asarray_like(side, F, whole) for side in sides)  # a leaf leads to itself
    feature = asarray_like(np.where(leaf, 0, joined("feature")), F, whole)
    threshold = asarray_like(joined("threshold"), F, number)
    value = asarray_like(joined("value")[:, 0, :], F, number)
    rows = xp.astype(F, xp.float32)  # as the trees see them
    node = asarray_like(np.tile(first[:-1], (F.shape[0], 1)), F, whole)
    at = xp.arange(F.shape[0], device=F.device)[:, None]
    for _ in range(max(tree.max_depth for tree in trees)):
        node = xp.where(xp.astype(rows[at, feature[node]], number) <= threshold[node], left[node], right[node])
    unseen = np.ones((len(trees), F.shape[0]))
    for tree, drawn in enumerate(forest.estimators_samples_):
        unseen[tree, seen[drawn]] = 0.0
    asked = asarray_like(unseen, F, number)
    total = xp.zeros((F.shape[0], value.shape[1]), dtype=number, device=F.device)
    for tree in range(len(trees)):  # in scikit-learn's order, so that sums are the same
        total = total + asked[tree][:, None] * value[node[:, tree]]
    return total / xp.clip(xp.sum(asked, axis=0), 1.0, None)[:, None]
