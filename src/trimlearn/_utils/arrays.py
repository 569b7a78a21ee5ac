"""The few array operations the array API lacks, in one place.

Everything else in trimlearn is written against the array API standard through array-api-compat, so that NumPy
arrays and torch tensors take the same path: what comes in decides what comes out.

Rows in blocks that lie together: what a shuffled copy holds, and what is drawn; and some rows that stand for all.

CUDA tensors handed to an estimator: they are read on the host, where most of its work is done, and the sums over
rows of its large fits are taken where they lie. Torch is not imported here: who has no tensors needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import Any, final

import array_api_compat.numpy as numpy_namespace
import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array
from numpy.typing import NDArray

Array = Any  # a numpy.ndarray or a torch.Tensor: the array API has no static type of its own
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]



TINY = 1e-300  # in place of a 0 to divide by: a normal number, above 2.2e-308, whose inverse is still finite
UNITS = 256  # of rounding: a pairwise sum of n numbers errs by log₂ n (Higham 2002, §4.2), 40 for 10¹²; terms by a few


def namespace(*arrays: Array) -> Any:
    """The array API namespace of ``arrays``."""
    if all(type(a) is np.ndarray for a in arrays):  # asked dozens of times a step: 0.1 µs for 4 µs
        return numpy_namespace
    return array_namespace(*arrays)


def to_numpy(a: Array) -> np.ndarray:
    """``a`` as a NumPy array, without a copy where memory is shared."""
    if is_numpy_array(a):
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


PER_BATCH = 8  # blocks that make up a batch of n^(2/3) rows: a choice between long reads and many independent draws


def blocks_for(n: int) -> int:
    """How many blocks n rows are dealt into: as many as make ⌈n^(2/3)⌉ rows eight blocks.

    >>> blocks_for(8_000_000), blocks_for(5)
    (1600, 5)
    """
    batch: int = ceil(round(n ** (2 / 3), 9))
    return max(1, min(n, round(PER_BATCH * n / batch)))


def block_starts(n: int, blocks: int) -> np.ndarray:
    """Where the blocks begin, and n: the first n mod ``blocks`` of them are one row longer.

    >>> block_starts(7, 3)
    array([0, 3, 5, 7])
    """
    number = np.arange(blocks + 1, dtype=np.int64)
    return number * (n // blocks) + np.minimum(number, n % blocks)


def rows_apart(n: int, m: int, seed: int) -> np.ndarray:
    """The numbers of m of n rows drawn without replacement, in order, or of all: the same ones wherever rows lie.

    >>> rows_apart(5, 9, seed=0), len(np.unique(rows_apart(1000, 10, seed=0)))
    (array([0, 1, 2, 3, 4]), 10)
    """
    if m >= n:
        return np.arange(n)
    draw = np.random.Generator(np.random.Philox(key=seed))
    return np.sort(draw.choice(n, m, replace=False, shuffle=False))


def slices_apart(n: int, m: int, count: int) -> list[slice]:
    """About m of n rows, in ``count`` slices at equal distances; all in one where m is n or more.

    >>> slices_apart(100, 4, 2), slices_apart(3, 4, 2)
    ([slice(0, 2, None), slice(98, 100, None)], [slice(0, 3, None)])
    """
    if m >= n:
        return [slice(0, n)]
    count = max(1, min(count, m))
    each = m // count
    starts = np.linspace(0, n - each, count).astype(np.int64).tolist()
    return [slice(start, start + each) for start in starts]


def taken(a: np.ndarray, slices: list[slice]) -> np.ndarray:
    """Those rows of an array, one below the other; a view of it where it is one slice."""
    return a[slices[0]] if len(slices) == 1 else np.concatenate([a[at] for at in slices])


WORTH = 2_000_000  # numbers in V from which on a fit is faster on a device: `trimlearn.kernels` has the same

Tensor = Any  # a torch.Tensor


@final
class _Residence:
    """The device of a fit, and which arrays of the host have a copy there."""

    def __init__(self, given: Tensor) -> None:
        self.given = given
        self.host: np.ndarray | None = None
        self.copies: dict[int, tuple[np.ndarray, Tensor]] = {}  # by identity: the array is kept, so that it stays its

    def copy(self, V: np.ndarray) -> Tensor:
        if id(V) not in self.copies:
            self.copies[id(V)] = V, _uploaded(V, self.given)
        return self.copies[id(V)][1]


_current: ContextVar[_Residence | None] = ContextVar("residence", default=None)


def lies_on_device(a: Any) -> bool:
    """Whether ``a`` is a CUDA tensor."""
    return is_torch_array(a) and a.device.type == "cuda"


@contextmanager
def residing(X: Any) -> Iterator[None]:
    """Inside, large fits to X, and to what is made of it, take place where X lies."""
    token = _current.set(_Residence(X) if lies_on_device(X) else None)
    try:
        yield
    finally:
        _current.reset(token)


def on_host(a: Any) -> Any:
    """A CUDA tensor as a NumPy array, 16-bit numbers as float32; anything else as it is."""
    if not lies_on_device(a):
        return a
    current = _current.get()
    if current is None or a is not current.given:
        return _downloaded(a)
    if current.host is None:
        current.host = _downloaded(a)
        if current.host.ndim == 2:
            current.copies[id(current.host)] = current.host, a.detach()
    return current.host


def copy_on_device(V: Any) -> Tensor | None:
    """The copy on the device of a dense array of the host, where a fit takes place on one and V is worth it: made when
    first asked for. None: there is none."""
    current = _current.get()
    if current is None or not isinstance(V, np.ndarray) or V.ndim != 2 or V.size < WORTH:
        return None
    return current.copy(V)


def floating_copy(V: Any) -> Any:
    """The same in a dtype of 32 bits or more; V itself where there is none."""
    there = copy_on_device(V)
    if there is None:
        return V
    return there.float() if there.dtype.itemsize < 4 else there  # arithmetic in 16 bits is too coarse


def sent(a: np.ndarray) -> Any:
    """An array of numbers beside V, on the device where a fit takes place on one; elsewhere as it is. It is sent once,
    and must not be written to."""
    current = _current.get()
    if current is None or not isinstance(a, np.ndarray) or current.given.numel() < WORTH:
        return a
    return current.copy(a)


def given_back(found: Any, X: Any) -> Any:
    """An array of numbers of the host where X lies, if that is a device."""
    if not (lies_on_device(X) and isinstance(found, np.ndarray) and found.dtype.kind in "biuf"):
        return found
    return _uploaded(found, X)


def _downloaded(a: Tensor) -> np.ndarray:
    a = a.detach()
    return np.asarray((a.float() if a.dtype.is_floating_point and a.dtype.itemsize == 2 else a).cpu().numpy())


def _uploaded(a: np.ndarray, to: Tensor) -> Tensor:
    import torch  # whoever has tensors has it

    return torch.from_numpy(np.array(a)).to(to.device)
