"""The sums of EM for the noise model over rows that lie on a device: one transfer there and one back for each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import TINY, Array, asarray_like, index_like, namespace, to_numpy

__all__ = ["NoiseRows"]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class NoiseRows:
    """Predictions (m, n, K), labels and sample weights on a device; ``given`` (n, K) is s at the label, else 0."""

    z: Array
    labels: Array
    s: Array
    given: Array

    @classmethod
    def of(cls, z: Array, labels: NDArray[Any], s: Floats) -> NoiseRows:
        there, weights = index_like(labels, z), asarray_like(s, z)
        xp = namespace(z)
        given = xp.where(there[:, None] == xp.arange(z.shape[2], device=z.device), weights[:, None], 0.0)
        return cls(z, there, weights, given)

    def sums(self, beta: Floats, b: Floats, T: Floats) -> tuple[Floats, Floats, Floats, float]:
        """As `trimlearn.robust.labels.noise` asks for them; nobody waits until all are there."""
        xp, z, s, (m, n, K) = namespace(self.z), self.z, self.s[:, None], self.z.shape
        model = asarray_like(np.concatenate([beta, b, T.T.ravel()]), z)
        a = xp.tensordot(model[:m], z, axes=1) + model[m : m + K]
        p = xp.exp(a - xp.max(a, axis=1, keepdims=True))
        p = p / xp.sum(p, axis=1, keepdims=True)
        joint = p * xp.take(xp.reshape(model[m + K :], (K, K)), self.labels, axis=0)
        seen = xp.clip(xp.sum(joint, axis=1), TINY, None)
        r, weighted = joint / seen[:, None], p * s
        parts = weighted * z
        means = xp.sum(p * z, axis=2)
        flat, off = xp.reshape(z, (m, n * K)), (r - p) * s
        sums = [
            r.T @ self.given,
            xp.reshape(parts, (m, n * K)) @ flat.T - (means * self.s) @ means.T,
            xp.sum(parts, axis=1) - means @ weighted,
            xp.sum(weighted, axis=0),
            weighted.T @ p,
            flat @ xp.reshape(off, (n * K,)),
            xp.sum(off, axis=0),
            xp.sum(self.s * xp.log(seen))[None],
        ]
        found = to_numpy(xp.concat([xp.reshape(part, (-1,)) for part in sums]))
        ends = np.cumsum([K * K, m * m, m * K, K, K * K, m + K])
        N, by_beta, across, weight, by_b, slope, likelihood = np.split(found, ends)
        H = np.empty((m + K, m + K))
        H[:m, :m], H[:m, m:] = by_beta.reshape(m, m), across.reshape(m, K)
        H[m:, :m], H[m:, m:] = across.reshape(m, K).T, np.diag(weight) - by_b.reshape(K, K)
        return N.reshape(K, K), H, slope, float(likelihood[0])
