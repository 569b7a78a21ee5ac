"""Upright rectangles around and inside a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.mosaic.surfaces import Window

SIDE = 600  # cells a side on which the rectangle is looked for: a limit on time, 0.2 s; 1/600 of a side may be lost


def outline(mask: NDArray[np.bool_]) -> Window:
    """The smallest upright rectangle that holds all that is True; there is something.

    >>> outline(np.eye(5, dtype=bool)[1:])
    Window(x=1, y=0, w=4, h=4)
    """
    y, x = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    return Window(int(x[0]), int(y[0]), int(x[-1] - x[0]) + 1, int(y[-1] - y[0]) + 1)


def largest_rectangle(mask: NDArray[np.bool_]) -> Window:
    """The largest upright rectangle of True; a mask of more than 600 a side is looked at in cells of several pixels.

    >>> mask = np.zeros((6, 8), bool)
    >>> mask[1:4, 2:7] = mask[0:6, 3] = True
    >>> largest_rectangle(mask)
    Window(x=2, y=1, w=5, h=3)
    """
    cell = -(-max(mask.shape) // SIDE)
    rows, columns = (n // cell for n in mask.shape)  # what is left over at the end is not looked at
    cells = np.all(mask[: rows * cell, : columns * cell].reshape(rows, cell, columns, cell), axis=(1, 3))
    best, heights = Window(0, 0, 0, 0), np.zeros(columns, np.int64)
    for y in range(rows):
        heights = np.where(cells[y], heights + 1, 0)
        here = _widest(heights.tolist(), y)
        best = here if here.area > best.area else best
    return Window(best.x * cell, best.y * cell, best.w * cell, best.h * cell)


def _widest(heights: list[int], y: int) -> Window:
    """The largest rectangle on row y under bars of these heights: each bar waits until a lower one ends it."""
    best, waiting = Window(0, 0, 0, 0), [(-1, 0)]  # (x of its left end − 1, height)
    for x, height in enumerate([*heights, 0]):
        left = x
        while waiting[-1][1] > height:
            start, tall = waiting.pop()
            left = start
            if tall * (x - start) > best.area:
                best = Window(start, y - tall + 1, x - start, tall)
        if waiting[-1][1] < height:
            waiting.append((left, height))
    return best
