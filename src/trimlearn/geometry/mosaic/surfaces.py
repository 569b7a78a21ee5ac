"""Surfaces that a mosaic is drawn on: plane, cylinder, sphere, and where each image falls on them.

A point (u, v) of a surface is a ray d(u, v) of the world; image i sees that ray at the pixel π(Pᵢ d), π(x, y, z) =
(x/z, y/z), from where its lens moves it. Pᵢ = Kᵢ Rᵢ for a camera that turns, Pᵢ = Hᵢ⁻¹ for a plane and homographies Hᵢ
from image to plane. Mosaic pixels are (u, v) times `scale`. x points right, y down, z ahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.lens import bend, straight

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
