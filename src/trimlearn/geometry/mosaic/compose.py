"""From placed images to the finished picture: exposure and seams on a small mosaic, then the full one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.blend import Blender
from trimlearn.geometry.mosaic.exposure import apply_gain, gains
from trimlearn.geometry.mosaic.images import Deep, Pixels, eight_bits
from trimlearn.geometry.mosaic.layout import Layout
from trimlearn.geometry.mosaic.seams import enlarged, seams
from trimlearn.geometry.mosaic.warp import Patch, warp

__all__ = ["compose"]

SMALL, TOTAL = 100_000, 1_500_000  # pixels on the small mosaic, of each image and of all: limits on time, of graph cuts


def compose(
    layout: Layout, images: Sequence[Deep], blender: type[Blender], *, equalise: bool = True
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

    reach = 0 if layout.period is None else blender.reach(layout.canvas)
    canvas = replace(layout.canvas, x=layout.canvas.x - reach, w=layout.canvas.w + 2 * reach)
    into, covered = blender(canvas, images[0].dtype.type), np.zeros((canvas.h, canvas.w), np.uint8)
    for i, (image, window) in enumerate(zip(images, layout.windows, strict=True)):
        pixels, mask = warp(image, layout.views[i], layout.surface, window)
        pixels = apply_gain(pixels, gain[i])
        weight = blender.weigh(mask, np.rint(enlarged(shown[i], small.windows[i], window, factor)).astype(np.uint8))
        for piece in layout.pieces_of(i, canvas):
            cut = piece.own.slices(window)
            into.add(pixels[cut], weight[cut], piece.window)
            covered[piece.window.slices(canvas)] |= mask[cut]
    inside = layout.canvas.slices(canvas)
    return into.result()[inside], covered[inside]


def _draw(layout: Layout, images: Sequence[Deep]) -> list[Patch]:
    """All images on a layout, in bytes: enough for seams and exposures."""
    placed = zip(images, layout.views, layout.windows, strict=True)
    drawn = (warp(image, view, layout.surface, window) for image, view, window in placed)
    return [Patch(eight_bits(patch.pixels), patch.mask) for patch in drawn]


def _seams(layout: Layout, patches: Sequence[Patch], gain: Floats) -> list[Pixels]:
    equal = [Patch(apply_gain(p.pixels, g), p.mask) for p, g in zip(patches, gain, strict=True)]
    return seams(layout, equal)
