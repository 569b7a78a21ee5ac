"""A device that is full, explained: how much was needed, for what, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# What helps where a device is full, for the errors that say so: each of these takes less memory there, or none.
INSTEAD = "store V as bfloat16 (CudaEngine(problem, storage='bfloat16')), take fewer rows, or use engine='local'"


@contextmanager
def explained(size: int, what: str) -> Iterator[None]:
    """Out of memory inside: an error that says how much was needed for ``what``, and what to do."""
    import torch

    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        free = torch.cuda.mem_get_info()[0]
        needed = f"needs {_gigabytes(size)}, and {_gigabytes(free)} of the device's memory is free" if size else (
            f"does not fit into the {_gigabytes(free)} of the device's memory that is free"
        )  # fmt: skip
        raise MemoryError(f"{what[0].upper()}{what[1:]}, {needed}: {INSTEAD}.") from error


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
