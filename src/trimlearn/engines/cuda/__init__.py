"""The examples on a GPU: x and what is of its size in the host's memory, everything with one entry per row there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trimlearn.engines.cuda.engine import CudaEngine

__all__ = ["CudaEngine"]


def __getattr__(name: str) -> Any:
    """The engine when it is asked for: it imports torch."""
    if name != "CudaEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trimlearn.engines.cuda.engine import CudaEngine

    return CudaEngine
