"""The few array operations the array API lacks, in one place.

Everything else in trimlearn is written against the array API standard through array-api-compat, so that NumPy
arrays and torch tensors take the same path: what comes in decides what comes out.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array
from numpy.typing import NDArray

Array = Any  # a numpy.ndarray or a torch.Tensor: the array API has no static type of its own
Tensor = Any  # a torch.Tensor, where losses are asked that are written for arrays of any kind
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

# From 2.1 on NumPy is a namespace of the array API itself, and its functions need no wrapper that takes microseconds.
NUMPY: Any = np if hasattr(np, "cumulative_sum") else import_module("array_api_compat.numpy")

TINY = 1e-300  # in place of a 0 to divide by: a normal number, above 2.2e-308, whose inverse is still finite
UNITS = 256  # of rounding: a pairwise sum of n numbers errs by log₂ n (Higham 2002, §4.2), 40 for 10¹²; terms by a few


def namespace(*arrays: Array) -> Any:
    """The array API namespace of ``arrays``."""
    for a in arrays:
        if not isinstance(a, (np.ndarray, np.generic)):
            return array_namespace(*arrays)
    return NUMPY  # asked dozens of times a step: 0.1 µs for 4 µs


def to_numpy(a: Array) -> np.ndarray:
    """``a`` as a NumPy array, without a copy where memory is shared."""
    if isinstance(a, np.ndarray):
        return a
    if is_torch_array(a):
        return a.detach().cpu().numpy()
    return np.asarray(a)


def asarray_like(a: Any, like: Array, dtype: Any = None) -> Array:
    """``a`` in the namespace, on the device and, unless ``dtype`` says otherwise, in the dtype of ``like``."""
    xp = namespace(like)
    dtype = like.dtype if dtype is None else dtype
    if not is_torch_array(like):
        return xp.asarray(to_numpy(a), dtype=dtype)
    if is_torch_array(a):
        return a.detach().to(dtype=dtype, device=like.device)
    plain = np.array(a)  # torch takes no negative strides, foreign byte orders, read-only or extended numbers
    if plain.dtype.kind == "f" and plain.dtype not in (np.float16, np.float32, np.float64):
        plain = plain.astype(np.float64)
    return xp.asarray(plain, dtype=dtype, device=like.device)


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of ``shape`` in the namespace, on the device and in the dtype of ``like``."""
    return namespace(like).zeros(shape, dtype=like.dtype, device=device(like))


def index_like(rows: np.ndarray, like: Array) -> Array:
    """Row numbers as an index into arrays that live where ``like`` does."""
    return rows if is_numpy_array(like) else asarray_like(rows, like, namespace(like).int64)


def sum64(a: Array) -> float:
    """Σ a, accumulated in float64."""
    xp = namespace(a)
    return float(xp.sum(a, dtype=xp.float64))


def dot(a: Array, b: Array) -> float:
    """⟨a, b⟩ in float64, the products too: the square of 1e20, a coefficient of a feature of 1e-20, is no float32."""
    xp = namespace(a, b)
    return sum64(xp.astype(a, xp.float64, copy=False) * b)


def norm(a: Array) -> float:
    """‖a‖ in float64, the squares too."""
    return float(dot(a, a) ** 0.5)


def eps_of(a: Array) -> float:
    """The rounding unit of the dtype of ``a``."""
    return float(namespace(a).finfo(a.dtype).eps)


def rounding_of(a: Array) -> float:
    """The share of a mean loss, computed in the dtype of ``a``, that may be nothing but rounding."""
    return UNITS * eps_of(a)


def segment_sum(values: Array, index: Array, count: int) -> Array:
    """The sums over groups: entry g, for g < ``count``, adds up the 1-D ``values`` whose ``index`` is g."""
    if is_torch_array(values):
        return values.new_zeros(count).index_add(0, index, values)
    return np.bincount(index, weights=values, minlength=count).astype(values.dtype, copy=False)


def kth_smallest(a: Array, k: int) -> Array:
    """The value at position ``k`` (from 0) of a 1-D ``a`` in sorted order, without sorting it; ``a`` holds no NaN."""
    if is_torch_array(a):
        return a.kthvalue(k + 1).values
    return np.partition(a, k)[k]
