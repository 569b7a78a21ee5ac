"""The two models of a panorama: a camera that turns (rotation and focal length), and one homography per image."""

from __future__ import annotations

from typing import final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.losses.transfer import Correspondences, Maps, TransferLoss
from trimlearn.geometry.panorama.rotations import cross_matrix, rotation_and_jacobian


@final
class RotationLoss(TransferLoss):
    """Images of a camera that turns about its centre: pixel = π(K R X), K = diag(f, f, 1), X a direction of the world.

    Row i of x (m, 4) is (v, l): R_i = exp [v]× R⁰_i and f_i = exp(l) f⁰_i, around the rotations R⁰ (m, 3, 3) and focal
    lengths f⁰ (m,), in pixels, that the loss is made with. A_i = R_iᵀK_i⁻¹. Turning the world changes nothing: three
    directions of x do not show in f.

    >>> turn = rotation_and_jacobian(np.array([[0.0, 0.0, 0.0], [0.0, 0.1, 0.0]]))[0]
    >>> match = Correspondences(np.array([0]), np.array([1]), np.zeros((1, 2)), np.array([[100.0, 0.0]]), 2)
    >>> loss = RotationLoss(match, turn, np.array([1000.0, 1000.0]))
    >>> loss.values(np.zeros((2, 4))).round(2)  # 1000 tan 0.1 = 100.33
    array([0.22])
    """

    def __init__(self, matches: Correspondences, rotations: Floats, focals: Floats) -> None:
        super().__init__(matches, parameters=4, far=float(np.median(focals)))
        self.rotations, self.focals = rotations, focals

    def cameras(self, x: Array) -> tuple[Floats, Floats]:
        """R (m, 3, 3) and f (m,) at x."""
        return rotation_and_jacobian(x[:, :3])[0] @ self.rotations, self.focals * np.exp(x[:, 3])

    def maps(self, x: Array) -> Maps:
        turn, J = rotation_and_jacobian(x[:, :3])
        R, f = turn @ self.rotations, self.focals * np.exp(x[:, 3])
        K = np.stack([f, f, np.ones_like(f)], axis=1)  # the diagonal
        B = K[:, :, None] * R
        A = R.transpose(0, 2, 1) / K[:, None, :]
        dR = cross_matrix(J.transpose(0, 2, 1)) @ R[:, None]  # by the three numbers of v
        by_v, by_v_back = K[:, None, :, None] * dR, dR.transpose(0, 1, 3, 2) / K[:, None, None, :]
        focal = np.array([1.0, 1.0, 0.0])  # ∂K/∂l = diag(f, f, 0)
        by_l, by_l_back = focal[:, None] * B, -A * focal
        return Maps(A, B, np.concatenate([by_v_back, by_l_back[:, None]], 1), np.concatenate([by_v, by_l[:, None]], 1))


@final
class HomographyLoss(TransferLoss):
    """One homography per image, to a plane common to all: A_i = H⁰_i S (I + Δ_i) S⁻¹, S = diag(scale, scale, 1).

    Row i of x (m, 8) is Δ_i, row by row without its last entry, 0; H⁰ (m, 3, 3) takes pixels from the centre of image
    i to the common plane. ``scale``, in pixels, makes the entries of Δ alike: half an image's diagonal, say. Any
    homography of the common plane changes nothing: eight directions of x do not show in f.

    >>> match = Correspondences(np.array([0]), np.array([1]), np.zeros((1, 2)), np.array([[3.0, 4.0]]), 2)
    >>> HomographyLoss(match, np.stack([np.eye(3)] * 2), 100.0).values(np.zeros((2, 8)))
    array([50.])
    """

    def __init__(self, matches: Correspondences, homographies: Floats, scale: float) -> None:
        super().__init__(matches, parameters=8, far=scale)
        # Of determinant 1: depths are then comparable, whichever the image.
        self.homographies = homographies / np.cbrt(np.linalg.det(homographies))[:, None, None]
        self._out, self._in = np.array([scale, scale, 1.0]), 1.0 / np.array([scale, scale, 1.0])

    def maps(self, x: Array) -> Maps:
        m = len(x)
        steps = np.eye(9)[:8].reshape(8, 3, 3)
        change = np.eye(3) + np.concatenate([x, np.zeros((m, 1))], axis=1).reshape(m, 3, 3)
        base = self.homographies * self._out  # H⁰S
        A = base @ change * self._in
        B = np.linalg.inv(A)
        dA = base[:, None] @ steps * self._in
        return Maps(A, B, dA, -B[:, None] @ dA @ B[:, None])
