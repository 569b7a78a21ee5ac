"""An image drawn on a window of a surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.mosaic.images import Deep, Pixels, full, opencv
from trimlearn.geometry.mosaic.surfaces import Surface, View, Window

TILE = 1024  # pixels a side: a limit on memory, the coordinates of one tile are 16 MB
# Pixels between those whose coordinates are computed: a limit on time; a power of 2, as OpenCV has 1/32 pixels.
KNOT = 4
SHRINK = 0.75  # an image drawn smaller is shrunk first: sampling it sparsely would give moiré (a choice)
FAR = 1e6  # pixels from one to the next, of an image of which no point of the grid shows anything
ROUNDING = 1e-6  # of the longer side: an image drawn where it is keeps its outermost pixels in spite of rounding
OPAQUE = 254 / 255  # less alpha, at the edge of what is transparent, means that colours are mixed


class Patch(NamedTuple):
    """An image on its window: pixels (h, w, 3), as deep as they were, and mask (h, w), 255 where the image is, else 0.

    Beyond its edges the image is mirrored, and what is transparent has the colour of the nearest pixel that is not, so
    that blurred versions of the patch do not darken there.
    """

    pixels: Deep
    mask: Pixels


def warp(image: Deep, view: View, surface: Surface, window: Window) -> Patch:
    """Draw an image, (h, w, 3) RGB or (h, w, 4) RGBA, on a window of a surface."""
    if image.shape[2] == 4:
        image = _filled(image)
    image, view = _shrunk(image, view, surface, window)
    pixels = np.empty((window.h, window.w, 3), image.dtype)
    mask = np.empty((window.h, window.w), np.uint8)
    for top in range(0, window.h, TILE):
        for left in range(0, window.w, TILE):
            tile = Window(window.x + left, window.y + top, min(TILE, window.w - left), min(TILE, window.h - top))
            rows, columns = tile.slices(window)
            pixels[rows, columns], mask[rows, columns] = _warp_tile(image, view, surface, tile)
    return Patch(pixels, mask)


def _warp_tile(image: Deep, view: View, surface: Surface, tile: Window) -> Patch:
    cv2 = opencv()
    eps = ROUNDING * max(view.size)
    maps = [_outside_is_outside(a, side) for a, side in zip(_coordinates(view, surface, tile), view.size, strict=True)]
    inside = np.bitwise_and(*(cv2.inRange(a, -eps, s - 1 + eps) for a, s in zip(maps, view.size, strict=True)))
    drawn = cv2.remap(image, *maps, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    if image.shape[2] == 4:
        inside[drawn[:, :, 3] < OPAQUE * full(image)] = 0
    return Patch(drawn[:, :, :3], inside)


def _coordinates(view: View, surface: Surface, tile: Window) -> list[NDArray[np.float32]]:
    """Where `view` sees the pixels of a tile: at every few of them, and in between by straight lines.

    Over KNOT pixels a map that bends by 1/f leaves a straight line by KNOT²/(8f) pixels: 0.004 where f is 500.
    """
    cv2 = opencv()
    x, y = (start + KNOT * np.arange(-(-n // KNOT) + 1.0) for start, n in ((tile.x, tile.w), (tile.y, tile.h)))
    knots = [np.broadcast_to(a, (len(y), len(x))).astype(np.float32) for a in surface.pixels(view, x[None], y[:, None])]
    between = np.array([[1 / KNOT, 0, 0], [0, 1 / KNOT, 0]])
    how = {"flags": cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_REPLICATE}
    return [np.asarray(cv2.warpAffine(a, between, (tile.w, tile.h), **how)) for a in knots]


def _outside_is_outside(a: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Coordinates that mirroring can handle: what is behind the camera, NaN, and what is far away lie just outside."""
    np.clip(a, -side, 2 * side, out=a)
    return np.nan_to_num(a, copy=False, nan=-side)


def _filled(image: Deep) -> Deep:
    """An RGBA image whose transparent pixels have the colours of the nearest opaque ones."""
    cv2 = opencv()
    hole = image[:, :, 3] < full(image)
    _, label = cv2.distanceTransformWithLabels(hole.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.zeros(label.max() + 1, np.int64)
    nearest[label[~hole]] = np.flatnonzero(~hole)  # each opaque pixel has a label of its own
    return np.dstack([image.reshape(-1, 4)[nearest[label], :3], image[:, :, 3]])


def _shrunk(image: Deep, view: View, surface: Surface, window: Window) -> tuple[Deep, View]:
    factor = 1 / float(surface.steps(view, window).min(initial=FAR))  # where they are fewest
    if factor >= SHRINK:
        return image, view
    w, h = view.size
    size = max(2, round(w * factor)), max(2, round(h * factor))
    cv2 = opencv()
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA)), view.shrunk(size)
