"""peers, mosaics: `stitch` beside OpenCV's stitcher, in CPU seconds of one run, and open chains beside chained RANSAC.

OpenCV's Stitcher at its defaults finds 500 ORB features on 0.6 megapixels and often no mosaic; so its own parts are
put together as its sample stitching_detailed.py does, with the SIFT features, sizes of photographs and graph cuts that
`stitch` has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import NOTHING, Part, Table, Target, home, say
from paper.panorama.experiment import FOLDER, Reference, load_reference, pairwise_error
from paper.rivals import opencv_homography
from trimlearn.datasets.locate import find_folder
from trimlearn.geometry import TrimmedPanorama, match_pairs, stitch
from trimlearn.geometry.panorama.pairs import Pairs
from trimlearn.geometry.panorama.rotations import nearest_rotation

__all__ = ["mosaics"]

SETS = {
    "river": ("vlfeat", ("river1.jpg", "river2.jpg")),
    "roofs": ("vlfeat", ("roofs1.jpg", "roofs2.jpg")),
    "graf": ("oxford_affine/graf", ("img1.png", "img2.png")),
    "boat": ("oxford_affine/boat", ("img1.png", "img3.png")),
    "denny, five": (FOLDER, tuple(f"denny{k:02d}.jpg" for k in range(5))),
    "denny": (FOLDER, tuple(f"denny{k:02d}.jpg" for k in range(15))),
}
FACTOR = 3.0  # times OpenCV's CPU seconds
SLICE = 5  # consecutive photographs in an open chain
FEATURES, CONFIDENCE, SEAM = (
    8000,
    0.3,
    100_000,
)  # as stitch has them; that of a match; pixels of an image for graph cuts

SURE, MANY = 3.0, 100  # the largest confidence it keeps; inliers with which an overlap is one


def mosaics(data: Path | None, quick: bool) -> Part:
    """Seconds beside OpenCV's on each set of photographs, and errors of open chains of the last."""
    root = home(data)
    names = ["roofs"] if quick else list(SETS)
    table = Table(
        "mosaics: CPU seconds", ["photographs", "stitch", "size", "OpenCV's parts", "size", "Stitcher", "ratio"]
    )
    ratios = []
    for name in names:
        folder = find_folder(SETS[name][0], root, holding=SETS[name][1][0])
        if folder is None:
            continue
        say(f"peers: mosaic of {name}")
        files = [folder / file for file in SETS[name][1]]
        mine, parts, plain = (_timed(partial(way, files)) for way in (_stitch, _parts, _stitcher))
        ratio = mine[0] / parts[0]
        ratios += [ratio] if parts[1] != NOTHING else []
        table.rows.append([name, *mine, *parts, f"{plain[0]:.2f}, {plain[1]}", ratio])
    if not table.rows:
        return Part([Table("mosaics", ["why"], [["not run: no photographs in --data or $TRIMLEARN_DATA"]])], [])
    worst = max(ratios, default=float("nan"))
    targets = [Target("mosaics: stitch's CPU seconds by those of OpenCV's parts, worst", worst, FACTOR)]
    chains = Part([], []) if quick else _chains(root)
    return Part([table, *chains.tables], [*targets, *chains.targets])


def _timed(make: Callable[[], Any]) -> tuple[float, str]:
    """CPU seconds of all threads, and the size of the picture."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        picture = make()
    seconds = time.process_time() - begun
    return seconds, NOTHING if picture is None else f"{picture.shape[1]} × {picture.shape[0]}"


def _stitch(files: Sequence[Path]) -> Any:
    return stitch(files).image


def _stitcher(files: Sequence[Path]) -> Any:
    import cv2

    return cv2.Stitcher_create(cv2.Stitcher_PANORAMA).stitch([cv2.imread(str(file)) for file in files])[1]


def _parts(files: Sequence[Path]) -> Any:
    """OpenCV's parts as in its sample; None where they find no mosaic."""
    import cv2

    images = [cv2.imread(str(file)) for file in files]
    finder = cv2.SIFT_create(FEATURES)
    features = [cv2.detail.computeImageFeatures2(finder, image) for image in images]
    matches = cv2.detail_BestOf2NearestMatcher(False, CONFIDENCE).apply2(features)
    for match in matches:  # OpenCV takes a perfect overlap for the same picture twice
        match.confidence = SURE if match.confidence == 0 and match.num_inliers >= MANY else match.confidence
    done, cameras = cv2.detail_HomographyBasedEstimator().apply(features, matches, None)
    if not done:
        return None
    for camera in cameras:
        camera.R = camera.R.astype(np.float32)
    try:
        done, cameras = cv2.detail_BundleAdjusterRay().apply(features, matches, cameras)
    except cv2.error:  # no confident overlap
        return None
    if not done:
        return None
    turns = cv2.detail.waveCorrect([np.copy(camera.R) for camera in cameras], cv2.detail.WAVE_CORRECT_HORIZ)
    for camera, R in zip(cameras, turns, strict=True):
        camera.R = R.astype(np.float32)
    return _composed(images, cameras)


def _composed(images: list[Any], cameras: list[Any]) -> Any:
    """Gains and graph cuts on small images, then full ones blended in bands."""
    import cv2

    shrink = min(1.0, float(np.sqrt(SEAM / np.median([image.shape[0] * image.shape[1] for image in images]))))
    focal = float(np.median([camera.focal for camera in cameras]))
    small = [cv2.resize(image, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA) for image in images]
    corners, warped, masks = _warped(small, cameras, focal, shrink)
    if max(a.shape[0] * a.shape[1] for a in warped) > 20 * SEAM:
        return None  # cameras that make no sense
    gains = cv2.detail.ExposureCompensator_createDefault(cv2.detail.ExposureCompensator_GAIN)
    gains.feed(corners, warped, masks)
    shown = cv2.detail_GraphCutSeamFinder("COST_COLOR").find([a.astype(np.float32) for a in warped], corners, masks)
    corners, warped, masks = _warped(images, cameras, focal, 1.0)
    blender = cv2.detail_MultiBandBlender()
    blender.prepare(cv2.detail.resultRoi(corners=corners, sizes=[a.shape[1::-1] for a in warped]))
    for k, (corner, image, mask) in enumerate(zip(corners, warped, masks, strict=True)):
        gains.apply(k, corner, image, mask)
        seam = cv2.resize(cv2.dilate(shown[k], None), mask.shape[1::-1], interpolation=cv2.INTER_LINEAR_EXACT)
        blender.feed(image.astype(np.int16), cv2.bitwise_and(seam, mask), corner)
    return blender.blend(None, None)[0]


def _warped(
    images: list[Any], cameras: list[Any], focal: float, scale: float
) -> tuple[list[Any], list[Any], list[Any]]:
    """Corners, pictures and masks on a cylinder."""
    import cv2

    warper = cv2.PyRotationWarper("cylindrical", focal * scale)
    corners, pictures, masks = [], [], []
    for image, camera in zip(images, cameras, strict=True):
        K = camera.K().astype(np.float32)
        K[:2] *= scale
        corner, picture = warper.warp(image, K, camera.R, cv2.INTER_LINEAR, cv2.BORDER_REFLECT)
        white = np.full(image.shape[:2], 255, np.uint8)
        mask = warper.warp(white, K, camera.R, cv2.INTER_NEAREST, cv2.BORDER_CONSTANT)[1]
        corners.append(corner)
        pictures.append(picture)
        masks.append(mask)
    return corners, pictures, masks


def _chains(root: Path | None) -> Part:
    """Open chains of photographs of a circle, beside homographies chained.

    Two errors: the median over overlaps against the reference homographies, px, which are themselves a bundle
    adjustment without a lens; and by how many degrees the last photograph of a chain is turned beside where the whole
    circle, which has to close, puts it.
    """
    folder = find_folder(FOLDER, root, holding="*.npz")
    if folder is None:
        return Part([], [])
    pairs = match_pairs(sorted(folder.glob("*.jpg")))
    last = len(pairs.sizes)
    reference = load_reference(next(folder.glob("*.npz")), last)
    circle, steps = _fit(pairs), _neighbours(pairs)
    columns = ["photographs", "joint, px", "RANSAC, px", "joint, °", "without lens, °", "RANSAC, °"]
    table, ends = Table("open chains of denny, joint and chained", columns), []
    for first in range(last - SLICE + 1):
        say(f"peers: photographs {first} to {first + SLICE - 1}")
        part, known = _part(pairs, reference, first, first + SLICE)
        joint, without = _fit(part), _fit(part, distortion=0)
        chained = partial(_chained, steps[first : first + SLICE - 1])
        ends.append(_ends(circle, first, [joint, without], chained(0, SLICE - 1)))
        errors = [_error(between, part, known) for between in (joint.pair_homography, chained)]
        table.rows.append([f"{first} to {first + SLICE - 1}", *errors, *ends[-1]])
    whole = [_error(between, pairs, reference) for between in (circle.pair_homography, partial(_chained, steps))]
    table.rows.append(["all of them", *whole, NOTHING, NOTHING, NOTHING])
    worst = max(joint / ransac for joint, _, ransac in ends)
    return Part(
        [table],
        [
            Target("open chains of denny: the last photograph's error by chained RANSAC's, worst", worst, 1.0),
            Target("the circle of denny: median pairwise error, px", whole[0], 2.0),
        ],
    )


def _neighbours(pairs: Pairs) -> list[np.ndarray]:
    """RANSAC's homography from each photograph to the next."""
    found = {(p.i, p.j): p for p in pairs.pairs}
    neighbours = [found[k, k + 1] for k in range(len(pairs.sizes) - 1)]
    return [np.asarray(opencv_homography(p.src, p.dst, "RANSAC")) for p in neighbours]


def _chained(steps: Sequence[np.ndarray], i: int, j: int) -> np.ndarray:
    """From photograph i to photograph j along the chain."""
    if i > j:
        return np.asarray(np.linalg.inv(_chained(steps, j, i)))
    H = np.eye(3)
    for step in steps[i:j]:
        H = step @ H
    return H


def _error(between: Callable[[int, int], np.ndarray], pairs: Pairs, reference: Reference) -> float:
    """The median over the reference's overlaps, px."""
    known = zip(reference.pairs.tolist(), reference.H, strict=True)
    return float(np.median([pairwise_error(between(i, j), H, pairs.sizes[i], pairs.sizes[j]) for (i, j), H in known]))


def _ends(circle: TrimmedPanorama, first: int, fits: Sequence[TrimmedPanorama], H: np.ndarray) -> list[float]:
    """By how many degrees the last photograph of a chain is off: joint fits, and the homography H to it."""
    R, f, (w, h) = circle.rotations_, float(np.median(circle.focals_)), circle.pairs_.sizes[first]
    true = R[first + SLICE - 1] @ R[first].T
    K = np.array([[f, 0, (w - 1) / 2], [0, f, (h - 1) / 2], [0, 0, 1]])
    Q = np.linalg.inv(K) @ H @ K
    turns = [
        *(fit.rotations_[-1] @ fit.rotations_[0].T for fit in fits),
        nearest_rotation(Q / np.cbrt(np.linalg.det(Q))),
    ]
    return [float(np.degrees(np.arccos(np.clip((np.trace(turn @ true.T) - 1) / 2, -1, 1)))) for turn in turns]


def _fit(pairs: Pairs, **options: Any) -> TrimmedPanorama:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return TrimmedPanorama(**options).fit(pairs)


def _part(pairs: Pairs, reference: Reference, first: int, end: int) -> tuple[Pairs, Reference]:
    known = np.all((reference.pairs >= first) & (reference.pairs < end), axis=1)
    return pairs.subset(range(first, end)), Reference(reference.pairs[known] - first, reference.H[known])
