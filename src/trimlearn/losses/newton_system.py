"""The Hessian H of a weighted sum of losses, as far as a Newton step has to know it: written out, or in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from trimlearn.losses.exact import solve_symmetric

NEGATIVE = 1e-6  # share of the largest diagonal entry below which −⟨v, Hv⟩/‖v‖² is rounding: differences give 1e-10
# What an eigenvalue of a matrix of unit diagonal may be by rounding: 2e-16 for each of thousands of terms that cancel
# in a Schur complement. Gauges, and blocks that no example determines, are left where they are.
FLAT = 1e-12


class NewtonSystem(ABC):
    """A symmetric matrix H of the order of x, which may be kept in any form that can be solved with.

    Vectors are flat NumPy arrays in float64. Nothing changes a system once it is made.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import DenseSystem
    >>> H = DenseSystem(np.array([[2.0, 0.0], [0.0, 0.0]]))
    >>> H.solve(np.array([4.0, 0.0])), H.plus(np.ones(2)).diagonal
    (array([2., 0.]), array([3., 1.]))
    """

    @property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Hⱼⱼ."""

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether all of H is."""

    @abstractmethod
    def plus(self, diagonal: np.ndarray) -> NewtonSystem:
        """H + diag(diagonal): damping, or a ridge."""

    @abstractmethod
    def times(self, d: np.ndarray) -> np.ndarray:
        """H d."""

    @abstractmethod
    def solve(self, g: np.ndarray) -> np.ndarray | None:
        """d with H d = g, 0 in directions that neither sees; None where H is 0 or negative along what is left of g."""

    @abstractmethod
    def matrix(self) -> np.ndarray:
        """H written out: for models of few parameters."""


@final
@dataclass(frozen=True)
class DenseSystem(NewtonSystem):
    """H written out.

    Parameters
    ----------
    H : array of shape (dim, dim)
        The matrix.

    Examples
    --------
    >>> import numpy as np
    >>> DenseSystem(np.diag([1.0, 4.0])).solve(np.ones(2))
    array([1.  , 0.25])
    """

    H: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return self.H.diagonal()

    @property
    def finite(self) -> bool:
        return bool(np.all(np.isfinite(self.H)))

    def plus(self, diagonal: np.ndarray) -> DenseSystem:
        H = self.H.copy()
        H.flat[:: len(H) + 1] += diagonal
        return DenseSystem(H)

    def times(self, d: np.ndarray) -> np.ndarray:
        return np.asarray(self.H @ d)

    def solve(self, g: np.ndarray) -> np.ndarray | None:
        """Losses of linear predictions have no negative H. Others may; `solve_symmetric` leaves those directions."""
        if _falls_without_end(self.diagonal, g):
            return None
        d = solve_symmetric(self.H, g[:, None])[:, 0]
        left = g - self.H @ d
        if left @ self.H @ left < -NEGATIVE * np.abs(self.diagonal).max() * (left @ left):
            return None
        return d

    def matrix(self) -> np.ndarray:
        return self.H


@final
@dataclass(frozen=True)
class SchurSystem(NewtonSystem):
    """H = [[B, E], [Eᵀ, C]] ⪰ 0 with a block-diagonal C, which is eliminated: B − E C⁻¹Eᵀ is factored (Cholesky).

    Parameters
    ----------
    B : array of shape (q, q)
        What the parameters that stay share among themselves.
    E : SciPy sparse array of shape (q, count·size)
        What they share with the others.
    C : array of shape (count, size, size)
        The blocks of the others.
    stay, go : integer arrays
        Where in x the parameters of B and those of C are.

    Notes
    -----
    Bundle adjustment has 9 parameters for each camera, 3 for each of many more points, and no two points share an
    observation: time and memory grow with the observations, and with the cube and square of the cameras only [1]_.

    References
    ----------
    .. [1] B. Triggs, P. McLauchlan, R. Hartley and A. Fitzgibbon, Bundle adjustment: a modern synthesis (2000), §6.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> E = sp.csr_array([[1.0, 0.0]])
    >>> H = SchurSystem(np.array([[2.0]]), E, np.ones((2, 1, 1)), np.array([0]), np.array([1, 2]))
    >>> H.matrix() @ H.solve(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    B: np.ndarray
    E: Any
    C: np.ndarray
    stay: np.ndarray
    go: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return self._joined(np.diag(self.B), np.diagonal(self.C, axis1=1, axis2=2).ravel())

    @property
    def finite(self) -> bool:
        return all(bool(np.all(np.isfinite(part))) for part in (self.B, self.E.data, self.C))

    def plus(self, diagonal: np.ndarray) -> SchurSystem:
        size = self.C.shape[1]
        added = diagonal[self.go].reshape(-1, size, 1) * np.eye(size)
        return replace(self, B=self.B + np.diag(diagonal[self.stay]), C=self.C + added)

    def times(self, d: np.ndarray) -> np.ndarray:
        a, b = d[self.stay], d[self.go]
        return self._joined(self.B @ a + self.E @ b, self.E.T @ a + _blocks(self.C, b))

    def solve(self, g: np.ndarray) -> np.ndarray | None:
        from scipy.sparse import bsr_array

        if _falls_without_end(self.diagonal, g):
            return None
        inverse, count = inverses(self.C), len(self.C)
        blocks = bsr_array((inverse, np.arange(count), np.arange(count + 1)), shape=(len(self.go),) * 2)
        EC = self.E @ blocks
        a = _solve_psd(self.B - (EC @ self.E.T).toarray(), g[self.stay] - EC @ g[self.go], np.diag(self.B))
        return self._joined(a, _blocks(inverse, g[self.go] - self.E.T @ a))

    def matrix(self) -> np.ndarray:
        H = np.zeros((len(self.stay) + len(self.go),) * 2)
        H[np.ix_(self.stay, self.stay)] = self.B
        H[np.ix_(self.stay, self.go)] = E = self.E.toarray()
        H[np.ix_(self.go, self.stay)] = E.T
        for block, at in zip(self.C, self.go.reshape(len(self.C), -1), strict=True):
            H[np.ix_(at, at)] = block
        return H

    def _joined(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        d = np.empty(len(a) + len(b))
        d[self.stay], d[self.go] = a, b
        return d


def _falls_without_end(diagonal: np.ndarray, g: np.ndarray) -> bool:
    """Whether a parameter has a gradient and no curvature: a loss that says so, one of kinks for example, is linear."""
    return bool(np.any((diagonal == 0) & (g != 0)))


def _blocks(C: np.ndarray, d: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("cij,cj->ci", C, d.reshape(C.shape[:2]))).ravel()


def inverses(C: np.ndarray) -> np.ndarray:
    """The inverse of every block, 0 in the directions that it does not see, whatever the scales of its parameters."""
    scale = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(C / scale[:, :, None] / scale[:, None, :])
    seen = values > FLAT
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    root = vectors / scale[:, :, None]
    return np.asarray((root * inverse[:, None, :]) @ root.transpose(0, 2, 1))


def _solve_psd(S: np.ndarray, g: np.ndarray, size: np.ndarray) -> np.ndarray:
    """S⁻¹g for a positive semidefinite S that was found as a difference of numbers of the given size.

    What is flat up to the rounding of that difference gets a curvature of it: a gradient that does not see such a
    direction, as one of a gauge does not, moves nothing along it.
    """
    from scipy.linalg import cho_factor, cho_solve

    if not len(g):
        return g
    scale = np.sqrt(np.where(size > 0, size, 1.0))
    A = S / scale / scale[:, None]
    flat = FLAT
    while True:
        try:
            factor = cho_factor(A + flat * np.eye(len(A)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding has made it less than it is
            flat *= 100.0
        else:
            return np.asarray(cho_solve(factor, g / scale, check_finite=False) / scale)
