"""CUDA tensors handed to an estimator: they are read on the host, where most of its work is done, and the sums over
rows of its large fits are taken where they lie. Torch is not imported here: who has no tensors needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, final

import numpy as np
from array_api_compat import is_torch_array

from trimlearn._utils.arrays import Tensor

WORTH = 2_000_000  # numbers in V from which on a fit is faster on a device: `trimlearn.kernels` has the same


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
