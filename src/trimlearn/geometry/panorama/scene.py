"""What a joint fit works on, all matches of all verified pairs of images, and how these see each other afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats, Ints, PointPairs
from trimlearn.geometry.homography.transfer import squared_transfer
from trimlearn.geometry.panorama.lens import bend, straight
from trimlearn.geometry.panorama.losses import Correspondences, Maps, homogeneous
from trimlearn.geometry.panorama.pairs import LOOSE, Pairs
from trimlearn.geometry.panorama.trees import Edge

# Times the error of its own homography that a pair may have in a joint fit: right pairs have up to 2.3 times that, also
# where the lens bends lines by 6 % (benchmarks/calibration/panoramas.py); twice it, rounded up.
STRAIN = 5.0
FLAT = 1e-6  # of the largest entry: H[2, 2] below is rounding, and H is scaled by its norm instead


@final
@dataclass(frozen=True)
class Scene:
    """N matches of P pairs among m images, inliers and outliers alike: the pairs' matches, one after the other.

    ``distortion``: κ of each image's lens (see `lens`), which is taken out of the matches; none where it is empty.
    """

    pairs: Pairs
    distortion: tuple[float, ...] = ()

    @property
    def S(self) -> float:
        """N, as a sum of weights: every match counts once."""
        return float(sum(len(p) for p in self.pairs.pairs))

    @cached_property
    def pair(self) -> Ints:
        """The number of the pair that each match belongs to (N,)."""
        return np.repeat(np.arange(len(self.pairs)), [len(p) for p in self.pairs.pairs])

    @cached_property
    def core(self) -> NDArray[np.bool_]:
        """Which matches their pair's own homography explains (N,)."""
        return np.concatenate([p.inliers for p in self.pairs.pairs])

    @cached_property
    def matches(self) -> Correspondences:
        """The matches, in pixels from the centres of their images, as a lens without distortion would show them."""
        i, j = np.array(self.edges)[self.pair].T
        src = np.concatenate([p.src for p in self.pairs.pairs]) - self.centres[i]
        dst = np.concatenate([p.dst for p in self.pairs.pairs]) - self.centres[j]
        if self.distortion:
            kappa, half = np.array(self.distortion), self.halves
            src, dst = straight(src, kappa[i], half[i]), straight(dst, kappa[j], half[j])
        return Correspondences(i, j, src, dst, len(self.pairs.sizes))

    @property
    def edges(self) -> list[Edge]:
        """(i, j) of every pair."""
        return self.pairs.edges

    @property
    def titles(self) -> list[str]:
        """The names of the two images of every pair."""
        return [self.pairs.title(*edge) for edge in self.edges]

    @property
    def inliers(self) -> Ints:
        """How many matches each pair's own homography explains."""
        return np.bincount(self.pair[self.core], minlength=len(self.pairs))

    @property
    def centres(self) -> Floats:
        """The centres of the images (m, 2): the centre of the first pixel is (0, 0)."""
        return (np.array(self.pairs.sizes, np.float64) - 1.0) / 2.0

    @property
    def halves(self) -> Floats:
        """Half the diagonal of each image (m,), in pixels."""
        return np.asarray(np.hypot(*np.array(self.pairs.sizes, np.float64).T) / 2.0)

    @cached_property
    def diagonal(self) -> float:
        """The median diagonal of the images, in pixels."""
        return float(2.0 * np.median(self.halves))

    @cached_property
    def own_errors(self) -> Floats:
        """The median error of each pair's inliers under its own homography (P,), in pixels."""
        seen = [squared_transfer(p.homography, PointPairs(p.src, p.dst))[p.inliers] for p in self.pairs.pairs]
        return np.array([np.median(e2) for e2 in seen]) ** 0.5

    def medians(self, errors: Floats) -> Floats:
        """The median of errors (N,) over each pair's own inliers (P,)."""
        return np.array([np.median(errors[(self.pair == k) & self.core]) for k in range(len(self.pairs))])

    def strained(self, errors: Floats) -> Floats:
        """Errors (P,) of pairs in a joint fit, by those that would be in order (P,): above 1 a pair is bent a lot.

        In order is several times what the pair's own homography leaves, or that of a typical pair, and anything up to
        what lenses and small moves of the camera do.
        """
        usual = STRAIN * np.maximum(self.own_errors, np.median(self.own_errors))
        return np.asarray(errors / np.maximum(usual, LOOSE * self.diagonal))

    def core_of(self, pair: int) -> tuple[Floats, Floats]:
        """The points that a pair's own homography explains."""
        rows = np.flatnonzero((self.pair == pair) & self.core)
        return self.matches.src[rows], self.matches.dst[rows]

    def centred(self, pair: int) -> Floats:
        """The pair's homography between pixels from the centres, of determinant 1 and with its points in front."""
        p = self.pairs.pairs[pair]
        H = shift(-self.centres[p.j]) @ p.homography @ shift(self.centres[p.i])
        return np.asarray(H / np.cbrt(np.linalg.det(H)))  # a homography of what a camera sees turns nothing over


def shift(by: Floats) -> Floats:
    """The homography p → p + by.

    >>> shift(np.array([3.0, 4.0])) @ [1, 1, 1]
    array([4., 5., 1.])
    """
    return np.array([[1.0, 0.0, by[0]], [0.0, 1.0, by[1]], [0.0, 0.0, 1.0]])


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
