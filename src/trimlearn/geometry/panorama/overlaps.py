"""The overlaps of a mosaic's images, in half of the time: matched on few pixels, their places found again on more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trimlearn._utils.threads import each, team
from trimlearn.geometry.homography.estimator import fitted_near
from trimlearn.geometry.homography.points import Floats, PointPairs
from trimlearn.geometry.homography.transfer import transform, zooms
from trimlearn.geometry.mosaic.images import Deep, Pixels, eight_bits, grey, opencv
from trimlearn.geometry.mosaic.matches import for_detection
from trimlearn.geometry.panorama.pairs import DETECTED, Pair, Pairs, gathered, matched, near
from trimlearn.geometry.panorama.trees import components

__all__ = ["find_overlaps"]

# Pixels of a photograph in which features are looked for first: a limit on time, of which SIFT is the greatest part. Of
# 32 warped photographs of half a megapixel homographies are then 0.006 px off, by features of all pixels 0.022, in a
# fifth of the time; with 150,000 pixels 0.005 px, with 50,000 0.009 (benchmarks/calibration/overlaps.py).
QUICK = 100_000
PLENTY = 50  # inliers that a pair must have to be certain: six times what makes an overlap (a choice)
RATIO = 0.8  # of `match_pairs`: Lowe's
WINDOW = 21  # pixels a side that are compared, OpenCV's; with 11 homographies are 0.009 px off, with 31 0.004 (ibid.)
AROUND = 33  # pixels a side by which brightness is made even: more than the window, so that it has edges left
GREY, SPREAD = 128.0, 40.0  # of bytes made even, the middle and the spread: three of it are left on either side
NOISE = 25.0  # a variance, of 5 levels, that is noise, and not made larger (a choice)
MOVED = 3.0  # pixels of what features were looked for in, beyond which another thing was found: twice SIFT's first blur
# Times as many pixels a side from which the finer image is blurred first, as the pixels of the coarser one are: by half
# of theirs, a camera's usual blur (choices).
FINER, BLUR = 1.1, 0.5
STEPS = (3, 20, 0.005)  # of Lucas and Kanade: until one of 20 is less than 0.005 pixels (both by OpenCV's criteria)


def find_overlaps(images: Sequence[Deep], names: Sequence[str], max_features: int, seed: int) -> Pairs:
    """As `match_pairs` finds them. Where features of QUICK pixels connect all images by certain overlaps, these will
    do: inliers are then found again in larger images, warped onto each other, which is more precise than larger
    features are (B. Lucas and T. Kanade, An iterative image registration technique, IJCAI 1981)."""
    with team():
        found, sizes = matched(images, QUICK, max_features, RATIO, seed)
        if max(w * h for w, h in sizes) > QUICK:
            sure = [(p.i, p.j) for p in found if isinstance(p, Pair) and p.inliers.sum() >= PLENTY]
            if len(components(sure, len(images))) > 1:
                found, sizes = matched(images, DETECTED, max_features, RATIO, seed)
            else:
                views = each(_view, images)
                found = each(lambda p: _found_again(p, views, sizes) if isinstance(p, Pair) else p, found)
    return gathered(found, sizes, names)


class _View(NamedTuple):
    """A grey image of DETECTED pixels; T (3, 3) leads to them from those of full size, and ``back`` again."""

    pixels: Pixels
    T: Floats
    back: Floats


def _view(image: Deep) -> _View:
    h, w = image.shape[:2]
    small = for_detection(grey(eight_bits(image[:, :, :3])), DETECTED)
    x, y = small.shape[1] / w, small.shape[0] / h
    return _View(small, _stretch(x, y), _stretch(1.0 / x, 1.0 / y))


def _evened(pixels: Pixels) -> Pixels:
    """Everywhere as bright and as rich in contrast: exposures differ."""
    cv2, values = opencv(), pixels.astype(np.float32)
    values -= cv2.blur(values, (AROUND, AROUND))
    values *= SPREAD / np.sqrt(cv2.blur(values * values, (AROUND, AROUND)) + NOISE)
    return np.asarray(np.clip(values + GREY, 0, 255), np.uint8)


def _stretch(x: float, y: float) -> Floats:
    """Pixels to pixels of an image so many times as wide and as high; centres are at whole numbers."""
    return np.array([[x, 0.0, (x - 1.0) / 2.0], [0.0, y, (y - 1.0) / 2.0], [0.0, 0.0, 1.0]])


def _found_again(pair: Pair, views: Sequence[_View], sizes: Sequence[tuple[int, int]]) -> Pair:
    """The pair with each inlier's place in the finer image where that looks most like its place in the coarser one."""
    one, other = views[pair.i], views[pair.j]
    H = other.T @ pair.homography @ one.back
    ways = H, np.asarray(np.linalg.inv(H), np.float64)
    src, dst = transform(one.T, pair.src[pair.inliers]), transform(other.T, pair.dst[pair.inliers])
    zoom = float(np.median(zooms(H, PointPairs(src, dst))[0])) ** 0.5
    moved_src, moved_dst = pair.src.copy(), pair.dst.copy()
    if zoom >= 1.0:
        moved_dst[pair.inliers] = transform(other.back, _followed(one.pixels, other.pixels, ways, src, dst, zoom))
    else:
        moved = _followed(other.pixels, one.pixels, ways[::-1], dst, src, 1.0 / zoom)
        moved_src[pair.inliers] = transform(one.back, moved)
    model = fitted_near(pair.homography, moved_src, moved_dst)
    inliers = near(model, sizes[pair.j])
    if inliers.sum() < PLENTY:
        return pair
    return replace(pair, src=moved_src, dst=moved_dst, homography=model.homography_, inliers=inliers)


def _followed(
    coarse: Pixels, fine: Pixels, ways: tuple[Floats, Floats], points: Floats, there: Floats, zoom: float
) -> Floats:
    """Where the fine image shows what the coarse one has at its points: near ``there``, or, if not found, just there.
    The fine one is ``zoom`` times as fine; ``ways``: the homography to it, and the one back."""
    cv2, (H, back) = opencv(), ways
    if zoom > FINER:
        fine = cv2.GaussianBlur(fine, (0, 0), BLUR * (zoom * zoom - 1.0) ** 0.5)
    how = {"flags": cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_REFLECT}
    drawn = cv2.warpPerspective(fine, H, coarse.shape[::-1], **how)
    start = transform(back, there).astype(np.float32)
    found, known, _ = cv2.calcOpticalFlowPyrLK(
        _evened(coarse),
        _evened(drawn),
        points.astype(np.float32)[:, None],
        start[:, None].copy(),
        winSize=(WINDOW, WINDOW),
        maxLevel=0,
        criteria=STEPS,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    found, limit = found[:, 0], MOVED * max(1.0, (coarse.size / QUICK) ** 0.5)
    same = (known[:, 0] > 0) & (np.linalg.norm(found - start, axis=1) <= limit)
    return np.where(same[:, None], transform(H, found.astype(np.float64)), there)
