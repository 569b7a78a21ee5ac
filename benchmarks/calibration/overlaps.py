"""On how many pixels a mosaic's images are matched first, and how large the windows are by which their points are found
again (geometry/panorama/overlaps.py): photographs warped by known homographies, beside features of all pixels."""

from __future__ import annotations

from itertools import product
from time import process_time
from typing import Any

import numpy as np

from benchmarks.calibration import with_constant
from benchmarks.calibration.warps import error, mean, warped
from trimlearn.geometry.panorama import overlaps
from trimlearn.geometry.panorama.pairs import DETECTED

NAMES, TILTS, ZOOMS, SEEDS = ("graf", "boat"), (0.0, 30.0), (0.5, 0.7, 1.0, 1.6), (100, 101)
FEATURES = 8000  # as `stitch` has them
QUICK, USED, WINDOWS = (50_000, 100_000, 150_000, 250_000), 100_000, (11, 21, 31)


def run() -> dict[str, Any]:
    """For each setting the pairs found, the geometric mean of the rms error inside the overlap, px, and CPU seconds."""
    rows = [_row(f"quick {quick}, window 21", quick, 21) for quick in QUICK]
    rows += [_row(f"quick {USED}, window {window}", USED, window) for window in WINDOWS]
    return {"summary": [*rows, _row("features of all pixels", DETECTED, 21)]}


def _row(setting: str, quick: int, window: int) -> dict[str, Any]:
    errors, spent = [], 0.0
    with with_constant(overlaps, "QUICK", quick), with_constant(overlaps, "WINDOW", window):
        for seed, (name, tilt, zoom) in product(SEEDS, product(NAMES, TILTS, ZOOMS)):
            one, other, H = warped(np.random.default_rng([seed, int(tilt), int(10 * zoom)]), name, tilt, zoom)
            images = [np.repeat(a[:, :, None], 3, axis=2) for a in (one, other)]
            begun = process_time()
            found = overlaps.find_overlaps(images, ["one", "other"], FEATURES, 0)
            spent += process_time() - begun
            errors += [error(p.homography, H, one.shape[::-1]) for p in found.pairs]  # type: ignore[arg-type]
    return {"setting": setting, "pairs": len(errors), "error": mean(errors), "worst": max(errors), "seconds": spent}
