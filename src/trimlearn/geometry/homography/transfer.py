"""Transfer errors: how far a homography misses, in pixels of both images."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.geometry.homography.points import Floats, PointPairs

__all__ = ["ENTRIES", "adjugate", "factor", "squared_errors", "squared_transfer", "transform", "zooms"]

ENTRIES = 12_000  # errors at a time: 96 kB, which stay in the cache of one core and are no new pages to the system


def transform(H: Floats, points: Floats) -> Floats:
    """π(H (u, v, 1)) for every point: the images of points (n, 2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = points @ H[:, :2].T + H[:, 2]
        return np.asarray(z[:, :2] / z[:, 2:])


def adjugate(H: Floats) -> Floats:
    """det(H) H⁻¹ for each H of a batch: H⁻¹ up to scale, which is all a homography needs."""
    (a, b, c), (d, e, f), (g, h, i) = np.moveaxis(H, (-2, -1), (0, 1))
    rows = [[e * i - f * h, c * h - b * i, b * f - c * e], [f * g - d * i, a * i - c * g, c * d - a * f]]
    rows.append([d * h - e * g, b * g - a * h, a * e - b * d])
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def squared_transfer(H: Floats, pairs: PointPairs) -> Floats:
    """‖dst − π(H src)‖² + ‖src − π(H⁻¹ dst)‖² for each H (3, 3) of a batch and each match: (..., n).

    The root is the symmetric transfer error (Hartley and Zisserman, section 4.2.2). ∞ where a point has no image.
    """
    a, b = pairs.lifted
    with np.errstate(all="ignore"):
        e2 = _misses(H, a, b)
        e2 += _misses(adjugate(H), b, a)
    return np.fmin(e2, np.inf, out=e2)  # NaN, of 0/0, to ∞


def squared_errors(H: Floats, pairs: PointPairs) -> Floats:
    """e², the symmetric transfer error in pixels of the coarser image, each miss measured by what noise can do there.

    Let r = dst − π(H src), J the derivative of π(H ·) at src, and δ = |det J|, the zoom of areas there. A detector errs
    in proportion to the size of what it detects, and what both images show is as fine as the coarser one allows: σ
    pixels of noise there, and √δ times as much in the other if that is dst. So the noise of both points gives r the
    covariance 2σ²M, and with H⁻¹ in place of H the same holds for r′ = src − π(H⁻¹ dst):

        e² = rᵀM⁻¹r + r′ᵀM′⁻¹r′,        M = ½ max(1, δ) (I + JJᵀ/δ).

    It is the symmetric transfer error where H keeps lengths, and does not grow with the pixels of the finer image, nor
    with those of the nearer end of a plane that is seen from the side. To first order both terms are equal. That both
    are there tells a match whose src is near the line without an image, where J is infinite and any r would do. Shape
    (..., n) for each H (3, 3) of a batch; ∞ where a point has no image.
    """
    a, b = pairs.lifted
    if H.ndim > 2 or a.shape[1] <= ENTRIES:
        return _squared_errors(H, a, b)
    parts = (slice(i, i + ENTRIES) for i in range(0, a.shape[1], ENTRIES))
    return np.concatenate([_squared_errors(H, a[:, part], b[:, part]) for part in parts])


def zooms(H: Floats, points: Floats) -> Floats:
    """δ = |det J| at each point (n,): how much larger areas are in the other image."""
    w = points @ H[2, :2] + H[2, 2]
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(np.linalg.det(H) / w**3))


def factor(J: Any) -> tuple[Any, Any, Any]:
    """p, q, s with M⁻¹ = CᵀC, C = [[p, 0], [−q, s]], for J = ((j₁₁, j₁₂), (j₂₁, j₂₂)) of any shape: ‖C r‖² = rᵀM⁻¹r."""
    (j11, j12), (j21, j22) = J
    zoom = np.abs(j11 * j22 - j12 * j21)
    scale = 0.5 * np.maximum(1.0, 1.0 / zoom)
    m11, m12 = scale * (zoom + j11 * j11 + j12 * j12), scale * (j11 * j21 + j12 * j22)
    ratio = m12 / m11
    s = 1.0 / np.sqrt(scale * (zoom + j21 * j21 + j22 * j22) - ratio * m12)
    return 1.0 / np.sqrt(m11), ratio * s, s


def _squared_errors(H: Floats, a: Floats, b: Floats) -> Floats:
    with np.errstate(all="ignore"):
        e2 = _scaled_misses(H, a, b)
        e2 += _scaled_misses(adjugate(H), b, a)
    return np.fmin(e2, np.inf, out=e2)


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


def _scaled_misses(H: Floats, a: Floats, b: Floats) -> Floats:
    """rᵀM⁻¹r, (..., n), for points (3, n)."""
    u, v, w = (H[..., i, :] @ a for i in range(3))
    np.reciprocal(w, out=w)
    u *= w
    v *= w
    h = H[..., None]
    J = [[(h[..., i, j, :] - z * h[..., 2, j, :]) * w for j in (0, 1)] for i, z in ((0, u), (1, v))]
    p, q, s = factor(J)
    u -= b[0]
    v -= b[1]
    return np.asarray(np.square(p * u) + np.square(s * v - q * u))
