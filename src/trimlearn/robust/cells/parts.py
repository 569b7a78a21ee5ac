"""How much of a row's distance each of its cells explains, for tables that say why a row is odd.

The parts zⱼ(Σ⁻¹z)ⱼ of a squared distance smear one wrong cell over all the columns that are correlated with it. Here
the cell without which the distance falls most is taken first, with what it falls by, gⱼ²/Pⱼⱼ (see `rows`); then the
next one, while they matter; what is left is shared as before. All parts sum to the squared distance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.cells.rows import CUTOFF

__all__ = ["distance_cells", "reconstruction_cells"]

MOST = 5  # cells of a row that are taken: tables show three
SHARE = 0.25  # of the squared residual: what a cell must explain to be taken, so that four equal ones still are
TINY = 1e-10  # of the largest diagonal entry: a cell that the others determine by themselves has no residual of its own

Floats = NDArray[np.float64]


def distance_cells(X: Floats, center: Floats, precision: Floats) -> Floats:
    """The parts of the squared distances (x − center)ᵀ precision (x − center) that the cells of rows explain, (n, p).

    >>> P = np.linalg.inv(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> distance_cells(np.array([[0.1, 9.0, 0.5]]), np.zeros(3), P).round(2)
    array([[1.0000e-02, 4.1783e+02, 2.5000e-01]])
    """
    Z = X - center
    G, taken = _taken(Z @ precision, np.diag(precision), lambda j: precision[j], lambda G: np.full(len(G), CUTOFF**2))
    return np.where(taken > 0, taken, Z * G)


def reconstruction_cells(X: Floats, center: Floats, components: Floats) -> Floats:
    """The parts of the squared distances from the subspace of the orthonormal rows of ``components``, (n, p)."""
    Z = X - center
    residuals = Z - (Z @ components.T) @ components

    def columns(j: NDArray[np.intp]) -> Floats:
        out = -components[:, j].T @ components
        out[np.arange(len(j)), j] += 1.0
        return np.asarray(out)

    diagonal = 1.0 - np.sum(components**2, axis=0)
    G, taken = _taken(residuals, diagonal, columns, lambda G: SHARE * np.sum(G**2, axis=1))
    return np.where(taken > 0, taken, G**2)


def _taken(
    G: Floats,
    diagonal: Floats,
    columns: Callable[[NDArray[np.intp]], Floats],
    least: Callable[[Floats], Floats],
) -> tuple[Floats, Floats]:
    """What the distance falls by with each cell that is taken, 0 for the others; and G without them.

    Only the columns of P that are taken are ever needed: P loses vvᵀ, v = u/√uⱼ, with each of them.
    """
    n, p = G.shape
    G, D, taken = G.copy(), np.tile(diagonal, (n, 1)), np.zeros((n, p))
    floor = TINY * max(float(np.max(diagonal, initial=0.0)), np.finfo(np.float64).tiny)
    V = np.zeros((min(MOST, p - 1), n, p))
    rows = np.arange(n)
    for step in range(len(V)):
        with np.errstate(over="ignore"):
            drop = np.where(D > floor, G**2 / np.where(D > floor, D, 1.0), 0.0)
        drop[taken > 0] = 0.0
        j = drop.argmax(axis=1)
        best = drop[np.arange(n), j]
        go = rows[(best > least(G)) & np.isfinite(best)]
        if not len(go):
            break
        k = j[go]
        u = columns(k) - np.einsum("sij,si->ij", V[:step][:, go], V[:step, go, k])
        v = u / np.sqrt(D[go, k])[:, None]
        G[go] -= v * (G[go, k] / np.sqrt(D[go, k]))[:, None]
        D[go] -= v**2
        G[go, k], taken[go, k] = 0.0, best[go]
        V[step, go] = v
    return G, taken
