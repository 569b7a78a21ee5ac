"""The last word: generalised least squares on the errors of all inliers, found anew until they stay."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgesv  # of 9 × 9 and less in a tenth to a fifth of the time of numpy.linalg

from trimlearn.geometry.homography.a_contrario import Chance
from trimlearn.geometry.homography.dlt import PLACE, SIX
from trimlearn.geometry.homography.noise import MatchNoise, noise_of
from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs
from trimlearn.geometry.homography.transfer import adjugate

__all__ = ["refined"]

# Detectors err with heavier tails than the normal law: Student's t with FREEDOM degrees, as Lange, Little and Taylor
# (1989) advise, keeps 91 % efficiency for normal errors. Beyond an error that a share of CUT of the inliers exceeds,
# 4.8 times the scale, a match has no say. Photographs warped by known homographies: benchmarks/calibration/warps.py.
FREEDOM, CUT = 4.0, 1e-5
GRID = 8  # cells a side in which neighbours are compared: 64 for the 8 parameters that a homography has
STEADY = 12  # rounds from which on the grid stays: a match at its edge may come and go for ever (a limit on time)
FEW = 4096  # matches that the first rounds are made with: a limit on time
# Of new weights at most: a limit on time. From an estimate by FEW matches one step with all is as good as many (Bickel
# 1975, one-step estimates); here two.
ROUNDS = (60, 2)
SETTLED = 5e-7  # a way of x, of norm 1, that is none: 5·10⁻⁴ pixels in an image of 1000
TINY = 4e-30  # squared length of a difference of steps that is rounding: that of nine numbers, 9 · 2⁻⁵²
WORSE = 1.1  # Σwe² may rise a little on the way, since the equation solved is not that of its minimum; then no further
# A step of x, 0.3 pixels in an image of 1000, from which on steps are Newton's, if no more than LONGER times as long as
# those of Gauss and Newton: less than noise, and more than what Student's weights make of it (choices).
NEAR, LONGER = 3e-4, 2.0
KRONECKER = (6 * PLACE[:, None, :, None] + PLACE[:, None]).reshape(9, 9)  # of 6 × 6 numbers each entry of C ⊗ aaᵀ
MOST = 10.0  # τ²/σ²: beyond it cells count alike anyhow


def refined(
    H: Floats, pairs: PointPairs, chance: Chance, threshold: float | None, noise: MatchNoise | None = None
) -> tuple[Floats, MatchNoise | None]:
    """The H (pixels) near this one at which Σ wᵢJᵢᵀMᵢ⁻¹rᵢ = 0 for its own weights w; r and M as in `squared_errors`.

    And the noise that the weights follow from, estimated anew at every step, from the one given on.
    """
    step = len(pairs) // FEW
    if step > 1:
        H, noise = _settled(H, pairs[::step], chance.among(slice(None, None, step)), threshold, noise, ROUNDS[0])
    return _settled(H, pairs, chance, threshold, noise, ROUNDS[step > 1])


def _settled(
    H: Floats, pairs: PointPairs, chance: Chance, threshold: float | None, noise: MatchNoise | None, rounds: int
) -> tuple[Floats, MatchNoise | None]:
    x, points = pairs.to_normalised(H), pairs.normalised
    squares = _products(points.lifted[0])
    at, before, near, cells = _misses(x, pairs), 0.0, np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)
    last: tuple[Floats, Floats] | None = None  # x and its step
    for k in range(rounds):
        noise = noise_of(at.e2, chance, noise)
        w, fall = _weights(at.e2, noise, threshold)
        if np.count_nonzero(w) < 4:
            break
        before_near, near = near, w > 0
        if k < STEADY and (k == 0 or (near != before_near).any()):
            cells = _cells(points.both[0, :2], near)
        shares = _shares(cells, at.r, w)
        w, fall = w * shares, fall * shares
        step = _step(x, at, w, fall, points.both, squares)
        size = float(np.abs(step).max())
        new = x + (_secant(x, step, *last) if last and size <= min(NEAR, before) else step)
        new /= np.vdot(new, new) ** 0.5
        if size * size <= SETTLED * (before - size):  # all that follow are no longer together, as they shrink alike
            x = new
            break
        after = _misses(new, pairs)
        if not w[near] @ after.e2[near] <= WORSE * (w[near] @ at.e2[near]):
            break
        last, x, at, before = (x, step), new, after, size
    return pairs.to_pixels(x), noise


def _secant(x: Floats, step: Floats, earlier: Floats, its_step: Floats) -> Floats:
    """Where steps that fall by a constant factor, from ``earlier`` on, would end: Anderson's (1965) mixing of two.

    New noise, and new shares of neighbours, at every step make these such a sequence (Walker and Ni 2011). A factor of
    ½ leads once as far again as the last step did, and no step is longer: a slower fall may be none.
    """
    turned = step - its_step
    further = float(np.vdot(turned, step)) / max(float(np.vdot(turned, turned)), TINY)
    return np.asarray(step - min(max(further, -1.0), 1.0) * (x - earlier + turned))


def _weights(e2: Floats, noise: MatchNoise, threshold: float | None) -> tuple[Floats, Floats]:
    """Student's, with a smooth end: w = (1 − (e/cut)⁴)² / (1 + e²/(ν scale²)), 0 for e beyond the cut; and dw/de².

    The scale is that of which the threshold is the 99 % point, which is larger than the noise's own where few matches
    tell it.
    """
    unit = 1.0 if threshold is None else threshold / noise.threshold
    scale, cut = unit * noise.threshold / MatchNoise(1.0).threshold, unit * noise.exceeded(CUT)
    far, spread = np.minimum(e2 / cut**2, 1.0), FREEDOM * scale**2
    end, student = 1.0 - far * far, spread / (spread + e2)
    w = end * end * student
    fall = student * (4.0 / cut**2 * far * end + w / spread)
    return w, -fall


def _cells(points: Floats, near: Bools) -> Ints:
    """Which cell of a grid over the ``near`` ones of the points (2, n) each is in; of those beyond it the nearest."""
    inner = points[:, near]
    low = inner.min(axis=1, keepdims=True)
    side = np.maximum(inner.max(axis=1, keepdims=True) - low, np.finfo(np.float64).tiny) / GRID
    column, row = np.minimum(np.maximum((points - low) / side, 0.0), GRID - 1).astype(np.int64)
    return np.asarray(column * GRID + row)


def _shares(cells: Ints, r: Floats, w: Floats) -> Floats:
    """How much each match counts, 1 or less, where those of a cell err together: a lens, a plane that is none.

    Let the matches of a cell have a common error of variance τ² besides their own of variance σ². Their mean has the
    variance τ² + σ²/m, so that the best weight of each is proportional to 1/(1 + mτ²/σ²), m the sum of the weights in
    its cell. E(Σwr)² − Σ(wr)² = τ²((Σw)² − Σw²) over a cell estimates τ².
    """
    tiny = float(np.finfo(np.float64).tiny)
    moved = w * r
    total, *sums = (np.bincount(cells, part) for part in (w, *moved))
    together = max(float(total @ total - w @ w), tiny)
    common = max((sum(part @ part for part in sums) - np.vdot(moved, moved)) / together, 0.0)
    own = max(np.vdot(moved, r) / w.sum() - common, common / MOST, tiny)
    return np.asarray((1.0 / (1.0 + common / own * total))[cells])


class _Misses(NamedTuple):
    """What a homography between normalised points misses, in both images at once, and how that moves.

    For d = (u, v, 1) a miss r = (u, v) − b has dr = (I, −(u, v)ᵀ) dX a/w, and e² = Σ rᵀNr with N = M⁻¹ of
    `squared_errors`.
    """

    e2: Floats  # (n,)
    r: Floats  # (2, n), the miss in dst times a root of N: of unit covariance, up to the noise
    curvature: Floats  # (6, n), of rᵀNr/2 in dst by dX a, the SIX entries of a symmetric matrix
    slope: Floats  # (2, 3, n), of rᵀNr/2 by dX a
    back: Floats  # X of the miss in src: x⁻¹


def _misses(x: Floats, pairs: PointPairs) -> _Misses:
    """dst − π(x src), and src − π(G dst) with G = x⁻¹."""
    points, (T1, T2) = pairs.normalised.both, pairs.frames
    G = adjugate(x)
    G /= x[0] @ G[:, 0]  # its determinant
    scale = np.array([[T2[0, 0]], [T1[0, 0]]])  # normalised units in a pixel of the image that is missed
    maps = np.array([x, G])
    with np.errstate(all="ignore"):
        u, v, w = (maps @ points).swapaxes(0, 1)
        w = 1.0 / w
        u, v = u * w, v * w
        h = maps[..., None]
        j11, j12 = h[:, 0, 0] - u * h[:, 2, 0], h[:, 0, 1] - u * h[:, 2, 1]
        j21, j22 = h[:, 1, 0] - v * h[:, 2, 0], h[:, 1, 1] - v * h[:, 2, 1]
        s11, s22 = j11 * j11 + j12 * j12, j21 * j21 + j22 * j22
        zoom, w2 = np.abs(j11 * j22 - j12 * j21), w * w
        size = 2.0 * zoom + s11 + s22
        factor = 2.0 / (scale * scale * size * np.maximum(1.0, zoom * w2 * (scale[::-1] / scale) ** 2))
        n11, n12, n22 = factor * (zoom + s22), -factor * (j11 * j21 + j12 * j22), factor * (zoom + s11)
        p, q = u - points[::-1, 0], v - points[::-1, 1]
        g1, g2 = n11 * p + n12 * q, n12 * p + n22 * q
        e2 = np.fmin((p * g1 + q * g2).sum(axis=0), np.inf)
        slope = np.empty((2, 3, len(e2)))
        slope[:, 0], slope[:, 1], slope[:, 2] = w * g1, w * g2, -w * (u * g1 + v * g2)
        n11, n12, n22, w2, u, v, p, q = (a[0] for a in (n11, n12, n22, w2, u, v, p, q))
        root = np.sqrt(n22)
        r = np.array([factor[0] * np.sqrt(zoom[0] * size[0]) / root * p, root * q + n12 / root * p])
        n11, n12, n22 = n11 * w2, n12 * w2, n22 * w2
        k1, k2 = n11 * u + n12 * v, n12 * u + n22 * v
        curvature = np.array([n11, n12, -k1, n22, -k2, u * k1 + v * k2])
    if e2.max() == inf:  # such a match has no say
        for part in (r, curvature, slope):
            part[..., e2 == inf] = 0.0
    return _Misses(e2, r, curvature, slope, G)


def _products(points: Floats) -> Floats:
    """aaᵀ of points (3, n), its SIX entries: (n, 6)."""
    return np.array([points[i] * points[j] for i, j in SIX]).T


def _step(x: Floats, at: _Misses, w: Floats, fall: Floats, points: Floats, squares: Floats) -> Floats:
    """The step from x, of norm 1, towards the smallest Σρ(eᵢ²), where w = dρ/de², with N as it is: Gauss and Newton's,
    near the end Newton's, which knows that the weights ``fall``, by dw/de².

    To first order both misses of a match are the same, and so are their curvatures: that in dst counts twice. It is
    Σ w curvature ⊗ aaᵀ, made of 6 × 6 sums, as both factors are symmetric. Slopes are exact, as they decide where the
    steps end: that of the way back is one of G, and dG = −G dx G.
    """
    there, back = ((w * at.slope) @ points.swapaxes(1, 2)).reshape(2, 9)
    g = there - (at.back.T @ back.reshape(3, 3) @ at.back.T).ravel()
    A = 2.0 * ((w * at.curvature) @ squares).take(KRONECKER)
    h = x.ravel()
    A += A.ravel()[::10].sum() * (h[:, None] * h)  # the length of h is free: along h, where A is singular, no step
    step = _solution(A, g)
    if (size := np.abs(step).max()) <= NEAR:  # further off the fall may take more than there is
        v = (at.slope[0][:, None] * points[0]).reshape(9, -1)
        newton = _solution(A + (8.0 * fall * v) @ v.T, g)
        if newton @ g > 0.0 and np.abs(newton).max() <= LONGER * size:
            step = newton
    return np.asarray(-step.reshape(3, 3))


def _solution(A: Floats, g: Floats) -> Floats:
    """Of A s = g; where the matches leave some direction open, none along it."""
    *_, found, singular = dgesv(A, g)
    return np.asarray(np.linalg.lstsq(A, g, rcond=None)[0] if singular else found, np.float64)
