"""Steps in which every row is read once: predict, residual and gradient fused, compiled by numba where it is installed.

Without numba, and for data or losses that no kernel knows, everything goes on by matrix products, with the same
iterates up to rounding. Pieces and their order are fixed by the data: the same bits on any number of threads.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from array_api_compat import is_numpy_array

from trimlearn.kernels.fused_steps import Fused
from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.storage import Csr, NumpyDense

__all__ = ["Fused", "fused", "why_not"]

WORTH = 2_000_000  # numbers in V from which on a kernel is used: a pass takes a millisecond, loading one a few hundred
COMPILING = 20_000_000  # and is compiled where it is not on disk: a pass takes 40 ms there, a compiler 10 seconds


@cache
def _compiled(storage: str) -> ModuleType | str:
    """The module of kernels for a storage; a sentence where numba is not to be had."""
    if find_spec("numba") is None:
        return "numba is not installed (the extra trimlearn[fast])"
    try:
        return import_module(f"trimlearn.kernels.{storage}")
    except (ImportError, RuntimeError) as error:  # too old for this NumPy; or no folder that its cache may be in
        return f"numba does not load ({error})"


def fused(loss: Loss) -> Fused | None:
    """The fused steps of a loss; None where there are none, or it is too small to be worth loading them."""
    found = _fused(loss)
    return found if isinstance(found, Fused) else None


def why_not(loss: Loss) -> str | None:
    """Why a loss that is worth fused steps has none; None where it has, or nobody would expect any."""
    found = _fused(loss)
    return found if isinstance(found, str) else None


def _fused(loss: Loss) -> Fused | str | None:
    kernels = _kernels(loss)
    if not isinstance(kernels, ModuleType) or not isinstance(loss, PredictionLoss):
        return kernels if isinstance(kernels, str) else None
    found = Fused(loss, kernels)
    if loss.n * loss.linear.p >= COMPILING or found.ready:
        return found
    return "compiling faster ones would take longer than this fit (they are kept on disk once a larger one has)"


def _kernels(loss: Loss) -> ModuleType | str | None:
    if not isinstance(loss, PredictionLoss) or loss.n * loss.linear.p < WORTH:
        return None
    storage = loss.linear.storage
    if loss.compiled() is None or not is_numpy_array(loss.like):
        return None
    if isinstance(storage, NumpyDense) and storage.V.flags.c_contiguous and storage.V.flags.aligned:
        return _compiled("dense")
    return _compiled("csr") if isinstance(storage, Csr) else None
