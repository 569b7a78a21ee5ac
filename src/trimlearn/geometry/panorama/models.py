"""The two models of `TrimmedPanorama`: where their joint fit starts, and what is known about x beforehand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.focal import Focals, estimate_focals, rays
from trimlearn.geometry.panorama.rotation_loss import HomographyLoss, RotationLoss
from trimlearn.geometry.panorama.rotations import rotation_between
from trimlearn.geometry.panorama.scene import Scene, best_tree
from trimlearn.geometry.panorama.transfer_loss import TransferLoss
from trimlearn.regularizers import Regularizer, Ridge, Zero

__all__ = ["HomographyModel", "Model", "RotationModel"]

SPREAD = 0.5  # standard deviation of log focal lengths around the first estimate
NOISE = 1.0  # px: of a point, against which that is weighed


class Model(ABC):
    """How the images of a scene are described."""

    @abstractmethod
    def start(self, scene: Scene, seed: int) -> TransferLoss:
        """The loss around the frames that pairs give, chained."""

    @abstractmethod
    def r2(self, n: float) -> Regularizer:
        """What is known about x, against the mean over n matches."""


@final
class RotationModel(Model):
    """A camera that turns: `RotationLoss`. ``focals`` are those of the start."""

    def __init__(self, scene: Scene) -> None:
        self.focals: Focals = estimate_focals(scene)

    def start(self, scene: Scene, seed: int) -> RotationLoss:
        f = self.focals.focals
        seen = [zip(scene.core_of(k), edge, strict=True) for k, edge in enumerate(scene.edges)]
        turns = np.stack([rotation_between(*(rays(p, f[k]) for p, k in both)) for both in seen])
        return best_tree(scene, turns, lambda B: RotationLoss(scene.matches, B, f), seed)

    def r2(self, n: float) -> Regularizer:
        """A ridge on log focal lengths, so weak that it counts only where matches say nothing about them."""
        return Ridge(np.array([0.0, 0.0, 0.0, 4.0 * NOISE**2 / (SPREAD**2 * n)]))


@final
class HomographyModel(Model):
    """One homography per image: `HomographyLoss`."""

    def start(self, scene: Scene, seed: int) -> HomographyLoss:
        scale = scene.diagonal / 2
        steps = np.stack([scene.centred(k) for k in range(len(scene.edges))])

        def around(B: Floats) -> HomographyLoss:
            return HomographyLoss(scene.matches, np.asarray(np.linalg.inv(B)), scale)

        return best_tree(scene, steps, around, seed)

    def r2(self, n: float) -> Regularizer:
        return Zero()
