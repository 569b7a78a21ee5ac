"""Losses moved between a device and the host's memory.

A run needs two of them: one whose x is a NumPy array, which Algorithm 1 is asked about, and one whose rows lie on the
device, where all sums over rows are taken. Whichever the user has made, the other is a copy of it, made here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, final

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.device_memory import explained
from trimlearn._utils.residence import copy_on_device
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.storage import Csr, Dense, DeviceDense, Storage
from trimlearn.losses.subspace import Subspace
from trimlearn.problem import Problem

LARGE = 1 << 22  # bytes that take as long to copy, 3 ms, as it takes to ask for such pages


def open_device(device: Any) -> Any:
    """The torch device meant by ``device``; ValueError where it cannot be used."""
    try:
        import torch
    except ImportError as error:
        raise ValueError("engine='cuda' needs torch, which is not installed; use engine='local'.") from error
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device must name a torch device, such as 'cuda' or 'cuda:1', got {device!r}.") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "engine='cuda' was asked for, and torch sees no CUDA device here; use engine='local', or see "
            "torch.cuda.is_available()."
        )
    if found.type == "cuda" and found.index is not None and found.index >= torch.cuda.device_count():
        raise ValueError(f"device {device!r} was asked for, and there are {torch.cuda.device_count()} CUDA devices.")
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def on_device(loss: PredictionLoss, device: Any, storage: str | None = None) -> PredictionLoss:
    """The same losses with their rows on ``device``, V stored in the dtype ``storage`` if one is named."""
    import torch

    home = loss.linear.storage
    if isinstance(home, Csr):
        raise ValueError("engine='cuda' takes dense data, and V is sparse; use engine='local', or V.toarray().")
    if not hasattr(torch, str(storage)) and storage is not None:
        raise ValueError(f"storage must name a torch dtype, such as 'bfloat16', or be None, got {storage!r}.")
    if is_torch_array(home.V) and home.V.device != device and home.V.device.type != "cpu":
        raise ValueError(f"V lies on {home.V.device} and the engine was made for {device}; move one of them.")
    if isinstance(home, DeviceStorage) and home.V.device == device and storage is None and home.V.is_contiguous():
        return home.loss  # they have never left
    like = torch.empty(0, dtype=getattr(torch, str(np.dtype(_dtype(loss.like)))), device=device)
    n, p = home.V.shape
    size = n * p * (2 if storage else home.V.itemsize)
    with explained(size, f"V, {n:,} rows of {p:,} numbers"):
        dtype = None if storage is None else getattr(torch, storage)
        V = home.V if is_torch_array(home.V) else copy_on_device(home.V)
        V = torch.from_numpy(_plain(home.V)) if V is None else V
        V = V.to(device=device, dtype=dtype).contiguous()
    with explained(0, "what each row has beside V"):
        return _moved(loss, DeviceDense(V, like), lambda a: asarray_like(a, like, _torch_dtype(a)))


def hosted(problem: Problem) -> Problem:
    """The same problem for an x in the host's memory, its rows staying where they are."""
    assert isinstance(problem.loss, PredictionLoss), "others have a home of their own"
    if is_numpy_array(problem.loss.like):
        return problem
    other, loss = copy(problem), _moved(problem.loss, DeviceStorage(problem.loss), _fetched)
    if isinstance(loss, Subspace):  # whose start takes many passes: over rows that lie there, not fetched each time
        loss.begin_at(to_numpy(problem.loss.start()))
    other.loss = loss
    other.s = None if problem.s is None else to_numpy(problem.s)
    return other


def _fetched(a: Array) -> np.ndarray:
    """An array in the host's memory; a large one in pages that stay put, to which a device copies ten times as fast and
    which torch keeps for the next time."""
    if not (is_torch_array(a) and a.device.type == "cuda" and a.nbytes > LARGE):
        return to_numpy(a)
    import torch

    return np.asarray(torch.empty(a.shape, dtype=a.dtype, pin_memory=True).copy_(a).numpy())


def rows_like(loss: PredictionLoss) -> Array:
    """An empty array of the kind that arrays with an entry per row are in: where the rows are, though x is hosted."""
    home = loss.linear.storage
    return home.loss.like if isinstance(home, DeviceStorage) else loss.like


def _moved(loss: PredictionLoss, storage: Storage, convert: Callable[[Array], Array]) -> PredictionLoss:
    """The losses with their arrays converted and their rows in ``storage``."""
    other, linear = copy(loss), copy(loss.linear)
    linear.storage, linear.like = storage, storage.like
    for owner in (other, linear):
        for name, value in vars(owner).items():
            if name != "like" and (is_torch_array(value) or is_numpy_array(value)):
                setattr(owner, name, convert(value))
    other.linear, other.like = linear, storage.like
    return other


@final
class DeviceStorage(Dense):
    """The rows of a loss that lie on a device, for the few who ask for them in the host's memory: they are fetched."""

    def __init__(self, loss: PredictionLoss) -> None:
        self.loss, there = loss, loss.linear.storage
        super().__init__(there.V, np.empty(0, dtype=_dtype(there.like)))
        self._there = there

    def fetch(self, rows: slice | Array) -> Array:
        return to_numpy(self._there.fetch(rows if isinstance(rows, slice) else index_like(rows, self._there.like)))


def _plain(V: np.ndarray) -> np.ndarray:
    """V as torch takes it: no read-only memory, negative strides, foreign byte orders."""
    fits = V.flags.writeable and V.dtype.isnative and all(stride >= 0 for stride in V.strides)
    return np.asarray(V) if fits else np.array(V, dtype=V.dtype.newbyteorder("="))


def _dtype(like: Array) -> Any:
    """The NumPy dtype of an empty array of any kind."""
    return np.float32 if like.dtype == namespace(like).float32 else np.float64


def _torch_dtype(a: Array) -> Any:
    """The torch dtype of an array of any kind."""
    import torch

    return a.dtype if is_torch_array(a) else getattr(torch, str(a.dtype))
