"""The trimmed problem itself: min 1/n Σ wᵢfᵢ(H) over weights and ‖H‖ = 1, from a homography that is nearly right.

Homographies through four matches each, thousands at a time.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dsyev  # of 9 × 9 in a third of the time of numpy.linalg

from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs, SortedPairs, scaled
from trimlearn.losses import Homography
from trimlearn.problem import Problem
from trimlearn.regularizers import Sphere
from trimlearn.robust.distinct import distinct_rows
from trimlearn.smart import alternating
from trimlearn.solution import Solution
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

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
    good = np.flatnonzero(_one_side(areas) & _fat(areas, thin))[:most]
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


SIX = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # the entries of a symmetric matrix of three rows
PLACE = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # which of SIX each entry is
# Which of 24 sums, six of each of four kinds, each entry of a matrix of 3 × 3 blocks is; the 25th is 0.
KINDS = np.array([[0, 4, 1], [4, 0, 2], [1, 2, 3]])  # of its blocks: the factors of `PairMoments` in their order
ENTRY = np.minimum(6 * np.kron(KINDS, np.ones((3, 3), np.int64)) + np.tile(PLACE, (3, 3)), 24)  # by both tables
BEST = 8  # matches among which the paper's four are looked for, where three of them are on a line: 70 samples of four


class TrimmedFit(NamedTuple):
    """The trimmed problem solved: weights (n,) of the matches as they were given, H between pixels, and the rest."""

    weights: Floats
    H: Floats
    solution: Solution


def trimmed_fit(matches: SortedPairs, H: Floats, h: float, form: str) -> TrimmedFit:
    """Alternating minimisation from H (pixels), in normalised coordinates; ``form`` as in `trimlearn.losses`."""
    pairs = matches.pairs
    loss = Homography(pairs.normalised.src, pairs.normalised.dst, form)
    x = pairs.to_normalised(H)
    x = min(x, -x, key=lambda x: float(np.median(loss.values(x))))  # the printed form tells H from −H
    found = solve(Problem(loss, CappedSimplex(h), Sphere()), alternating(), x0=x, start=None)
    return TrimmedFit(matches.unsorted(found.w), scaled(pairs.to_pixels(found.x)), found)


@final
class PairMoments:
    """DLT for many weights: Σ wᵢAᵢᵀAᵢ, 9 × 9, is made of Σ w aaᵀ times 1, −u, −v and u² + v², for src a, dst (u, v).

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> H = PairMoments(PointPairs(square, 3.0 * square)).minimiser(np.ones(4))
    >>> ((H / H[2, 2]).round(9) + 0.0).tolist()
    [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, pairs: PointPairs) -> None:
        a, (u, v) = pairs.lifted[0], pairs.dst.T
        squares, factors = np.array([a[i] * a[j] for i, j in SIX]), np.array([a[2], -u, -v, u * u + v * v])
        self._products = np.zeros((25, len(u)))
        np.multiply(squares, factors[:, None], out=self._products[:24].reshape(4, 6, -1))

    def minimiser(self, w: Floats) -> Floats:
        """The unit H between these points with the smallest Σ wᵢ‖Aᵢh‖², for each w (..., n)."""
        matrices = self._matrix(w).reshape(-1, 9, 9)  # weights for two at most
        return np.array([dsyev(B)[1][:, 0] for B in matrices]).reshape(*w.shape[:-1], 3, 3)

    def leverages(self, w: Floats) -> Floats:
        """½ tr(Aᵢ B⁺ Aᵢᵀ) with B = Σ wᵢAᵢᵀAᵢ, for every match: the variance of that minimiser there, by the noise's.

        It is a sum of the same products: for symmetric C = B⁺ in blocks of 3 × 3, aᵀ(C₀₀ + C₁₁ − 2uC₀₂ − 2vC₁₂ +
        (u² + v²)C₂₂)a.
        """
        values, vectors, _ = dsyev(self._matrix(w))
        if values[1] <= np.finfo(np.float64).eps * values[-1]:
            return np.full(len(w), np.inf)
        C = ((vectors[:, 1:] / values[1:]) @ vectors[:, 1:].T).reshape(3, 3, 3, 3).swapaxes(1, 2)
        blocks = np.array([C[0, 0] + C[1, 1], 2.0 * C[0, 2], 2.0 * C[1, 2], C[2, 2]])
        rows, columns = np.transpose(SIX)
        factors = blocks[:, rows, columns] + (rows != columns) * blocks[:, columns, rows]
        return np.asarray(0.5 * factors.ravel() @ self._products[:24])

    def _matrix(self, w: Floats) -> Floats:
        """B for each w (..., n)."""
        return np.asarray((w @ self._products.T).take(ENTRY, axis=-1))


def four_best(pairs: PointPairs, losses: Floats) -> Floats:
    """The homography (pixels) through the four matches of smallest loss, or the next best where three are on a line."""
    first = distinct_rows(np.hstack([pairs.src, pairs.dst]))[0]
    best = first[np.argsort(losses[first], kind="stable")[:BEST]]
    for sample in sorted(combinations(range(len(best)), 4), key=sum):
        found = four_point(pairs.normalised, best[list(sample)][None])
        if len(found):
            return pairs.to_pixels(found[0])
    raise ValueError("refine='paper': the matches of smallest loss are nearly on a line; use refine='inliers'.")
