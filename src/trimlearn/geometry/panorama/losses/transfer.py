"""Many images at once: fᵢ is how far one match is from where the models of its two images put it, in px²."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, sum64
from trimlearn.geometry.homography.dlt import PLACE, SIX
from trimlearn.geometry.homography.points import Floats, Ints
from trimlearn.losses.base import Loss, select
from trimlearn.losses.storage import Rows

# The depth z below which a point counts as lying beside or behind the camera; the maps have determinant 1, so that z is
# about 1 ahead. A pixel seen there lies ten focal lengths from the centre, 84° off the axis: no lens that keeps lines
# straight shows it.
NEAREST = 0.1
SQUARE = np.array([[0, 4, 1], [4, 0, 2], [1, 2, 3]])  # which of five numbers each entry of PᵀP is; the last is 0


@final
@dataclass(frozen=True)
class Correspondences:
    """N matches among m images: point src (N, 2) of image i (N,) is said to be point dst (N, 2) of image j (N,).

    Points are pixels from the centre of their image.
    """

    i: Ints
    j: Ints
    src: Floats
    dst: Floats
    images: int


class Maps(NamedTuple):
    """Per image A (m, 3, 3), pixels to the common frame, and B = A⁻¹, with their derivatives by each of the image's d
    parameters, dA and dB (m, d, 3, 3)."""

    A: Floats
    B: Floats
    dA: Floats
    dB: Floats


class TransferLoss(Loss):
    """fᵢ(x) = ‖π(B_j A_i p) − q‖² + ‖π(B_i A_j q) − p‖² for a match of p in image i with q in image j.

    A_i(x), 3 × 3, takes homogeneous pixels of image i to a frame common to all images, B_i = A_i⁻¹ takes them back,
    π(u, v, z) = (u, v)/z. √fᵢ is the symmetric transfer error in pixels. x is (m, d): d parameters for each of the m
    images, all 0 where the maps are those that the loss was made with.

    Wrong matches may fall beside or behind a camera. There, z < 0.1, π divides by 0.1, and ``far``·(0.1 − z)/0.1 px is
    one more residual: f is finite everywhere, and smooth but at z = 0.1.

    The Hessian is Gauss and Newton's, which is never negative.
    """

    def __init__(self, matches: Correspondences, parameters: int, far: float) -> None:
        self.matches, self.far = matches, far
        self.n, self.x_shape, self.like = len(matches.i), (matches.images, parameters), np.zeros(0)
        self._p, self._q = homogeneous(matches.src), homogeneous(matches.dst)

    @abstractmethod
    def maps(self, x: Array) -> Maps:
        """A, B and their derivatives at x."""

    @property
    @final
    def minimal(self) -> int:
        return -(-self.x_shape[0] * self.x_shape[1] // 2)  # a match determines two numbers

    @final
    def values(self, x: Array, rows: Rows = None) -> Array:
        maps = self.maps(x)
        return sum(np.sum(way.residual**2, axis=1) for way in self._ways(maps, rows))

    @final
    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        return self.value_gradient(x, c, rows)[1]

    @final
    def value_gradient(self, x: Array, c: Array, rows: Rows = None) -> tuple[float, Array]:
        maps, (rows, c) = self.maps(x), self._counting(c, rows)
        ways = self._ways(maps, rows)
        value = sum(sum64(np.sum(way.residual**2, axis=1) * c) for way in ways)
        return value, self._pull(maps, [(way, way.residual * c[:, None]) for way in ways])

    @final
    def hessp(self, x: Array, u: Array, c: Array, rows: Rows = None) -> Array:
        """2 Σ cᵢ JᵢᵀJᵢ u, Jᵢ the derivative of the residuals."""
        maps, (rows, c) = self.maps(x), self._counting(c, rows)
        dA, dB = (np.einsum("md,mdab->mab", u, D) for D in (maps.dA, maps.dB))
        pulled = []
        for way in self._ways(maps, rows):
            moved = _times(maps.B[way.to], _times(dA[way.of], way.point)) + _times(dB[way.to], way.ray)
            pulled.append((way, way.push(moved) * c[:, None]))
        return self._pull(maps, pulled)

    @final
    def hessian(self, x: Array, c: Array) -> np.ndarray:
        """2 Σ cᵢ JᵢᵀJᵢ as a matrix of order m·d: pair by pair, as a match depends on two images only.

        Each parameter of the two images moves u = B_to A_of p by Dp, D a matrix that the pair's matches share: so the
        pair's block is made of one 9 × 9 matrix of moments.
        """
        (m, d), maps, c = self.x_shape, self.maps(x), np.asarray(c)
        H, kept = np.zeros((m, m, d, d)), self._counting(c, None)[0]
        groups = _groups(kept, self.matches.i[kept] * m + self.matches.j[kept])
        rows = np.concatenate(groups)
        ends = np.cumsum([len(group) for group in groups])
        for way in self._ways(maps, rows):
            of, to = way.of[ends - 1], way.to[ends - 1]
            by_of, by_to = maps.B[to][:, None] @ maps.dA[of], maps.dB[to] @ maps.A[of][:, None]
            D = np.concatenate([by_of, by_to], axis=1).reshape(-1, 2 * d, 9)
            square = (D @ way.moments(2.0 * c[rows], ends) @ D.swapaxes(1, 2)).reshape(-1, 2, d, 2, d)
            for (a, at), (b, other) in product(enumerate((of, to)), repeat=2):
                np.add.at(H, (at, other), square[:, a, :, b])
        return H.swapaxes(1, 2).reshape(m * d, m * d)

    @final
    def predict(self, x: Array) -> Floats:
        """Where the points of the images i are seen in the images j, (n, 2)."""
        return self._ways(self.maps(x), None)[0].seen

    @final
    def lipschitz(self) -> Array:
        return np.full(self.n, np.inf)  # a projection is as curved as one likes near z = 0.1

    @final
    def _counting(self, c: Array, rows: Rows) -> tuple[Ints, Floats]:
        """The rows with cᵢ ≠ 0, and their cᵢ: the others must not be touched, whatever their residuals."""
        c = np.asarray(c)
        kept = np.flatnonzero(c)
        return (kept if rows is None else select(np.arange(self.n), rows)[kept]), c[kept]

    @final
    def _ways(self, maps: Maps, rows: Rows) -> list[_Way]:
        """Every match from i to j, and from j back to i."""
        i, j, p, q = (select(a, rows) for a in (self.matches.i, self.matches.j, self._p, self._q))
        return [_Way.of_points(maps, i, j, p, q, self.far), _Way.of_points(maps, j, i, q, p, self.far)]

    @final
    def _pull(self, maps: Maps, terms: list[tuple[_Way, Floats]]) -> Floats:
        """2 Σ Jᵢᵀrᵢ: gathered as derivatives by the entries of A and B first, which needs no Jᵢ."""
        m = self.x_shape[0]
        by_A, by_B = np.zeros((m, 9)), np.zeros((m, 9))
        for way, r in terms:
            s = way.pull(r)
            back = _times(maps.B[way.to].transpose(0, 2, 1), s)
            by_A += _sum_by(_outer(back, way.point), way.of, m)
            by_B += _sum_by(_outer(s, way.ray), way.to, m)
        found = np.einsum("mdk,mk->md", maps.dA.reshape(m, -1, 9), by_A)
        return np.asarray(2.0 * (found + np.einsum("mdk,mk->md", maps.dB.reshape(m, -1, 9), by_B)))


@final
@dataclass(frozen=True)
class _Way:
    """Points of images ``of`` seen in images ``to``: u = B_to A_of p. Residuals: π(u) − q, and how far behind."""

    of: Ints
    to: Ints
    point: Floats  # p
    ray: Floats  # A p
    residual: Floats  # (N, 3)
    seen: Floats  # π(u)
    depth: Floats  # what π divided by
    behind: NDArray[np.bool_]
    far: float

    @classmethod
    def of_points(cls, maps: Maps, of: Ints, to: Ints, p: Floats, q: Floats, far: float) -> _Way:
        ray = _times(maps.A[of], p)
        u = _times(maps.B[to], ray)
        z = u[:, 2]
        depth = np.maximum(z, NEAREST)
        seen = u[:, :2] / depth[:, None]
        residual = np.column_stack([seen - q[:, :2], far * (depth - z) / NEAREST])
        return cls(of, to, p, ray, residual, seen, depth, z < NEAREST, far)

    def push(self, du: Floats) -> Floats:
        """The change of the residual with u, (..., N, 3)."""
        dz = du[..., 2:]
        behind, depth = self.behind[:, None], self.depth[:, None]
        along = (du[..., :2] - self.seen * np.where(behind, 0.0, dz)) / depth
        return np.concatenate([along, np.where(behind, -self.far / NEAREST * dz, 0.0)], axis=-1)

    def moments(self, c: Floats, ends: Ints) -> Floats:
        """Σ cᵢ (PᵢᵀPᵢ ⊗ pᵢpᵢᵀ), (len(ends), 9, 9), over the matches up to each of ``ends`` from the one before, where
        `push` takes du to P du."""
        scale, front = c / np.square(self.depth), ~self.behind
        u, v = self.seen.T * front
        last = np.where(front, scale * (u * u + v * v), c * (self.far / NEAREST) ** 2)
        P, p = np.array([scale, -scale * u, -scale * v, last, np.zeros_like(c)]), self.point.T
        squares = np.array([p[i] * p[j] for i, j in SIX]).T
        parts = (slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True))
        sums = np.array([P[:, part] @ squares[part] for part in parts])
        return np.asarray(sums[:, SQUARE][..., PLACE].swapaxes(2, 3).reshape(-1, 9, 9))

    def pull(self, r: Floats) -> Floats:
        """The transpose of `push`."""
        along = r[:, :2] / self.depth[:, None]
        dz = np.where(self.behind, -self.far / NEAREST * r[:, 2], -np.sum(self.seen * along, axis=1))
        return np.column_stack([along, dz])


def homogeneous(points: Floats) -> Floats:
    """(u, v, 1) for every point (u, v).

    >>> homogeneous(np.array([[3.0, 4.0]]))
    array([[3., 4., 1.]])
    """
    return np.column_stack([points, np.ones(len(points))])


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.einsum("nab,nb->na", matrices, vectors))


def _outer(a: Floats, b: Floats) -> Floats:
    return (a[:, :, None] * b[:, None, :]).reshape(-1, 9)


def _sum_by(values: Floats, group: Ints, count: int) -> Floats:
    """Σ of the rows of values (N, k) over each of ``count`` groups, (count, k)."""
    k = values.shape[1]
    index = (group[:, None] * k + np.arange(k)).ravel()
    return np.asarray(np.bincount(index, weights=values.ravel(), minlength=count * k).reshape(count, k), np.float64)


def _groups(rows: Ints, keys: Ints) -> list[Ints]:
    """The rows of each distinct key."""
    order = np.argsort(keys, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(keys[order])) + 1)
