"""The doors of the linear models for Dask: collections and files on a cluster, a sample of them, lazy predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.validation import is_collection
from trimlearn.checkpoint.fit import begin_fit
from trimlearn.engines.cluster.collections import place_collections
from trimlearn.engines.cluster.digest import digest
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.engines.cluster.workers import Workers, check_client, local_cluster
from trimlearn.estimators.streamed import fitted_to_sample, is_small, labels_of, sample_size, set_column_names
from trimlearn.progress import stage
from trimlearn.streams import Dataset, open_dataset

PER_ROW = ("weights_", "raw_weights_", "outlier_scores_", "outlier_probability_", "suggested_labels_")  # of a fit


@final
@dataclass(frozen=True, eq=False)
class OnDask:
    """Files that the workers of a cluster read, to be given to ``fit`` in place of X and y. Made by `on_dask`."""

    data: Dataset
    client: Any

    def __repr__(self) -> str:
        return f"OnDask({self.data!r})"


def on_dask(source: Any, target: Any = None, client: Any = None, **options: Any) -> OnDask:
    """Files to be read by the workers of a Dask cluster, each of them a share, for the linear models to fit.

    Parameters
    ----------
    source : path, pattern or list of paths
        As in `trimlearn.open_dataset`; every worker must find the files under the same names.
    target : str or int
        The column of y.
    client : distributed.Client, optional
        Of the cluster. None: the current one, or one on this machine that is started for each fit.
    **options : object
        ``columns`` and ``dtype`` of `trimlearn.open_dataset`.

    Returns
    -------
    OnDask
        What ``fit`` of `TrimmedLinearRegression` and `TrimmedLogisticRegression` accepts in place of X and y.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from trimlearn import on_dask
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "part.npy", np.ones((5, 3)))
    ...     on_dask(folder, target=-1)
    OnDask(Dataset(5 rows x 2 columns in 1 pieces, float64))
    """
    data = open_dataset(source, target, **options)
    if not data.has_target:
        raise ValueError("target must name the column of y: a fit needs one.")
    return OnDask(data, None if client is None else check_client(client))


def is_on_dask(X: Any) -> bool:
    """Whether X lies on a cluster, or is to."""
    return isinstance(X, OnDask) or is_collection(X)


@contextmanager
def placed_rows(X: Any, y: Any, sample_weight: Any = None) -> Iterator[Placed]:
    """The rows of X and y on the workers of the current client, or of one that is started here and closed again."""
    with ExitStack() as opened:
        client = X.client if isinstance(X, OnDask) else None
        client = _current_client() if client is None else client
        started = client is None
        workers = Workers(opened.enter_context(local_cluster()) if client is None else client)
        if isinstance(X, OnDask):
            if y is not None or sample_weight is not None:
                raise ValueError("y is a column of the files, and files take no sample_weight: give fit neither.")
            placed = _place_files(workers, X.data)
        else:
            if y is None:
                raise ValueError("y is missing: give a Dask array or series with one entry for each row of X.")
            placed = place_collections(workers, X, y, sample_weight)
        begin_fit(lambda: _fingerprint(placed))
        yield placed.kept_here() if started else placed


def _fingerprint(placed: Placed) -> str:
    """What tells these rows from others, however they are cut into shards."""
    stage("rows told from others, for the checkpoint")
    args = [(block, lo) for block, lo in zip(placed.blocks, placed.starts, strict=True)]
    found = placed.workers.gather(placed.workers.place(digest, args, "digest"))
    return f"{placed.n} x {placed.p} {placed.found[0].dtype} {sum(found) % (1 << 64):016x}"


def _current_client() -> Any:
    from distributed import default_client

    current: Any = default_client  # untyped
    try:
        return check_client(current())
    except ValueError as error:
        if "No clients" in str(error) or "No global client" in str(error):
            return None
        raise


def _place_files(workers: Workers, data: Dataset) -> Placed:
    """The pieces of a dataset, in order, to each worker about as many rows."""
    count = min(len(workers.addresses), len(data.pieces))
    ends = np.cumsum([piece.rows for piece in data.pieces])
    inner = [int(np.searchsorted(ends, data.n * i / count)) + 1 for i in range(1, count)]
    cuts = sorted({0, *inner, len(data.pieces)})
    bounds = list(pairwise(cuts))
    blocks = workers.place(_read_pieces, [(data, a, b) for a, b in bounds], "rows")
    return Placed.of(workers, blocks, [f"pieces {a} to {b - 1} of the files" for a, b in bounds], lazy=True)


def _read_pieces(data: Dataset, a: int, b: int) -> ShardRows:
    """On a worker: matrix and target of some pieces."""
    found = [data.read(piece) for piece in data.pieces[a:b]]
    X = np.concatenate([np.asarray(A) for A, _ in found])
    t = np.concatenate([np.asarray(t) for _, t in found])
    return ShardRows(X, labels_of(data, t))


@final
@dataclass(frozen=True, eq=False)
class SampledFit:
    """Rows on a cluster, and the fit to a sample of them."""

    placed: Placed
    known: Any
    sample: ShardRows
    h: float | None  # what is to be kept of all rows; None: find out
    seed: int


def by_sample(estimator: Any, X: Any, placed: Placed, **changes: Any) -> SampledFit | None:
    """A clone of the estimator, with these changes of its parameters, fitted to a sample; None: all rows were in that,
    and its fit is the estimator's own. What scikit-learn's estimators know of their columns is set."""
    h, seed = estimator._h(estimator.contamination, placed.mass), estimator._seed()
    n, p = placed.n, placed.p
    m = n if is_small(n, p) else sample_size(n, p)
    sample = placed.distinct_sample(m, seed)
    rows = sample.V if m == n else sample.V.astype(np.float64)  # in float32 steps never quite end
    s = None if placed.counted else sample.s
    known = fitted_to_sample(estimator, rows, sample.t, s, placed.mass, seed, **changes)
    set_column_names(estimator, X.data if isinstance(X, OnDask) else X)
    vars(estimator).pop("_training", None)
    if m < n:
        return SampledFit(placed, known, sample, h, seed)
    adopt(estimator, known, placed)  # there is nothing left to find out
    return None


def adopt(estimator: Any, known: Any, placed: Placed) -> None:
    """Make the fit to a sample that holds all rows the estimator's own; one entry per row becomes Dask's."""
    kept = ("n_features_in_", "feature_names_in_", "_training", "_table", "_row_names")
    for name, value in vars(known).items():
        if name in kept or not (name.endswith("_") or name.startswith("_")):
            continue
        setattr(estimator, name, placed.spread(value) if name in PER_ROW else value)


def lazily(estimator: Any, X: Any, name: str, dtype: Any, width: int | None = None, y: Any = None) -> np.ndarray:
    """The method called ``name`` of the estimator for every row of a Dask collection, as a Dask array: not computed
    yet. width: how many numbers it gives for each row; None: one."""
    check_is_fitted(estimator)
    if isinstance(X, OnDask):
        raise ValueError("predict takes arrays, a dataset (X.data) or a Dask collection, not files on a cluster.")
    light = copy(estimator)
    for attribute in [key for key, value in vars(light).items() if is_collection(value) or key.startswith("_training")]:
        delattr(light, attribute)
    answer = partial(_answered, light, name)
    meta = np.empty((0,) if width is None else (0, width), dtype)
    found: np.ndarray  # Dask's own, which behaves as one
    if not hasattr(X, "chunks"):
        found = X.map_partitions(answer, meta=meta) if y is None else X.map_partitions(answer, y, meta=meta)
        return found
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    if y is not None:
        from dask import array

        whole: Any = array  # untyped
        found = whole.map_blocks(answer, X, y[:, None] if y.ndim == 1 else y, dtype=dtype, drop_axis=1, meta=meta)
    elif width is None:
        found = X.map_blocks(answer, dtype=dtype, drop_axis=1, meta=meta)
    else:
        found = X.map_blocks(answer, dtype=dtype, chunks=(X.chunks[0], (width,)), meta=meta)
    return found


def _answered(light: Any, name: str, X: Any, y: Any = None) -> np.ndarray:
    method: Callable[..., Any] = getattr(light, name)
    if X.shape[0] == 0:
        K = len(vars(light).get("classes_", ()))
        return np.empty((0, K)) if "proba" in name else np.empty(0)
    if y is None:
        return np.asarray(method(X))
    return np.asarray(method(X, np.asarray(y).ravel()))
