"""Rows on their way to the workers: from memory, from files, from Dask's own collections; and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from trimlearn._utils.blocks import rows_apart
from trimlearn._utils.validation import is_missing, is_sparse
from trimlearn.engines.cluster.workers import Workers


@final
@dataclass(frozen=True, eq=False)
class ShardRows:
    """The rows of one shard on their worker: features, targets and sample weights, None where every row counts once.

    shared: V is also that of another block, whose memory it counts as.
    """

    V: Any
    t: np.ndarray
    s: np.ndarray | None = None
    shared: bool = False

    def __sizeof__(self) -> int:
        data = self.V.data if is_sparse(self.V) else self.V
        own = self.t.nbytes + (0 if self.s is None else self.s.nbytes)
        return int(own if self.shared else own + data.nbytes)

    def with_targets(self, t: np.ndarray) -> ShardRows:
        """The same rows with other targets."""
        return replace(self, t=t, shared=True)

    def weighed(self, w: np.ndarray) -> ShardRows:
        """The same rows, each of which counts w times as much."""
        return replace(self, s=w if self.s is None else w * self.s, shared=True)


@final
@dataclass(frozen=True)
class Facts:
    """What is known here of the rows of a shard."""

    n: int
    p: int
    dtype: str
    mass: float  # Σs, or n
    weighted: bool
    bad: str = ""  # what is wrong with them, with the number of the row


def facts(block: ShardRows) -> Facts:
    """What a worker tells about its rows."""
    n, p = block.V.shape
    mass = float(n) if block.s is None else float(np.sum(block.s, dtype=np.float64))
    return Facts(int(n), int(p), str(block.V.dtype), mass, block.s is not None, _wrong(block))


def _wrong(block: ShardRows) -> str:
    n = block.V.shape[0]
    for name, length in (("y", len(block.t)), ("sample_weight", n if block.s is None else len(block.s))):
        if length != n:
            return f"X has {n} rows and {name} {length}"
    missing = (
        [row for row, label in enumerate(block.t.tolist()) if is_missing(label)] if block.t.dtype == object else []
    )
    if missing:
        return f"y holds no label in row {missing[0]}"
    entries = block.V.data if is_sparse(block.V) else block.V
    for name, values in (("X", entries), ("y", block.t), ("sample_weight", block.s)):
        if values is None or values.dtype.kind != "f":
            continue
        if not np.isfinite(np.sum(values, dtype=np.float64)) and not (finite := np.isfinite(values)).all():
            row = "" if values is block.V.data or values.ndim == 0 else f" in row {int(np.argwhere(~finite)[0][0])}"
            return f"{name} holds NaN or infinity{row}"
    if block.s is not None and np.any(block.s < 0):
        return f"sample_weight is negative in row {int(np.flatnonzero(block.s < 0)[0])}"
    return ""


def check_agreement(found: Sequence[Facts], names: Sequence[str]) -> None:
    """ValueError, naming the shard, unless all have the same width and dtype, and no row that cannot be used."""
    there = [i for i, facts in enumerate(found) if facts.n]
    if not there:
        raise ValueError("X has no rows in any of its shards.")
    first = found[there[0]]
    for i in there:
        if found[i].bad:
            raise ValueError(f"{found[i].bad} of {names[i]} (counted from its own first row).")
        for what, one, other in (("columns", first.p, found[i].p), ("dtype", first.dtype, found[i].dtype)):
            if one != other:
                raise ValueError(
                    f"shards must agree: {names[there[0]]} has {what} {one}, {names[i]} has {what} {other}; "
                    "bring them to one form first."
                )


def assemble(V: list[Any], t: list[Any], s: list[Any] | None) -> ShardRows:
    """The pieces of a shard, one below the other. Data frames become arrays."""
    arrays = [piece if is_sparse(piece) else _numbers(piece) for piece in V]
    kept = [i for i, piece in enumerate(arrays) if piece.shape[0]] or [0]
    if any(map(is_sparse, arrays)):
        pieces: Any = [arrays[i] for i in kept]
        rows: Any = sp.csr_array(sp.vstack(pieces, format="csr"))
    else:
        rows = np.ascontiguousarray(arrays[0]) if len(arrays) == 1 else np.concatenate([arrays[i] for i in kept])
    if not is_sparse(rows) and rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got {rows.dtype}; encode text and categories first.")
    return ShardRows(rows, _column(t, kept), None if s is None else _column(s, kept).astype(np.float64))


def _numbers(piece: Any) -> np.ndarray:
    """An array, or a data frame, as a matrix: of a frame's columns the common dtype, missing entries as NaN."""
    if not hasattr(piece, "dtypes") or not hasattr(piece, "columns"):
        return np.asarray(piece)
    kinds = []
    for name, kind in piece.dtypes.items():
        plain = getattr(kind, "numpy_dtype", kind)  # that of pandas' own types for numbers that may be missing
        if not isinstance(plain, np.dtype) or plain.kind not in "biuf":
            raise ValueError(f"column {name!r} of X holds {kind}, not numbers: encode it first, or leave it out.")
        missing = plain is not kind and bool(piece[name].isna().any())
        kinds.append(np.dtype(np.float64) if missing else plain)
    dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    return np.asarray(piece.to_numpy(dtype=np.uint8 if dtype.kind == "b" else dtype, na_value=np.nan))


def _column(pieces: list[Any], kept: list[int]) -> np.ndarray:
    parts = [np.asarray(pieces[i]) for i in kept]
    return np.concatenate([a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in parts])


@final
@dataclass(frozen=True, eq=False)
class Placed:
    """Rows on the workers: a future of a `ShardRows` for each shard, and what is known of them.

    lazy: whether one number per row comes back as a Dask array; else as a NumPy one. here: whether that array lies in
    this process, because the workers will be gone.
    """

    workers: Workers
    blocks: list[Any]
    found: list[Facts]
    lazy: bool
    here: bool = False

    @classmethod
    def of(cls, workers: Workers, blocks: list[Any], names: list[str], lazy: bool) -> Placed:
        """These blocks, once they are there and agree; ValueError names the one that does not."""
        found = workers.gather(workers.place(facts, [(block,) for block in blocks], "facts"))
        check_agreement(found, names)
        return cls(workers, blocks, found, lazy)

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(facts.n for facts in self.found)

    @property
    def p(self) -> int:
        """The number of columns."""
        return next(facts.p for facts in self.found if facts.n)

    def kept_here(self) -> Placed:
        """The same, for workers that will be gone."""
        return replace(self, here=True)

    def one_per_row(self, parts: Sequence[Any], dtype: Any) -> Any:
        """One number per row, from a future for each shard, or an array: lazy or not."""
        if not self.lazy or self.here:
            found = iter(self.workers.gather([part for part in parts if not isinstance(part, np.ndarray)]))
            return self.spread(np.concatenate([p if isinstance(p, np.ndarray) else next(found) for p in parts]))
        from dask import array, delayed  # type: ignore[attr-defined]

        whole: Any = array  # untyped
        lazily = [whole.from_delayed(delayed(p), (f.n,), dtype) for p, f in zip(parts, self.found, strict=True)]
        return whole.concatenate(lazily)

    def gathered(self, task: Callable[..., Any], *args: Any) -> list[Any]:
        """task(block, *args) of every shard that has rows, here."""
        full = [block for block, facts in zip(self.blocks, self.found, strict=True) if facts.n]
        return self.workers.gather(self.workers.place(task, [(block, *args) for block in full], task.__name__))

    def mapped(self, task: Callable[..., ShardRows], *args: Any) -> Placed:
        """The blocks task(block, *args), on the workers."""
        return self.holding(self._placed(task, *args))

    def holding(self, blocks: list[Any]) -> Placed:
        """Other blocks on the same workers."""
        found = self.workers.gather(self.workers.place(facts, [(block,) for block in blocks], "facts"))
        return replace(self, blocks=blocks, found=found)

    def column(self, dtype: Any, task: Callable[..., np.ndarray], *args: Any) -> Any:
        """task(block, *args), one entry per row, of all rows: lazy or not."""
        return self.one_per_row(self._placed(task, *args), dtype)

    def _placed(self, task: Callable[..., Any], *args: Any) -> list[Any]:
        return self.workers.place(task, [(block, *args) for block in self.blocks], task.__name__)

    def spread(self, values: np.ndarray) -> Any:
        """One entry per row that is known here already: lazy or not."""
        if not self.lazy:
            return values
        from dask import array

        whole: Any = array  # untyped
        return whole.from_array(values, chunks=(tuple(facts.n for facts in self.found),))

    @property
    def mass(self) -> float:
        """Σs, or n."""
        return sum(facts.mass for facts in self.found)

    @property
    def counted(self) -> bool:
        """Whether no row has a sample weight."""
        return not any(facts.weighted for facts in self.found)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each shard."""
        return [sum(facts.n for facts in self.found[:i]) for i in range(len(self.found))]

    def sample(self, m: int) -> ShardRows:
        """m rows drawn with replacement, as `Problem.centred` draws them; each that was drawn once, its times as s."""
        draw = np.random.Generator(np.random.Philox(key=0))
        return self.fetch(*np.unique(draw.integers(0, self.n, m), return_counts=True))

    def distinct_sample(self, m: int, seed: int) -> ShardRows:
        """m different rows drawn at random, in order; all where there are no more. s is 1, or the sample weights."""
        rows = rows_apart(self.n, m, seed)
        return self.fetch(rows, np.ones(len(rows)))

    def picked(self, rows: np.ndarray, task: Callable[..., np.ndarray], *args: Any) -> np.ndarray:
        """task(block, *args), which has an entry per row, of some rows, here."""
        each = [(task, block, args, rows, lo) for block, lo in zip(self.blocks, self.starts, strict=True)]
        return np.concatenate(self.workers.gather(self.workers.place(_picked, each, "picked")))

    def fetch(self, rows: np.ndarray, times: np.ndarray) -> ShardRows:
        """Some rows, here, with ``times`` and the sample weight of each as s."""
        args = [(block, rows, times, lo) for block, lo in zip(self.blocks, self.starts, strict=True)]
        parts = [found for found in self.workers.gather(self.workers.place(_some, args, "sample")) if len(found.t)]
        return assemble([b.V for b in parts], [b.t for b in parts], [b.s for b in parts])


def _some(block: ShardRows, rows: np.ndarray, times: np.ndarray, lo: int) -> ShardRows:
    """Those of the rows that are here."""
    here = (rows >= lo) & (rows < lo + len(block.t))
    index, s = rows[here] - lo, times[here].astype(np.float64)
    return ShardRows(block.V[index], block.t[index], s if block.s is None else s * block.s[index])


def _picked(task: Any, block: ShardRows, args: tuple[Any, ...], rows: np.ndarray, lo: int) -> np.ndarray:
    """The entries of those rows that are here."""
    return np.asarray(task(block, *args)[rows[(rows >= lo) & (rows < lo + len(block.t))] - lo])


def save_rows(folder: Path, V: Any, t: np.ndarray, s: np.ndarray | None) -> None:
    """Rows in files, for workers on this machine to map."""
    if is_sparse(V):
        sp.save_npz(folder / "V.npz", sp.csr_matrix(V), compressed=False)
    else:
        np.save(folder / "V.npy", V, allow_pickle=False)
    np.save(folder / "t.npy", t, allow_pickle=False)
    if s is not None:
        np.save(folder / "s.npy", s, allow_pickle=False)


def read_saved(folder: Path, lo: int, hi: int) -> ShardRows:
    """Rows lo … hi − 1 of what `save_rows` has written: dense ones as a map, which processes share."""
    if (folder / "V.npy").exists():
        V: Any = np.load(folder / "V.npy", mmap_mode="r")[lo:hi]
    else:
        V = sp.csr_array(sp.load_npz(folder / "V.npz"))[lo:hi]
    t = np.load(folder / "t.npy")[lo:hi]
    return ShardRows(V, t, np.load(folder / "s.npy")[lo:hi] if (folder / "s.npy").exists() else None)
