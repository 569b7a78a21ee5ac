"""Deterministic starts for the minimum covariance determinant (Hubert, Rousseeuw and Verdonck 2012, DetMCD).

Six estimates of scatter that are simple and robust enough to start from, and two halves of the rows for clusters. Each
of the six gives a set of orthogonal directions, in which location and scale are then estimated robustly, one direction
at a time. All take sample weights s as repetitions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import ndtri

from trimlearn.robust.order import shortest_interval, weighted_medians
from trimlearn.robust.scatter.steps import Moments
from trimlearn.robust.scatter.units import median_and_scale

__all__ = ["deterministic", "kurtosis_directions", "normal_scores"]

TINY: Final = 1e-7  # of a robust scale of 1: √FLOOR, below which a direction counts as one of no spread
PAIRS: Final = 100  # features up to which all pairs are looked at, a limit on time: 10⁴ medians


def deterministic(Z: np.ndarray, s: np.ndarray, centred: bool) -> Moments:
    """(μ, Σ) of K = 8 starts (7 for one feature or very many), features of robust scale about 1."""
    R = _midranks(Z, s)
    scatters = [*[_correlation(Y, s) for Y in (np.tanh(Z), R, ndtri(R))], _signs(Z, s), _inner_half(Z, s)]
    if 1 < Z.shape[1] <= PAIRS:
        scatters.append(_pairwise(Z, s))
    return Moments.stacked([*[_refine(Z, s, scatter, centred) for scatter in scatters], *_by_kurtosis(Z, s, centred)])


def normal_scores(Z: np.ndarray, s: np.ndarray, centred: bool) -> Moments:
    """(μ, Σ) of the start by the correlation of normal scores alone."""
    return _refine(Z, s, _correlation(ndtri(_midranks(Z, s)), s), centred)


def _by_kurtosis(Z: np.ndarray, s: np.ndarray, centred: bool) -> list[Moments]:
    """Mean and covariance of the densest half along the directions of smallest and of largest kurtosis.

    The six of DetMCD lose clusters of 40 % in 20 dimensions.
    """
    X = Z if centred else Z - s @ Z / s.sum()
    found = []
    for direction in kurtosis_directions(X, s).T:
        t = np.abs(X @ direction) if centred else X @ direction
        low, high = shortest_interval(t, s, 0.5 * s.sum())
        half = s * ((t >= low) & (t <= high))
        mu = np.zeros(Z.shape[1]) if centred else half @ Z / half.sum()
        found.append(Moments(mu[None], _second_moments(Z - mu, half)[None] / half.sum()))
    return found


def kurtosis_directions(X: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The directions (p, 2) of smallest and of largest kurtosis of centred rows.

    A cluster of more than a fifth of the rows makes the one small, a smaller one the other large. With y the whitened
    rows they are eigenvectors of E‖y‖²yyᵀ, and do not depend on the coordinates (Tyler, Critchley, Dümbgen and Oja
    2009).
    """
    values, vectors = np.linalg.eigh(_second_moments(X, s) / s.sum())
    whiten = vectors / np.sqrt(np.maximum(values, TINY**2))
    Y = X @ whiten
    fourth = np.linalg.eigh(_second_moments(Y, s * np.einsum("np,np->n", Y, Y)))[1]
    return np.asarray(whiten @ fourth[:, [0, -1]])


def _refine(Z: np.ndarray, s: np.ndarray, scatter: np.ndarray, centred: bool) -> Moments:
    """(μ, Σ) with the eigenvectors of ``scatter``, and robust location and scale along each."""
    vectors = np.linalg.eigh(scatter)[1]
    scale = np.maximum(median_and_scale(Z @ vectors, s, centred)[1], TINY)
    root = (vectors * scale) @ vectors.T  # Σ^½
    inner = np.zeros(Z.shape[1]) if centred else weighted_medians(Z @ ((vectors / scale) @ vectors.T), s)
    return Moments((root @ inner)[None], (root @ root)[None])


def _second_moments(Y: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Σ sᵢyᵢyᵢᵀ."""
    return np.asarray((Y * s[:, None]).T @ Y)


def _correlation(Y: np.ndarray, s: np.ndarray) -> np.ndarray:
    S = _second_moments(Y - s @ Y / s.sum(), s)
    size = np.sqrt(np.diag(S))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(S / np.outer(size, size))


def _midranks(Z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """For each column z the share of the weight below z plus half of the weight at z."""
    ranks = np.empty_like(Z)
    for j, z in enumerate(Z.T):
        _, place = np.unique(z, return_inverse=True)
        at = np.bincount(place, weights=s)
        ranks[:, j] = ((np.cumsum(at) - 0.5 * at) / s.sum())[place]
    return ranks


def _signs(Z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Scatter of the rows moved to the unit sphere."""
    size = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.asarray(_second_moments(Z / np.where(size > 0, size, 1.0), s) / s.sum())


def _inner_half(Z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Covariance of the half of the rows nearest to the centre, as BACON begins."""
    size = np.linalg.norm(Z, axis=1)
    inner = s * (size <= weighted_medians(size[:, None], s)[0])
    return np.asarray(_second_moments(Z - inner @ Z / inner.sum(), inner) / inner.sum())


def _pairwise(Z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Gnanadesikan and Kettenring: ¼(σ²(zⱼ + zₖ) − σ²(zⱼ − zₖ)), what OGK orthogonalises (Maronna and Zamar 2002)."""
    p = Z.shape[1]
    S = np.empty((p, p))
    for j in range(p):
        plus, minus = (median_and_scale(Z[:, [j]] + sign * Z[:, j:], s)[1] for sign in (1.0, -1.0))
        S[j, j:] = S[j:, j] = 0.25 * (plus**2 - minus**2)
    return S
