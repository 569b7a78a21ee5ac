"""Patches put together into one picture: in bands of frequency, feathered, or cut hard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil, log2
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.mosaic.images import Deep, Pixels, opencv
from trimlearn.geometry.mosaic.seams import depth as depth_of
from trimlearn.geometry.mosaic.surfaces import Window

Depth: TypeAlias = type[np.unsignedinteger[Any]]  # uint8 or uint16
WIDEST = 0.05  # of the side of the mosaic: the widest band of a blend, as wide as overlaps are (a choice)
MOST = 7  # bands: the last is 128 pixels wide, beyond which a difference of brightness is no step any more (a choice)
REACH = 4  # pixels of the coarsest band that a patch reaches beyond its edge: pyrDown and pyrUp take two each


class Blender(ABC):
    """Takes patches one at a time and gives the picture on its canvas; for a circle, a canvas that overlaps itself.

    ``mixed``: some of the patches are grey and some are not, so that colours must not flow from one into the other.
    """

    follows_seams: ClassVar[bool] = True

    def __init__(self, canvas: Window, depth: Depth = np.uint8, mixed: bool = False) -> None:
        self.canvas, self.depth, self.mixed, self.white = canvas, depth, mixed, int(np.iinfo(depth).max)

    @classmethod
    def reach(cls, canvas: Window) -> int:
        """How many pixels a patch's influence goes beyond it."""
        return 0

    @staticmethod
    def weigh(mask: Pixels, shown: Pixels) -> NDArray[Any]:
        """The weight of each pixel of a patch: mask says where it has any, shown where the seams want it.

        A weight of 1 in 255 where a patch is not wanted: seams found on a smaller mosaic may leave slits at its edges.
        """
        return np.where(mask > 0, np.maximum(shown, 1), 0).astype(np.uint8)

    @abstractmethod
    def add(self, pixels: Deep, weight: NDArray[Any], window: Window) -> None:
        """Add a patch; its window lies in the canvas."""

    @abstractmethod
    def result(self) -> Deep:
        """The picture (h, w, 3), 0 where no patch is."""


@final
class Multiband(Blender):
    """Coarse structure is blended widely, fine structure narrowly: neither steps of brightness nor ghosts.

    Each patch is split into bands of frequency, its Laplacian pyramid; in band l the patches are averaged with their
    weights blurred to that band's scale, 2^l pixels. Where grey and coloured patches are mixed, this is for luminance,
    and colours are in the finest band whole. (OpenCV's own blender does this in 16-bit integers, which costs
    two to five grey levels, and the grain.) P. Burt and E. Adelson, A multiresolution spline with application to image
    mosaics, ACM Transactions on Graphics 1983.
    """

    def __init__(self, canvas: Window, depth: Depth = np.uint8, mixed: bool = False) -> None:
        super().__init__(canvas, depth, mixed)
        self._bands = self._bands_of(canvas)
        w, h = (-(-side >> self._bands) << self._bands for side in (canvas.w, canvas.h))  # halves to the last band
        self._padded = Window(0, 0, w, h)
        shapes = [(h >> band, w >> band) for band in range(self._bands + 1)]
        self._sum = [np.zeros((*shape, 3), np.float32) for shape in shapes]
        self._weight = [np.zeros((*shape, 1), np.float32) for shape in shapes]

    @classmethod
    def reach(cls, canvas: Window) -> int:
        return int(min(REACH << cls._bands_of(canvas), canvas.w // 2))

    @staticmethod
    def _bands_of(canvas: Window) -> int:
        return int(np.clip(ceil(log2(WIDEST * canvas.area**0.5)), 1, MOST))

    def add(self, pixels: Deep, weight: NDArray[Any], window: Window) -> None:
        cv2 = opencv()
        place = window.moved(-self.canvas.x, -self.canvas.y)
        box = self._box(place)
        edges = place.y - box.y, box.y + box.h - place.y - place.h, place.x - box.x, box.x + box.w - place.x - place.w
        image = cv2.copyMakeBorder(pixels.astype(np.float32), *edges, cv2.BORDER_REFLECT)
        share = cv2.copyMakeBorder(weight.astype(np.float32) / 255, *edges, cv2.BORDER_CONSTANT)
        image = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb) if self.mixed else image
        for band in range(self._bands):
            coarse = cv2.pyrDown(image)
            if self.mixed:
                coarse[:, :, 1:] = 0
            image -= cv2.pyrUp(coarse)
            self._accumulate(band, box, place, image, share)
            image, share = coarse, cv2.pyrDown(share)
        self._accumulate(self._bands, box, place, image, share)

    def _box(self, place: Window) -> Window:
        """A patch's place, some way around it, to whole pixels of the coarsest band."""
        step = 1 << self._bands
        x, y = ((side - 3 * step) // step * step for side in (place.x, place.y))
        right, below = (-(-(side + 3 * step) // step) * step for side in (place.x + place.w, place.y + place.h))
        return Window(x, y, right - x, below - y) & self._padded

    def _accumulate(self, band: int, box: Window, place: Window, detail: NDArray[Any], share: NDArray[Any]) -> None:
        """Add to one band what is so near the patch that it has a share."""
        reach = REACH << band
        around = Window(place.x - reach, place.y - reach, place.w + 2 * reach, place.h + 2 * reach)
        near = _halved(around & box, band)
        own, there = near.slices(_halved(box, band)), near.slices(_halved(self._padded, band))
        weight = share[own][:, :, None]
        self._sum[band][there] += detail[own] * weight
        self._weight[band][there] += weight

    def result(self) -> Deep:
        cv2 = opencv()
        bands = [_mean(total, weight) for total, weight in zip(self._sum, self._weight, strict=True)]
        picture = bands.pop()
        while bands:
            picture = cv2.pyrUp(picture)
            picture += bands.pop()
        picture = cv2.cvtColor(picture, cv2.COLOR_YCrCb2RGB) if self.mixed else picture
        picture *= self._weight[0] > 0
        np.clip(np.rint(picture, out=picture), 0, self.white, out=picture)
        return np.asarray(picture[: self.canvas.h, : self.canvas.w], self.depth)


@final
class Feather(Blender):
    """The mean of all patches, each weighted by the distance from its edge. Smooth, but what moved is a ghost."""

    follows_seams = False

    def __init__(self, canvas: Window, depth: Depth = np.uint8, mixed: bool = False) -> None:
        super().__init__(canvas, depth, mixed)
        self._sum = np.zeros((canvas.h, canvas.w, 3), np.float32)
        self._weight = np.zeros((canvas.h, canvas.w, 1), np.float32)

    @staticmethod
    def weigh(mask: Pixels, shown: Pixels) -> NDArray[Any]:
        return depth_of(mask)

    def add(self, pixels: Deep, weight: NDArray[Any], window: Window) -> None:
        there = window.slices(self.canvas)
        self._sum[there] += pixels * weight[:, :, None]
        self._weight[there] += weight[:, :, None]

    def result(self) -> Deep:
        return np.asarray(np.rint(_mean(self._sum, self._weight)), self.depth)


@final
class Hard(Blender):
    """Each pixel from one image: the seams as they are."""

    def __init__(self, canvas: Window, depth: Depth = np.uint8, mixed: bool = False) -> None:
        super().__init__(canvas, depth, mixed)
        self._picture = np.zeros((canvas.h, canvas.w, 3), depth)
        self._best = np.zeros((canvas.h, canvas.w), np.uint8)

    def add(self, pixels: Deep, weight: NDArray[Any], window: Window) -> None:
        there = window.slices(self.canvas)
        better = weight > self._best[there]
        self._picture[there][better], self._best[there][better] = pixels[better], weight[better]

    def result(self) -> Deep:
        return self._picture


def _halved(window: Window, times: int) -> Window:
    """The pixels of a coarser band that a window touches."""
    x, y = window.x >> times, window.y >> times
    return Window(x, y, -(-(window.x + window.w) >> times) - x, -(-(window.y + window.h) >> times) - y)


def _mean(total: NDArray[np.float32], weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weighted mean from its sums, 0 where there is no weight; in the place of the sum."""
    total /= np.maximum(weight, np.finfo(np.float32).tiny)
    return total


BLENDERS: dict[str, type[Blender]] = {"multiband": Multiband, "feather": Feather, "none": Hard}
