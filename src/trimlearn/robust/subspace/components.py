"""The principal components of a flat: its axes in order of their variance, and what these say about rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import final

import numpy as np

from trimlearn.robust.subspace.flat import Flat, spectrum

__all__ = ["Components", "log_likelihoods", "mahalanobis", "principal_components"]


@final
@dataclass(frozen=True)
class Components:
    """The principal axes of some rows within a flat, as columns, by decreasing variance.

    left: the rows' variance outside of the flat. freedom: what the sums of squares were divided by. distances: of all
    rows within the flat.
    """

    axes: np.ndarray
    variances: np.ndarray
    left: float
    freedom: float
    distances: np.ndarray

    @property
    def k(self) -> int:
        return len(self.variances)

    @property
    def ratios(self) -> np.ndarray:
        """The share of the rows' variance along each axis."""
        total = self.variances.sum() + self.left
        return self.variances / total if total > 0 else np.zeros(self.k)

    @property
    def singular_values(self) -> np.ndarray:
        return np.asarray(np.sqrt(self.variances * self.freedom))

    def noise(self, n: int, p: int) -> float:
        """The mean variance along the axes left out, of n rows with p features."""
        return self.left / (min(n, p) - self.k) if self.k < min(n, p) else 0.0


def principal_components(flat: Flat, c: np.ndarray, z: np.ndarray, d2: np.ndarray, *, determined: bool) -> Components:
    """Of the rows weighted by c, which have coordinates z within the flat and are √d2 from it.

    The largest entry of each axis is positive. determined: without the axes along which nothing varies.
    """
    W, k = float(c.sum()), flat.U.shape[1]
    freedom = W - 1.0 if W > 1 else W
    kept = c > 0
    variances, turn = spectrum((z[kept] * c[kept, None]).T @ z[kept] / freedom, k)
    if determined:
        k = max(1, int(np.count_nonzero(variances > max(z.shape) * np.finfo(np.float64).eps * variances[0])))
        variances, turn = variances[:k], turn[:, :k]
    axes = flat.U @ turn
    signs = np.where(axes[np.abs(axes).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
    left = float(c[kept] @ d2[kept]) / freedom
    return Components(axes * signs, variances, left, freedom, mahalanobis(z @ turn, variances))


def mahalanobis(z: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """√Σ zⱼ²/λⱼ over the axes that have a variance λⱼ."""
    real = variances > np.finfo(np.float64).eps * variances.max(initial=0.0)
    with np.errstate(over="ignore"):  # infinitely far
        return np.asarray(np.linalg.norm(z[:, real] / np.sqrt(variances[real]), axis=1))


def log_likelihoods(z: np.ndarray, d2: np.ndarray, variances: np.ndarray, noise: float, p: int) -> np.ndarray:
    """Of rows with p features: normal, of these variances along the axes and ``noise`` along the others."""
    k = len(variances)
    least = np.finfo(np.float64).eps * float(variances.max()) + np.finfo(np.float64).tiny
    variances, noise = np.maximum(variances, least), max(noise, least)
    log_det = float(np.log(variances).sum()) + (p - k) * log(noise)
    with np.errstate(over="ignore"):  # infinitely far
        outside = d2 / noise if p > k else 0.0
    inside = np.square(mahalanobis(z, variances))
    return np.asarray(-0.5 * (inside + outside + log_det + p * log(2 * pi)))
