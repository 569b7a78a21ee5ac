"""When a lens is seen: CLEAR of geometry/panorama/distortion.

Open chains of m images, 40 % of the matches wrong, noise 0.5 px, through a lens that draws corners in by ``barrel``;
and without a lens where the camera moved a little, so that what is near, at the bottom, is displaced by up to ``moved``
px in each image: errors that are not independent, as a lens's are not.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from tests.cameras import SIZE, Ring, ring

from trimlearn.geometry.panorama.estimator import TrimmedPanorama

BARRELS, MOVED, IMAGES, SEEDS = (0.0, 0.01, 0.02, 0.04, 0.1), (0.5, 2.0), (2, 5), range(4)


def run() -> dict[str, Any]:
    """Shares of the chains in which a lens is seen, the mean and spread of κ there, errors of the focal length in %."""
    found = {f"barrel {barrel}, {m} images": _row(m, barrel, 0.0) for barrel in BARRELS for m in IMAGES}
    return found | {f"moved {moved} px, {m} images": _row(m, 0.0, moved) for moved in MOVED for m in IMAGES}


def _row(m: int, barrel: float, moved: float) -> dict[str, float]:
    kappa, with_lens, without = [], [], []
    for seed in SEEDS:
        scene = _moved(ring(m=m, barrel=barrel, closed=False, seed=seed), moved)
        lens, none = (_fit(scene, distortion) for distortion in ("auto", 0.0))
        kappa.append(float(lens.distortion_[0]))
        with_lens.append(100 * float(np.median(np.abs(lens.focals_ / scene.focals - 1))))
        without.append(100 * float(np.median(np.abs(none.focals_ / scene.focals - 1))))
    seen = [k for k in kappa if k != 0]
    row = {
        "seen": len(seen) / len(kappa),
        "mean": float(np.mean(seen)) if seen else 0.0,
        "spread": float(np.std(seen)) if seen else 0.0,
        "focal, %": float(np.median(with_lens)),
        "without": float(np.median(without)),
    }
    return {name: round(value, 4) for name, value in row.items()}


def _moved(scene: Ring, moved: float) -> Ring:
    """The scene with what is low in an image displaced sideways, by the square of how low it is."""
    scene.correspondences = [
        (i, j, src, dst + moved * np.column_stack([(dst[:, 1] / SIZE[1]) ** 2, np.zeros(len(dst))]))
        for i, j, src, dst in scene.correspondences
    ]
    return scene


def _fit(scene: Ring, distortion: float | str) -> TrimmedPanorama:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return TrimmedPanorama(distortion=distortion).fit(scene.correspondences, scene.sizes)
