"""Reprojection errors of pinhole cameras: how far a point of space is from where it was seen, in pixels."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.geometry.homography.points import Floats, Ints
from trimlearn.geometry.panorama.rotations import cross_matrix, rotation_and_jacobian
from trimlearn.losses.base import select
from trimlearn.losses.blocks import BlockLoss, Sees
from trimlearn.losses.storage import Rows

__all__ = ["ReprojectionLoss"]

CAMERA = 9  # numbers: rotation vector, translation, focal length and two radial coefficients, as in the BAL files


@final
class ReprojectionLoss(BlockLoss):
    """fᵢ(x) = ½‖pᵢ − qᵢ‖², pᵢ where a camera sees a point and qᵢ where it was seen, in pixels: bundle adjustment.

    A camera is (v, t, f, k₁, k₂). The point X is at P = exp[v]× X + t in its frame, which looks along −z, and is seen
    at f·(1 + k₁ρ² + k₂ρ⁴)·u, u = −(P₁, P₂)/P₃ and ρ = ‖u‖, from the middle of the image: the model of the "Bundle
    Adjustment in the Large" data [1]_. x holds all cameras, then all points (`split`, `join`).

    Parameters
    ----------
    camera, point : integer arrays of shape (n,)
        Which camera saw which point, one observation a row.
    seen : array of shape (n, 2)
        Where, in pixels from the middle of the image.
    cameras : array of shape (m, 9)
        The cameras to start from, a row each.
    points : array of shape (p, 3)
        The points to start from.

    Notes
    -----
    Moving, turning or scaling the whole scene changes no residual: of those seven directions none is moved along. A
    point that is kept in a single view, after trimming, is free along its ray and stays at its depth (`times_seen`).

    References
    ----------
    .. [1] S. Agarwal, N. Snavely, S. M. Seitz and R. Szeliski, Bundle adjustment in the large, ECCV (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.geometry import ReprojectionLoss
    >>> cameras = np.array([[0, 0, 0, 0, 0, 0, 500, 0, 0], [0, 0, 0, -1, 0, 0, 500, 0, 0]], dtype=float)
    >>> loss = ReprojectionLoss([0, 1], [0, 0], [[50.0, 0.0], [3.0, 4.0]], cameras, np.array([[1.0, 0.0, -10.0]]))
    >>> np.sqrt(2 * loss.values(loss.start()))
    array([0., 5.])
    """

    starts_near = True

    def __init__(self, camera: Any, point: Any, seen: Any, cameras: Any, points: Any) -> None:
        self.cameras, self.points = _table("cameras", cameras, CAMERA), _table("points", points, 3)
        self.seen = _table("seen", seen, 2)
        for name, index, count in (("camera", camera, len(self.cameras)), ("point", point, len(self.points))):
            _check_index(name, np.asarray(index), len(self.seen), count)
        groups = [(len(self.cameras), CAMERA), (len(self.points), 3)]
        super().__init__(groups, [Sees(0, camera), Sees(1, point)])

    def residuals(self, blocks: list[Array], rows: Rows = None) -> Array:
        camera, point = blocks
        return _project(camera, _in_frame(camera, point)[0]) - select(self.seen, rows)

    def jacobian(self, blocks: list[Array], rows: Rows = None) -> list[Array]:
        camera, point = blocks
        P, R, J = _in_frame(camera, point)
        f, k1, k2 = camera[:, 6:].T[:, :, None]
        u = -P[:, :2] / P[:, 2:]
        square = np.sum(u * u, axis=1, keepdims=True)
        bend = 1 + square * (k1 + k2 * square)
        by_u = f[:, :, None] * (bend[:, :, None] * np.eye(2) + _outer((2 * k1 + 4 * k2 * square) * u, u))
        u_by_P = np.concatenate([np.eye(2) + np.zeros((len(P), 1, 1)), u[:, :, None]], axis=2) / -P[:, 2:, None]
        by_P = by_u @ u_by_P
        by_v = by_P @ -cross_matrix(P - camera[:, 3:6]) @ J
        by_lens = np.stack([bend * u, f * square * u, f * square * square * u], axis=2)
        return [np.concatenate([by_v, by_P, by_lens], axis=2), by_P @ R]

    def start(self) -> Array:
        """The cameras and points that the loss was made with."""
        return self.join(self.cameras, self.points)

    def generic(self) -> Array:
        """Near the start: nowhere else is there a model that all scenes share."""
        return self.start() * (1 + 1e-3 * super().generic())

    def predict(self, x: Array) -> Floats:
        """Where the cameras of x see its points, (n, 2), in pixels."""
        return np.asarray(self.residuals(self.blocks(x)) + self.seen)

    def times_seen(self, w: Any) -> tuple[Ints, Ints]:
        """How many observations of positive weight each camera and each point has."""
        kept = np.asarray(w) > 0
        camera, point = (np.bincount(s.block[kept], minlength=self.groups[s.group][0]) for s in self.sees)
        return camera, point


def _in_frame(camera: Floats, point: Floats) -> tuple[Floats, Floats, Floats]:
    """The points in their cameras' frames, the rotations, and how these change with v."""
    R, J = rotation_and_jacobian(camera[:, :3])
    return np.asarray(np.einsum("nab,nb->na", R, point)) + camera[:, 3:6], R, J


def _project(camera: Floats, P: Floats) -> Floats:
    u = -P[:, :2] / P[:, 2:]
    square = np.sum(u * u, axis=1, keepdims=True)
    return np.asarray(camera[:, 6:7] * (1 + square * (camera[:, 7:8] + camera[:, 8:9] * square)) * u)


def _outer(a: Floats, b: Floats) -> Floats:
    return a[:, :, None] * b[:, None, :]


def _table(name: str, values: Any, columns: int) -> Floats:
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or table.shape[1] != columns or not len(table):
        raise ValueError(f"{name} must have shape (count, {columns}), got {table.shape}.")
    if not np.all(np.isfinite(table)):
        raise ValueError(f"{name} must be finite, it holds NaN or infinity.")
    return table


def _check_index(name: str, index: np.ndarray, n: int, count: int) -> None:
    if index.shape != (n,) or index.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {n} integers, one per observation, got {index.dtype} {index.shape}.")
    if index.min() < 0 or index.max() >= count:
        raise ValueError(f"{name} must be from 0 to {count - 1}, got {index.min()} to {index.max()}.")
