"""One gain per image and colour, so that overlapping images are equally bright."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.images import Deep, full, opencv
from trimlearn.geometry.mosaic.layout import Layout, Piece
from trimlearn.geometry.mosaic.warp import Patch

__all__ = ["apply_gain", "gains"]

DARK, BRIGHT = 8, 247  # of 255: beyond these, 3 % at either end, a channel is noise, or cut off (a choice)
FEWEST = 50  # pixels of an overlap from which a ratio is taken: their median has 18 % of the spread of one pixel
PRIOR = 0.01  # pull of each log gain towards 0, by that of an overlap as large as an image: it takes 1 % off them


def gains(layout: Layout, patches: Sequence[Patch]) -> Floats:
    """Gains g (n, 3) that make gᵢ Iᵢ and gⱼ Iⱼ agree where images i and j overlap.

    Least squares in the logarithms, Σ nᵢⱼ (log gᵢ − log gⱼ + mᵢⱼ)² + PRIOR Σ nᵢ (log gᵢ)², with mᵢⱼ the median of
    log Iᵢ − log Iⱼ over the overlap's nᵢⱼ pixels: what moved or is badly aligned does not count. After Brown and Lowe,
    Automatic panoramic image stitching using invariant features, IJCV 2007, section 6, which has means.
    """
    n = len(patches)
    A, b = np.zeros((3, n, n)), np.zeros((3, n))
    for i, patch in enumerate(patches):
        A[:, i, i] += PRIOR * np.count_nonzero(patch.mask)
    pieces = layout.pieces()
    for k, p in enumerate(pieces):
        for q in pieces[k + 1 :]:
            if p.i != q.i:
                _add_overlap(A, b, p, q, layout, patches)
    return np.asarray(np.exp(np.linalg.solve(A, b[:, :, None])[:, :, 0].T))


def _add_overlap(A: Floats, b: Floats, p: Piece, q: Piece, layout: Layout, patches: Sequence[Patch]) -> None:
    """Add the normal equations of one overlap."""
    window = p.window & q.window
    if not window.area:
        return
    cut = [window.moved(-r.shift).slices(layout.windows[r.i]) for r in (p, q)]
    one, other = (patches[r.i].pixels[c] for r, c in zip((p, q), cut, strict=True))
    both = np.logical_and(*(patches[r.i].mask[c] > 0 for r, c in zip((p, q), cut, strict=True)))
    i, j = p.i, q.i
    for c in range(3):
        x, y = one[both, c], other[both, c]
        fair = (x >= DARK) & (x <= BRIGHT) & (y >= DARK) & (y <= BRIGHT)
        m = np.count_nonzero(fair)
        if m < FEWEST:
            continue
        difference = float(np.median(np.log(x[fair].astype(np.float64)) - np.log(y[fair].astype(np.float64))))
        A[c, [i, j], [i, j]] += m
        A[c, [i, j], [j, i]] -= m
        b[c, [i, j]] += m * difference * np.array([-1.0, 1.0])


def apply_gain(pixels: Deep, gain: Floats) -> Deep:
    """Pixels times a gain (3,), clipped to what their type holds.

    >>> apply_gain(np.full((1, 1, 3), 200, np.uint8), np.array([0.5, 1.0, 2.0]))
    array([[[100, 200, 255]]], dtype=uint8)
    """
    white = full(pixels)
    table = np.clip(np.rint(np.arange(white + 1)[:, None] * gain), 0, white).astype(pixels.dtype)
    if white == 255:
        return np.asarray(opencv().LUT(pixels, table[None]))
    return np.dstack([table[pixels[:, :, c], c] for c in range(3)])
