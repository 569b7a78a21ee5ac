"""Rotations: vectors to matrices, the nearest one, the mean up direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats

__all__ = ["cross_matrix", "nearest_rotation", "rotation_and_jacobian", "rotation_between", "straighten"]

SMALL = 1e-4  # radians below which series replace (θ − sin θ)/θ³, which loses 10⁻¹⁶/θ²; the series' error is θ⁴/5040
# c and ε of `straighten`: how rarely a camera is held on its side, or looks straight down. Tried on the eleven ways of
# holding cameras in test_losses: with these down is found within 12° in all.
SIDE, STEEP = 0.2, 0.15
WEAK = 0.01  # by how much less a camera's tilt is known beforehand than that it is level: it decides in a tie
SETTLE = 4  # rounds of it: a limit on time; who is on the side changes once or twice


def cross_matrix(v: Floats) -> Floats:
    """[v]× (..., 3, 3): [v]× u = v × u.

    >>> cross_matrix(np.array([1.0, 2.0, 3.0])) @ [0.0, 0.0, 1.0]
    array([ 2., -1.,  0.])
    """
    x, y, z = np.moveaxis(v, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*v.shape, 3)


def rotation_and_jacobian(v: Floats) -> tuple[Floats, Floats]:
    """exp [v]× for rotation vectors v (m, 3), and the left Jacobian J: d exp [v]× = [J dv]× exp [v]×.

    >>> R, J = rotation_and_jacobian(np.array([[0.0, 0.0, np.pi / 2]]))
    >>> R[0].round(6) @ [1, 0, 0]
    array([0., 1., 0.])
    """
    theta = np.linalg.norm(v, axis=-1)[..., None, None]
    safe = np.maximum(theta, SMALL)
    a = np.where(theta < SMALL, 1.0 - theta**2 / 6, np.sin(safe) / safe)
    b = np.where(theta < SMALL, 0.5 - theta**2 / 24, (1.0 - np.cos(safe)) / safe**2)
    c = np.where(theta < SMALL, 1 / 6 - theta**2 / 120, (safe - np.sin(safe)) / safe**3)
    K, eye = cross_matrix(v), np.eye(3)
    K2 = K @ K
    return eye + a * K + b * K2, eye + b * K + c * K2


def nearest_rotation(M: Floats) -> Floats:
    """The rotation nearest to M (..., 3, 3), in the Frobenius norm.

    >>> nearest_rotation(2.5 * np.eye(3)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    U, _, Vt = np.linalg.svd(M)
    U[..., :, 2] *= np.sign(np.linalg.det(U @ Vt))[..., None]
    return np.asarray(U @ Vt)


def rotation_between(a: Floats, b: Floats) -> Floats:
    """The R that minimises Σ‖R aᵢ − bᵢ‖², for vectors a and b (n, 3) (Kabsch 1976).

    >>> quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> rays = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    >>> np.allclose(rotation_between(rays, rays @ quarter.T), quarter)
    True
    """
    return nearest_rotation(b.T @ a)


def straighten(rotations: Floats) -> Floats:
    """The same rotations (m, 3, 3), world to camera, in a world whose y axis points down.

    Photographers hold a camera level: its x axis lies in the horizontal plane, whichever way it looks (Brown and Lowe
    2007, section 5), or its y axis, where they hold it on its side. "Down" is the direction d that minimises

        Σ min((d·xᵢ)², (d·yᵢ)² + c) + ε Σ (d·zᵢ)²

    over the cameras' axes: most of them are held upright and few look straight down. Of its two signs it has the one of
    most upright cameras' y. The first camera looks along the world's z axis, up to its tilt.

    >>> tilt = rotation_and_jacobian(np.array([[0.4, 0.0, 0.0]]))[0][0]
    >>> level = rotation_and_jacobian(np.array([[0.0, a, 0.0] for a in (0.0, 0.5, 1.0)]))[0]
    >>> side = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # one is held on its side
    >>> level[1] = side @ level[1]
    >>> bool(np.abs(straighten(level @ tilt) - level).max() < 0.02)
    True
    """
    R = np.asarray(rotations, np.float64)
    starts = [_down(R, R[:, 1], np.zeros(len(R), bool)), *R[:, 1], *R[:, 0]]
    down = min((_settled(R, d) for d in starts), key=lambda d: _unlikely(R, d))
    upright = ~_on_side(R, down)
    down = down if down @ R[upright, 1].sum(axis=0) >= 0 else -down
    right = np.cross(down, R[0, 2])
    if np.linalg.norm(right) < 1e-6:  # the first camera looks straight down or up
        right = R[0, 0] - down * (down @ R[0, 0])
    right = right / np.linalg.norm(right)
    return np.asarray(R @ np.column_stack([right, down, np.cross(right, down)]))


def _on_side(R: Floats, down: Floats) -> NDArray[np.bool_]:
    """Which cameras are turned by a quarter, if that is down (m,)."""
    return np.asarray((R[:, 1] @ down) ** 2 + SIDE < (R[:, 0] @ down) ** 2)


def _unlikely(R: Floats, down: Floats) -> float:
    """What `straighten` minimises."""
    across, along, ahead = ((R @ down) ** 2).T
    return float(np.minimum(across, along + SIDE).sum() + STEEP * ahead.sum())


def _settled(R: Floats, down: Floats) -> Floats:
    """Down, and who is on the side, each by the other."""
    for _ in range(SETTLE):
        turned = _on_side(R, down)
        downs = np.where(turned[:, None], R[:, 0], R[:, 1])
        down = _down(R, downs * np.where(downs @ down < 0, -1.0, 1.0)[:, None], turned)
    return down


def _down(R: Floats, downs: Floats, turned: NDArray[np.bool_]) -> Floats:
    """The d most nearly perpendicular to all level axes; of those, where they agree, the nearest to the ``downs``."""
    level, mean = np.where(turned[:, None], R[:, 1], R[:, 0]), downs.sum(axis=0)
    return np.asarray(np.linalg.eigh(level.T @ level - WEAK * np.outer(mean, mean) / len(R))[1][:, 0])
