"""From placed images to the finished picture: exposure and seams on a small mosaic, then the full one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.blend import Blender
from trimlearn.geometry.mosaic.exposure import apply_gain, clipped, gains, is_grey, is_overexposed
from trimlearn.geometry.mosaic.images import Deep, Pixels, eight_bits, opencv
from trimlearn.geometry.mosaic.layout import CanvasLayout
from trimlearn.geometry.mosaic.seams import enlarged, seams
from trimlearn.geometry.mosaic.warp import Patch, warp

SMALL, TOTAL = 100_000, 1_500_000  # pixels on the small mosaic, of each image and of all: limits on time, of graph cuts
SPECK = 3  # pixels a side, on the small mosaic, of what is too small to lead a seam around


def compose(
    layout: CanvasLayout, images: Sequence[Deep], blender: type[Blender], *, equalise: bool = True
) -> tuple[Deep, Pixels]:
    """The picture (h, w, 3), as deep as the images, and its mask (h, w) on the layout's canvas.

    equalise: give each image a gain per colour, so that overlaps are equally bright.
    """
    area = float(np.median([window.area for window in layout.windows]))
    small = layout.scaled(min(1.0, (min(SMALL, TOTAL / len(images)) / area) ** 0.5))
    factor = small.surface.scale / layout.surface.scale
    patches = _draw(small, images)
    gain = gains(small, patches) if equalise else np.ones((len(images), 3))
    shown = _seams(small, patches, gain) if blender.follows_seams else [patch.mask for patch in patches]
    bright = [is_overexposed(patch) for patch in patches]
    mixed = len({is_grey(patch) for patch in patches}) == 2

    reach = 0 if layout.period is None else blender.reach(layout.canvas)
    canvas = replace(layout.canvas, x=layout.canvas.x - reach, w=layout.canvas.w + 2 * reach)
    into, covered = blender(canvas, images[0].dtype.type, mixed), np.zeros((canvas.h, canvas.w), np.uint8)
    for i, (image, window) in enumerate(zip(images, layout.windows, strict=True)):
        pixels, mask = warp(image, layout.views[i], layout.surface, window)
        pixels = apply_gain(pixels, gain[i], bright[i])
        weight = blender.weigh(mask, np.rint(enlarged(shown[i], small.windows[i], window, factor)).astype(np.uint8))
        for piece in layout.pieces_of(i, canvas):
            cut = piece.own.slices(window)
            into.add(pixels[cut], weight[cut], piece.window)
            covered[piece.window.slices(canvas)] |= mask[cut]
    inside = layout.canvas.slices(canvas)
    return into.result()[inside], covered[inside]


def _draw(layout: CanvasLayout, images: Sequence[Deep]) -> list[Patch]:
    """All images on a layout, in bytes: enough for seams and exposures."""
    placed = zip(images, layout.views, layout.windows, strict=True)
    drawn = (warp(image, view, layout.surface, window) for image, view, window in placed)
    return [Patch(eight_bits(patch.pixels), patch.mask) for patch in drawn]


def _seams(layout: CanvasLayout, patches: Sequence[Patch], gain: Floats) -> list[Pixels]:
    """Seams between images made equally bright, around what is cut off in one of them."""
    equal = [Patch(apply_gain(p.pixels, g, is_overexposed(p)), p.mask) for p, g in zip(patches, gain, strict=True)]
    return seams(layout, equal, [_too_bright(patch) for patch in patches])


def _too_bright(patch: Patch) -> NDArray[np.bool_]:
    """Where an overexposed image is cut off, without single pixels, lights say; nowhere in one that is not."""
    off = clipped(patch)
    if not is_overexposed(patch):
        return np.zeros_like(off)
    cv2, square = opencv(), np.ones((SPECK, SPECK), np.uint8)
    return np.asarray(cv2.morphologyEx(off.astype(np.uint8), cv2.MORPH_OPEN, square) > 0)
