"""SIFT's two thresholds in geometry/mosaic/matches.py: matches of photographs, and the share that is right."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from trimlearn.datasets import load_oxford_pair
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.mosaic import matches

PAIRS = tuple(product(("graf", "boat"), (2, 3, 4, 5)))
NEAR = 3.0  # px from where the published homography puts a point: a right match
USUAL = (0.04, 10.0)  # OpenCV's, which are Lowe's


def run() -> dict[str, Any]:
    """For each pair of thresholds the sum of all matches, the sum of the right ones, and their share."""
    ours = (matches.CONTRAST, matches.EDGE)
    table = {}
    try:
        for contrast, edge in product((USUAL[0], ours[0]), (USUAL[1], ours[1])):
            matches.CONTRAST, matches.EDGE = contrast, edge
            found = np.sum([_counts(*pair) for pair in PAIRS], axis=0)
            table[f"contrast {contrast}, edge {edge:g}"] = {
                "matches": int(found[0]), "right": int(found[1]), "share": round(float(found[1] / found[0]), 3)
            }  # fmt: skip
    finally:
        matches.CONTRAST, matches.EDGE = ours
    return table


def _counts(sequence: str, k: int) -> tuple[int, int]:
    one, other, H = load_oxford_pair(sequence, k)
    src, dst, _ = matches.match_images(one, other)
    return len(src), int(np.sum(np.linalg.norm(transform(H, src) - dst, axis=1) < NEAR))
