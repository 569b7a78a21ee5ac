"""How the images of a panorama see each other: pixels of one image to pixels of another, with the lens or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.lens import bend, straight
from trimlearn.geometry.panorama.losses import homogeneous
from trimlearn.geometry.panorama.losses.transfer import Maps
from trimlearn.geometry.panorama.scene import Scene, shift

__all__ = ["Views"]

FLAT = 1e-6  # of the largest entry: H[2, 2] below is rounding, and H is scaled by its norm instead


@final
@dataclass(frozen=True)
class Views:
    """Of m images. maps: pixels from the centre, the lens taken out, to a common frame and back. plain: the same of
    cameras without a lens that come nearest to the photographs' own pixels."""

    maps: Maps
    plain: Maps
    centres: Floats
    halves: Floats
    distortion: Floats

    @classmethod
    def of(cls, scene: Scene, maps: Maps, plain: Maps) -> Views:
        return cls(maps, plain, scene.centres, scene.halves, np.array(scene.distortion))

    def __len__(self) -> int:
        return len(self.centres)

    def homography(self, i: int, j: int) -> Floats:
        """Pixel of image i to pixel of image j, without a lens."""
        H = shift(self.centres[j]) @ self.plain.B[j] @ (self.plain.A[i] @ shift(-self.centres[i]))
        corner = abs(H[2, 2])
        return np.asarray(H / (corner if corner > FLAT * np.abs(H[2]).max() else np.linalg.norm(H)))

    def transfer(self, i: int, j: int, points: Floats) -> Floats:
        """The same through the lens of either; NaN for what lies behind image j."""
        flat = straight(np.asarray(points, np.float64) - self.centres[i], self.distortion[i], self.halves[i])
        u = homogeneous(flat) @ (self.maps.B[j] @ self.maps.A[i]).T
        there = u[:, :2] / np.where(u[:, 2:] > 0, u[:, 2:], np.nan)
        return np.asarray(bend(there, self.distortion[j], self.halves[j]) + self.centres[j])
