"""The last word: generalised least squares on the errors of all inliers, found anew until they stay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.a_contrario import Chance
from trimlearn.geometry.homography.dlt import PLACE, SIX
from trimlearn.geometry.homography.noise import MatchNoise, noise_of
from trimlearn.geometry.homography.points import Floats, PointPairs
from trimlearn.geometry.homography.transfer import adjugate, factor

__all__ = ["refined"]

# Detectors err with heavier tails than the normal law: Student's t with FREEDOM degrees, as Lange, Little and Taylor
# (1989) advise, keeps 91 % efficiency for normal errors. Beyond an error that a share of CUT of the inliers exceeds,
# 4.8 times the scale, a match has no say. Photographs warped by known homographies: benchmarks/calibration/warps.py.
FREEDOM, CUT = 4.0, 1e-5
GRID = 8  # cells a side in which neighbours are compared: 64 for the 8 parameters that a homography has
FEW = 4096  # matches that the first rounds are made with: a limit on time
# Of new weights at most: a limit on time. From an estimate by FEW matches one step with all is as good as many (Bickel
# 1975, one-step estimates); here two.
ROUNDS = (60, 2)
SETTLED = (1e-7, 1e-6)  # a step of x, of norm 1, that is none: 10⁻⁴ and 10⁻³ pixels in an image of 1000
WORSE = 1.1  # Σwe² may rise a little on the way, since the equation solved is not that of its minimum; then no further
MOST = 10.0  # τ²/σ²: beyond it cells count alike anyhow


def refined(H: Floats, pairs: PointPairs, chance: Chance, threshold: float | None) -> Floats:
    """The H (pixels) near this one at which Σ wᵢJᵢᵀMᵢ⁻¹rᵢ = 0 for its own weights w; r and M as in `squared_errors`."""
    step = len(pairs) // FEW
    if step > 1:
        H = _settled(H, pairs[::step], chance.thinned(step), threshold, ROUNDS[0], SETTLED[0])
    return _settled(H, pairs, chance, threshold, ROUNDS[step > 1], SETTLED[step > 1])


def _settled(
    H: Floats, pairs: PointPairs, chance: Chance, threshold: float | None, rounds: int, least: float
) -> Floats:
    x = pairs.to_normalised(H)
    halves, noise = _halves(x, pairs), None
    for _ in range(rounds):
        e2 = _squares(halves)
        noise = noise_of(e2, chance, noise)
        w = _weights(e2, noise, threshold)
        if np.count_nonzero(w) < 4:
            break
        w *= _shares(pairs.normalised.src, halves[0].r, w)
        new = _step(x, halves, w)
        after = _halves(new, pairs)
        if not _cost(after, w) <= WORSE * _cost(halves, w):
            break
        moved = np.abs(new - x).max()
        x, halves = new, after
        if moved <= least:
            break
    return pairs.to_pixels(x)


def _weights(e2: Floats, noise: MatchNoise, threshold: float | None) -> Floats:
    """Student's, with a smooth end: (1 − (e/cut)⁴)² / (1 + e²/(ν scale²)), 0 for e beyond the cut. The scale is that of
    which the threshold is the 99 % point, which is larger than the noise's own where few matches tell it."""
    unit = 1.0 if threshold is None else threshold / noise.threshold
    scale, cut = unit * noise.threshold / MatchNoise(1.0).threshold, unit * noise.exceeded(CUT)
    end = np.square(1.0 - np.square(np.minimum(e2 / cut**2, 1.0)))
    return np.asarray(end / (1.0 + e2 / (FREEDOM * scale**2)))


def _shares(points: Floats, r: Floats, w: Floats) -> Floats:
    """How much each match counts, 1 or less, where neighbours err together: a lens, a plane that is none.

    Let the matches of a cell have a common error of variance τ² besides their own of variance σ². Their mean has the
    variance τ² + σ²/m, so that the best weight of each is proportional to 1/(1 + mτ²/σ²), m the sum of the weights in
    its cell. E(Σwr)² − Σ(wr)² = τ²((Σw)² − Σw²) over a cell estimates τ².
    """
    share = np.ones(len(w))
    near = np.flatnonzero(w)
    points, w, r = points[near], w[near], r[:, near]
    low, high = points.min(axis=0), points.max(axis=0)
    cells = np.minimum((points - low) / np.maximum(high - low, np.finfo(np.float64).tiny) * GRID, GRID - 1).astype(int)
    cell = cells @ [GRID, 1]
    total = np.bincount(cell, w)
    sums = sum(np.square(np.bincount(cell, w * part)).sum() for part in r)
    squares = r[0] * r[0] + r[1] * r[1]
    together = max(np.square(total).sum() - w @ w, np.finfo(np.float64).tiny)
    common = max((sums - np.square(w) @ squares) / together, 0.0)
    own = max(w @ squares / w.sum() - common, common / MOST, np.finfo(np.float64).tiny)
    share[near] = 1.0 / (1.0 + common / own * total[cell])
    return share


class _Half(NamedTuple):
    """One of both misses, r (2, n) in pixels, scaled by C of `factor`, and how it moves with x: dr = D dx a."""

    r: Floats
    D: Floats
    a: Floats


def _halves(x: Floats, pairs: PointPairs) -> tuple[_Half, _Half]:
    """dst − π(x src), and src − π(G dst) with G = x⁻¹, of which dG = −G dx G."""
    (a, b), (T1, T2) = pairs.normalised.lifted, pairs.frames
    G = adjugate(x) / np.linalg.det(x)
    back = _half(G, b, a, T1[0, 0], T2[0, 0])
    return _half(x, a, b, T2[0, 0], T1[0, 0]), _Half(back.r, np.einsum("iln,lj->ijn", -back.D, G), G @ b)


def _half(x: Floats, a: Floats, b: Floats, scale: float, other: float) -> _Half:
    """For normalised points a and b; ``scale`` and ``other``: normalised units in a pixel of b, and in one of a."""
    with np.errstate(all="ignore"):
        u, v, w = x @ a
        u, v, w = u / w, v / w, 1.0 / w
        J = [[(x[i, j] - z * x[2, j]) * w * (other / scale) for j in (0, 1)] for i, z in ((0, u), (1, v))]
        p, q, s = (c / scale for c in factor(J))
        r = np.stack([p * (u - b[0]), s * (v - b[1]) - q * (u - b[0])])
        none = np.zeros_like(w)
        first, second = np.stack([w, none, -u * w]), np.stack([none, w, -v * w])
        return _Half(r, np.stack([p * first, s * second - q * first]), a)


def _squares(halves: tuple[_Half, _Half]) -> Floats:
    """e² (n,)."""
    (a, b), (c, d) = halves[0].r, halves[1].r
    return np.asarray(np.fmin(a * a + b * b + c * c + d * d, np.inf))


def _cost(halves: tuple[_Half, _Half], w: Floats) -> float:
    near = w > 0
    return float(w[near] @ _squares(halves)[near])


def _step(x: Floats, halves: tuple[_Half, _Half], w: Floats) -> Floats:
    """A Gauss–Newton step from x, of norm 1, towards the smallest Σ wᵢeᵢ² with C as it is.

    With dr = D dx a the matrix Σ w (DᵀD) ⊗ (aaᵀ) is made of 6 × 6 sums, as both factors are symmetric.
    """
    near = np.flatnonzero(w)
    w, A, g, h = w[near], np.zeros((3, 3, 3, 3)), np.zeros((3, 3)), x.ravel()
    for r, D, a in halves:
        r, D, a = r[:, near], D[..., near], a[:, near]
        curvature = np.stack([D[0, i] * D[0, j] + D[1, i] * D[1, j] for i, j in SIX])
        sums = (w * curvature) @ np.stack([a[i] * a[j] for i, j in SIX]).T
        A += sums[PLACE][:, :, PLACE].swapaxes(1, 2)
        g += (w * (D[0] * r[0] + D[1] * r[1])) @ a.T
    B = A.reshape(9, 9)
    # The length of h is free: along h, where B is singular, no step.
    new = x - np.linalg.lstsq(B + np.trace(B) * np.outer(h, h), g.ravel(), rcond=None)[0].reshape(3, 3)
    return np.asarray(new / np.linalg.norm(new))
