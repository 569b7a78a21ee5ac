"""Affine subspaces, "flats" for short; the rows that they are fitted to, on data of any size; and their spectrum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from trimlearn._utils.threads import each, total
from trimlearn._utils.validation import is_sparse
from trimlearn.losses.storage import Csr, Storage, open_storage

__all__ = ["Flat", "Points", "dimensions_for", "spectrum"]

PIECE: Final = 1 << 19  # entries of X written out in float64 at a time, a limit on memory: 4 MiB


@final
@dataclass(frozen=True)
class Flat:
    """The affine subspace m + span U; U is p × k with orthonormal columns."""

    U: np.ndarray
    m: np.ndarray

    def completed(self, k: int) -> Flat:
        """With any directions added, where it has fewer than k."""
        p, has = self.U.shape
        if has >= k:
            return self
        more = np.linalg.qr(np.hstack([self.U, np.eye(p)]))[0][:, has:k]
        return Flat(np.hstack([self.U, more]), self.m)


@final
class Points:
    """The rows a₁ … aₙ of X: dense, memory-mapped or CSR. They are read piece by piece, and met in float64.

    scale: what each column is divided by, as it is read; a sparse X is copied for it.
    """

    def __init__(self, X: Any, scale: np.ndarray | None = None) -> None:
        if is_sparse(X):
            X = sp.csr_array(X)
            X, scale = X if scale is None else sp.csr_array(X * (1.0 / scale)), None
        self.storage: Storage = open_storage(X if is_sparse(X) else np.asarray(X))
        self.scale = scale
        self.n, self.p = self.storage.n, self.storage.p

    def pieces(self) -> list[slice]:
        """The rows in slices that may be written out."""
        step = max(1, PIECE // self.p)
        return [slice(i, min(i + step, self.n)) for i in range(0, self.n, step)]

    def around(self, m: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """aᵢ − m for some rows, as a new array."""
        D = self.storage.written_out(rows)
        if self.scale is not None:
            D /= self.scale
        D -= m
        return D

    def scores(self, flat: Flat) -> np.ndarray:
        """Uᵀ(aᵢ − m): coordinates within the flat, n × k."""
        return self._concat(lambda rows: self._meet(flat, rows)[0])

    def distances2(self, flat: Flat) -> np.ndarray:
        """‖(I − UUᵀ)(aᵢ − m)‖²: squared orthogonal distances."""
        return self._concat(lambda rows: self._meet(flat, rows)[1])

    def both(self, flat: Flat) -> tuple[np.ndarray, np.ndarray]:
        """`scores` and `distances2` for one reading of X."""
        found = each(lambda rows: self._meet(flat, rows), self.pieces())
        return np.concatenate([z for z, _ in found]), np.concatenate([r for _, r in found])

    def residuals(self, flat: Flat, rows: np.ndarray) -> np.ndarray:
        """(I − UUᵀ)(aᵢ − m) of some rows, along orthogonal axes of the directions left out."""
        D = self.around(flat.m, rows)
        D -= (D @ flat.U) @ flat.U.T
        axes = np.linalg.svd(D, full_matrices=False)[2][: self.p - flat.U.shape[1]]
        return np.asarray(D @ axes.T)

    def _concat(self, task: Callable[[slice], np.ndarray]) -> np.ndarray:
        return np.concatenate(each(task, self.pieces()))

    def _meet(self, flat: Flat, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.storage, Csr):
            return _meet_sparse(self.storage, flat, rows)
        D = self.around(flat.m, rows)
        Z = D @ flat.U
        D -= Z @ flat.U.T  # the residual itself: ‖a‖² − ‖z‖² would lose what is small against ‖a‖²
        with np.errstate(over="ignore"):  # infinitely far: such a row is trimmed
            return Z, np.einsum("ij,ij->i", D, D)

    def moments(self, c: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ cᵢ(aᵢ − m)/Σcᵢ and Σ cᵢ(aᵢ − m)(aᵢ − m)ᵀ/Σcᵢ. Pieces without weight are not read."""
        share = c / c.sum()

        def term(rows: slice) -> np.ndarray:
            kept = np.flatnonzero(share[rows]) + rows.start
            return self._moments_of(kept if len(kept) < rows.stop - rows.start else rows, share, m)

        found = total(term, [rows for rows in self.pieces() if share[rows].any()], np.zeros((1 + self.p, self.p)))
        return found[0], found[1:]

    def _moments_of(self, rows: slice | np.ndarray, share: np.ndarray, m: np.ndarray) -> np.ndarray:
        c = share[rows]
        if isinstance(self.storage, Csr):
            B = self.storage.fetch(rows).astype(np.float64)
            mean, square = c @ B, (B.T @ (B * c[:, None])).toarray()
            square += np.outer(m, m) * c.sum() - np.outer(mean, m) - np.outer(m, mean)
            return np.vstack([mean - c.sum() * m, square])
        D = self.around(m, rows)
        mean = c @ D
        D *= np.sqrt(c)[:, None]
        return np.vstack([mean, D.T @ D])

    def pull(self, c: np.ndarray, flat: Flat) -> np.ndarray:
        """Σ cᵢ(aᵢ − m)zᵢᵀ/Σcᵢ with the scores z, p × k: a step of power iteration."""
        share = c / c.sum()

        def term(rows: slice) -> np.ndarray:
            if isinstance(self.storage, Csr):
                B = self.storage.fetch(rows).astype(np.float64)
                Z = share[rows][:, None] * (B @ flat.U - flat.m @ flat.U)
                return np.asarray(B.T @ Z - np.outer(flat.m, Z.sum(axis=0)))
            D = self.around(flat.m, rows)
            return np.asarray(D.T @ (share[rows][:, None] * (D @ flat.U)))

        return total(term, self.pieces(), np.zeros(flat.U.shape))

    def mean(self, c: np.ndarray) -> np.ndarray:
        """Σ cᵢaᵢ/Σcᵢ."""
        share, read = c / c.sum(), self.storage.fetch
        mean = total(lambda r: np.asarray(share[r] @ read(r).astype(np.float64)), self.pieces(), np.zeros(self.p))
        return mean if self.scale is None else mean / self.scale


def _meet_sparse(storage: Csr, flat: Flat, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Scores and squared distances without writing out or centring rows."""
    B = storage.fetch(rows).astype(np.float64)
    Z = B @ flat.U - flat.m @ flat.U
    Q, q = storage.squares(rows, flat.m, np.ones_like(flat.m))
    return Z, np.maximum(Q @ np.ones(storage.p) + q.sum() - np.sum(Z * Z, axis=1), 0.0)


def spectrum(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a covariance matrix, the largest first, and their eigenvectors as columns."""
    p = len(M)
    if k == 0:
        return np.empty(0), np.empty((p, 0))
    values, vectors = eigh(M, subset_by_index=(p - k, p - 1) if k < p else None, check_finite=False)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def dimensions_for(variances: np.ndarray, share: float) -> int:
    """How many of the variances, the largest first, make up ``share`` of their sum; of zeros, one."""
    parts = np.cumsum(variances) / max(float(variances.sum()), float(np.finfo(np.float64).tiny))
    return max(1, min(len(parts), 1 + int(np.searchsorted(parts, share, side="right"))))
