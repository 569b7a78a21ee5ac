"""SIFT's thresholds, the ratio, and how many features and numbers of each geometry/mosaic/matches.py keeps, beside
OpenCV's usual way."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.calibration import with_constant
from trimlearn.datasets import load_oxford_pair
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.mosaic import matches

PAIRS = tuple(product(("graf", "boat"), (2, 3, 4, 5, 6)))
NEAR = 3.0  # px from where the published homography puts a point: a right match
USUAL = (0.04, 10.0)  # OpenCV's thresholds, which are Lowe's
LOWE = 0.8  # his ratio
RATIOS = (0.8, matches.RATIO, 0.85, 0.9)
FEWER = 8000
KEPT = (32, matches.KEPT, 96, 128)  # numbers of a descriptor, 128 in all


def run() -> dict[str, Any]:
    """Matches and right matches of each pair for OpenCV's way and for ours, one setting changed at a time."""
    images = sorted({path for pair in PAIRS for path in load_oxford_pair(*pair)[:2]})
    found = {path: matches.detect(path) for path in images}
    fewer = {path: matches.detect(path, max_features=FEWER) for path in images}
    with with_constant(matches, "CONTRAST", USUAL[0]), with_constant(matches, "EDGE", USUAL[1]):
        usual = {path: matches.detect(path) for path in images}
    table = {"contrast 0.04, edge 10": _ours(usual), "contrast 0.02, edge 20": _ours(found)}
    table |= {f"ratio {ratio}": _ours(found, ratio) for ratio in RATIOS}
    table[f"{FEWER} features"] = _ours(fewer)
    table |= {f"{kept} numbers": _ours(_shortened(fewer, kept), RATIOS[0]) for kept in KEPT}
    with with_constant(matches, "ELSEWHERE", 1e-9):
        table["rivals at the same corner"] = _ours(found)
    pairs = [load_oxford_pair(*pair) for pair in PAIRS]
    table["OpenCV"] = _summary([_counts(_opencv(one, other), H) for one, other, H in pairs])
    return table


def _ours(features: dict[Path, matches.Features], ratio: float = matches.RATIO) -> dict[str, Any]:
    counts = []
    for one, other, H in (load_oxford_pair(*pair) for pair in PAIRS):
        src, dst, _ = matches.match(features[one], features[other], ratio=ratio)
        counts.append(_counts((src, dst), H))
    return _summary(counts)


def _shortened(features: dict[Path, matches.Features], kept: int) -> dict[Path, matches.Features]:
    with with_constant(matches, "KEPT", kept):
        return dict(zip(features, matches.shortened(list(features.values())), strict=True))


def _opencv(one: Path, other: Path) -> tuple[Floats, Floats]:
    """SIFT with its own settings, and Lowe's ratio one way: what tutorials do."""
    (points1, found1), (points2, found2) = (
        cv2.SIFT_create().detectAndCompute(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), None) for path in (one, other)
    )
    near = [a for a, b in cv2.BFMatcher().knnMatch(found1, found2, k=2) if a.distance < LOWE * b.distance]
    return np.array([points1[m.queryIdx].pt for m in near]), np.array([points2[m.trainIdx].pt for m in near])


def _counts(found: tuple[Floats, Floats], H: Floats) -> tuple[int, int]:
    src, dst = found
    return len(src), int(np.sum(np.linalg.norm(transform(H, src) - dst, axis=1) < NEAR))


def _summary(found: list[tuple[int, int]]) -> dict[str, Any]:
    total, right = (sum(column) for column in zip(*found, strict=True))
    each = {f"{name} {k}": list(counts) for (name, k), counts in zip(PAIRS, found, strict=True)}
    return {"matches": total, "right": right, "share": round(right / total, 3), "pairs": each}
