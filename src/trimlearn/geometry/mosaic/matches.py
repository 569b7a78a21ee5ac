"""Matches between two images: SIFT features, their nearest neighbours, the ratio test and the mutual check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.validation import check_count
from trimlearn.geometry.homography.points import Bools, Floats, Ints
from trimlearn.geometry.mosaic.images import ImageLike, Pixels, grey, opencv, read_image

__all__ = ["Features", "Matches", "detect", "for_detection", "match", "match_images", "shortened"]

DETECTION_PIXELS = 2_500_000  # larger photos are scaled down: a limit on time, some seconds; fine pixels hold noise
RIM = 4  # pixels from a transparent one within which no feature is looked for: 2.5 times SIFT's first blur, 1.6 pixels
BLOCK = 1 << 20  # inner products at a time: 4 MB, which stay in a cache; eight times as many take a fifth longer
# SIFT's thresholds of contrast and of edges: half and twice Lowe's. Together they give 35 % more right matches, 83 % of
# all for 85 % (benchmarks/calibration/features.py); dark photos have few without.
CONTRAST, EDGE = 0.02, 20.0
# The ratio of distances and the number of features at default. Of the ratios from 0.8 to 0.9 this one gives, on each of
# ten pairs, no fewer matches than OpenCV's SIFT with Lowe's 0.8 and no mutual check, of which more are right; 8,000
# features cut off a quarter of those of a textured photo (benchmarks/calibration/features.py).
RATIO, MOST = 0.83, 20_000
# Of a descriptor's 128 numbers those that are kept where many pairs of images are matched, in half of the time: on ten
# pairs 7,539 right matches of 8,915 instead of 7,523 of 8,674; 32 lose a fortieth (benchmarks/calibration/features.py).
KEPT = 64
ELSEWHERE = 10.0  # pixels: nearer features show the same thing, and compete with no match (Mishkin et al. 2015, MODS)


Descriptors = NDArray[np.float32]


class Matches(NamedTuple):
    """Tentative matches between two images, some of them wrong.

    The centre of the top left pixel is (0, 0).

    Parameters
    ----------
    src : ndarray of shape (n, 2)
        Pixels (x, y) of the first image.
    dst : ndarray of shape (n, 2)
        The pixels of the second image that look like them.
    scores : ndarray of shape (n,)
        Larger for a match that is likelier to be right.

    Examples
    --------
    >>> found = Matches(np.zeros((1, 2)), np.ones((1, 2)), np.array([0.3]))
    >>> found.dst.tolist()
    [[1.0, 1.0]]
    """

    src: Floats
    dst: Floats
    scores: Floats


@dataclass(frozen=True)
class Features:
    """What was detected in one image: points (n, 2) in its full-size pixels, unit descriptors (n, 128), size (w, h); a
    pixel of what was looked at is ``pixel`` full-size ones wide."""

    points: Floats
    descriptors: Descriptors
    size: tuple[int, int]
    pixel: float = 1.0

    def __len__(self) -> int:
        return len(self.points)


def match_images(image1: ImageLike, image2: ImageLike, *, ratio: float = RATIO, max_features: int = MOST) -> Matches:
    """Tentative matches between two images: which pixels of one look like which of the other, some of them wrongly.

    A match is a pair of SIFT features that are each other's nearest neighbours, nearer by the factor ``ratio`` than the
    nearest that is elsewhere (Lowe 2004), since one corner often carries several features; each pixel is in one match
    at most. Which of them are right is for `TrimmedHomography` to say.

    Parameters
    ----------
    image1 : path or ndarray
        The first image: a file, or (h, w), (h, w, 3) RGB or (h, w, 4) RGBA of uint8, uint16 or floats in [0, 1].
    image2 : path or ndarray
        The second image.
    ratio : float
        Distance to the nearest neighbour, by that to the nearest one elsewhere, up to which a match counts.
    max_features : int
        Features looked for in each image, the strongest ones.

    Returns
    -------
    Matches
        Pixels src and dst, and scores, 1 − the ratio of the two distances.

    References
    ----------
    D. Lowe, Distinctive image features from scale-invariant keypoints, IJCV 2004. R. Arandjelović and A. Zisserman,
    Three things everyone should know to improve object retrieval, CVPR 2012 (square roots of descriptors). D. Mishkin,
    J. Matas and M. Perdoch, MODS: fast and robust method for two-view matching, CVIU 2015 (the nearest elsewhere).

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).integers(0, 256, (30, 40), dtype=np.uint8)
    >>> scene = np.kron(noise, np.ones((8, 8), np.uint8))
    >>> src, dst, scores = match_images(scene[:, :-40], scene[:, 40:])  # the camera moved by 40 pixels
    >>> np.median(src - dst, axis=0).round(2).tolist()
    [40.0, 0.0]
    """
    return match(detect(image1, max_features=max_features), detect(image2, max_features=max_features), ratio=ratio)


def detect(image: ImageLike, *, max_features: int = MOST, max_pixels: int = DETECTION_PIXELS) -> Features:
    """The strongest features of an image, at most ``max_features``; an image without any gives empty arrays. One that
    has more than ``max_pixels`` is scaled down.

    >>> len(detect(np.zeros((64, 64), np.uint8)))
    0
    """
    check_count(max_features, "max_features")
    pixels = read_image(image, alpha=True)
    h, w = pixels.shape[:2]
    small = for_detection(grey(pixels[:, :, :3]), max_pixels)
    mask = None if pixels.shape[2] == 3 else _well_inside(pixels[:, :, 3], small.shape)
    sift = opencv().SIFT_create(int(max_features), 3, CONTRAST, EDGE, 1.6, True)  # True: no shift of ¼ pixel
    keypoints, descriptors = sift.detectAndCompute(small, mask)
    points = np.array([k.pt for k in keypoints], np.float64).reshape(-1, 2)
    stretch = np.array([w / small.shape[1], h / small.shape[0]])
    points = (points + 0.5) * stretch - 0.5  # pixel centres are at whole numbers, pixel edges half a pixel off
    return Features(points, _root(descriptors), (w, h), float(np.sqrt(stretch.prod())))


def match(features1: Features, features2: Features, *, ratio: float = RATIO) -> Matches:
    """Tentative matches between the features of two images, see `match_images`."""
    if isinstance(ratio, bool) or not isinstance(ratio, Real) or not 0 < ratio <= 1:
        raise ValueError(f"ratio must be a number in (0, 1], got {ratio!r}.")
    if min(len(features1), len(features2)) < 2:  # no second nearest to compare with
        return Matches(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))
    here, there, first, second = _nearest(features1.descriptors, features2.descriptors, _apart(features2))
    score = 1.0 - np.sqrt(first / np.maximum(second, np.finfo(np.float64).tiny))
    good = score >= 1.0 - ratio
    here, there, score = here[good], there[good], score[good]
    order = np.argsort(-score, kind="stable")
    src, dst, score = features1.points[here[order]], features2.points[there[order]], score[order]
    unique = _first_of_each(src) & _first_of_each(dst)
    return Matches(src[unique], dst[unique], score[unique])


def shortened(features: Sequence[Features]) -> list[Features]:
    """The same with descriptors of KEPT numbers: along the axes on which all of them together are longest, and of unit
    length again."""
    squares = np.sum([f.descriptors.T @ f.descriptors for f in features], axis=0, dtype=np.float64)
    axes = np.linalg.eigh(squares)[1][:, -KEPT:].astype(np.float32)
    return [replace(f, descriptors=_unit(f.descriptors @ axes)) for f in features]


def _unit(rows: Descriptors) -> Descriptors:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny))


def for_detection(image: Pixels, max_pixels: int) -> Pixels:
    """A grey image of no more than so many pixels."""
    h, w = image.shape
    scale = (max_pixels / (h * w)) ** 0.5
    if scale >= 1:
        return image
    cv2 = opencv()
    return np.asarray(cv2.resize(image, (round(w * scale), round(h * scale)), interpolation=cv2.INTER_AREA))


def _well_inside(alpha: Pixels, shape: tuple[int, ...]) -> Pixels:
    """Where an image of that shape is opaque, less a rim: the outline of what is transparent is no feature."""
    cv2 = opencv()
    opaque = cv2.resize(alpha, shape[::-1], interpolation=cv2.INTER_AREA) >= 255
    return np.asarray(cv2.erode(opaque.astype(np.uint8), np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8)))


def _root(descriptors: Descriptors | None) -> Descriptors:
    """RootSIFT: the square root of the descriptor that sums to one, of unit length."""
    if descriptors is None:
        return np.empty((0, 128), np.float32)
    total = np.maximum(descriptors.sum(axis=1, keepdims=True), np.float32(1e-12))
    return np.asarray(np.sqrt(descriptors / total), np.float32)


def _apart(features: Features) -> Floats:
    """The points in units of ELSEWHERE pixels of the image that they were detected in."""
    return np.asarray(features.points / (ELSEWHERE * features.pixel))


def _nearest(a: Descriptors, b: Descriptors, points: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """The rows of a and of b that are each other's nearest, the squared distances between them, and those from the row
    of a to the nearest of b with a point elsewhere, a unit away. Of unit vectors, by inner products, in blocks that fit
    into memory.

    cv2.BFMatcher finds the same in five times as long (8,000 features), since it needs a search for either direction
    and uses no BLAS; scikit-learn's NearestNeighbors in more than twice as long.
    """
    there, closest = np.empty(len(a), np.int64), np.full(len(b), -np.inf, np.float32)  # closest: of each row of b
    first, second = np.empty(len(a), np.float32), np.empty(len(a), np.float32)
    step = max(1, BLOCK // len(b))
    for start in range(0, len(a), step):
        block = slice(start, start + step)
        cosines = a[block] @ b.T
        np.maximum(closest, cosines.max(axis=0), out=closest)
        there[block] = cosines.argmax(axis=1)
        first[block] = cosines[np.arange(len(cosines)), there[block]]
        rows = np.flatnonzero(first[block] >= closest[there[block]])  # the others are nobody's nearest
        second[start + rows] = _elsewhere(cosines[rows], there[start + rows], points)
    here = np.flatnonzero(first >= closest[there])
    return here, there[here], _squared(first[here]), _squared(second[here])


def _squared(cosines: Descriptors) -> Floats:
    """The squared distances of unit vectors."""
    return np.maximum(2.0 - 2.0 * cosines.astype(np.float64), 0.0)


def _elsewhere(cosines: Descriptors, there: Ints, points: Floats) -> Descriptors:
    """The largest of each row whose point is not near that of column ``there``; the second largest if all are near."""
    rows = np.arange(len(cosines))
    cosines[rows, there] = -np.inf
    best = cosines.argmax(axis=1)
    second = cosines[rows, best]
    while True:
        near = np.square(points[best] - points[there[rows]]).sum(axis=1) < 1.0
        rows, best = rows[near], best[near]
        cosines[rows, best] = -np.inf
        best = cosines[rows].argmax(axis=1)
        found = cosines[rows, best] > -np.inf
        rows, best = rows[found], best[found]
        if not len(rows):
            return np.asarray(second)
        second[rows] = cosines[rows, best]


def _first_of_each(points: Floats) -> Bools:
    """Which rows are the first with their values: one point may carry several features, of different orientation."""
    mask = np.zeros(len(points), bool)
    mask[np.unique(points, axis=0, return_index=True)[1]] = True
    return mask
