"""Transfer errors: how far a homography misses, in pixels of both images."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.geometry.homography.points import Floats, PointPairs

__all__ = ["ENTRIES", "adjugate", "one_way_errors", "squared_errors", "squared_transfer", "transform", "zooms"]

# Entries of H, row by row, whose products make det(H) H⁻¹: the first nine, less the last.
FACTORS = (
    np.array([4, 2, 1, 5, 0, 2, 3, 1, 0, 5, 1, 2, 3, 2, 0, 4, 0, 1]),
    np.array([8, 7, 5, 6, 8, 3, 7, 6, 4, 7, 8, 4, 8, 6, 5, 6, 7, 3]),
)
FEW = 16  # homographies up to which Python multiplies faster than NumPy, 2 µs each: a limit on time
TINY = 1e-300  # beside det², a bound: no homography that fits any four points has |det H| < 10⁻¹⁵⁰
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


def zooms(H: Floats, pairs: PointPairs) -> Floats:
    """δ = |det J| at each point of either image (2, n): how much larger areas are in the other one."""
    G, (a, b) = adjugate(H), pairs.lifted
    det = H[0] @ G[:, 0]
    with np.errstate(all="ignore"):
        return np.asarray(np.abs([det / (H[2] @ a) ** 3, det * det / (G[2] @ b) ** 3]))


def one_way_errors(H: Floats, pairs: PointPairs) -> Floats:
    """2 rᵀM⁻¹r for each H of a batch and each match, (..., n): `squared_errors` to first order, in half of its time."""
    (a, b), maps, batch = pairs.both, _maps(H), H.shape[:-2]
    with np.errstate(all="ignore"):
        there = (maps[0].reshape(-1, 3) @ a).reshape(7, *batch, -1)
        back = (maps[1, :3].reshape(-1, 3) @ b).reshape(3, *batch, -1)
        e2 = _terms(there, _missed(there, b), _missed(back, a))
        e2 += e2
        return np.asarray(np.fmin(e2, np.inf, out=e2))


def _squared_errors(H: Floats, points: Floats) -> Floats:
    """e², (..., n), for points (2, 3, n); both misses at once, as calls are what few matches cost."""
    batch = H.shape[:-2]
    targets = points[::-1].swapaxes(0, 1).reshape(3, 2, *(1,) * len(batch), -1)
    with np.errstate(all="ignore"):
        images = (_maps(H).reshape(2, -1, 3) @ points).reshape(2, 7, *batch, -1).swapaxes(0, 1)
        missed = _missed(images, targets)
        terms = _terms(images, missed, missed[::-1])
        e2 = terms[0] + terms[1]
        return np.asarray(np.fmin(e2, np.inf, out=e2))


def _maps(H: Floats) -> Floats:
    """What takes points to their images: (2, 7, B, 3), for H and for H⁻¹ of each of B homographies, at |det H| = 1.

    Three rows give H p, whose third coordinate be w, and four w²J, J the derivative of π(H ·). The coefficients of
    these are entries of H⁻¹, as H a × H b = det(H) H⁻ᵀ(a × b).
    """
    flat = H.reshape(-1, 9)
    rows = np.array([_rows(*h) for h in flat.tolist()] if len(flat) <= FEW else np.transpose(_rows(*flat.T)))
    return rows.reshape(-1, 2, 7, 3).transpose(1, 2, 0, 3)


def _rows(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any) -> list[Any]:
    """Both maps of one homography, of numbers; or of many, of arrays."""
    det = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)
    s = (det * det + TINY) ** (-1 / 6)
    a, b, c, d, e, f, g, h, i = s * a, s * b, s * c, s * d, s * e, s * f, s * g, s * h, s * i
    A, B, C = e * i - f * h, c * h - b * i, b * f - c * e
    D, E, F = f * g - d * i, a * i - c * g, c * d - a * f
    G, K, L = d * h - e * g, b * g - a * h, a * e - b * d
    o = 0.0 * a
    there = [a, b, c, d, e, f, g, h, i, o, -K, E, K, o, -B, o, G, -D, -G, o, A]
    back = [A, B, C, D, E, F, G, K, L, o, -h, e, h, o, -b, o, g, -d, -g, o, a]
    return there + back


def _missed(images: Floats, targets: Floats) -> Floats:
    """w²‖r‖², r the miss and w the third coordinate of images (3 or more, ..., n); these are overwritten."""
    x, y, w = images[:3]
    x -= w * targets[0]
    y -= w * targets[1]
    x *= x
    y *= y
    x += y
    return np.asarray(x)


def _terms(images: Floats, missed: Floats, missed_back: Floats) -> Floats:
    """rᵀM⁻¹r from ``images`` (7, ...), which are overwritten, and from w²‖r‖² there and back.

    With R a quarter turn it is 2 (δ‖r‖² + ‖JᵀRr‖²) / ((2δ + ‖J‖²) max(1, δ)): no root, and no difference that rounding
    spoils. Here δ = 1/|w|³, and w²JᵀRr is the miss of the way back times its third coordinate, but for signs.
    """
    w, J = np.abs(images[2]), images[3:]
    J *= J
    size = J.sum(axis=0)
    terms = missed / w
    terms += missed_back
    terms *= np.minimum(w * w * w, 1.0)
    terms += terms
    w += w
    size += w
    terms /= size
    return np.asarray(terms)


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
