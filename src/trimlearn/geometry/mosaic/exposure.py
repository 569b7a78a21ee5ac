"""One gain per image and colour, so that overlapping images are equally bright."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.images import Deep, full, opencv
from trimlearn.geometry.mosaic.images import grey as luminance
from trimlearn.geometry.mosaic.layout import CanvasLayout, CanvasPiece
from trimlearn.geometry.mosaic.warp import Patch

__all__ = ["apply_gain", "clipped", "gains", "is_grey", "is_overexposed"]

TINY = 1e-6  # pixels: what holds the gain of an image that is white all over
DARK, BRIGHT = 8, 247  # of 255: beyond these, 3 % at either end, a channel is noise, or cut off (a choice)
FEWEST = 50  # pixels of an overlap from which a ratio is taken: their median has 18 % of the spread of one pixel
PRIOR = 0.01  # pull of each log gain towards 0, by that of an overlap as large as an image: it takes 1 % off them
WHITE = 253  # of 255: from here on a channel is cut off; two levels below the last, as JPEG rounds (a choice)
# Of the brightness that a gain takes away: so far below white a pixel of an overexposed image begins to pass from its
# gain to staying as it is, with the square of the way. A choice: white stays white, and no edge shows where it begins.
KNEE = 0.6
SHARE = 0.02  # of an image cut off: that of a sunny sky or a lamp. By each the pull on its gain falls to a third
GREY, COLOURED = 2, 0.001  # levels by which channels differ in a grey image, rounding; and in what share of it at most


def gains(layout: CanvasLayout, patches: Sequence[Patch]) -> Floats:
    """Gains g (n, 3) that make gᵢ Iᵢ and gⱼ Iⱼ agree where images i and j overlap.

    Least squares in the logarithms, Σ nᵢⱼ (log gᵢ − log gⱼ + mᵢⱼ)² + Σ aᵢ (log gᵢ)², with mᵢⱼ the median of
    log Iᵢ − log Iⱼ over the overlap's nᵢⱼ pixels that are cut off in neither: what moved or is badly aligned does not
    count. aᵢ is small for an overexposed image: it is made darker, rather than the others brighter. A grey image has
    one gain for all colours, by luminance, or it would be tinted. After Brown and Lowe, Automatic panoramic image
    stitching using invariant features, IJCV 2007, section 6, which has means.
    """
    n = len(patches)
    A, b = np.zeros((3, n, n)), np.zeros((3, n))
    grey = np.array([is_grey(patch) for patch in patches])
    for i, patch in enumerate(patches):
        off = np.count_nonzero(clipped(patch)) / float(np.count_nonzero(patch.mask) + TINY)
        A[:, i, i] += PRIOR * np.exp(-off / SHARE) * np.count_nonzero(patch.mask) + TINY
    pieces = layout.pieces()
    for k, p in enumerate(pieces):
        for q in pieces[k + 1 :]:
            if p.i != q.i:
                _add_overlap(A, b, p, q, layout, patches, bool(grey[p.i] or grey[q.i]))
    logs = np.linalg.solve(A, b[:, :, None])[:, :, 0].T
    logs[grey] = logs[grey].mean(axis=1, keepdims=True)
    return np.asarray(np.exp(logs))


def clipped(patch: Patch) -> NDArray[np.bool_]:
    """Where an image is too bright for its bytes, (h, w): some channel is cut off."""
    r, g, b = np.moveaxis(patch.pixels, 2, 0)  # three numbers at a time would take NumPy ten times as long
    return np.asarray((np.maximum(np.maximum(r, g), b) >= WHITE) & (patch.mask > 0))


def is_overexposed(patch: Patch) -> bool:
    """Whether more of an image is cut off than a sunny sky or a lamp."""
    return bool(np.count_nonzero(clipped(patch)) > SHARE * np.count_nonzero(patch.mask))


def is_grey(patch: Patch) -> bool:
    """Whether an image has no colours.

    >>> is_grey(Patch(np.full((4, 4, 3), 90, np.uint8), np.full((4, 4), 255, np.uint8)))
    True
    """
    r, g, b = np.moveaxis(patch.pixels.astype(np.int16), 2, 0)
    coloured = (np.maximum(np.abs(r - g), np.abs(g - b)) > GREY) & (patch.mask > 0)
    return bool(np.count_nonzero(coloured) <= COLOURED * np.count_nonzero(patch.mask))


def _add_overlap(
    A: Floats, b: Floats, p: CanvasPiece, q: CanvasPiece, layout: CanvasLayout, patches: Sequence[Patch], grey: bool
) -> None:
    """Add the normal equations of one overlap; where one of the two is grey, that of its luminance to all colours."""
    window = p.window & q.window
    if not window.area:
        return
    cut = [window.moved(-r.shift).slices(layout.windows[r.i]) for r in (p, q)]
    one, other = (patches[r.i].pixels[c] for r, c in zip((p, q), cut, strict=True))
    if grey:
        one, other = (np.repeat(luminance(a)[:, :, None], 3, axis=2) for a in (one, other))
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


def apply_gain(pixels: Deep, gain: Floats, overexposed: bool = False) -> Deep:
    """Pixels times a gain (3,), clipped to what their type holds.

    What is white in an overexposed image stays white: how bright it was nobody knows, and grey it was not.

    >>> apply_gain(np.full((1, 1, 3), 200, np.uint8), np.array([0.5, 1.0, 2.0]))
    array([[[100, 200, 255]]], dtype=uint8)
    """
    white = full(pixels)
    table = np.clip(np.rint(np.arange(white + 1)[:, None] * gain), 0, white).astype(pixels.dtype)
    if white == 255:
        changed = np.asarray(opencv().LUT(pixels, table[None]))
    else:
        changed = np.dstack([table[pixels[:, :, c], c] for c in range(3)])
    taken = 1.0 - float(np.mean(gain))
    if not overexposed or taken <= 0:
        return changed
    r, g, b = np.moveaxis(pixels, 2, 0)
    least = np.minimum(np.minimum(r, g), b)[:, :, None].astype(np.float32) / white
    share = np.clip(1.0 - (WHITE / 255 - least) / (KNEE * taken), 0, 1) ** 2
    return np.asarray(np.rint(changed + share * (pixels.astype(np.float32) - changed)), pixels.dtype)
