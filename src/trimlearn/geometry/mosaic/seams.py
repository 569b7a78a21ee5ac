"""Seams: which image is shown where images overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.mosaic.images import Pixels, opencv
from trimlearn.geometry.mosaic.layout import CanvasLayout
from trimlearn.geometry.mosaic.surfaces import Window
from trimlearn.geometry.mosaic.warp import Patch

__all__ = ["depth", "enlarged", "seams"]

# Of the side of an image, 1.4 pixels of the 316 of the small mosaic: seams keep off thin things (a choice).
BLUR = 0.0045
RIM = 0.02  # of the depth of an image, 3 pixels of the small mosaic: room for a blend (a choice)
LAST = 1e-3  # pixels: the depth of what is to be avoided, less than any other
BAND = 2  # columns at each end of a full turn that no seam enters: a cost is one of two neighbours


def seams(layout: CanvasLayout, patches: Sequence[Patch], avoid: Sequence[NDArray[np.bool_]] = ()) -> list[Pixels]:
    """Masks, one per patch, that share the mosaic out among the images, along lines where these look alike.

    avoid: where each patch had better not be shown, (h, w) each, if there is another.

    Graph cuts by OpenCV on differences of colour: a seam goes around what moved, and around what parallax
    displaced. V. Kwatra, A. Schödl, I. Essa, G. Turk and A. Bobick, Graphcut textures, SIGGRAPH 2003.
    """
    cv2 = opencv()
    pieces = layout.pieces()
    places = [piece.own.slices(layout.windows[piece.i]) for piece in pieces]
    masks = [patches[piece.i].mask[place].copy() for piece, place in zip(pieces, places, strict=True)]
    _keep_off(layout, patches, masks, avoid)
    blurred = [
        cv2.GaussianBlur(patch.pixels.astype(np.float32), (0, 0), BLUR * np.sqrt(patch.mask.size)) for patch in patches
    ]
    pixels = [blurred[piece.i][place] for piece, place in zip(pieces, places, strict=True)]
    corners = [(piece.window.x, piece.window.y) for piece in pieces]
    found = cv2.detail_GraphCutSeamFinder("COST_COLOR").find(pixels, corners, masks)
    shown = [np.zeros_like(patch.mask) for patch in patches]
    for piece, place, mask in zip(pieces, places, found, strict=True):
        shown[piece.i][place] |= mask.get() if isinstance(mask, cv2.UMat) else mask
    return shown


def depth(mask: Pixels) -> NDArray[np.float32]:
    """How many pixels each pixel of a mask is from its edge, 0 outside.

    >>> depth(np.full((3, 5), 255, np.uint8))[1]
    array([1., 2., 2., 2., 1.], dtype=float32)
    """
    cv2 = opencv()
    framed = np.pad(mask, 1)
    return np.asarray(cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1])


def enlarged(mask: Pixels, small: Window, window: Window, factor: float) -> NDArray[np.float32]:
    """A mask on the window `small` of a mosaic `factor` as large, on a window of the full one: values in [0, 255]."""
    cv2 = opencv()
    M = np.array([[factor, 0, window.x * factor - small.x], [0, factor, window.y * factor - small.y]])
    how = {"flags": cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_REPLICATE}
    return np.asarray(cv2.warpAffine(mask.astype(np.float32), M, (window.w, window.h), **how))


def _keep_off(
    layout: CanvasLayout, patches: Sequence[Patch], masks: Sequence[Pixels], avoid: Sequence[NDArray[np.bool_]]
) -> None:
    """Take from the pieces' masks what seams are to leave to the image that has it deepest inside.

    That is the rim of each image, where a blend would have nothing to blend with, what is to be avoided, and, if the
    canvas is a full turn, a band at both ends, so that these fit together.
    """
    depths = [depth(patch.mask) for patch in patches]
    for far, bad in zip(depths, avoid, strict=bool(avoid)):
        far[bad] = np.minimum(far[bad], LAST)
    owner = _deepest(layout, depths)
    for piece, mask in zip(layout.pieces(), masks, strict=True):
        own = depths[piece.i][piece.own.slices(layout.windows[piece.i])]
        given = own < RIM * depths[piece.i].max()
        if layout.period is not None:
            x = np.arange(piece.window.w) + piece.window.x - layout.canvas.x
            given |= (x < BAND) | (x >= layout.canvas.w - BAND)
        mask[given & (owner[piece.window.slices(layout.canvas)] != piece.i)] = 0


def _deepest(layout: CanvasLayout, depths: Sequence[NDArray[np.float32]]) -> NDArray[np.int64]:
    """For each pixel of the canvas the image that has it furthest from its edge, −1 where there is none."""
    best = np.zeros((layout.canvas.h, layout.canvas.w), np.float32)
    owner = np.full(best.shape, -1)
    for piece in layout.pieces():
        there = piece.window.slices(layout.canvas)
        value = depths[piece.i][piece.own.slices(layout.windows[piece.i])]
        deeper = value > best[there]
        best[there][deeper], owner[there][deeper] = value[deeper], piece.i
    return owner
