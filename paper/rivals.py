"""OpenCV's own robust homographies, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.geometry.mosaic.images import opencv

__all__ = ["RIVALS", "opencv_homography"]

RIVALS = {"RANSAC": "RANSAC", "MAGSAC++": "USAC_MAGSAC"}  # our name, OpenCV's
THRESHOLD = 3.0  # px, OpenCV's default for RANSAC
# Generous (OpenCV's own: 2,000 and 0.995). Where a fifth of the matches is right, 5,800 samples of four are enough to
# draw four right ones with this probability.
ITERATIONS, CONFIDENCE = 10_000, 0.9999


def opencv_homography(src: Any, dst: Any, method: str, threshold: float = THRESHOLD) -> np.ndarray | None:
    """The homography from src to dst (n, 2) by one of `RIVALS`, None where OpenCV finds none.

    >>> square = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0], [3.0, 4.0]])
    >>> opencv_homography(square, square + 5, "RANSAC")[:2, 2].round(6).tolist()
    [5.0, 5.0]
    """
    cv2 = opencv()
    flag = getattr(cv2, RIVALS[method])
    H, _ = cv2.findHomography(
        np.asarray(src, np.float64), np.asarray(dst, np.float64), flag, threshold,
        maxIters=ITERATIONS, confidence=CONFIDENCE,
    )  # fmt: skip
    return None if H is None else np.asarray(H)
