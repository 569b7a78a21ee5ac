"""Where the fit of a panorama begins: pairs that are verified, images placed without a lens, then with the one seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trimlearn.geometry.inputs import check_sizes
from trimlearn.geometry.panorama.consistency import Agreement, agree
from trimlearn.geometry.panorama.distortion import estimate_distortion
from trimlearn.geometry.panorama.losses import RotationLoss
from trimlearn.geometry.panorama.models import STARTS, ModelStart, rotation_start
from trimlearn.geometry.panorama.pairs import Pairs, make_pairs
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.progress import stage

__all__ = ["Beginning", "begin", "met", "verified"]


class Beginning(NamedTuple):
    """All matches, the model around its start, and the pairs that agree from there."""

    scene: Scene
    start: ModelStart
    found: Agreement


def verified(pairs: Pairs | Sequence[Any], sizes: Sequence[tuple[int, int]] | None, seed: int) -> Pairs:
    """Pairs of images of these sizes, verified by their homographies."""
    if isinstance(pairs, Pairs):
        if sizes is not None and check_sizes(sizes) != list(pairs.sizes):
            raise ValueError(f"sizes must be those of pairs, {list(pairs.sizes)}, or left out.")
        return pairs
    if sizes is None:
        raise ValueError("sizes must be given with matches of your own: (w, h) of each image, in px.")
    return make_pairs(pairs, sizes, random_state=seed)


def met(scene: Scene, start: ModelStart) -> Beginning:
    """A start, and the pairs that agree from there."""
    stage("pairs that agree")
    return Beginning(scene, start, agree(start.loss, scene, start.r2))


def begin(pairs: Pairs, model: str, distortion: float | str, seed: int) -> Beginning:
    """A first placing by the model of this name. distortion: κ of all lenses, or "auto", where it is found."""
    given = 0.0 if model != "rotation" or distortion == "auto" else float(distortion)
    scene = Scene(pairs, (given,) * len(pairs.sizes))
    first = met(scene, STARTS[model](scene, seed))
    start = first.start
    if not isinstance(start.loss, RotationLoss) or distortion != "auto" or start.doubts:
        return first  # images that do not tell the focal length tell no lens either
    stage("lens")
    kappa, cameras = estimate_distortion(scene, start.loss, start.r2, first.found)
    if not kappa.any():
        return first
    scene = Scene(pairs, tuple(kappa))
    return met(scene, rotation_start(scene, seed, cameras)._replace(doubts=start.doubts))
