"""The dual variables yᵢ = wᵢ∇fᵢ(old x), in four exact representations and two that change the estimator.

w only changes at a w-step, which renews every yᵢ; between two of them yᵢ/wᵢ = ∇fᵢ(old x) is what has to be stored,
and the weights come in as coefficients c. Rows of weight 0 are never asked for, so an infinite loss cannot leak in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, final

from trimlearn._utils.arrays import Array, eps_of, namespace, sum64, zeros
from trimlearn._utils.threads import each
from trimlearn.kernels import Fused, fused
from trimlearn.losses.base import Loss, PredictionLoss, select, weighted
from trimlearn.losses.linear import Block

MANY = 0.25  # of the rows: from there on a whole second read in order is faster than gathering those that changed


class Duals(ABC):
    """∇fᵢ at an old x, for every i."""

    cost: ClassVar[int] = 1  # residuals evaluated per row drawn
    refreshes: ClassVar[bool] = True  # whether Dₖ may name rows
    keeps: ClassVar[bool] = True  # whether the mean of the duals enters the estimator
    recursive: ClassVar[bool] = False  # whether that mean is the previous estimate
    fused: Fused | None = None  # compiled steps, where there are

    @abstractmethod
    def evaluate(self, x: Array, c: Array) -> Array:
        """fᵢ(x) for every i; from now on the old x of every row is this one. ``c``: of the mean at present."""

    @abstractmethod
    def mean(self, c: Array) -> Array:
        """Σ cᵢ yᵢ/wᵢ over all rows."""

    @abstractmethod
    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        """Σ cᵢ (∇fᵢ(x) − yᵢ/wᵢ) over ``rows``."""

    def advance(self, x: Array) -> None:
        """An x-step has used the gradients at ``x``."""
        return

    @abstractmethod
    def refresh(self, x: Array, c: Array, rows: Any) -> Array:
        """yᵢ/wᵢ ← ∇fᵢ(x) for ``rows``; returns the change of Σ cᵢ yᵢ/wᵢ."""


@final
@dataclass(frozen=True)
class _Last:
    """The x-step under way: its rows, their coefficients, their residuals at its x, and the difference they made."""

    rows: Any = None
    c: Array = None
    new: Array = None
    gradient: Array = None


@final
class ResidualTable(Duals):
    """K numbers per row, the residual ∇φᵢ(zᵢ): for losses of a linear prediction."""

    def __init__(self, loss: Loss) -> None:
        assert isinstance(loss, PredictionLoss), "choose_duals sees to that"
        self.loss = loss
        self.table = zeros((loss.n, loss.K), loss.like)
        self._last = _Last()
        self.fused = fused(loss)
        self._sum: tuple[Array, Array] | None = None  # c, and Σ cᵢAᵢᵀrᵢ, where one read gave both f and that

    def evaluate(self, x: Array, c: Array) -> Array:
        self._last = _Last()
        if self.fused is not None:
            f, gradient = self.fused.evaluate(x, c, self.table)
            self._sum = (c, gradient) if isfinite(sum64(gradient)) else None
            return f
        f = zeros((self.loss.n,), self.loss.like)

        def renew(at: tuple[slice, Any]) -> None:
            rows = at[1]
            f[rows], self.table[rows] = self.loss.evaluate(self.loss.linear.predict(x, rows), rows)

        each(renew, self.loss.linear.pieces())
        return f

    def mean(self, c: Array) -> Array:
        known, self._sum = self._sum, None
        rows = None if known is None else (c != known[0]).nonzero()[0]
        if known is None or rows is None or len(rows) > MANY * self.loss.n:
            return self.loss.pull(None, lambda block, piece, part: weighted(self.table[part], c[part]))
        # Only rows whose weight changed are read again.
        table, change = self.table[rows], (c - known[0])[rows]
        return known[1] + self.loss.pull(rows, lambda block, piece, part: table[part] * change[part][:, None])

    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        self._sum = None
        if self.fused is not None and not isinstance(rows, slice):
            gradient, new = self.fused.difference(x, c, rows, self.table)
            self._last = _Last(rows, c, new, gradient)
            return gradient
        new = zeros((c.shape[0], self.loss.K), self.table)

        def residuals(block: Block, piece: Any, part: slice) -> Array:
            r = new[part] = self.loss.residual(block.predict(x), piece)
            change = r - select(self.table, piece)
            # Rows drawn have positive weight; a slice may hold others, whose residuals may be infinite.
            return weighted(change, c[part]) if isinstance(piece, slice) else change * c[part][:, None]

        self._last = _Last(rows, c, new, self.loss.pull(rows, residuals))
        return self._last.gradient

    def refresh(self, x: Array, c: Array, rows: Any) -> Array:
        if self._last.rows is not rows:
            change = self.difference(x, c, rows)
        else:
            change = self._reweighed(c)
        self.table[rows] = self._last.new
        return change

    def _reweighed(self, c: Array) -> Array:
        """The last difference with c in place of its own coefficients: times a number, but for a few rows (those drawn
        twice), which are read again."""
        last = self._last
        xp = namespace(c)
        positive = last.c > 0
        if not bool(xp.any(positive)):
            return zeros(self.loss.x_shape, self.loss.like)
        factor = xp.max(c[positive] / last.c[positive])
        rest = c - factor * last.c
        odd = xp.nonzero(xp.abs(rest) > 4 * eps_of(c) * c)[0]
        change = factor * last.gradient
        if odd.shape[0] == 0:
            return change
        rows = odd if isinstance(last.rows, slice) else last.rows[odd]
        r, rest = last.new[odd] - self.table[rows], rest[odd]
        return change + self.loss.pull(rows, lambda block, piece, part: weighted(r[part], rest[part]))


@final
class GradientTable(Duals):
    """The whole gradient of every row: for any loss, where n·dim(x) numbers fit in memory."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.table = zeros((loss.n, *loss.x_shape), loss.like)

    def evaluate(self, x: Array, c: Array) -> Array:
        self.table[...] = self.loss.gradients(x)
        return self.loss.values(x)

    def mean(self, c: Array) -> Array:
        return self._combine(c, self.table)

    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        return self._combine(c, self.loss.gradients(x, rows) - self.table[rows])

    def refresh(self, x: Array, c: Array, rows: Any) -> Array:
        new = self.loss.gradients(x, rows)
        change = self._combine(c, new - self.table[rows])
        self.table[rows] = new
        return change

    @staticmethod
    def _combine(c: Array, gradients: Array) -> Array:
        xp = namespace(gradients)
        kept = c != 0
        return xp.tensordot(c[kept], gradients[kept], axes=1)


class Snapshot(Duals):
    """One old x̃ for all rows, so that nothing is stored per row and yᵢ is computed when it is needed: Dₖ = ∅ only."""

    cost = 2
    refreshes = False

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.anchor = loss.start()

    @final
    def evaluate(self, x: Array, c: Array) -> Array:
        self.anchor = x
        return self.loss.values(x)

    def mean(self, c: Array) -> Array:
        return self.loss.gradient(self.anchor, c)

    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        return self.loss.gradient(x, c, rows) - self.loss.gradient(self.anchor, c, rows)

    def refresh(self, x: Array, c: Array, rows: Any) -> Array:
        raise ValueError("a snapshot holds one old x for all rows and cannot refresh some of them; use D = Nothing().")


@final
class Total(Snapshot):
    """A snapshot for Iₖ = Dₖ = everything: all rows come to the new x together, so that their sum is all there is to
    keep, and a step costs one full gradient. The shares c change at w-steps only, which take the sum anew."""

    cost = 1
    refreshes = True

    def mean(self, c: Array) -> Array:
        self._old = self._new = super().mean(c)
        return self._old

    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        self._new = self.loss.gradient(x, c)
        return self._new - self._old

    def refresh(self, x: Array, c: Array, rows: Any) -> Array:
        change, self._old = self._new - self._old, self._new
        return change


@final
class Recursive(Snapshot):
    """PAGE's estimator: x̃ is the previous iterate, and the mean of the duals the previous estimate itself."""

    recursive = True

    def advance(self, x: Array) -> None:
        self.anchor = x


@final
class Forgetful(Snapshot):
    """No duals at all: the plain minibatch gradient of PSPG. The snapshot only serves the records."""

    cost = 1
    keeps = False

    def difference(self, x: Array, c: Array, rows: Any) -> Array:
        return self.loss.gradient(x, c, rows)


DUALS: dict[str, type[ResidualTable | GradientTable | Snapshot]] = {
    "residuals": ResidualTable,
    "gradients": GradientTable,
    "snapshot": Snapshot,
    "total": Total,
    "recursive": Recursive,
    "none": Forgetful,
}


def choose_duals(kind: str | None, loss: Loss, refreshes: bool, everything: bool = False) -> str:
    """The name of the duals meant by ``kind``, None being the cheapest.

    refreshes: whether D is not empty; everything: whether both I and D are all rows, so that no row needs its own.
    """
    if kind is None:
        kind = "residuals" if isinstance(loss, PredictionLoss) else "total" if everything else "snapshot"
    if not isinstance(kind, str) or kind not in DUALS:
        raise ValueError(f"duals must be one of {', '.join(map(repr, DUALS))} or None, got {kind!r}.")
    if DUALS[kind] is ResidualTable and not isinstance(loss, PredictionLoss):
        raise ValueError(
            f"duals='residuals' needs a loss of linear predictions, not {type(loss).__name__}; use duals='snapshot'."
        )
    if DUALS[kind] is Total and not everything:
        raise ValueError("duals='total' is for full gradients, as in palm; use duals='snapshot' or None.")
    if refreshes and not DUALS[kind].refreshes:
        raise ValueError(
            f"duals={kind!r} cannot refresh single rows, and this variant does (D is not empty); "
            "use duals='residuals' or 'gradients', or svrg."
        )
    return kind
