"""Whether chance alone would explain as many matches as well: the a contrario test."""

from __future__ import annotations

from copy import copy
from functools import cache
from math import inf, log, pi, sin
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import gammaln

from trimlearn.geometry.homography.points import Bools, Floats, Ints, PointPairs

__all__ = ["Chance", "Significance", "no_strip_holds"]

EXACT = 1e-6  # of the image's side: smaller errors are rounding, since coordinates read as float32 have 6·10⁻⁸ of it
# Lines tried, and points each is tried on. If half of the points are on one line, both points that define a line are on
# it with probability ¼: that none of 100 does is as likely as 0.75¹⁰⁰ = 3·10⁻¹³.
LINES = 100
DIRECTIONS = 16  # in which strips are looked for: a tilt of π/32 widens one by 10 % of its length, a tenth of an image


class Significance(NamedTuple):
    """The matches that chance explains worst: ``k`` of them (in cells) within √``e2`` pixels, and log NFA."""

    k: float
    e2: float
    log_nfa: float


@final
class Chance:
    """Independent matches, uniform over A₁ square pixels in one image and over A₂ in the other.

    One of them is within e of a given homography (as `squared_errors` has it) with probability at most πe²/2A₂ where H
    shrinks, πe²/2A₁ where it magnifies: α(e) = πe²/2 · (1/A₁ + 1/A₂) has some room for maps that squeeze one direction
    more than the other. So among all homographies through four of n matches the expected number of those with k
    matches within e is at most

        NFA(k, e) = (n − 4) · C(n, k) · C(k, 4) · α(e)^(k − 4)

    (Moisan and Stival 2004). Matches of one cell count as one: n = Σs, and k is the sum of s over those within e.

    >>> rng = np.random.default_rng(0)
    >>> src = rng.uniform(0, 1000, (50, 2))
    >>> e2 = rng.uniform(0, 1000, 50) ** 2
    >>> e2[:12] = 4.0
    >>> k, _, log_nfa = Chance(PointPairs(src, src)).best(e2)
    >>> k, log_nfa < -50
    (12.0, True)
    """

    def __init__(self, pairs: PointPairs) -> None:
        self.s = pairs.cell_shares
        self.area = 2.0 / (1.0 / pairs.areas[0] + 1.0 / pairs.areas[1])
        self.n = float(self.s.sum())

    @property
    def side(self) -> float:
        """Of a square with the (harmonic) mean of both areas."""
        return float(self.area**0.5)

    def among(self, rows: Ints | slice) -> Chance:
        """The same for some of the matches."""
        some = copy(self)
        some.s = self.s[rows]
        some.n = float(some.s.sum())
        return some

    def best(self, e2: Floats) -> Significance:
        """The number of matches, taken by their errors, with the smallest NFA. With four there is nothing to test."""
        order = e2.argsort(kind="stable")
        k = self.s[order].cumsum()
        values = self._log_nfa(k, e2[order])
        at = int(values.argmin())
        return Significance(float(k[at]), float(e2[order[at]]), float(values[at]))

    def off_a_line(
        self, within: Bools, limit: float, points: Floats, width: float, pixel: Floats, many: float
    ) -> Significance:
        """What the matches ``within`` √``limit`` mean that are off the line which holds most of them, given the
        ``width`` that noise gives a line; ``pixel`` (n,): that of the coarser image, in those of this one. ``many`` of
        them need no test.

        Maps that keep the line move a match by no more than in proportion to its distance d from it. So one that is
        within e of where it belongs is so by chance with probability α = πe²/d², not by the area of the image: those
        just beside the line mean nothing. A line leaves a homography three degrees of freedom: two matches fit anyhow,
        and so NFA = (n − 2) C(n, k) C(k, 2) times the product of all α but the smallest one and a half.
        """
        distance = _from_line(points, np.flatnonzero(within), width * pixel) / pixel
        off = within & (distance > width)
        count = float(self.s[off].sum())
        if count == 0.0 or count >= many:
            return Significance(count, limit, -inf if count else inf)
        far = np.flatnonzero(off)[np.argsort(-distance[off], kind="stable")]
        s, n = self.s[far], float(self.s[off | ~within].sum())
        log_alpha = np.log(np.minimum(pi * max(limit, EXACT**2 * self.area) / np.square(distance[far]), 1.0))
        k, free = np.cumsum(s), log_alpha[0] + 0.5 * log_alpha[min(1, len(far) - 1)]
        tests = log(max(n - 2.0, 1.0)) + _log_choose(n, k) + _log_choose(np.maximum(k, 2.0), 2.0)
        values = np.where(k > 1.5, tests + np.cumsum(s * log_alpha) - free, inf)
        return Significance(count, limit, float(values.min()))

    def _alpha(self, e2: Any) -> Any:
        return np.minimum(pi * np.maximum(e2 / self.area, EXACT**2), 1.0)

    def _log_nfa(self, k: Floats, e2: Floats) -> Floats:
        # C(n, k) C(k, 4) = n! / (4! (k − 4)! (n − k)!)
        constant = log(max(self.n - 4.0, 1.0)) + gammaln(self.n + 1.0) - log(24.0)
        kept = np.maximum(k - 4.0, 0.5)
        tests = constant - gammaln(kept + 1.0) - gammaln(np.maximum(self.n - k, 0.0) + 1.0)
        found = tests + kept * np.log(self._alpha(e2))
        found[k <= 4.5] = inf
        return np.asarray(found)


def no_strip_holds(more: float, points: Floats, width: Any) -> Any:
    """Whether it is certain that no line has more than so many of the points (2, n) within ``width``; or of each of
    several sets of as many points (..., 2, n), with widths (...).

    A line is tilted by δ = π/2DIRECTIONS, at most, against one of the DIRECTIONS. Across that one the points near it
    are within 2 ``width`` + sin δ times the largest distance of two points, and numbers in order tell how many such a
    window holds.
    """
    normals, tilt = _normals()
    across, sides = normals @ points, points.max(axis=-1) - points.min(axis=-1)
    across.sort()
    longest, many = np.hypot(sides[..., 0], sides[..., 1]), int(more)
    apart = across[..., many:] - across[..., : points.shape[-1] - many]
    return apart.min(axis=(-2, -1), initial=inf) > 2.0 * width + tilt * longest


@cache
def _normals() -> tuple[Floats, float]:
    """Unit vectors (DIRECTIONS, 2) over half a turn, and the sine of half the angle between two of them."""
    angles = np.arange(DIRECTIONS) * (pi / DIRECTIONS)
    return np.column_stack([np.cos(angles), np.sin(angles)]), sin(pi / (2 * DIRECTIONS))


def _from_line(points: Floats, rows: Ints, width: Floats) -> Floats:
    """How far points are from the line that has most of ``rows`` within their ``width``: the best through two of them,
    then the one of least squares through those on it, each by its width, as two alone magnify their noise at its ends.
    """
    first, second, tried = rows[(_drawn() * len(rows)).astype(np.int64)]
    a, b = points[first], points[second]
    along = np.where((a == b).all(axis=1, keepdims=True), [1.0, 0.0], b - a)  # through one point any line
    normal = along[:, ::-1] * [1.0, -1.0] / np.hypot(along[:, :1], along[:, 1:])
    near = np.abs(points[tried] @ normal.T - np.sum(a * normal, axis=1)) <= width[tried, None]
    best = int(np.argmax(np.count_nonzero(near, axis=0)))
    on = rows[np.abs((points[rows] - a[best]) @ normal[best]) <= width[rows]]
    w = np.square(width.min() / width[on])  # the less, the less a point tells where it is
    middle = w @ points[on] / w.sum()
    centred = points[on] - middle
    across = np.linalg.eigh((w * centred.T) @ centred)[1][:, 0]
    return np.asarray(np.abs((points - middle) @ across))


@cache
def _drawn() -> Floats:
    """Uniform numbers (3, LINES): the same lines for the same matches, whatever seed the samples have."""
    return np.random.default_rng(LINES).random((3, LINES))


def _log_choose(n: float | Floats, k: float | Floats) -> Floats:
    """log C(n, k), for real numbers too."""
    with np.errstate(invalid="ignore"):
        return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(np.maximum(n - k, 0.0) + 1.0))
