"""Homographies through four matches each, thousands at a time."""

from __future__ import annotations

import numpy as np

from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs

# The smallest triangle of a sample, as a share of its largest. H divides by it, and so magnifies noise by its inverse:
# up to 30 times, 30 px for 1 px, beyond which the sample's own matches are all that it would explain.
THIN = 0.03
EXTREME = 1e-6  # the same where every sample is tried: noise of rounding, 10⁻¹⁶, becomes 10⁻¹⁰ at most
SINGULAR = 1e-5  # |det H| for ‖H‖ = 1 and normalised points; 3^(−3/2) for H = I; here a side shrinks 30,000-fold
NEXT = np.array([(1, 2, 0), (2, 0, 1)])  # the two after each of three


def four_point(pairs: PointPairs, samples: Ints, thin: float = THIN, most: int | None = None) -> Floats:
    """The homographies through ``samples`` of matches (B, 4): (≤ B, 3, 3) of norm 1; hopeless samples are left out, and
    those after the first ``most`` that are not.

    With A = (a₁ a₂ a₃), B = (b₁ b₂ b₃) the homogeneous points as columns, a₄ = Aλ and b₄ = Bμ, it is
    H = B diag(μ/λ) A⁻¹. By Cramer's rule λ, μ and the rows of A⁻¹ are made of determinants of points, twice the signed
    areas of triangles, so that no system is solved. If both cameras have all four points in front of them, these areas
    have the same signs in both images, or all the opposite ones where one is a mirror image (oriented projective
    geometry: Werner and Pajdla 2001). Six of seven random samples fail that test, and cost nothing more.

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> H = four_point(PointPairs(square, 2.0 * square), np.array([[0, 1, 2, 3]]))
    >>> (H / H[:, 2:, 2:]).round(6).tolist()
    [[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    both = pairs.both[:, :2].take(samples.T, axis=2)  # image, coordinate, which of four, sample
    areas = _areas(both)
    good = (_one_side(areas) & _fat(areas, thin)).nonzero()[0][:most]
    (x, y), (u, v) = both[:, :, :3].take(good, axis=3)
    lam, mu = areas.take(good, axis=2)
    (x1, x2), (y1, y2) = (a.take(NEXT, axis=0) for a in (x, y))
    c = np.abs(mu[:3] / lam[:3])
    B, A = np.array([c * u, c * v, c]), np.array([y1 - y2, x2 - x1, x1 * y2 - x2 * y1])  # columns, and aⱼ × aₖ
    H = np.matmul(B.transpose(2, 0, 1), A.transpose(2, 1, 0))
    length = np.sqrt(np.einsum("bij,bij->b", H, H))
    H /= length[:, None, None]
    return np.asarray(H[c.prod(axis=0) * np.abs(mu[3]) * np.square(lam[3]) > SINGULAR * length**3])  # by det H


def _areas(points: Floats) -> Floats:
    """Twice the signed areas of the triangles (1, 2, 3), (0, 3, 2), (0, 1, 3) and (0, 1, 2) of points (2, 2, 4, B), the
    i-th without point i: (2, 4, B), λᵢ = areas[0, i]/areas[0, 3]."""
    x, y = (points[:, :, 1:] - points[:, :, :1]).swapaxes(0, 1)
    found = np.empty((len(x), 4, x.shape[2]))
    for i, (j, k) in enumerate(((2, 1), (0, 2), (0, 1)), start=1):
        np.subtract(x[:, j] * y[:, k], y[:, j] * x[:, k], out=found[:, i])
    found[:, 0] = found[:, 3] - found[:, 1] - found[:, 2]
    return found


def _one_side(areas: Floats) -> Bools:
    product = areas[0] * areas[1]
    return np.asarray((product.min(axis=0) > 0) | (product.max(axis=0) < 0))


def _fat(areas: Floats, thin: float) -> Bools:
    size = np.abs(areas)
    return np.asarray((size.min(axis=1) > thin * size.max(axis=1)).all(axis=0))
