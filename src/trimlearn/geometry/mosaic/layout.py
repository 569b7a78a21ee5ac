"""Where on the canvas of a mosaic each image goes, and how large that canvas is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.mosaic.surfaces import Surface, View, Window

STRETCH = 10.0  # pixels that one image may cover, by those of the largest: on a plane cos⁻³ of an angle, 62° (a choice)


class HorizonError(ValueError):
    """A surface that some image would cover without end."""


@dataclass(frozen=True)
class CanvasPiece:
    """The part of image i that lies on the canvas, shifted by whole turns: an image at the cut has two of them."""

    i: int
    window: Window  # on the canvas
    shift: int  # pixels from the image's own window to there

    @property
    def own(self) -> Window:
        """The same part in the coordinates of the image's own window."""
        return self.window.moved(-self.shift)


@dataclass(frozen=True)
class CanvasLayout:
    """Images placed: image i fills part of windows[i]; canvas is what the mosaic shows.

    period: None, or the number of pixels of a full turn, where the images close the circle: then the canvas is one turn
    wide, and its right end continues at its left.
    """

    surface: Surface
    views: Sequence[View]
    windows: Sequence[Window]
    canvas: Window
    period: int | None = None

    def pieces(self) -> list[CanvasPiece]:
        """What is seen of each image on the canvas."""
        return [piece for i in range(len(self.windows)) for piece in self.pieces_of(i, self.canvas)]

    def pieces_of(self, i: int, canvas: Window) -> Iterator[CanvasPiece]:
        """What is seen of image i on a canvas, which may reach beyond both ends of a turn."""
        for shift in (0,) if self.period is None else (-self.period, 0, self.period):
            seen = self.windows[i].moved(shift) & canvas
            if seen.area:
                yield CanvasPiece(i, seen, shift)

    def steps(self) -> list[float]:
        """For each image, how many of its pixels there are from one pixel of the mosaic to the next, in its middle."""
        return [float(np.median(self._local(i))) for i in range(len(self.views))]

    def stretch(self) -> float:
        """How many times larger things are drawn in one place than in another of the same image, at most."""
        return max(float(local.max() / local.min()) for local in map(self._local, range(len(self.views))))

    def _local(self, i: int) -> NDArray[np.float64]:
        """Pixels of image i from one pixel of the mosaic to the next, over a grid."""
        return self.surface.steps(self.views[i], self.windows[i])

    def scaled(self, factor: float) -> CanvasLayout:
        """The same layout on a canvas `factor` as large; a full turn stays a whole number of pixels."""
        if self.period is not None:
            factor = round(self.period * factor) / self.period
        period = None if self.period is None else round(self.period * factor)
        canvas = _scaled(self.canvas, factor)
        if period is not None:
            canvas = replace(canvas, w=period)
        surface = type(self.surface)(self.surface.scale * factor)
        return CanvasLayout(surface, self.views, [_scaled(w, factor) for w in self.windows], canvas, period)


def lay_out(surface: Surface, views: Sequence[View], names: Sequence[str]) -> CanvasLayout:
    """Place the images on a surface; HorizonError where one of them reaches its horizon or stretches without bound."""
    if surface.wraps:  # a whole number of pixels a turn, so that images move by turns
        surface = type(surface)(max(1, round(2 * np.pi * surface.scale)) / (2 * np.pi))
    largest = STRETCH * max(w * h for w, h in (view.size for view in views))
    windows = []
    for view, name in zip(views, names, strict=True):
        window = surface.window(view)
        if window is None or (not surface.finite and window.area > largest):
            raise HorizonError(
                f"{name} reaches the horizon of the {surface.name}, where it would be stretched without end; "
                f"leave it out, or use surface={surface.instead!r}."
            )
        windows.append(window)
    return _around(surface, views, windows) if surface.wraps else CanvasLayout(surface, views, windows, _union(windows))


def _around(surface: Surface, views: Sequence[View], windows: Sequence[Window]) -> CanvasLayout:
    """The circle cut open: in its widest gap, or, where there is none, in the middle of the image furthest back."""
    turn = round(2 * np.pi * surface.scale)
    covered = np.zeros(turn, bool)
    for window in windows:
        covered[np.arange(window.x, window.x + window.w) % turn] = True
    union = _union(windows)
    if covered.all():
        back = max((w.x + w.w // 2 for w in windows), key=lambda x: abs((x + turn // 2) % turn - turn // 2))
        return CanvasLayout(surface, views, windows, Window(back, union.y, turn, union.h), turn)
    columns = np.flatnonzero(covered)
    gaps = np.diff(columns, append=columns[0] + turn)
    start = int(columns[(np.argmax(gaps) + 1) % len(columns)])
    start -= turn * (start > turn // 2)  # angles from −π to π
    placed = [replace(w, x=start + (w.x - start) % turn) for w in windows]
    return CanvasLayout(surface, views, placed, _union(placed))


def _union(windows: Sequence[Window]) -> Window:
    x, y = min(w.x for w in windows), min(w.y for w in windows)
    return Window(x, y, max(w.x + w.w for w in windows) - x, max(w.y + w.h for w in windows) - y)


def _scaled(window: Window, factor: float) -> Window:
    x, y = int(np.floor(window.x * factor)), int(np.floor(window.y * factor))
    right, below = np.ceil((window.x + window.w - 1) * factor), np.ceil((window.y + window.h - 1) * factor)
    return Window(x, y, int(right) - x + 1, int(below) - y + 1)
