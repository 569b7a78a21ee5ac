# mypy: ignore-errors
"""Triton, where it is to be had: torch brings it along on Linux. Without it kernels are plain functions that nobody
calls, and `trimlearn.engines.cuda.fastest` asks first."""

from __future__ import annotations

try:
    import triton.language as tl
    from triton import jit
    from triton.language.extra import libdevice
except ModuleNotFoundError:
    tl = libdevice = None

    def jit(function):
        """The function as it is."""
        return function

