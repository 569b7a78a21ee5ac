"""Sums over rows on a device, by torch: what every engine operation is made of, whole or in large pieces.

Models and gradients are matrices as `trimlearn.engines.cuda.layout` has them. Nothing here waits for the device, so
that all of it can be captured in a CUDA graph; all of it works for tensors in the host's memory too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.losses.base import PredictionLoss, select, weighted

PIECE = 1 << 26  # numbers of V that are converted or squared at a time: 0.5 GB in float64, on devices of 16 GB and more

Piece = slice | Tensor


class TorchRows:
    """The losses of all rows, and the table of their residuals."""

    def __init__(self, loss: PredictionLoss, layout: MatrixLayout) -> None:
        self.loss, self.layout = loss, layout
        self.n, self.p, self.like = loss.n, loss.linear.p, loss.like
        self.table: Tensor = self.like.new_zeros((loss.n, loss.K))
        self.apart = False  # whether `refresh`, and `pull` when weights are known, are faster than `evaluate`

    def refresh(self, X: Tensor) -> Tensor:
        """φᵢ of every row; the table ← ∇φᵢ."""
        f, storage = self.like.new_empty((self.n,)), self.loss.linear.storage
        for at in self._pieces(slice(0, self.n)):
            f[at], self.table[at] = self.loss.evaluate(self._predict(storage.fetch(at), X), at)
        return f

    def evaluate(self, X: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """φᵢ of every row, and Σ cᵢAᵢᵀ∇φᵢ; the table ← ∇φᵢ."""
        f = self.like.new_empty((self.n,))

        def residuals(B: Tensor, at: Piece) -> Tensor:
            f[at], r = self.loss.evaluate(self._predict(B, X), at)
            self.table[at] = r
            return weighted(r, c[at])

        return f, self._sum(residuals)

    def values(self, X: Tensor) -> Tensor:
        """φᵢ of every row."""
        storage = self.loss.linear.storage
        pieces = self._pieces(slice(0, self.n))
        return torch.cat([self.loss.phi(self._predict(storage.fetch(at), X), at) for at in pieces])

    def value_gradient(self, X: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Σ cᵢφᵢ in float64, and Σ cᵢAᵢᵀ∇φᵢ."""
        values: list[Tensor] = []

        def residuals(B: Tensor, at: Piece) -> Tensor:
            f, r = self.loss.evaluate(self._predict(B, X), at)
            values.append(weighted(f, c[at]).sum(dtype=torch.float64))
            return weighted(r, c[at])

        gradient = self._sum(residuals)
        return torch.stack(values).sum(), gradient

    def pull(self, c: Tensor) -> Tensor:
        """Σ cᵢAᵢᵀ tableᵢ."""
        return self._sum(lambda B, at: weighted(self.table[at], c[at]))

    def difference(self, X: Tensor, rows: Piece, c: Tensor) -> tuple[Tensor, Tensor]:
        """Σ cᵢAᵢᵀ(∇φᵢ − tableᵢ) over ``rows``, and ∇φᵢ of each."""
        found: list[Tensor] = []

        def residuals(B: Tensor, at: Piece) -> Tensor:
            found.append(self.loss.residual(self._predict(B, X), at))
            return weighted(found[-1] - select(self.table, at), c if at is rows else c[at])

        gradient = self._sum(residuals, rows)
        return gradient, torch.cat(found)

    def hessp(self, X: Tensor, U: Tensor, rows: Piece, c: Tensor) -> Tensor:
        """Σ cᵢAᵢᵀ∇²φᵢAᵢu over ``rows``."""

        def products(B: Tensor, at: Piece) -> Tensor:
            product = self.loss.phi_hessp(self._predict(B, X), self._predict(B, U), at)
            return weighted(product, c if at is rows else c[at])

        return self._sum(products, rows)

    def curve(self, X: Tensor, U: Tensor, rows: Tensor, w: Tensor) -> Tensor:
        """The Hessian of 1/m Σ wᵢφᵢ over m ``rows``, those drawn twice counted twice, times u."""
        rows = rows.long()
        return self.hessp(X, U, rows, w.index_select(0, rows) / rows.shape[0])

    def moments(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Σ cᵢaᵢⱼ² and Σ cᵢaᵢⱼ⁴ of every column of V, in float64: float32 does not hold every square."""
        linear = self.loss.linear
        second = fourth = c.new_zeros(self.p, dtype=torch.float64)
        for at in self._pieces(slice(0, self.n)):
            share = c[at].to(torch.float64)
            Q = linear.storage.V[at].to(torch.float64, copy=True)
            Q = Q if linear.center is None else Q.sub_(linear.center)
            Q = (Q if linear.scale is None else Q.div_(linear.scale)).square_()
            if self.like.dtype == torch.float64:  # else no square is infinite
                Q.masked_fill_((share == 0)[:, None], 0.0)
            second = second + share @ Q
            fourth = fourth + share @ Q.square_()
        return second, fourth

    def _predict(self, B: Tensor, X: Tensor) -> Tensor:
        W, offset = self.loss.linear.fold(self.layout.x(X))
        Z = B @ W
        return Z if offset is None else Z + offset

    def _sum(self, residuals: Callable[[Tensor, Piece], Tensor], rows: Piece | None = None) -> Tensor:
        """Σ Aᵢᵀrᵢ with r = residuals(V[piece], piece), as a matrix."""
        linear = self.loss.linear
        G: Any = 0.0
        total: Any = 0.0
        for at in self._pieces(slice(0, self.n) if rows is None else rows):
            B = linear.storage.fetch(at)
            r = residuals(B, at)
            G, total = r.T @ B + G, r.sum(0, dtype=torch.float64) + total
        out = self.like.new_zeros(self.layout.shape)
        self.layout.x(out).copy_(linear.unfold(G, total))
        return out

    def _pieces(self, rows: Piece) -> Iterator[Piece]:
        """All rows of a slice, in pieces; rows by index as they are."""
        if not isinstance(rows, slice):
            yield rows
            return
        step = max(1, PIECE // self.p)
        for first in range(0, self.n, step):
            yield slice(first, min(first + step, self.n))
