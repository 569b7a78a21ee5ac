"""The distinct rows of a regression in an order of their own, and coordinates in which no scale is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from trimlearn.losses.exact import _least_squares
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.order import medians
from trimlearn.robust.regression.elemental import RegressionSample

__all__ = ["DistinctRows"]

SOME = 10_000  # rows from which coordinates are taken: so many give a spectrum to 1 %, and only its scale matters
PIECE = 2_000_000  # entries of A held at a time, a limit on memory: 16 MB
ROUNDING = 100 * np.finfo(np.float64).eps  # of what a residual is the difference of, which 100 sums round by
DIRECT = 400_000  # entries of the kept rows up to which they are factored, a limit on time: some 20 ms
HUGE = 1e100  # targets beyond are as far away as can be: 10¹⁰⁰ of their squares do not overflow


@final
class DistinctRows:
    """Distinct rows (A, t) with masses m = Σ s over their repetitions, and A = Q·back⁺ with Q of unit scale.

    back (q, r) takes coefficients of Q to coefficients of A: x = back u. It comes from the singular values of A with
    rows of length 1, so that no row however far out decides the scale of the others.
    """

    def __init__(self, A: np.ndarray, t: np.ndarray, rows: np.ndarray, m: np.ndarray, of: np.ndarray) -> None:
        self._A, self._rows, self._of = A, rows, of
        self.t, self.m, self.total = t[rows], m, float(m.sum())
        self._back, self._null = self._coordinates()
        self.r = self._back.shape[1]
        self.Q = np.concatenate([A.take(piece, axis=0) @ self._back for piece in self._pieces(rows)])
        self._base, self._scale = self._standard()

    @classmethod
    def distinct(cls, A: np.ndarray, t: np.ndarray, s: np.ndarray | None) -> DistinctRows:
        """Rows of positive weight, each once, in an order that depends on their content alone."""
        present = np.arange(len(t)) if s is None else np.flatnonzero(s > 0)
        order = np.argsort(t) if s is None else present[np.argsort(t[present])]
        of, weights = np.full(len(t), -1), np.ones(len(order))
        sorted_t = t[order]
        if np.all(sorted_t[1:] != sorted_t[:-1]):
            of[order] = present if s is None else np.arange(len(order))
            return cls(A, t, order, weights if s is None else s[order], of)
        order = present[np.lexsort((row_hashes(A[present]), t[present]))]
        new = np.append(True, (np.diff(t[order]) != 0) | np.any(A[order[1:]] != A[order[:-1]], axis=1))
        of[order] = np.cumsum(new) - 1
        weights = weights if s is None else s[order]
        return cls(A, t, order[new], np.add.reduceat(weights, np.flatnonzero(new)), of)

    def _pieces(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        step = max(1, PIECE // self._A.shape[1])
        return (rows[first : first + step] for first in range(0, len(rows), step))

    def _coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """back, and the directions (q, q − r) that A does not see; from some of the rows if they see all."""
        few = self._rows[:: -(-len(self._rows) // SOME)]
        back, null = self._spectrum(few)
        return (back, null) if not null.size or len(few) == len(self._rows) else self._spectrum(self._rows)

    def _spectrum(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q = self._A.shape[1]
        scale = np.array([_typical(np.abs(self._A[rows, k])) for k in range(q)])
        R = np.zeros((0, q))
        for piece in self._pieces(rows):
            unit = self._A[piece] / scale
            unit /= _positive(np.linalg.norm(unit, axis=1))[:, None]
            R = np.asarray(np.linalg.qr(np.vstack([R, unit]), mode="r"))
        values, Vt = np.linalg.svd(R)[1:]
        rank = int(np.count_nonzero(values > values[0] * max(len(rows), q) * np.finfo(np.float64).eps))
        back = Vt.T / scale[:, None]
        return np.sqrt(len(rows)) * back[:, :rank] / values[:rank], back[:, rank:]

    def _standard(self) -> tuple[np.ndarray, float]:
        """A fit to the central rows, and the typical size of what it leaves: targets are taken from there."""
        some = slice(None, None, -(-len(self.t) // SOME))
        Q, t, m = self.Q[some], self.t[some], self.m[some]
        lengths = np.einsum("ij,ij->i", Q, Q)
        central = m * (lengths <= medians(lengths))
        size = _typical(np.abs(t))
        u = size * RegressionSample(Q, np.clip(t / size, -HUGE, HUGE), m, self.total).fit(central[None])[0]
        return u, _typical(np.abs(t - Q @ u))

    def sample(self, size: int | None, h: float, rng: np.random.Generator | None = None) -> RegressionSample:
        """``size`` random rows (all by default), of which the share that h is of all is kept."""
        t = np.clip((self.t - self.Q @ self._base) / self._scale, -HUGE, HUGE)
        if size is None or rng is None:
            return RegressionSample(self.Q, t, self.m, h)
        rows = np.sort(rng.choice(len(t), size, replace=False))
        m = self.m[rows]
        return RegressionSample(self.Q.take(rows, axis=0), t[rows], m, h / self.total * float(m.sum()))

    def losses(self, x: np.ndarray) -> np.ndarray:
        """(tᵢ − Aᵢx)², with 0 for what is rounding."""
        e = np.empty_like(self.t)
        for piece, at in zip(self._pieces(self._rows), self._pieces(np.arange(len(self.t))), strict=True):
            A = self._A.take(piece, axis=0)
            e[at] = self.t[at] - A @ x
            most = np.abs(self.t[at]) + np.abs(A).max(initial=0.0) * np.abs(x).sum()
            small = np.flatnonzero(np.abs(e[at]) <= ROUNDING * most)  # as a rule none, so that only these are looked at
            size = np.abs(self.t[at][small]) + np.abs(A[small]) @ np.abs(x)
            e[at[small]] *= np.abs(e[at[small]]) > ROUNDING * size
        return np.asarray(np.clip(e, -HUGE, HUGE) ** 2)

    def coef(self, u: np.ndarray) -> np.ndarray:
        """The shortest x with Ax = Qu, for the coefficients u of a sample."""
        x = self._back @ (self._base + self._scale * u)
        return np.asarray(x - self._null @ np.linalg.lstsq(self._null, x, rcond=None)[0])

    def refit(self, w: np.ndarray) -> np.ndarray | None:
        """The least squares x for weights w, accurate and shortest for the rows it keeps; None where those are many."""
        c = w * self.m
        kept = np.flatnonzero(c)
        if len(kept) * self._A.shape[1] > DIRECT:
            return None
        root = np.sqrt(c[kept])[:, None]
        return np.asarray(_least_squares(self._A[self._rows[kept]] * root, self.t[kept, None] * root)[:, 0])

    def expand(self, w: np.ndarray) -> np.ndarray:
        """One weight for each of the rows that were given; 0 for those of no weight."""
        return np.asarray(np.append(w, 0.0)[self._of])


def _typical(values: np.ndarray) -> float:
    """The median of the values that are not 0; 1 where all are."""
    values = values[values > 0]
    return float(medians(values)) if len(values) else 1.0


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, 1.0)
