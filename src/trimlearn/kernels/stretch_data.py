"""What the compiled loop of x-steps is told, and what its threads work in."""

from __future__ import annotations

from typing import Any, NamedTuple

OPEN, W_NEXT, LIMIT = 0, 1, 2  # why a stretch ends
NEXT, OVERFLOW = 0, 1  # places in StretchRoom.found: that of the step to come; whether x is no longer finite
STEPS, EVALUATED, SKIPPED = 2, 3, 4  # steps taken, rows evaluated, draws of weight 0
ROWS, IDLE, AGAIN = 5, 6, 7  # of the batch drawn last: its rows, its draws of weight 0, its rows drawn more than once
COLUMNS = 64  # in a block, or a multiple: four cache lines of float32, so that threads share none
BLOCKS = 64  # at most: four for each of the 16 pieces that rows are cut into, and each costs a microsecond


def columns_of_block(p: int) -> int:
    """How many of p columns are moved at a time: by p alone, so that any number of threads gives the same bits."""
    return COLUMNS * max(1, -(-p // (COLUMNS * BLOCKS)))


class Law(NamedTuple):
    """What is drawn, and when to stop."""

    key: Any  # the seed, two uint64
    k: int  # the iteration to begin with
    q: float  # the chance of a w-step, drawn first in every iteration; negative: nothing is drawn for that
    b: int  # rows in a batch
    steps: int  # at most
    room: float  # rows that may still be evaluated: no step after those
    cumulative: Any  # sums of sample weights, of length 0 without
    renews: bool  # whether D = I: every row read has its yᵢ renewed; without sample weights only


class MovingPoint(NamedTuple):
    """x and what moves it, all (p, K) or (p + 1, K) with an intercept; x, previous and mean are written in place."""

    x: Any
    previous: Any
    mean: Any  # of y
    size: Any  # γ·M⁻¹, float64
    threshold: Any  # of the prox, float64
    shrink: Any  # that it multiplies by then, float64
    momentum: float
    center: Any  # p numbers
    per_scale: Any  # 1/scale


class StretchRoom(NamedTuple):
    """Room to work in, shared by the threads."""

    u: Any  # b + 1 float64
    drawn: Any  # b int64
    rows: Any  # (2, b) int64: of the step under way and of the next, in turn
    shares: Any  # b
    seen: Any  # n int32, all 0
    new: Any  # (b, K)
    W: Any
    offsets: Any  # (blocks, K): the part of each
    G: Any  # (pieces + 1, …): the last for rows drawn again
    totals: Any  # (pieces + 1, K) float64
    before: Any  # (2, …) the shape of x: previous and mean before the step
    found: Any  # int64: see NEXT to AGAIN above
    meeting: Any  # see `trimlearn.kernels.machine.barrier`
    claims: Any  # an int64 for each piece, a cache line apart: 0 until a thread takes it
    blocks: Any  # the same for each block
    columns: int  # of x in a block
