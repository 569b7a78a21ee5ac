"""How large a problem is, and so which deterministic solver it can afford."""

from __future__ import annotations

from math import prod

from trimlearn.losses.blocks import BlockLoss
from trimlearn.problem import Problem

__all__ = ["FEW", "SMALL", "SOME", "affordable", "default_inner", "in_blocks", "small", "start_sample_size"]

SMALL = 1_000_000  # n·dim(x) up to which a problem is small: a limit on time, as a pass over 8 MB takes a millisecond
FEW = 300  # parameters up to which Hessians are worth their cost, 20 passes each: benchmarks/calibration/hessians.py
PER_PARAMETER = 200  # rows of a sample for each: a fit to them is about a hundredth of F above the least on all rows
LEAST = 10_000  # rows of a sample at least: a pass over them takes a millisecond
SHARE = 8  # rows for each of the sample's, at least: a copy of more would be a good part of V
SOME = 1000  # the same where the problem is small: a limit on time, as their factors take 0.06 s (the same script)


def small(problem: Problem) -> bool:
    """Whether passes cost next to nothing."""
    return problem.n * prod(problem.loss.x_shape) <= SMALL


def affordable(problem: Problem) -> bool:
    """Whether full-batch steps may finish a run: x has few parameters, or passes cost next to nothing."""
    return prod(problem.loss.x_shape) <= FEW or small(problem) or in_blocks(problem)


def start_sample_size(problem: Problem) -> int | None:
    """How many rows stand for all of them as far as a start goes; None where these are not many times as many."""
    m = max(LEAST, PER_PARAMETER * prod(problem.loss.x_shape))
    return m if problem.n >= SHARE * m else None


def in_blocks(problem: Problem) -> bool:
    """Whether Newton's steps cost little more than a pass, however many parameters x has."""
    return isinstance(problem.loss, BlockLoss) and problem.r2.smooth and problem.r2.separable


def default_inner(problem: Problem, hessians: bool) -> str:
    """The inner solver for this problem; ``hessians``: whether they are worth their cost where x has few parameters."""
    few = hessians and prod(problem.loss.x_shape) <= (SOME if small(problem) else FEW)
    if few or in_blocks(problem):
        return "newton"
    return "lbfgs" if problem.r2.smooth else "proximal"
