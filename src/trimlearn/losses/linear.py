"""The linear layer: from the model x to one prediction zᵢ per example, and back."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from math import ceil
from typing import Any, TypedDict

import numpy as np
from array_api_compat import device

from trimlearn._utils.arrays import Array, namespace, sum64, to_numpy
from trimlearn._utils.validation import check_count, check_matrix, check_vector
from trimlearn.losses.storage import SQUARE_BYTES, Rows, Storage, open_storage

CHUNK = 4096  # rows whose predictions are held at a time: a limit on memory, 0.3 MB for ten classes


class Layer(TypedDict, total=False):
    """The options of `Linear` that a loss hands on."""

    intercept: bool
    center: Any
    scale: Any


class Linear:
    """The map x ↦ Z = ((V − center)/scale) X + intercept, whose row i is zᵢ = Aᵢx ∈ R^K, and its adjoint.

    Centre, scale and intercept live here, so that V is never copied and a sparse V never centred:
    ((V − c)/s) X = V (X/s) − cᵀ(X/s).

    Parameters
    ----------
    V : array, sparse matrix, tensor or Storage of shape (n, p)
        NumPy array, np.memmap, torch tensor, or scipy CSR (other sparse formats are converted to CSR). Row-major
        (C order) is the one to choose: rows of a column-major V are some 20 times slower to gather.
        Integer, bool and 16-bit float V are converted piece by piece, never as a whole: 8- and 16-bit types to
        float32, the rest to float64. The rows of a `Storage` are taken as they are, and not looked at before.
    K : int or None
        How many numbers a prediction has. None: one, and x is a vector.
    intercept : bool
        Whether x has one more row, the last, that is added to every prediction.
    center, scale : array of shape (p,), optional
        Subtracted from, then divided into, the columns of V. In float32, centre by what is not much larger than the
        spread of a column: the difference is taken after the product.
    transpose : bool
        Whether x is stored as (K, p) and not as (p, K).
    name : str
        What error messages call V.

    Examples
    --------
    >>> import numpy as np
    >>> layer = Linear(np.array([[1.0, 2.0], [3.0, 4.0]]), intercept=True)
    >>> layer.x_shape
    (3,)
    >>> layer.predict(np.array([1.0, 0.0, 10.0]))
    array([[11.],
           [13.]])
    >>> layer.adjoint(np.array([[1.0], [1.0]]))
    array([4., 6., 2.])
    """

    def __init__(
        self,
        V: Any,
        *,
        K: int | None = None,
        intercept: bool = False,
        center: Any = None,
        scale: Any = None,
        transpose: bool = False,
        name: str = "V",
    ) -> None:
        self.storage = V if isinstance(V, Storage) else open_storage(check_matrix(V, name))
        self.n, self.p, self.like = self.storage.n, self.storage.p, self.storage.like
        self.K = K if K is None else check_count(K, "K")
        self.intercept = intercept
        self.center = None if center is None else check_vector(center, self.p, self.like, "center")
        self.scale = None if scale is None else check_vector(scale, self.p, self.like, "scale", positive=True)
        if transpose and K is None:
            raise ValueError("transpose=True needs K: a vector x has no transpose.")
        self.transpose = transpose
        rows = self.p + intercept
        self.x_shape: tuple[int, ...] = (rows,) if K is None else (K, rows) if transpose else (rows, K)

    def widened(self, K: int) -> Linear:
        """The same layer with K predictions per row."""
        other, rows = copy(self), self.p + self.intercept
        other.K = check_count(K, "K")
        other.x_shape = (other.K, rows) if self.transpose else (rows, other.K)
        return other

    def recentred(self, center: Any) -> Linear:
        """The same layer with another centre: its predictions are the old ones where x is `carried` there."""
        other = copy(self)
        other.center = check_vector(center, self.p, self.like, "center")
        return other

    def carried(self, x: Array, to: Linear) -> Array:
        """The x of ``to``, a layer that differs in its centre, with the predictions that x has here.

        Coefficients stay; the intercept b takes up the difference of the centres, b + ⟨c_to − c_here, β/scale⟩.
        """
        if not self.intercept or tuple(x.shape) != self.x_shape:
            raise ValueError(f"x must have shape {self.x_shape} and end in an intercept, got {tuple(x.shape)}.")
        xp = namespace(x)
        X = xp.astype(x.T if self.transpose else x, xp.float64)
        (here, scale), (there, _) = self._transform(), to._transform()
        shift = ((there - here) / scale) @ X[:-1]
        moved = xp.astype(xp.concat([X[:-1], X[-1:] + shift[None]]), x.dtype)
        return moved.T if self.transpose else moved

    def pieces(self, rows: Rows = None) -> Iterator[tuple[slice, Rows]]:
        """``rows`` in pieces to be held at a time, each with where it stands among them.

        Slices are cut where their predictions would fill memory, index arrays already where the rows gathered would.
        """
        if rows is None or isinstance(rows, slice):
            numbers: Any = range(self.n)[rows or slice(None)]
            step = CHUNK
        else:
            numbers, step = rows, self.storage.gathered_at_a_time
        step = ceil(len(numbers) / max(1, ceil(len(numbers) / step))) or 1  # pieces of one size
        for start in range(0, len(numbers), step):
            part = slice(start, min(start + step, len(numbers)))
            piece = numbers[part]
            yield part, slice(piece.start, piece.stop, piece.step) if isinstance(piece, range) else piece

    def predict(self, x: Array, rows: Rows = None) -> Array:
        """Z of shape (m, K), 2-D also when K is None."""
        return Block(self, rows).predict(x)

    def adjoint(self, r: Array, rows: Rows = None) -> Array:
        """Σ Aᵢᵀ rᵢ over ``rows``, in the shape of x; r is (m, K)."""
        return Block(self, rows).adjoint(r)

    def row_norms2(self) -> Array:
        """‖Aᵢ‖² for every row, intercept included, summed in float64."""
        xp = namespace(self.like)
        center, scale = self._transform()
        pieces = self.storage.cut_slice(slice(0, self.n), SQUARE_BYTES)
        squares = (self.storage.squares(rows, center, scale) for rows in pieces)
        parts = [Q @ xp.ones_like(q) + (xp.sum(q) + self.intercept) for Q, q in squares]
        return xp.astype(xp.concat(parts), self.like.dtype)

    def column_moments(self, c: Array) -> tuple[float, Array, Array]:
        """Σ cᵢ, and Σ cᵢa_ij² and Σ cᵢa_ij⁴ for every coordinate j of x: sums, so that those of parts can be added.

        The last two broadcast to x. Rows with cᵢ = 0 are not looked at. In float64: float32 does not hold every square.
        """
        xp = namespace(self.like)
        center, scale = self._transform()

        second = fourth = xp.zeros_like(center)
        for rows in self.storage.cut_slice(slice(0, self.n), SQUARE_BYTES):  # too small for threads
            kept = xp.nonzero(c[rows])[0]
            share = xp.astype(c[rows][kept], xp.float64)
            squares, fourths = self.storage.moments(kept + rows.start, share, center, scale)
            second, fourth = second + squares, fourth + fourths
        total = sum64(c)
        return total, self.coordinates(second, total), self.coordinates(fourth, total)

    def column_means(self, c: Array) -> Array:
        """Σ cᵢvᵢ/Σ cᵢ, of the rows of V as they are; 0 where c is."""
        means = sum(c[rows] @ self.storage.fetch(rows) for _, rows in self.pieces())
        return means / (sum64(c) or 1.0)

    def coordinates(self, columns: Array, intercept: float) -> Array:
        """A number per column of V, and that of the intercept, as an array that broadcasts to x."""
        xp = namespace(self.like)
        if self.intercept:
            columns = xp.concat([columns, xp.full_like(columns[:1], intercept)])
        if self.K is None:
            return columns
        return columns[None, :] if self.transpose else columns[:, None]

    def design(self, rows: slice | Array) -> np.ndarray:
        """The rows Aᵢ (for K = 1) written out, in float64."""
        A = self.storage.written_out(rows)
        if self.center is not None:
            A -= to_numpy(self.center)
        if self.scale is not None:
            A /= to_numpy(self.scale)
        return np.column_stack([A, np.ones(len(A))]) if self.intercept else A

    def fold(self, x: Array) -> tuple[Array, Array | None]:
        """(W, offset) with Z = V W + offset; None where there is none."""
        if tuple(x.shape) != self.x_shape:
            raise ValueError(f"x must have shape {self.x_shape}, got {tuple(x.shape)}.")
        X = x if x.dtype == self.like.dtype else namespace(self.like).astype(x, self.like.dtype)
        if self.K is None:
            X = X[:, None]
        elif self.transpose:
            X = X.T
        W, offset = X[: self.p], X[self.p] if self.intercept else None
        if self.scale is not None:
            W = W / self.scale[:, None]
        if self.center is not None:
            shift = self.center @ W
            offset = -shift if offset is None else offset - shift
        return W, offset

    def unfold(self, G: Array, total: Array | None) -> Array:
        """Σ Aᵢᵀ rᵢ from G = rᵀV (K, p): the adjoint of `fold`. ``total``: Σ rᵢ (K,), in float64, which only a centre or
        an intercept asks for."""
        xp = namespace(self.like)
        column = None if total is None else xp.astype(total, self.like.dtype)[:, None]
        if self.center is not None:
            G = G - column * self.center
        if self.scale is not None:
            G = G / self.scale
        if self.intercept:
            G = xp.concat([G, column], axis=1)
        if self.K is None:
            return G[0]
        return G if self.transpose else G.T

    def _transform(self) -> tuple[Array, Array]:
        """Centre and scale in float64, on the device of V."""
        xp = namespace(self.like)
        none = xp.zeros(self.p, dtype=xp.float64, device=device(self.like))
        center = none if self.center is None else xp.astype(self.center, xp.float64)
        scale = none + 1 if self.scale is None else xp.astype(self.scale, xp.float64)
        return center, scale


class Block:
    """Some rows of a `Linear` layer, read once: `predict`, then `adjoint`, cost one pass over the memory of V.

    Rows of a NumPy array that were gathered by index lie in a buffer the layer uses again: such a block is good
    until the next gather, and raises RuntimeError after it. Blocks of slices, of torch and of CSR rows last.

    Parameters
    ----------
    linear : Linear
        The layer.
    rows : slice, array of int or None
        Which of its rows; None: all of them.

    Examples
    --------
    >>> import numpy as np
    >>> layer = Linear(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    >>> block = Block(layer, np.array([0, 2]))
    >>> z = block.predict(np.array([1.0, 1.0]))
    >>> z
    array([[ 3.],
           [11.]])
    >>> block.adjoint(z - 1.0)
    array([52., 64.])
    """

    def __init__(self, linear: Linear, rows: Rows) -> None:
        storage = linear.storage
        if rows is None or isinstance(rows, slice):
            start, stop, stride = (rows or slice(None)).indices(linear.n)
            if stride < 1:
                raise ValueError(f"rows must be a slice with a step >= 1, got {rows}.")
            rows = slice(start, max(start, stop), stride)
            self.m = len(range(linear.n)[rows])
        else:
            self.m = len(rows)
        self.linear = linear
        self._pieces = storage.cut(rows)
        self._kept = storage.fetch(self._pieces[0]) if len(self._pieces) == 1 else None
        self._generation = None if isinstance(rows, slice) else storage.scratch.generation

    def predict(self, x: Array) -> Array:
        """Z of shape (m, K)."""
        W, offset = self.linear.fold(x)
        parts = [B @ W for B in self._matrices()]
        Z = parts[0] if len(parts) == 1 else namespace(self.linear.like).concat(parts)
        if offset is not None:
            Z += offset
        return Z

    def adjoint(self, r: Array) -> Array:
        """Σ Aᵢᵀ rᵢ in the shape of x; r is (m, K)."""
        K = self.linear.K or 1
        if tuple(r.shape) != (self.m, K):
            raise ValueError(f"r must have shape {(self.m, K)}, got {tuple(r.shape)}.")
        xp = namespace(self.linear.like)
        r = xp.astype(r, self.linear.like.dtype, copy=False)
        G, start = 0.0, 0
        for B in self._matrices():
            stop = start + B.shape[0]
            G = r[start:stop].T @ B + G
            start = stop
        asked_for = self.linear.intercept or self.linear.center is not None
        return self.linear.unfold(G, xp.sum(r, axis=0, dtype=xp.float64) if asked_for else None)

    def _matrices(self) -> Iterator[Array]:
        """The rows, piece by piece. One piece was kept from the start; more would not fit and are read again."""
        storage = self.linear.storage
        if self._kept is None:
            yield from map(storage.fetch, self._pieces)
            return
        if self._generation is not None and self._generation != storage.scratch.generation:
            raise RuntimeError("This block's rows were overwritten by a later gather; use one block at a time.")
        yield self._kept
