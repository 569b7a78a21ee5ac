"""stitch: two or more photographs made one picture."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.validation import check_choice, check_positive
from trimlearn._utils.warn import warn
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.inputs import check_flag, check_images, seed_of
from trimlearn.geometry.mosaic.blend import BLENDERS
from trimlearn.geometry.mosaic.compose import compose
from trimlearn.geometry.mosaic.crop import largest_rectangle, outline
from trimlearn.geometry.mosaic.images import SMALLEST, Deep, ImageLike, name_of, read_deep, sixteen_bits
from trimlearn.geometry.mosaic.layout import CanvasLayout
from trimlearn.geometry.mosaic.mosaic import Mosaic, check_picture_path
from trimlearn.geometry.mosaic.placement import SURFACES, Placement, place
from trimlearn.geometry.mosaic.surfaces import PlaneSurface, Window
from trimlearn.geometry.panorama.overlaps import find_overlaps
from trimlearn.geometry.panorama.pairs import Pairs

__all__ = ["stitch", "stitch_files"]


def stitch(
    images: Iterable[ImageLike],
    *,
    surface: str = "auto",
    projection: str | None = None,
    blend: str = "multiband",
    equalise: bool = True,
    crop: bool = False,
    max_pixels: float = 100e6,
    max_features: int = 8000,
    random_state: Any = 0,
    progress: bool = False,
) -> Mosaic:
    """Two or more overlapping photographs made one picture.

    Features are matched between all images, as by `match_pairs` but on fewer pixels where these are enough, wrong
    matches trimmed, the images placed by one joint trimmed fit (`TrimmedHomography` for two, `TrimmedPanorama` for
    more), their exposures equalised, seams led where the images agree, and the parts blended. The order of the images
    does not matter.

    Parameters
    ----------
    images : iterable of paths or arrays
        At least two, of any sizes; see `read_image`. What is transparent is not shown.
    surface : {"auto", "plane", "cylinder", "sphere"}
        "auto": a plane for fields of view below 90°, and where the camera moved along something flat; beyond that a
        cylinder, or a sphere where the view is taller than 80°.
    projection : str, optional
        Another name of ``surface``, which it overrides.
    blend : {"multiband", "feather", "none"}
        Blending in bands of frequency, by distance from the edges, or not at all.
    equalise : bool
        Give each image a gain per colour, so that overlaps are equally bright.
    crop : bool
        Cut out the largest upright rectangle that the images fill.
    max_pixels : float
        The finest photograph decides the resolution. A mosaic that would then be larger than this is made smaller, with
        a warning: it takes some 25 bytes a pixel of memory (16-bit photographs: 30).
    max_features : int
        Features looked for in each image.
    random_state : int, RandomState, Generator or None
        For the fits.
    progress : bool
        Say on stderr what is being done.

    Returns
    -------
    Mosaic
        Images that overlap with no other are left out, with a warning.

    Raises
    ------
    ValueError
        Where no two images overlap, an image cannot be read, or the mosaic would reach the horizon of a plane.

    References
    ----------
    M. Brown and D. Lowe, Automatic panoramic image stitching using invariant features, IJCV 2007.

    Examples
    --------
    >>> noise = np.random.default_rng(0).integers(0, 256, (30, 50), dtype=np.uint8)
    >>> scene = np.kron(noise, np.ones((8, 8), np.uint8))
    >>> mosaic = stitch([scene[:, :240], scene[:, 120:]])
    >>> mosaic.image.shape, mosaic.surface, mosaic.left_out
    ((240, 400, 3), 'plane', ())
    """
    if projection is not None:
        check_choice(projection, ("auto", *SURFACES), "projection")
        surface = projection
    check_choice(surface, ("auto", *SURFACES), "surface")
    check_choice(blend, tuple(BLENDERS), "blend")
    if check_positive(max_pixels, "max_pixels") < SMALLEST**2:
        raise ValueError(f"max_pixels must be at least {SMALLEST**2}, got {max_pixels!r}.")
    for flag, name in ((equalise, "equalise"), (crop, "crop"), (progress, "progress")):
        check_flag(flag, name)
    seed = seed_of(random_state)
    say: Callable[[str], None] = partial(print, file=sys.stderr) if progress else (lambda line: None)
    pixels, names = _read(images, say)
    # in an order of their own, so that the mosaic is the same for any order that they come in
    order = sorted(range(len(pixels)), key=lambda i: (pixels[i].shape, sha256(pixels[i].data).digest()))
    say(f"matching {len(pixels)} images")
    called = [names[i] for i in order]
    found = find_overlaps([pixels[i] for i in order], called, max_features, seed)
    pairs, group = found.largest()
    used = [order[k] for k in group]
    _warn_left_out([name for i, name in enumerate(names) if i not in used])
    say(f"fitting {len(pairs)} overlaps of {len(used)} images")
    placed = place(pairs, surface, seed)
    layout = _within(placed.layout, max_pixels)
    say(f"blending {layout.canvas.w} × {layout.canvas.h} pixels on a {layout.surface.name}")
    picture, mask = compose(layout, [pixels[i] for i in used], BLENDERS[blend], equalise=equalise)
    return _mosaic(picture, mask > 0, placed._replace(layout=layout), pairs, used, len(pixels), crop)


def stitch_files(paths: Iterable[ImageLike], out: str | os.PathLike[str], **options: Any) -> Mosaic:
    """`stitch`, and the picture written to ``out``: checked before the work, written whole or not at all."""
    target = check_picture_path(out)
    mosaic = stitch(paths, **options)
    mosaic.save(target)
    return mosaic


def _read(images: Iterable[ImageLike], say: Callable[[str], None]) -> tuple[list[Deep], list[str]]:
    """The images, all of them as deep as the deepest, and their names."""
    shown = check_images(images)
    names = [name_of(image, i) for i, image in enumerate(shown)]
    say(f"reading {len(names)} images")
    pixels = [read_deep(image, name, alpha=True) for image, name in zip(shown, names, strict=True)]
    if any(image.dtype == np.uint16 for image in pixels):
        return [sixteen_bits(image) for image in pixels], names
    return pixels, names


def _warn_left_out(names: Sequence[str]) -> None:
    if names:
        what = f"{names[0]} overlaps" if len(names) == 1 else f"{', '.join(names)} overlap"
        warn(f"left out: {what} with none of the images in the mosaic.")


def _within(layout: CanvasLayout, max_pixels: float) -> CanvasLayout:
    canvas = layout.canvas
    if canvas.area <= max_pixels:
        return layout
    factor = (max_pixels / canvas.area) ** 0.5
    smaller = layout.scaled(max(factor - 2 / min(canvas.w, canvas.h), factor / 2))  # windows are rounded up
    warn(
        f"the mosaic would have {canvas.w} × {canvas.h} pixels, more than max_pixels = {max_pixels:.3g}; "
        f"it is made {smaller.canvas.w} × {smaller.canvas.h}, coarser than the finest photograph. Raise max_pixels "
        "if there is memory for it.",
    )
    return smaller


def _mosaic(
    picture: Deep, mask: NDArray[np.bool_], placed: Placement, pairs: Pairs, order: Sequence[int], n: int, crop: bool
) -> Mosaic:
    layout, canvas = placed.layout, placed.layout.canvas
    inside = largest_rectangle(mask) if crop else outline(mask)
    there = inside.slices(replace(canvas, x=0, y=0))
    picture, mask, canvas = picture[there], mask[there], inside.moved(canvas.x, canvas.y)
    used = tuple(sorted(order))
    return Mosaic(
        np.ascontiguousarray(picture),
        np.ascontiguousarray(mask),
        layout.surface.name,
        _homographies(layout, canvas, order, n) if isinstance(layout.surface, PlaneSurface) else None,
        used,
        tuple(i for i in range(n) if i not in used),
        wraps=layout.period is not None and canvas.w == layout.period,
        order=tuple(order),
        pairs=pairs,
        panorama=placed.panorama,
        distortion=_distortion(layout, order, n),
    )


def _distortion(layout: CanvasLayout, order: Sequence[int], n: int) -> tuple[float, ...]:
    """κ of the lens of each of the n images; NaN for those left out."""
    kappa = dict(zip(order, (view.kappa for view in layout.views), strict=True))
    return tuple(kappa.get(i, float("nan")) for i in range(n))


def _homographies(layout: CanvasLayout, canvas: Window, order: Sequence[int], n: int) -> Floats:
    """Pixel of image i, its lens taken out, to pixel of the mosaic, for all n images; NaN for those left out."""
    s = layout.surface.scale
    to_mosaic = np.array([[s, 0, -canvas.x], [0, s, -canvas.y], [0, 0, 1]])
    H = np.full((n, 3, 3), np.nan)
    for i, view in zip(order, layout.views, strict=True):
        H[i] = to_mosaic @ np.linalg.inv(view.P)
        H[i] /= H[i][2, 2]
    return H
