# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""The moments of a dense design's columns in one read, in float64: what the diagonal metric learns from."""

from __future__ import annotations

from typing import Any

from numba import float64, njit

from trimlearn.kernels.dense import FAST


@njit(nogil=True, cache=True, fastmath=FAST)
def moments(V: Any, first: int, c: Any, center: Any, per_scale: Any, second: Any, fourth: Any) -> None:
    """second += Σ cᵢaᵢⱼ² and fourth += Σ cᵢaᵢⱼ⁴, a = (v − center)/scale, over len(c) rows from ``first`` on.

    Rows with cᵢ = 0 are not looked at.
    """
    for q in range(len(c)):
        share, i = float64(c[q]), first + q
        if share != 0:
            for j in range(len(second)):
                a = (float64(V[i, j]) - center[j]) * per_scale[j]
                square = a * a
                second[j] += share * square
                fourth[j] += share * square * square
