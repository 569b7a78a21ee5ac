"""Steps in which every row is read once: predict, residual and gradient fused, compiled by numba where it is installed.

Without numba, and for data or losses that no kernel knows, everything goes on by matrix products, with the same
iterates up to rounding. Pieces and their order are fixed by the data: the same bits on any number of threads.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from array_api_compat import is_numpy_array

from trimlearn.kernels.fused_steps import Fused
from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.storage import Csr, NumpyDense

__all__ = ["Fused", "forget_unreadable", "fused", "why_not"]

WORTH = 2_000_000  # numbers in V from which on a kernel is used: a pass takes a millisecond, loading one a few hundred
COMPILING = 20_000_000  # and is compiled where it is not on disk: a pass takes 40 ms there, a compiler 10 seconds
OLDEST = (0, 62)  # the first numba whose LLVM has one kind of pointer, which kernels/machine.py counts on
SHARED = ("stretch", "rows", "moments")  # modules of kernels that serve every storage
NUMBERS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")  # that numba knows, as NumPy names them


@cache
def _compiled(storage: str) -> ModuleType | str:
    """The module of kernels for a storage; a sentence where numba is not to be had."""
    if find_spec("numba") is None:
        return "numba is not installed (the extra trimlearn[fast])"
    try:
        numba: Any = import_module("numba")
        if tuple(int(part) for part in numba.__version__.split(".")[:2]) < OLDEST:
            return f"numba {numba.__version__} is too old ({OLDEST[0]}.{OLDEST[1]} or later is needed)"
        if numba.config.DISABLE_JIT:
            return "numba is switched off (NUMBA_DISABLE_JIT)"
        kernels, *others = (import_module(f"trimlearn.kernels.{name}") for name in (storage, *SHARED))
        for module in (kernels, *others):
            forget_unreadable(module)
        return kernels
    except (ImportError, RuntimeError, OSError) as error:  # too old for this NumPy; or no folder for its cache
        return f"numba does not load ({error})"


def forget_unreadable(module: ModuleType) -> None:
    """Empty what another version of trimlearn left on disk of these kernels, where this one cannot read it.

    numba reads the index of what it compiled before it asks whether that is out of date, and fails if a type in it has
    another name now; `pip install --upgrade` leaves the index where it was.
    """
    caching: Any = import_module("numba.core.caching")
    for kernel in vars(module).values():
        kept: Any = getattr(kernel, "_cache", None)
        if isinstance(kept, caching.FunctionCache):
            try:
                kept._cache_file._load_index()
            except OSError:
                raise
            except Exception:  # whatever pickle makes of names and bytes that it does not know
                kept.flush()


def fused(loss: Loss) -> Fused | None:
    """The fused steps of a loss; None where there are none, or it is too small to be worth loading them."""
    found = _fused(loss)
    return found if isinstance(found, Fused) else None


def why_not(loss: Loss) -> str | None:
    """Why a loss that is worth fused steps has none; None where it has, or nobody would expect any."""
    found = _fused(loss)
    return found if isinstance(found, str) else None


def _fused(loss: Loss) -> Fused | str | None:
    """The fused steps, or why there are none; None where nobody would expect any."""
    if not isinstance(loss, PredictionLoss) or loss.n * loss.linear.p < WORTH:
        return None
    kernels = _kernels(loss)
    if not isinstance(kernels, ModuleType):
        return kernels
    found = Fused(loss, kernels)
    if loss.n * loss.linear.p >= COMPILING or found.ready:
        return found
    return "compiling faster ones would take longer than this fit (they are kept on disk once a larger one has)"


def _kernels(loss: PredictionLoss) -> ModuleType | str | None:
    """The module of kernels that know this loss and where its rows lie; None where there is none."""
    storage = loss.linear.storage
    if loss.compiled() is None or not is_numpy_array(loss.like):
        return None
    if storage.V.dtype.str[1:] not in NUMBERS or not storage.V.dtype.isnative:
        return None
    if isinstance(storage, NumpyDense) and storage.V.flags.c_contiguous and storage.V.flags.aligned:
        return _compiled("dense")
    return _compiled("csr") if isinstance(storage, Csr) else None
