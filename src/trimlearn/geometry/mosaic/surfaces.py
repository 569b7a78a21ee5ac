"""Surfaces that a mosaic is drawn on: plane, cylinder, sphere, and where each image falls on them.

A point (u, v) of a surface is a ray d(u, v) of the world; image i sees that ray at the pixel π(Pᵢ d), π(x, y, z) =
(x/z, y/z), from where its lens moves it (`lens`). Pᵢ = Kᵢ Rᵢ for a camera that turns, Pᵢ = Hᵢ⁻¹ for a plane and
homographies Hᵢ from image to plane. Mosaic pixels are (u, v) times `scale`. x points right, y down, z ahead.

An image drawn on a window of a surface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.images import Deep, Pixels, full, opencv
from trimlearn.geometry.panorama.scene import bend, straight

GRID = 65  # points a side by which the outline of an image is found: between two it is straight to a pixel
COARSE = 16  # points a side at which the scale of a drawn image is measured: it changes smoothly
POLES = np.array([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]])  # straight up and down, which a grid of pixels misses


@dataclass(frozen=True)
class View:
    """One image as seen from a surface: P (3, 3), ray of the world to homogeneous pixel, z > 0 ahead; size (w, h).

    kappa: of its lens, which bends what P would show.
    """

    P: Floats
    size: tuple[int, int]
    kappa: float = 0.0

    def shrunk(self, size: tuple[int, int]) -> View:
        """The view of the same image resized to `size`."""
        (w, h), (w2, h2) = self.size, size
        a, b = w2 / w, h2 / h
        resize = np.array([[a, 0, (a - 1) / 2], [0, b, (b - 1) / 2], [0, 0, 1]])  # pixel centres at whole numbers
        return View(resize @ self.P, size, self.kappa)

    @property
    def centre(self) -> Floats:
        """The pixel in the middle."""
        return (np.array(self.size, np.float64) - 1) / 2

    @property
    def half(self) -> Floats:
        """Half the diagonal, in pixels."""
        return np.asarray(np.hypot(*self.size) / 2)

    def shown(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The pixels at which the lens shows what is at (x, y) without it."""
        if self.kappa == 0:
            return x, y
        bent = bend(np.stack([x, y], axis=-1) - self.centre, np.asarray(self.kappa), self.half) + self.centre
        return bent[..., 0], bent[..., 1]

    def rays(self) -> Floats:
        """Rays (m, 3) through a grid over the image, its outline included."""
        w, h = self.size
        x, y = np.meshgrid(np.linspace(0, w - 1, GRID), np.linspace(0, h - 1, GRID))
        seen = np.column_stack([x.ravel(), y.ravel()]) - self.centre
        flat = straight(seen, np.asarray(self.kappa), self.half) + self.centre
        return np.asarray(np.linalg.solve(self.P, np.vstack([flat.T, np.ones(x.size)])).T)

    def sees(self, ray: Floats) -> bool:
        """Whether a ray (3,) falls into the image."""
        (x, y, z), (w, h) = self.P @ ray, self.size
        if z <= 0:
            return False
        x, y = self.shown(x / z, y / z)
        return bool(0 <= x <= w - 1 and 0 <= y <= h - 1)


@dataclass(frozen=True)
class Window:
    """A rectangle of mosaic pixels: x to x + w − 1, y to y + h − 1."""

    x: int
    y: int
    w: int
    h: int

    @property
    def area(self) -> int:
        """Its pixels."""
        return self.w * self.h

    def __and__(self, other: Window) -> Window:
        x, y = max(self.x, other.x), max(self.y, other.y)
        right, below = min(self.x + self.w, other.x + other.w), min(self.y + self.h, other.y + other.h)
        return Window(x, y, max(0, right - x), max(0, below - y))

    def moved(self, x: int, y: int = 0) -> Window:
        """The rectangle shifted by (x, y)."""
        return Window(self.x + x, self.y + y, self.w, self.h)

    def slices(self, inside: Window) -> tuple[slice, slice]:
        """Rows and columns of this rectangle in an array that holds `inside`."""
        y, x = self.y - inside.y, self.x - inside.x
        return slice(y, y + self.h), slice(x, x + self.w)


@dataclass(frozen=True)
class Surface(ABC):
    """What the mosaic is drawn on; `scale` is mosaic pixels per unit of u and v."""

    scale: float
    name: ClassVar[str]
    wraps: ClassVar[bool] = False  # u is an angle: u and u + 2π are the same place
    finite: ClassVar[bool] = False  # every direction has its place
    instead: ClassVar[str] = "sphere"  # what to use where this surface ends

    @abstractmethod
    def ray(self, u: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        """The ray d(u, v), of any length."""

    @abstractmethod
    def flatten(self, rays: Floats) -> tuple[Floats, Floats]:
        """(u, v) of rays (m, 3); NaN for a ray that never meets the surface."""

    def pixels(self, view: View, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Where `view` sees the mosaic pixels (x, y), arrays that broadcast: NaN where they are behind it."""
        d = self.ray(x / self.scale, y / self.scale)
        a, b, c = (row[0] * d[0] + row[1] * d[1] + row[2] * d[2] for row in view.P)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(c > 0, c, np.nan)
            return view.shown(a / ahead, b / ahead)

    def steps(self, view: View, window: Window) -> Floats:
        """Pixels of `view` from one pixel of the mosaic to the next, where a grid over the window shows it (m,)."""
        x = np.linspace(window.x, window.x + window.w - 1, COARSE)[None, :]
        y = np.linspace(window.y, window.y + window.h - 1, COARSE)[:, None]
        here, right, below = (np.stack(self.pixels(view, x + i, y + j)) for i, j in ((0, 0), (1, 0), (0, 1)))
        (a, b), (c, d) = right - here, below - here
        inside = (here[0] >= 0) & (here[0] < view.size[0]) & (here[1] >= 0) & (here[1] < view.size[1])
        area = np.abs(a * d - b * c)
        return np.asarray(np.sqrt(area[inside & np.isfinite(area)]))

    def window(self, view: View) -> Window | None:
        """The smallest rectangle around `view`; None where part of it is at the horizon or beyond."""
        poles = [pole for pole in POLES if view.sees(pole)]
        u, v = self.flatten(np.vstack([view.rays(), *poles]))
        if not (np.all(np.isfinite(u)) and np.all(np.isfinite(v))):
            return None
        if self.wraps:
            middle = np.arctan2(np.sin(u).mean(), np.cos(u).mean())
            u = middle + np.mod(u - middle + np.pi, 2 * np.pi) - np.pi  # an image that looks at ±π is in one piece
            u = np.append(u, [middle - np.pi, middle + np.pi] if poles else [])  # all directions meet at a pole
        x0, x1 = _whole(u * self.scale)
        y0, y1 = _whole(v * self.scale)
        return Window(x0, y0, x1 - x0 + 1, y1 - y0 + 1)


@final
class PlaneSurface(Surface):
    """d(u, v) = (u, v, 1): what a single picture is, straight lines stay straight. For fields of view below 90° or so.

    >>> PlaneSurface(1.0).flatten(np.array([[3.0, 4.0, 2.0]]))
    (array([1.5]), array([2.]))
    """

    name, instead = "plane", "cylinder"

    def ray(self, u: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        return u, v, np.ones(())

    def flatten(self, rays: Floats) -> tuple[Floats, Floats]:
        x, y, z = rays.T
        z = np.where(z > 0, z, np.nan)
        return x / z, y / z


@final
class CylinderSurface(Surface):
    """d(u, v) = (sin u, v, cos u): upright lines stay straight. For any width, and heights below 80° or so.

    >>> u, v = CylinderSurface(1.0).flatten(np.array([[2.0, 3.0, 0.0]]))
    >>> float(u[0]) == np.pi / 2, float(v[0])
    (True, 1.5)
    """

    name, wraps = "cylinder", True

    def ray(self, u: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        return np.sin(u), v, np.cos(u)

    def flatten(self, rays: Floats) -> tuple[Floats, Floats]:
        x, y, z = rays.T
        level = np.hypot(x, z)
        level = np.where(level > 0, level, np.nan)
        return np.arctan2(x, z), y / level


@final
class SphereSurface(Surface):
    """d(u, v) = (sin u cos v, sin v, cos u cos v), longitude and latitude: for views that are wide and tall.

    >>> u, v = SphereSurface(1.0).flatten(np.array([[0.0, -2.0, 2.0]]))  # 45° up
    >>> float(np.degrees(v[0]).round())
    -45.0
    """

    name, wraps, finite = "sphere", True, True

    def ray(self, u: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        return np.sin(u) * np.cos(v), np.sin(v), np.cos(u) * np.cos(v)

    def flatten(self, rays: Floats) -> tuple[Floats, Floats]:
        x, y, z = rays.T
        return np.arctan2(x, z), np.arctan2(y, np.hypot(x, z))


def _whole(values: Floats) -> tuple[int, int]:
    """The whole numbers around some values."""
    return int(np.floor(values.min())), int(np.ceil(values.max()))


TILE = 1024  # pixels a side: a limit on memory, the coordinates of one tile are 16 MB
KNOT = (
    4  # pixels between those whose coordinates are computed: a limit on time; a power of 2, as OpenCV has 1/32 pixels
)
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
