"""The fused steps of one loss, as the rest of trimlearn calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, sum64
from trimlearn._utils.threads import each, team_size, total
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.storage import Csr

PIECES = 16  # that a step is cut into at most: more threads than that would have too little to do
PIECE_BYTES = 1 << 16  # of V in a piece, at least: 10 µs of reading, what waking a thread costs
PER_SUM = 16  # numbers of V in a piece for each of its own sum, at least: else adding those up is what takes the time
MOST = 4096  # rows in a piece: in float32 more of them would be added up than its digits can stand
TILE = 4  # rows that kernels take at a time


@final
class Fused:
    """The fused steps of one loss."""

    def __init__(self, loss: PredictionLoss, kernels: ModuleType) -> None:
        self._loss, self._rows, self._kernels = loss, loss.compiled(), kernels
        storage = loss.linear.storage
        self._sparse = isinstance(storage, Csr)
        self._V = (storage.V.data, storage.V.indices, storage.V.indptr) if self._sparse else np.asarray(storage.V)
        self._numbers = len(storage.V.data) / loss.n if self._sparse else loss.linear.p  # in a row, on average
        self._seen = np.zeros(0, np.int32)
        self._scratch: Any = None

    def difference(self, x: Array, c: Array, index: np.ndarray, table: np.ndarray) -> tuple[Array, np.ndarray]:
        """Σ cᵢ Aᵢᵀ(∇φᵢ(zᵢ) − tableᵢ) over the rows ``index``, and their residuals ∇φᵢ(zᵢ)."""
        new = np.empty((len(index), self._loss.K), table.dtype)
        W, offset = self._model(x)

        def part(at: slice, G: np.ndarray, r: np.ndarray) -> None:
            self._kernels.difference(self._V, index[at], W, offset, self._rows, table, c[at], new[at], G, r)

        return self._gradient(len(index), part), new

    def evaluate(self, x: Array, c: Array, table: np.ndarray) -> tuple[np.ndarray, Array]:
        """φᵢ(zᵢ) of all rows, and Σ cᵢ Aᵢᵀ∇φᵢ(zᵢ); table ← ∇φᵢ(zᵢ)."""
        f = np.empty(self._loss.n, table.dtype)
        W, offset = self._model(x)

        def part(at: slice, G: np.ndarray, sums: np.ndarray) -> None:
            self._kernels.evaluate(self._V, at.start, W, offset, self._rows, c[at], f[at], table[at], G, sums)

        return f, self._gradient(len(f), part)

    def column_moments(self, c: np.ndarray) -> tuple[float, Array, Array] | None:
        """As `trimlearn.losses.linear.Linear.column_moments`; None where no kernel is faster."""
        linear = self._loss.linear
        if self._sparse:
            return None
        from trimlearn.kernels.moments import moments

        center = np.zeros(linear.p) if linear.center is None else linear.center.astype(np.float64)
        per_scale = np.ones(linear.p) if linear.scale is None else 1 / linear.scale.astype(np.float64)

        def piece(at: slice) -> _GradientSums:
            sums = _GradientSums(np.zeros(linear.p), np.zeros(linear.p))
            moments(self._V, at.start, c[at], center, per_scale, sums.G, sums.r)
            return sums

        found = total(piece, self._cut(len(c)), _GradientSums(np.zeros(linear.p), np.zeros(linear.p)))
        mass = sum64(c)
        return mass, linear.coordinates(found.G, mass), linear.coordinates(found.r, mass)

    def distinct(self, drawn: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """The distinct rows of positive weight among those drawn, w·(times drawn)/b, and the draws of weight 0."""
        from trimlearn.kernels.rows import distinct

        return distinct(drawn, w, self._counter())

    def stretch(self, law: Any, model: Any, table: np.ndarray, w: np.ndarray) -> tuple[int, int, int]:
        """x-steps by `trimlearn.kernels.stretch`: how many, the rows they evaluated, and the draws of w = 0."""
        from trimlearn.kernels.stretch import run

        scratch = self._room(law.b, model.x)
        scratch.found[:] = scratch.meeting[:] = scratch.claims[:] = 0
        threads = min(team_size(), len(scratch.G) - 1)

        def work(thread: int) -> None:
            run(self._V, self._rows, table, w, law, model, scratch, self._sparse, thread, threads)

        each(work, range(threads))
        _, _, steps, rows, idle, *_ = scratch.found.tolist()
        return steps, rows, idle

    @property
    def ready(self) -> bool:
        """Whether the kernels of this loss lie compiled on disk."""
        from trimlearn.kernels.stretch import run
        from trimlearn.kernels.stretch_data import Law, MovingPoint

        typeof: Any = import_module("numba").typeof
        loss = self._loss
        kind = np.empty(0, loss.like.dtype)
        line, square, wide = kind[:0], kind.reshape(0, loss.K), np.empty((0, loss.K))
        law = Law(np.empty(2, np.uint64), 0, 0.0, 0, 0, 0.0, np.empty(0), False)
        model = MovingPoint(square, square, square, wide, wide, wide, 0.0, line, line)
        scratch = self._room(0, square)
        self._scratch = None
        steps = (self._V, self._rows, square, line, law, model, scratch, self._sparse, 0, 1)
        values = (self._V, 0, scratch.W, line, self._rows, line, line, square, scratch.W, np.empty(0))
        calls = ((run, steps), (self._kernels.evaluate, values))
        return all(_on_disk(kernel, tuple(typeof(value) for value in given)) for kernel, given in calls)

    def _counter(self) -> np.ndarray:
        if not len(self._seen):
            self._seen = np.zeros(self._loss.n, np.int32)
        return self._seen

    def _room(self, b: int, x: np.ndarray) -> Any:
        if self._scratch is None or len(self._scratch.drawn) != b:
            from trimlearn.kernels.stretch_data import StretchRoom, columns_of_block

            K, p, pieces, dtype = self._loss.K, self._loss.linear.p, self._pieces(b), x.dtype
            blocks = -(-p // columns_of_block(p))
            self._scratch = StretchRoom(
                u=np.empty(b + 1),
                drawn=np.empty(b, np.int64),
                rows=np.empty((2, b), np.int64),
                shares=np.empty(b, dtype),
                seen=self._counter(),
                new=np.empty((b, K), dtype),
                W=np.empty(self._shape, dtype),
                offsets=np.empty((blocks, K), dtype),
                G=np.empty((pieces + 1, *self._shape), dtype),
                totals=np.empty((pieces + 1, K)),
                before=np.empty((2, *x.shape), dtype),
                found=np.zeros(8, np.int64),
                meeting=np.zeros(16, np.int64),
                claims=np.zeros(8 * (pieces + 1), np.int64),
                blocks=np.zeros(8 * blocks, np.int64),
                columns=columns_of_block(p),
            )
        return self._scratch

    @property
    def _shape(self) -> tuple[int, int]:
        """Of W and G."""
        p, K = self._loss.linear.p, self._loss.K
        return (p, K) if self._sparse else (K, p)

    def _pieces(self, m: int) -> int:
        """How many pieces m rows are cut into: by the data alone, so that any number of threads gives the same sums."""
        linear = self._loss.linear
        enough = min(m * self._numbers / (PER_SUM * linear.p), m * linear.storage.row_bytes / PIECE_BYTES)
        return max(1, min(PIECES, int(enough)))

    def _cut(self, m: int) -> Iterator[slice]:
        """m rows in pieces."""
        step = max(1, min(-(-m // self._pieces(m)), MOST))
        step += -step % TILE
        return (slice(i, min(i + step, m)) for i in range(0, m, step))

    def _model(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        """W and offset as the kernels want them, Z = V W + offset."""
        W, offset = self._loss.linear.fold(x)
        W = np.ascontiguousarray(W if self._sparse else W.T)
        return W, np.zeros(self._loss.K, W.dtype) if offset is None else np.ascontiguousarray(offset)

    def _gradient(self, m: int, part: Callable[[slice, np.ndarray, np.ndarray], None]) -> Array:
        """The sum of what ``part`` adds for each piece of m rows, in their order."""
        linear = self._loss.linear

        def piece(at: slice) -> _GradientSums:
            sums = _GradientSums(np.zeros(self._shape, linear.like.dtype), np.zeros(self._loss.K))
            part(at, sums.G, sums.r)
            return sums

        zero = _GradientSums(np.zeros((), linear.like.dtype), np.zeros(self._loss.K))
        found = total(piece, self._cut(m), zero)
        return linear.unfold(found.G.T if self._sparse else found.G, found.r)


def _on_disk(kernel: Any, types: tuple[Any, ...]) -> bool:
    return types in kernel.overloads or kernel._cache.load_overload(types, kernel.targetctx) is not None


@final
@dataclass(frozen=True)
class _GradientSums:
    """Σ rᵢvᵢᵀ and Σ rᵢ over some rows."""

    G: np.ndarray
    r: np.ndarray

    def __add__(self, other: _GradientSums) -> _GradientSums:
        return _GradientSums(self.G + other.G, self.r + other.r)
