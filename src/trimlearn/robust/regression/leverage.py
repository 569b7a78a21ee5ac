"""The leverages of all rows while rows are exchanged one at a time."""

from __future__ import annotations

from typing import final

import numpy as np

__all__ = ["Leverages"]

FEW = 8  # times the rows that changed are at most as many as columns: then an update is the cheaper way
AGAIN = 20  # updates until all is computed anew: each adds a rounding of its own
CONDITION = 1e6  # of G up to which updates keep ten digits


@final
class Leverages:
    """G⁻¹ for G = Σ cᵢqᵢqᵢᵀ, and qᵢᵀG⁻¹qᵢ for every row of Q, at masses c that change little from call to call.

    >>> Q, c = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.ones(3)
    >>> Leverages(Q).at(c, Q.T @ Q)[1].round(6)
    array([0.833333, 0.333333, 0.833333])
    """

    def __init__(self, Q: np.ndarray) -> None:
        self._Q, self._c = Q, np.empty(0)
        self._updates = AGAIN

    def at(self, c: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(G⁻¹, leverages)."""
        change = c - self._c if len(self._c) else c
        rows = np.flatnonzero(change)
        if self._updates >= AGAIN or FEW * len(rows) > len(G):
            self._anew(G)
        elif len(rows):
            self._update(rows, change[rows])
        self._c = c
        return self._inverse, self._lever

    def _anew(self, G: np.ndarray) -> None:
        self._inverse = np.linalg.inv(G)
        self._lever = np.einsum("ij,ij->i", self._Q, self._Q @ self._inverse)
        fine = np.abs(G).sum(axis=0).max() * np.abs(self._inverse).sum(axis=0).max() < CONDITION
        self._updates = 0 if fine else AGAIN

    def _update(self, rows: np.ndarray, change: np.ndarray) -> None:
        """By the formula of Sherman, Morrison and Woodbury."""
        Z = self._Q[rows]
        B = self._inverse @ Z.T
        T = self._Q @ B
        S = np.diag(1.0 / change) + Z @ B
        self._lever = self._lever - np.einsum("ik,ik->i", T, np.linalg.solve(S, T.T).T)
        self._inverse = self._inverse - B @ np.linalg.solve(S, B.T)
        self._updates += 1
