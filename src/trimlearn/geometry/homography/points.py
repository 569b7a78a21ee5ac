"""Point correspondences: checked, without repetition, in an order of their own, and normalised."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import as_numeric, check_matrix, is_sparse
from trimlearn.robust.distinct import distinct_rows, row_hashes
from trimlearn.robust.order import weighted_medians

__all__ = [
    "Bools",
    "Floats",
    "Ints",
    "PointPairs",
    "SortedPairs",
    "check_pairs",
    "check_points",
    "check_spread",
    "ordered_quantile",
    "scaled",
    "sort_pairs",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FAR = 3e4  # extents from the origin, where rounding in H⁻¹ moves a point of 1000 pixels by 0.05 px: see test_homography
HUGE = 1e60  # a bound: in float64 the products of five coordinates, as in squared errors, stay below 10³⁰⁸
CORE = (0.05, 0.95)  # quantiles that give the extent: up to 5 % of wild points on each side do not stretch it
CELL = 0.01  # of the side: matches nearer than that in both images count as one, since copies are no support (a choice)
PRIME = 1009.0  # more than cells a side, except for wild points: cells are told apart by one number, if it can be
ENOUGH = 4096  # matches that tell where the others are, and how far apart: a limit on time
GLANCE = 16  # matches among which four distinct points are looked for before all are: a limit on time
FLAT = 1e-7  # relative singular value: √(2⁻⁵²) = 1.5·10⁻⁸ is what rounding leaves of points on a line; some room above
BROAD = 1e-10  # det/trace² of a matrix of squares, which tells most sets: rounding, 10⁻¹⁶, spoils a millionth of it


@final
@dataclass(frozen=True)
class PointPairs:
    """Matched points src and dst, (n, 2) pixels each; scores (n,), if any, are larger for likelier ones."""

    src: Floats
    dst: Floats
    scores: Floats | None = None

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, rows: Any) -> PointPairs:
        return PointPairs(self.src[rows], self.dst[rows], None if self.scores is None else self.scores[rows])

    @property
    def S(self) -> float:
        """Their number, as a sum of weights: every match counts once."""
        return float(len(self))

    @cached_property
    def both(self) -> Floats:
        """(u, v, 1) of src and of dst, as columns: (2, 3, n)."""
        found = np.ones((2, 3, len(self)))
        found[0, :2], found[1, :2] = self.src.T, self.dst.T
        return found

    @property
    def lifted(self) -> tuple[Floats, Floats]:
        """The same for each image: (3, n)."""
        return self.both[0], self.both[1]

    @cached_property
    def areas(self) -> tuple[float, float]:
        """Square pixels over which the points of either image spread: what a random match may hit."""
        (width, height), (others_width, others_height) = self.extents.tolist()
        return width * height, others_width * others_height

    @cached_property
    def _ordered(self) -> Floats:
        """Each coordinate of either image in its order, (2, 2, m), of ENOUGH matches."""
        return np.sort(self.both[:, :2, :: max(1, len(self) // ENOUGH)])

    @cached_property
    def middle(self) -> Floats:
        """The median of each coordinate of either image (2, 2), of ENOUGH matches."""
        return ordered_quantile(self._ordered, 0.5)

    @cached_property
    def extents(self) -> Floats:
        """Width and height of what the points of either image cover (2, 2): by the quantiles of CORE."""
        low, high = (ordered_quantile(self._ordered, share) for share in CORE)
        sides = (high - low) / (CORE[1] - CORE[0])
        if not sides.all():
            sides = np.where(sides > 0, sides, np.maximum(np.ptp(self.both[:, :2], axis=2), np.finfo(np.float64).tiny))
        return np.asarray(sides)

    @cached_property
    def cell_shares(self) -> Floats:
        """s: 1 over the number of matches in the same cell. A cluster of near copies is no more support than one."""
        points, side = self.both[:, :2].reshape(4, -1), CELL * self.extents.reshape(4, 1)
        cells = np.floor((points - points.min(axis=1, keepdims=True)) / side)
        a, b, c, d = cells
        ordered = np.sort(((a * PRIME + b) * PRIME + c) * PRIME + d)
        if (ordered[1:] != ordered[:-1]).all():  # as for most matches that are few, in a third of the time
            return np.ones(len(self))
        _, where, counts = np.unique(row_hashes(cells.T), return_inverse=True, return_counts=True)
        return np.asarray(1.0 / counts[where])

    @cached_property
    def frames(self) -> tuple[Floats, Floats]:
        """T₁ and T₂ of Hartley's normalisation: centre 0, typical distance √2.

        By medians over cells, where he takes means: no wild match and no cluster squeezes the others together.
        """
        step = max(1, len(self) // ENOUGH)
        points, s = self.both[:, :2, ::step], self.cell_shares[::step]
        alike = bool((s == s[0]).all())
        middle = self.middle if alike else weighted_medians(points.reshape(4, -1).T, s).reshape(2, 2)
        away = points - middle[..., None]
        distances = np.hypot(away[:, 0], away[:, 1])
        typical = ordered_quantile(np.sort(distances), 0.5) if alike else weighted_medians(distances.T, s)
        one, other = np.where(typical > 0, typical, distances.mean(axis=1)).tolist()
        return _frame(middle[0], one), _frame(middle[1], other)

    @cached_property
    def normalised(self) -> PointPairs:
        """The same matches in normalised coordinates."""
        src, dst = (np.array(self.frames) @ self.both)[:, :2].swapaxes(1, 2)
        return PointPairs(src, dst)

    def to_pixels(self, H: Floats) -> Floats:
        """T₂⁻¹ H T₁ for one H between normalised points, or for each of many."""
        return np.asarray(self._back[1] @ H @ self.frames[0])

    def to_normalised(self, H: Floats) -> Floats:
        """T₂ H T₁⁻¹, of norm 1."""
        x = self.frames[1] @ H @ self._back[0]
        return np.asarray(x / np.linalg.norm(x))

    @cached_property
    def _back(self) -> tuple[Floats, Floats]:
        """T₁⁻¹ and T₂⁻¹."""
        return _inverse(self.frames[0]), _inverse(self.frames[1])


def check_points(points: Any, name: str) -> Floats:
    """Points (n, 2), finite, in float64; OpenCV's (n, 1, 2) and lists of KeyPoint will do."""
    if type(points) is np.ndarray and points.dtype == np.float64 and points.shape[1:] == (2,) and _in_range(points):
        return points  # as most are: there is nothing to convert
    if is_sparse(points):
        raise ValueError(f"{name} is a sparse matrix; give a dense array of shape (n, 2).")
    points = _of_opencv(points, name)
    if np.shape(points)[1:] == (1, 2):
        points = np.asarray(points)[:, 0]
    found = np.asarray(to_numpy(check_matrix(points, name)), dtype=np.float64)
    if found.shape[1] != 2:
        raise ValueError(f"{name} must have shape (n, 2), one point (x, y) a row, got {found.shape}.")
    if not _in_range(found):
        raise ValueError(f"{name} holds coordinates beyond {HUGE:g}, which no image has; give pixels.")
    return found


def _in_range(points: Floats) -> bool:
    """Whether there are any, all of them numbers that an image may have."""
    return bool(np.abs(points).max(initial=0.0) <= HUGE) and len(points) > 0


def _of_opencv(points: Any, name: str) -> Any:
    """The pixels of a list of OpenCV's KeyPoint; anything else as it is, but a list of DMatch is refused."""
    cv2: Any = sys.modules.get("cv2")  # whoever has such objects has imported it
    if cv2 is None or not isinstance(points, list | tuple) or not points:
        return points
    if isinstance(points[0], cv2.DMatch):
        raise ValueError(
            f"{name} is a list of DMatch; give the points that they name, src = [kp1[m.queryIdx].pt for m in matches] "
            "and dst = [kp2[m.trainIdx].pt for m in matches]."
        )
    return [k.pt for k in points] if all(isinstance(k, cv2.KeyPoint) for k in points) else points


def check_pairs(src: Any, dst: Any, scores: Any = None) -> PointPairs:
    """The matches, with their scores where there are any."""
    pairs = PointPairs(check_points(src, "src"), check_points(dst, "dst"))
    n = len(pairs)
    if len(pairs.dst) != n:
        raise ValueError(f"src and dst must have one row per match each, got {n} and {len(pairs.dst)} rows.")
    if scores is None:
        return pairs
    guide = np.asarray(to_numpy(as_numeric(scores, "scores")), dtype=np.float64)
    if guide.shape != (n,):
        raise ValueError(f"scores must hold one number for each of the {n} matches, got shape {guide.shape}.")
    if np.isnan(guide).any():
        raise ValueError("scores holds NaN; give a number for every match, larger for one likelier to be right.")
    return PointPairs(pairs.src, pairs.dst, guide)


@final
@dataclass(frozen=True)
class SortedPairs:
    """Matches in lexicographic order, ``given[order]``; the distinct ones, each with the best score of its copies."""

    order: Ints
    pairs: PointPairs
    distinct: PointPairs
    first: Ints | slice  # of the sorted matches the first of each distinct one

    def unsorted(self, values: Floats) -> Floats:
        """One value for each of the sorted matches, in the order they were given in."""
        found = np.empty_like(values)
        found[self.order] = values
        return found


def sort_pairs(pairs: PointPairs) -> SortedPairs:
    """In an order of their own: what follows does not depend on the one the matches came in."""
    order = pairs.src[:, 0].argsort()
    x = pairs.src[order, 0]
    if (x[1:] > x[:-1]).all():  # as where corners are found to a part of a pixel: the rest need not be compared
        ordered = pairs[order]
        return SortedPairs(order, ordered, ordered, slice(None))
    rows, _, where = distinct_rows(np.hstack([pairs.src, pairs.dst]))
    order = np.argsort(where, kind="stable")
    ordered = pairs[order]
    best = None
    if pairs.scores is not None:
        best = np.full(len(rows), -np.inf)
        np.maximum.at(best, where, pairs.scores)
    first = np.flatnonzero(np.append(True, np.diff(where[order]) > 0))
    return SortedPairs(order, ordered, PointPairs(pairs.src[rows], pairs.dst[rows], best), first)


def scaled(H: Floats) -> Floats:
    """H with H[2, 2] = 1; of norm 1 where H[2, 2] is 0, because the origin has no image."""
    H = H / np.linalg.norm(H)
    return np.asarray(H / H[2, 2] if abs(H[2, 2]) > np.finfo(np.float64).eps else H)


def check_spread(pairs: PointPairs) -> None:
    """ValueError unless either image has four distinct points that are not all on a line."""
    points = pairs.both[:, :2]
    away = points - points.sum(axis=2, keepdims=True) / len(pairs)
    squares = (away @ away.swapaxes(1, 2)).reshape(2, 4).tolist()
    far = (np.abs(pairs.middle).max(axis=1) > FAR * pairs.extents.max(axis=1)).tolist()  # one is not enough
    for k, (name, own) in enumerate((("src", pairs.src), ("dst", pairs.dst))):
        some = {(x, y) for x, y in own[:GLANCE].tolist()}
        if len(some) < 4 and (count := len(distinct_rows(own)[0])) < 4:
            have = f"{len(pairs)} distinct matches, with {count} distinct points in {name}"
            raise ValueError(f"src and dst hold {have}; a homography needs at least 4: give more matches.")
        if far[k]:
            raise ValueError(f"{name} lies too far from the origin for its extent; subtract an offset from its points.")
        xx, xy, _, yy = squares[k]
        if xx * yy - xy * xy <= BROAD * (xx + yy) ** 2 and _is_on_a_line(*away[k]):
            raise ValueError(f"{name}: all points are on a line, which fixes no homography; give others as well.")


def _is_on_a_line(x: Floats, y: Floats) -> bool:
    """Whether the smaller singular value of points about their mean is no more than FLAT times the larger one.

    Through the triangle (1 a; 0 b) of Gram and Schmidt, which keeps the digits that a matrix of squares would lose: the
    product of its singular values is b, the sum of their squares 1 + a² + b².
    """
    if y @ y > x @ x:
        x, y = y, x
    xx = float(x @ x)
    if xx == 0.0:
        return True
    slope = float(x @ y) / xx
    off = y - slope * x
    b = (float(off @ off) / xx) ** 0.5
    squares: float = 1.0 + slope**2 + b**2
    return bool(2.0 * b <= FLAT * (squares + max(squares**2 - 4.0 * b**2, 0.0) ** 0.5))


def _inverse(T: Floats) -> Floats:
    """Of a frame."""
    (scale, _, x), (_, _, y), _ = T.tolist()
    return np.array([[1.0 / scale, 0.0, -x / scale], [0.0, 1.0 / scale, -y / scale], [0.0, 0.0, 1.0]])


def ordered_quantile(ordered: Floats, share: float) -> Floats:
    """That of numbers in order, along the last axis; between two of them in proportion, without np.quantile's many
    calls."""
    place = share * (ordered.shape[-1] - 1)
    below = int(place)
    low, high = ordered[..., below], ordered[..., min(below + 1, ordered.shape[-1] - 1)]
    return np.asarray(low + (place - below) * (high - low))


def _frame(centre: Floats, typical: float) -> Floats:
    """Centre 0, the typical distance √2."""
    scale, (x, y) = 2**0.5 / typical, centre.tolist()
    return np.array([[scale, 0.0, -scale * x], [0.0, scale, -scale * y], [0.0, 0.0, 1.0]])
