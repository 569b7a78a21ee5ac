"""Dask's arrays and data frames, cut into one shard for each worker: nothing of them is computed here."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from trimlearn._utils.validation import is_collection
from trimlearn.engines.cluster.rows import Placed, assemble
from trimlearn.engines.cluster.workers import Workers


def place_collections(workers: Workers, X: Any, y: Any, s: Any = None) -> Placed:
    """The rows of X with targets y and sample weights s, on the workers, in order."""
    parts, sizes = _parts(X, "X")
    columns = {name: _beside(value, X, len(parts), sizes, name) for name, value in (("y", y), ("sample_weight", s))}
    cuts = _cuts(sizes if sizes is not None else [1] * len(parts), min(len(workers.addresses), len(parts)))
    bounds = list(pairwise(cuts))
    args = [tuple(None if part is None else part[a:b] for part in (parts, *columns.values())) for a, b in bounds]
    blocks = workers.compute(assemble, args, "rows")
    names = [f"partition {a}" if b == a + 1 else f"partitions {a} to {b - 1}" for a, b in bounds]
    return Placed.of(workers, blocks, names, lazy=True)


def _parts(X: Any, name: str) -> tuple[list[Any], list[int] | None]:
    """The pieces of a collection, by rows, and how many rows each has where that is known."""
    if not is_collection(X):
        raise ValueError(f"{name} must be a Dask collection where X is one, got {type(X).__name__}.")
    if hasattr(X, "chunks"):
        if X.ndim not in (1, 2):
            raise ValueError(f"{name} must have one or two dimensions, got {X.ndim}.")
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        known = None if any(np.isnan(size) for size in X.chunks[0]) else [int(size) for size in X.chunks[0]]
        return list(X.to_delayed().ravel()), known
    return list(X.to_delayed()), None


def _beside(value: Any, X: Any, count: int, sizes: list[int] | None, name: str) -> list[Any] | None:
    """The pieces of y or s, cut as X is."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) and sizes is not None:
        from dask import array

        if value.shape[:1] != (sum(sizes),):
            raise ValueError(f"{name} has {len(value)} rows and X {sum(sizes)}; give one for each.")
        whole: Any = array
        value = whole.from_array(value, chunks=(tuple(sizes), *value.shape[1:]))
    parts, found = _parts(value, name)
    if sizes is not None and found is not None:
        if sum(found) != sum(sizes):
            raise ValueError(f"{name} has {sum(found)} rows and X {sum(sizes)}; give one for each.")
        if found != sizes:
            parts, _ = _parts(value.rechunk({0: tuple(sizes)}), name)
    if len(parts) != count:
        raise ValueError(
            f"{name} has {len(parts)} partitions and X {count}: cut both alike, or call compute_chunk_sizes() on both."
        )
    return parts


def _cuts(sizes: list[int], count: int) -> list[int]:
    """Where to cut pieces of these sizes into ``count`` groups of about as many rows, each of one piece at least."""
    ends, total = np.cumsum(sizes), sum(sizes)
    cuts = [0]
    for i in range(1, count):
        at = int(np.searchsorted(ends, total * i / count - 1e-9)) + 1
        cuts.append(min(max(at, cuts[-1] + 1), len(sizes) - (count - i)))
    return [*cuts, len(sizes)]
