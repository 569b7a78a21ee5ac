"""Rows that are read from a disk in order, a piece at a time, and never kept: what robust regression asks of them.

One number for each row, its residual, is kept. What is asked of all residuals (their scale, the cut-off, the share of
bad rows) is read off a summary in which they are counted, and known to one part in 4,096:
`trimlearn._utils.digits.summarised`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.blocks import slices_apart, taken
from trimlearn._utils.digits import summarised, upper_edge
from trimlearn._utils.threads import total
from trimlearn.robust.scale import rounding_floor
from trimlearn.robust.streamed_newton import SLICES
from trimlearn.robust.trimming import pieces_of

Vector = NDArray[np.floating]
Summary = tuple[np.ndarray, np.ndarray]  # values that stand for residuals, and how many each stands for
Weigh = Callable[[Vector], Vector]  # weights of residuals

PIECE_BYTES = 1 << 19  # of rows held by a thread: they and their standardised copy stay in a level-2 cache of 1 MB
TRIED = 10_000  # targets that their rounding is known by: a limit on time
OFFSET = 10.0  # times its scale: of a column up to that far from 0 float32 keeps five digits in sums of squares
CURVED, PER_COLUMN = 200_000, 100  # rows for the curvature, and at least so many for each column: known to a tenth


class StandardisedRows(ABC):
    """Rows about a centre and in units of a scale, the intercept's column last, that are asked for sums only: on a
    disk, or on the workers of a cluster. ``r`` is what `residuals` gave, and need not be an array.

    floor: the rounding of targets, `trimlearn.robust.scale.rounding_floor`.
    """

    center: np.ndarray
    scale: np.ndarray
    intercept: bool
    floor: float

    @property
    @abstractmethod
    def mass(self) -> float:
        """The sample weight of all rows, or how many they are."""

    @property
    def n(self) -> int:
        """How many rows there are, each as often as it counts."""
        return round(self.mass)

    @property
    def q(self) -> int:
        """How many coefficients there are."""
        return len(self.center) + self.intercept

    def standardised(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """Coefficients of the columns as they are, in units of the standardised ones."""
        u = np.asarray(coef, np.float64) * self.scale
        return np.append(u, intercept + float(coef @ self.center)) if self.intercept else u

    def plain(self, u: np.ndarray) -> np.ndarray:
        """The way back: coefficients, and the intercept last if there is one."""
        coef = u[: len(self.center)] / self.scale
        return np.append(coef, u[-1] - coef @ self.center) if self.intercept else coef

    @abstractmethod
    def residuals(self, u: np.ndarray) -> Any:
        """t − A u, of every row."""

    @abstractmethod
    def residuals_and_slope(self, u: np.ndarray, weigh: Weigh) -> tuple[Any, np.ndarray]:
        """The residuals r, and minus the gradient Σ wᵢrᵢaᵢ − penalty·u with w = weigh(r)."""

    @abstractmethod
    def slope(self, weigh: Weigh, r: Any, u: np.ndarray) -> np.ndarray:
        """Minus the gradient at u, whose residuals are known."""

    @abstractmethod
    def curvature(self, weigh: Weigh, r: Any) -> np.ndarray:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty with w = weigh(r), all rows or some standing for all."""

    @abstractmethod
    def summary(self, r: Any, unit: float) -> Summary:
        """Values that stand for residuals r of about the size of ``unit``, and how many each stands for."""

    @abstractmethod
    def edge(self, value: float, unit: float) -> float:
        """The largest residual that a value of a summary may stand for."""

    @abstractmethod
    def flagged(self, r: Any, cut: float) -> int:
        """How many rows have |r| > cut."""


@final
@dataclass(frozen=True)
class StreamedRows(StandardisedRows):
    """Rows V (n, p) with targets t, about a centre and in units of a scale; the intercept's column is last.

    penalty: what stands before ½u² of each standardised coefficient, beside Σ ½wᵢrᵢ².
    """

    V: np.ndarray
    t: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    intercept: bool
    penalty: np.ndarray

    @property
    def mass(self) -> float:
        return float(len(self.t))

    @cached_property
    def floor(self) -> float:  # type: ignore[override]
        """The rounding of targets, by some of them."""
        return rounding_floor(taken(self.t, slices_apart(self.n, TRIED, SLICES)))

    def summary(self, r: Vector, unit: float) -> Summary:
        return summarised(r, unit)

    def edge(self, value: float, unit: float) -> float:
        return upper_edge(value, unit)

    def flagged(self, r: Vector, cut: float) -> int:
        return sum(int(np.count_nonzero(~(np.abs(r[at]) <= cut))) for at in pieces_of(len(r)))

    def residuals(self, u: np.ndarray) -> Vector:
        """t − A u, of every row."""
        return self.residuals_and_slope(u, None)[0]

    def residuals_and_slope(self, u: np.ndarray, weigh: Weigh | None) -> tuple[Vector, np.ndarray]:
        """The residuals r, and minus the gradient Σ wᵢrᵢaᵢ − penalty·u with w = weigh(r), in one read of the rows."""
        r = np.empty(self.n, self.V.dtype)
        x = self.plain(u)
        coef, offset = x[: len(self.center)].astype(self.V.dtype), self.V.dtype.type(x[-1] if self.intercept else 0.0)
        inner = u.astype(self.V.dtype)

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            z = V @ (coef if self._as_they_are else inner[: len(coef)])
            z += offset if self._as_they_are or not self.intercept else inner[-1]
            np.subtract(self.t[at], z, out=r[at])
            return np.zeros(1) if weigh is None else _sums(V, r[at], weigh(r[at]))

        sums = total(part, self._pieces(), np.zeros(1))
        return r, np.zeros(self.q) if weigh is None else self._slope(sums, u)

    def slope(self, weigh: Weigh, r: Vector, u: np.ndarray) -> np.ndarray:
        """Minus the gradient for residuals that are known."""

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            return _sums(V, r[at], weigh(r[at]))

        return self._slope(total(part, self._pieces(), np.zeros(len(self.center) + 1)), u)

    def curvature(self, weigh: Weigh, r: Vector) -> np.ndarray:
        """The Hessian Σ wᵢaᵢaᵢᵀ + penalty with w = weigh(r), in float64, from some of the rows: the steps it is for are
        repeated until they vanish."""
        p = len(self.center)
        m = min(self.n, max(CURVED, PER_COLUMN * self.q))

        def part(at: slice) -> np.ndarray:
            V = self.V[at] if self._as_they_are else self._standardise(self.V[at])
            w = weigh(r[at]).astype(V.dtype, copy=False)
            sums = np.empty((p + 1, p + 1))
            sums[:p, :p] = (V * w[:, None]).T @ V
            sums[:p, p] = sums[p, :p] = w @ V
            sums[p, p] = w.sum(dtype=np.float64)
            return sums

        some = slices_apart(self.n, m, SLICES)
        pieces = [piece for at in some for piece in self._pieces(at)]
        sums, T = total(part, pieces, np.zeros((p + 1, p + 1))), self._transform
        times = self.n / sum(at.stop - at.start for at in some)
        return np.asarray(times * (T @ sums @ T.T)[: self.q, : self.q] + np.diag(self.penalty))

    def _slope(self, sums: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.asarray((self._transform @ sums)[: self.q] - self.penalty * u)

    @cached_property
    def _transform(self) -> np.ndarray:
        """T with aᵢ = T(vᵢ, 1), v as it is read."""
        p = len(self.center)
        T = np.eye(p + 1)
        if self._as_they_are:
            T[:p, :p], T[:p, p] = np.diag(1.0 / self.scale), -self.center / self.scale
        return T

    @cached_property
    def _as_they_are(self) -> bool:
        """Whether sums of the columns lose no digits that count, if the centre is taken off them afterwards."""
        return self.V.dtype == np.float64 or bool(np.all(np.abs(self.center) <= OFFSET * self.scale))

    def _pieces(self, some: slice | None = None) -> list[slice]:
        """All rows, or some, in pieces."""
        step = max(64, PIECE_BYTES // (self.q * self.V.itemsize))
        start, end, _ = (some or slice(None)).indices(self.n)
        return [slice(i, min(i + step, end)) for i in range(start, end, step)]

    def _standardise(self, V: np.ndarray) -> np.ndarray:
        D: np.ndarray = V - self.center.astype(V.dtype)
        D *= (1.0 / self.scale).astype(V.dtype)
        return D


def _sums(V: np.ndarray, r: Vector, w: Vector) -> np.ndarray:
    """Σ wᵢrᵢ(vᵢ, 1); of rows of weight 0 nothing is added."""
    wr = np.where(w > 0, r, 0) * w
    wr = wr.astype(V.dtype, copy=False)
    return np.append((wr @ V).astype(np.float64), wr.sum(dtype=np.float64))
