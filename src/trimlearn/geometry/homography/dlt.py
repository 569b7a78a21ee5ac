"""DLT, the direct linear transformation: the homography of least algebraic error, for many weights."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.linalg.lapack import dsyev  # of 9 × 9 in a third of the time of numpy.linalg

from trimlearn.geometry.homography.points import Floats, PointPairs

SIX = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # the entries of a symmetric matrix of three rows
ROWS = np.transpose(SIX)  # and columns
PLACE = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # which of SIX each entry is
KINDS = np.array([[0, 4, 1], [4, 0, 2], [1, 2, 3]])  # which factor of `PairMoments` a block of its matrix has; 4: none
# Which of its sums, SIX for each of four factors, each entry of that matrix is; the 25th is 0.
ENTRY = np.minimum(6 * np.kron(KINDS, np.ones((3, 3), np.int64)) + np.tile(PLACE, (3, 3)), 24)


@final
class PairMoments:
    """DLT for many weights: Σ wᵢAᵢᵀAᵢ, 9 × 9, is made of Σ w aaᵀ times 1, −u, −v and u² + v², for src a, dst (u, v).

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> H = PairMoments(PointPairs(square, 3.0 * square)).minimiser(np.ones(4))
    >>> ((H / H[2, 2]).round(9) + 0.0).tolist()
    [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, pairs: PointPairs) -> None:
        a, (u, v) = pairs.lifted[0], pairs.dst.T
        squares, factors = np.array([a[i] * a[j] for i, j in SIX]), np.array([a[2], -u, -v, u * u + v * v])
        self._products = np.zeros((25, len(u)))
        np.multiply(squares, factors[:, None], out=self._products[:24].reshape(4, 6, -1))

    def minimiser(self, w: Floats) -> Floats:
        """The unit H between these points with the smallest Σ wᵢ‖Aᵢh‖², for each w (..., n)."""
        matrices = self._matrix(w).reshape(-1, 9, 9)  # weights for two at most
        return np.array([dsyev(B)[1][:, 0] for B in matrices]).reshape(*w.shape[:-1], 3, 3)

    def leverages(self, w: Floats) -> Floats:
        """½ tr(Aᵢ B⁺ Aᵢᵀ) with B = Σ wᵢAᵢᵀAᵢ, for every match: the variance of that minimiser there, by the noise's.

        It is a sum of the same products: for symmetric C = B⁺ in blocks of 3 × 3, aᵀ(C₀₀ + C₁₁ − 2uC₀₂ − 2vC₁₂ +
        (u² + v²)C₂₂)a.
        """
        values, vectors, _ = dsyev(self._matrix(w))
        if values[1] <= np.finfo(np.float64).eps * values[-1]:
            return np.full(len(w), np.inf)
        C = ((vectors[:, 1:] / values[1:]) @ vectors[:, 1:].T).reshape(3, 3, 3, 3).swapaxes(1, 2)
        blocks = np.array([C[0, 0] + C[1, 1], 2.0 * C[0, 2], 2.0 * C[1, 2], C[2, 2]])
        rows, columns = ROWS
        factors = blocks[:, rows, columns] + (rows != columns) * blocks[:, columns, rows]
        return np.asarray(0.5 * factors.ravel() @ self._products[:24])

    def _matrix(self, w: Floats) -> Floats:
        """B for each w (..., n)."""
        return np.asarray((w @ self._products.T).take(ENTRY, axis=-1))
