"""How far off pairs are in a joint fit: the shares of the diagonal and the ratios in geometry/panorama.

Rings of 12 images, 40 % of the matches wrong, through a lens that bends lines: ``barrel`` is by how much of its radius
a point at half a diagonal is moved. One pair more, or one of the ring, is wrong as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.cameras import Ring, ring

from trimlearn.geometry.panorama.consistency import agree
from trimlearn.geometry.panorama.models import rotation_start
from trimlearn.geometry.panorama.pairs import make_pairs
from trimlearn.geometry.panorama.scene import Scene

BARRELS, SEEDS, FALSE = (0.0, 0.02, 0.04, 0.06), range(3), (0, 6)


def run() -> dict[str, Any]:
    """Largest and smallest, over the seeds: errors by the diagonal, and by those of the pairs' own homographies."""
    return {f"barrel {barrel}": _row(barrel) for barrel in BARRELS}


def _row(barrel: float) -> dict[str, float]:
    own, right, ratio, wrong = [], [], [], []
    for seed in SEEDS:
        rings: Ring = ring(m=12, wrong=0.4, barrel=barrel, false_pairs=(FALSE,), seed=seed)
        scene = Scene(make_pairs(rings.correspondences, rings.sizes))
        start = rotation_start(scene, seed)
        found = agree(start.loss, scene, start.r2)
        errors = scene.medians(np.sqrt(start.loss.values(found.x)))
        true = np.array([edge != FALSE for edge in scene.edges])
        own.append(float(scene.own_errors.max() / scene.diagonal))
        right.append(float(errors[true].max() / scene.diagonal))
        ratio.append(float((errors / np.maximum(scene.own_errors, np.median(scene.own_errors)))[true].max()))
        wrong.append(float(errors[~true].min(initial=np.inf) / scene.diagonal))
    shares = {"own error": max(own), "error of a right pair": max(right), "by its own": max(ratio), "wrong": min(wrong)}
    return {name: round(value, 4) for name, value in shares.items()}
