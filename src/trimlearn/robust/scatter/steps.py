"""Concentration steps of many starts at once. A start is a row of W (K, n), which holds sᵢwᵢ: a step of all of them is
a few products. With d²ᵢ the squared distance of row i under (μ, Σ), giving h units of weight to the smallest d² lowers
log det Σ (Rousseeuw and Van Driessen 1999, FAST-MCD).

Two things keep Σ regular, in coordinates Z in which every feature has robust scale 1:
- eigenvalues are at least FLOOR. The step is then exact for min log det Σ + tr(Σ⁻¹S) over Σ ⪰ FLOOR·I, and h rows on
  a hyperplane are found and reported, not divided by zero.
- K = ρI + (1 − ρ)cS in place of S, with a share ρ > 0 for few rows (Boudt, Rousseeuw, Vanduffel and Verdonck 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.order import keep_smallest

__all__ = ["FLOOR", "STEPS", "Shape", "c_steps", "exchanges", "moments", "squared_distances"]

Floats = NDArray[np.float64]

FLOOR: Final = 1e-14  # of a variance, where a feature's robust scale is 1: 1e-7 of it, well above rounding
STEPS: Final = 200
NEAR: Final = 50  # rows on either side of the threshold that may be exchanged
CHUNK: Final = 1 << 21  # numbers in a temporary


@dataclass(frozen=True)
class Shape:
    """How a covariance S of kept rows becomes the regular K(S) = ρI + (1 − ρ)cS, eigenvalues at least FLOOR."""

    rho: float = 0.0
    c: float = 1.0

    def eigen(self, S: Floats) -> tuple[Floats, Floats]:
        """Eigenvalues of K(S), ascending, and the eigenvectors; S may be a stack."""
        values, vectors = np.linalg.eigh(S)
        return np.maximum(self.rho + (1.0 - self.rho) * self.c * values, FLOOR), vectors


def moments(Z: Floats, W: Floats, centred: bool = False) -> tuple[Floats, Floats]:
    """μ (K, p) and S (K, p, p) of the rows weighted by W (K, n)."""
    if len(W) == 1:  # a step over all rows: those without weight need not be touched
        kept = np.flatnonzero(W[0])
        Z, W = Z[kept], W[:, kept]
    K, (n, p) = len(W), Z.shape
    h = W.sum(axis=1)
    mu = np.zeros((K, p)) if centred else W @ Z / h[:, None]
    S = np.empty((K, p, p))
    for part in _parts(K, n * p):
        X = Z - mu[part, None]
        S[part] = (X * W[part, :, None]).transpose(0, 2, 1) @ X
    return mu, S / h[:, None, None]


def squared_distances(Z: Floats, mu: Floats, values: Floats, vectors: Floats) -> Floats:
    """(K, n): d² of every row under K means and eigendecompositions."""
    K, (n, p) = len(mu), Z.shape
    D = np.empty((K, n))
    T = vectors / np.sqrt(values)[:, None, :]
    for part in _parts(K, n * p):
        X = Z @ T[part] - mu[part, None] @ T[part]
        np.einsum("knp,knp->kn", X, X, out=D[part])
    return D


def c_steps(
    Z: Floats, s: Floats, h: float, mu: Floats, S: Floats, shape: Shape, centred: bool, steps: int
) -> tuple[Floats, Floats, Floats]:
    """``steps`` concentration steps of all starts; (log det, μ, S). Starts that have settled wait for the others."""
    log_det = np.full(len(mu), inf)
    mu, S = mu.copy(), S.copy()
    moving = np.arange(len(mu))
    for _ in range(steps):
        W = keep_smallest(squared_distances(Z, mu[moving], *shape.eigen(S[moving])), s, h)
        mu[moving], S[moving] = moments(Z, W, centred)
        new = np.sum(np.log(shape.eigen(S[moving])[0]), axis=1)
        fell = new < log_det[moving] - 1e-10
        log_det[moving] = new
        moving = moving[fell]
        if len(moving) == 0:
            break
    return log_det, mu, S


def exchanges(
    Z: Floats, s: Floats, h: float, mu: Floats, S: Floats, shape: Shape, centred: bool
) -> tuple[float, Floats, Floats]:
    """Exchange a kept row for one left out while log det falls (Hawkins 1994), with C-steps in between.

    With Q = hK/((1 − ρ)c), u = aⱼ − μ coming and v = aᵢ − μ going, both of mass m, the new Q is Q + [u v]M[u v]ᵀ,
    M = m[[1 − m/h, m/h], [m/h, −1 − m/h]]: its determinant is det(I + M[u v]ᵀQ⁻¹[u v]) times the old one.
    """
    log_det = inf
    for _ in range(STEPS):
        new, mus, Ss = c_steps(Z, s, h, mu[None], S[None], shape, centred, STEPS)
        if not new[0] < log_det - 1e-10:
            break
        log_det, mu, S = float(new[0]), mus[0], Ss[0]
        values, vectors = shape.eigen(S)
        T = vectors / np.sqrt(values * h / ((1.0 - shape.rho) * shape.c))
        W = keep_smallest(squared_distances(Z, mu[None], values[None], vectors[None]), s, h)
        i, j, factor = _best_exchange((Z - mu) @ T, s, W[0], h, centred)
        if not factor < 1.0 - 1e-10:
            break
        W[0, j], W[0, i] = W[0, i], W[0, j]
        mus, Ss = moments(Z, W, centred)
        mu, S = mus[0], Ss[0]
    return log_det, mu, S


def _best_exchange(X: Floats, s: Floats, W: Floats, h: float, centred: bool) -> tuple[int, int, float]:
    """Rows i kept and j left out, of equal mass, whose exchange lowers det Q the most, and by what. Here Q = I."""
    size = np.einsum("np,np->n", X, X)
    order = np.argsort(size, kind="stable")
    kept, out = order[(W == s)[order]][-NEAR:], order[(W == 0)[order]][:NEAR]
    if len(kept) == 0 or len(out) == 0:
        return 0, 0, 1.0
    m = s[kept][:, None]
    t = 0.0 if centred else m / h
    vv, uu, uv = size[kept][:, None], size[out][None], X[kept] @ X[out].T
    one, two = 1.0 + m * ((1.0 - t) * uu + t * uv), 1.0 + m * (t * uv - (1.0 + t) * vv)
    factor = one * two - m * m * ((1.0 - t) * uv + t * vv) * (t * uu - (1.0 + t) * uv)
    factor = np.where(s[out][None] == m, factor, 1.0)
    best = int(np.argmin(factor))
    return int(kept[best // len(out)]), int(out[best % len(out)]), float(factor.flat[best])


def _parts(K: int, size: int) -> list[slice]:
    step = max(1, CHUNK // size)
    return [slice(i, i + step) for i in range(0, K, step)]
