"""What judges of labels compute where a tensor lies: the sums of EM for the noise model, and what flexible classifiers
ask of scikit-learn, leading directions and a forest's predictions.

All give what is had in NumPy and by scikit-learn, up to rounding: the same algorithms with the same random numbers, and
the same trees.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from trimlearn._utils.arrays import TINY, Array, asarray_like, index_like, namespace, to_numpy

OVERSAMPLED = 10  # directions beyond those asked for: scikit-learn's default (Halko 2011, §4.2)

Floats = NDArray[np.float64]


@final
class NoiseRows:
    """Predictions (m, n, K), labels and sample weights on a device, and the sums that EM needs of them: one transfer
    there and one back for each step.

    A step is some thirty small kernels. They read the model from a buffer that stays where it is, so that they can be
    captured as one CUDA graph.
    """

    def __init__(self, z: Array, labels: NDArray[Any], s: Floats) -> None:
        from trimlearn._utils.graphs import Replay  # it imports torch, which whoever has tensors has

        xp, (m, _, K) = namespace(z), z.shape
        self._z, self._labels, self._s = z, index_like(labels, z), asarray_like(s, z)
        hit = self._labels[:, None] == xp.arange(K, device=z.device)
        self._given = xp.where(hit, self._s[:, None], 0.0)  # s at the label
        self._model, self._tiny = asarray_like(np.zeros(m + K + K * K), z), asarray_like(TINY, z)
        self._replay = Replay(NoiseRows._at_model, self, z.device)

    def sums(self, beta: Floats, b: Floats, T: Floats) -> tuple[Floats, Floats, Floats, float]:
        """As `trimlearn.robust.labels.noise_em` asks for them; nobody waits until all are there."""
        m, K = len(beta), len(b)
        self._model[:] = asarray_like(np.concatenate([beta, b, T.T.ravel()]), self._model)
        ends = np.cumsum([K * K, m * m, m * K, K, K * K, m + K])
        N, by_beta, across, weight, by_b, slope, likelihood = np.split(to_numpy(self._replay()), ends)
        H = np.empty((m + K, m + K))
        H[:m, :m], H[:m, m:] = by_beta.reshape(m, m), across.reshape(m, K)
        H[m:, :m], H[m:, m:] = across.reshape(m, K).T, np.diag(weight) - by_b.reshape(K, K)
        return N.reshape(K, K), H, slope, float(likelihood[0])

    def _at_model(self) -> Array:
        """All sums at the model that is there, one behind the other."""
        xp, z, s, (m, n, K) = namespace(self._z), self._z, self._s[:, None], self._z.shape
        beta, b, T = self._model[:m], self._model[m : m + K], self._model[m + K :]
        a = xp.tensordot(beta, z, axes=1) + b
        p = xp.exp(a - xp.max(a, axis=1, keepdims=True))
        p = p / xp.sum(p, axis=1, keepdims=True)
        joint = p * xp.take(xp.reshape(T, (K, K)), self._labels, axis=0)
        seen = xp.maximum(xp.sum(joint, axis=1), self._tiny)
        r, weighted = joint / seen[:, None], p * s
        parts, means = weighted * z, xp.sum(p * z, axis=2)
        flat, off = xp.reshape(z, (m, n * K)), (r - p) * s
        sums = [
            r.T @ self._given,
            xp.reshape(parts, (m, n * K)) @ flat.T - (means * self._s) @ means.T,
            xp.sum(parts, axis=1) - means @ weighted,
            xp.sum(weighted, axis=0),
            weighted.T @ p,
            flat @ xp.reshape(off, (n * K,)),
            xp.sum(off, axis=0),
            xp.sum(self._s * xp.log(seen))[None],
        ]
        return xp.concat([xp.reshape(part, (-1,)) for part in sums])


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
