"""The sums of EM for the noise model over rows that lie on a device: one transfer there and one back for each step."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import TINY, Array, asarray_like, index_like, namespace, to_numpy

__all__ = ["NoiseRows"]

Floats = NDArray[np.float64]


@final
class NoiseRows:
    """Predictions (m, n, K), labels and sample weights on a device, and the sums that EM needs of them.

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
        """As `trimlearn.robust.labels.noise` asks for them; nobody waits until all are there."""
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
