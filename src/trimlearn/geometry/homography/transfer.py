"""Transfer errors: how far a homography misses, in pixels of both images."""

from __future__ import annotations

import numpy as np

from trimlearn.geometry.homography.points import Floats, PointPairs

__all__ = ["ENTRIES", "adjugate", "one_way_errors", "squared_errors", "squared_transfer", "transform", "zooms"]

# Entries of H, row by row, whose products make det(H) H⁻¹: the first nine, less the last.
FACTORS = (
    np.array([4, 2, 1, 5, 0, 2, 3, 1, 0, 5, 1, 2, 3, 2, 0, 4, 0, 1]),
    np.array([8, 7, 5, 6, 8, 3, 7, 6, 4, 7, 8, 4, 8, 6, 5, 6, 7, 3]),
)
ENTRIES = 6_000  # matches at a time, each missed in two images: 96 kB, which stay in a core's cache, in pages it has


def transform(H: Floats, points: Floats) -> Floats:
    """π(H (u, v, 1)) for every point: the images of points (n, 2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = points @ H[:, :2].T + H[:, 2]
        return np.asarray(z[:, :2] / z[:, 2:])


def adjugate(H: Floats) -> Floats:
    """det(H) H⁻¹ for each H of a batch: H⁻¹ up to scale, which is all a homography needs."""
    flat = H.reshape(*H.shape[:-2], 9)
    products = flat.take(FACTORS[0], axis=-1) * flat.take(FACTORS[1], axis=-1)
    return np.asarray((products[..., :9] - products[..., 9:]).reshape(H.shape))


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
    points = pairs.both
    if H.ndim > 2 or points.shape[2] <= ENTRIES:
        return _squared_errors(H, points)
    parts = (slice(i, i + ENTRIES) for i in range(0, points.shape[2], ENTRIES))
    return np.concatenate([_squared_errors(H, points[:, :, part]) for part in parts])


def zooms(H: Floats, points: Floats) -> Floats:
    """δ = |det J| at each point (n,): how much larger areas are in the other image."""
    w = points @ H[2, :2] + H[2, 2]
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(np.linalg.det(H) / (w * w * w)))


def one_way_errors(H: Floats, pairs: PointPairs) -> Floats:
    """2 rᵀM⁻¹r for each H of a batch and each match, (..., n): `squared_errors` to first order, in half of its time."""
    e2 = _terms(H[..., None, :, :], pairs.both[:1], pairs.both[1:])[..., 0, :]
    e2 += e2
    return np.asarray(np.fmin(e2, np.inf, out=e2))


def _squared_errors(H: Floats, points: Floats) -> Floats:
    """e², (..., n), for points (2, 3, n); both misses at once, as calls are what few matches cost."""
    maps = np.empty((*H.shape[:-2], 2, 3, 3))
    maps[..., 0, :, :], maps[..., 1, :, :] = H, adjugate(H)
    terms = _terms(maps, points, points[::-1])
    e2 = terms[..., 0, :] + terms[..., 1, :]
    return np.asarray(np.fmin(e2, np.inf, out=e2))


def _terms(maps: Floats, points: Floats, targets: Floats) -> Floats:
    """rᵀM⁻¹r, (..., k, n), for maps (..., k, 3, 3) and points (k, 3, n).

    With R a quarter turn it is 2 (δ‖r‖² + ‖JᵀRr‖²) / ((2δ + ‖J‖²) max(1, δ)): no root, and no difference that rounding
    spoils. A factor of J, here the inverse of the third coordinate, matters in max(1, δ) only.
    """
    with np.errstate(all="ignore"):
        image = maps @ points
        u, v, w = image[..., 0, :], image[..., 1, :], image[..., 2, :]
        w = np.reciprocal(w)
        u, v = u * w, v * w
        h = maps[..., None]
        j11, j12 = h[..., 0, 0, :] - u * h[..., 2, 0, :], h[..., 0, 1, :] - u * h[..., 2, 1, :]
        j21, j22 = h[..., 1, 0, :] - v * h[..., 2, 0, :], h[..., 1, 1, :] - v * h[..., 2, 1, :]
        u -= targets[:, 0]
        v -= targets[:, 1]
        zoom = np.abs(j11 * j22 - j12 * j21)
        turned = np.square(j21 * u - j11 * v)
        turned += np.square(j22 * u - j12 * v)
        for j in (j11, j12, j21, j22):
            j *= j
        j11 += j12
        j11 += j21
        j11 += j22
        turned += zoom * (u * u + v * v)
        w *= w
        w *= zoom
        zoom += zoom
        j11 += zoom
        j11 *= np.maximum(w, 1.0)
        turned /= j11
    turned += turned
    return np.asarray(turned)


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
