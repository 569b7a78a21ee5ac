"""What an iterative solver may have left to gain: as much as its last quarter of iterations brought."""

from __future__ import annotations

from math import inf, nan

__all__ = ["left_to_gain"]

FEW_ITERATIONS = 4  # of fewer, a quarter is less than one


def left_to_gain(fall: list[float], short: bool) -> float:
    """By how much F fell in the last quarter of the iterations."""
    made = len(fall) - 1
    if short:
        return inf
    return fall[-1 - made // 4] - fall[-1] if made >= FEW_ITERATIONS else nan
