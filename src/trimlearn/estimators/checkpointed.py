"""Fits that can be interrupted: what tells one from another, its settings and its data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from trimlearn._utils.residence import on_host
from trimlearn._utils.validation import is_sparse
from trimlearn.checkpoint import Checkpoint
from trimlearn.checkpoint.fit import begin_fit, saved_fit
from trimlearn.estimators.on_dask import is_on_dask
from trimlearn.estimators.streamed import opened
from trimlearn.streams import Dataset

SILENT = ("verbose", "n_jobs")  # parameters that change nothing in the result


@contextmanager
def checkpointed(
    model: Any, checkpoint: Any, resume: bool, X: Any, y: Any = None, sample_weight: Any = None
) -> Iterator[None]:
    """Around a fit of ``model`` that is saved to ``checkpoint``, a path or a `Checkpoint`. Rows on a cluster are told
    from others by the workers, once these hold them."""
    file = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with saved_fit(file, _settings(model), resume):
        if not is_on_dask(X):
            begin_fit(lambda: _digest(X, y, sample_weight))
        yield


def _settings(model: Any) -> dict[str, str]:
    said = {name: repr(value) for name, value in model.get_params(deep=False).items() if name not in SILENT}
    if "random_state" in said and not isinstance(model.random_state, Integral):
        said["random_state"] = "None"  # the seed that was drawn is in the file
    if said.get("warm_start") == "True" and "_x" in vars(model):
        said["the start"] = sha256(np.ascontiguousarray(model._x).tobytes()).hexdigest()[:16]
    return {"estimator": type(model).__name__, **said}


def _digest(X: Any, y: Any, sample_weight: Any) -> str:
    """What tells these data from others."""
    if isinstance(X, (Dataset, str, os.PathLike)):
        data = opened(X, y, sample_weight)
        assert data is not None, "it is a dataset"
        return data.fingerprint("fit")
    digest = sha256()
    for value in (X, y, sample_weight):
        _add(digest, value)
    return digest.hexdigest()[:24]


def _add(digest: Any, value: Any) -> None:
    if value is None:
        digest.update(b"none")
        return
    if hasattr(value, "columns") and hasattr(value, "items"):  # a data frame, by its columns
        for name, column in value.items():
            digest.update(repr(name).encode())
            _add(digest, np.asarray(column))
        return
    if is_sparse(value):
        rows = sp.csr_array(value)
        for part in (rows.data, rows.indices, rows.indptr):
            _add(digest, part)
        return
    array = np.asarray(on_host(value))
    text = array.dtype.kind in "OSU"  # the same text may be written in several ways
    digest.update(repr((array.shape, "text" if text else array.dtype)).encode())
    if text:
        digest.update("\x1f".join(map(str, array.ravel())).encode())
    else:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
