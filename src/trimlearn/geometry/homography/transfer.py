"""The symmetric transfer error: how far a homography misses, in pixels of both images."""

from __future__ import annotations

import numpy as np

from trimlearn.geometry.homography.points import Floats, PointPairs

__all__ = ["adjugate", "squared_transfer", "transform"]


def transform(H: Floats, points: Floats) -> Floats:
    """π(H (u, v, 1)) for every point: the images of points (n, 2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = points @ H[:, :2].T + H[:, 2]
        return np.asarray(z[:, :2] / z[:, 2:])


def adjugate(H: Floats) -> Floats:
    """det(H) H⁻¹ for each H of a batch: H⁻¹ up to scale, which is all a homography needs."""
    next_, last = (1, 2, 0), (2, 0, 1)
    down, up = H[..., next_, :], H[..., last, :]
    cofactors = down[..., next_] * up[..., last] - down[..., last] * up[..., next_]
    return np.swapaxes(cofactors, -1, -2)


def squared_transfer(H: Floats, pairs: PointPairs) -> Floats:
    """e² = ‖dst − π(H src)‖² + ‖src − π(H⁻¹ dst)‖² for each H (3, 3) of a batch and each match: (..., n).

    The root e is the symmetric transfer error (Hartley and Zisserman, section 4.2.2). ∞ where a point has no image.
    """
    a, b = pairs.lifted
    with np.errstate(all="ignore"):
        e2 = _misses(H, a, b)
        e2 += _misses(adjugate(H), b, a)
    return np.fmin(e2, np.inf, out=e2)  # NaN, of 0/0, to ∞


def _misses(H: Floats, a: Floats, b: Floats) -> Floats:
    """‖b − π(H a)‖², (..., n), for points (3, n). In place: memory is what this costs."""
    u, v, w = (H[..., i, :] @ a for i in range(3))
    np.reciprocal(w, out=w)
    for z, target in ((u, b[0]), (v, b[1])):
        z *= w
        z -= target
        z *= z
    u += v
    return np.asarray(u)
