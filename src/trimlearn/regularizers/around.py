"""Terms made of another term: all rows of x but the intercept's, and a term times a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from trimlearn._utils.arrays import Array, namespace
from trimlearn._utils.validation import check_positive
from trimlearn.regularizers.base import Regularizer, per_coordinate


class Around(Regularizer):
    """A term around another, ``r2``, whose kind it is of."""

    r2: Regularizer

    @property
    def name(self) -> str:
        return self.r2.name

    @property
    def convex(self) -> bool:
        return self.r2.convex

    @property
    def separable(self) -> bool:
        return self.r2.separable

    @property
    def smooth(self) -> bool:
        return self.r2.smooth


@final
@dataclass(frozen=True, eq=False)
class ExceptIntercept(Around):
    """A term of all rows of x but the last, where the intercept lives.

    `trimlearn.Problem` puts it around r2 where the loss has an intercept.

    Parameters
    ----------
    r2 : Regularizer
        The term. Arrays inside it (alpha, bounds, groups) are sized for the rows it sees; an array ``gamma`` for all of
        x.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import L1
    >>> u, value = ExceptIntercept(L1(alpha=1.0)).prox(np.array([3.0, 0.5, 7.0]), 1.0)
    >>> u.tolist(), value
    ([2.0, 0.0, 7.0], 2.0)
    """

    r2: Regularizer

    def __post_init__(self) -> None:
        if not isinstance(self.r2, Regularizer):
            raise ValueError(f"r2 must be a Regularizer, got {self.r2!r}; for example ExceptIntercept(L1(0.1)).")

    @property
    def max_step(self) -> float:
        return self.r2.max_step

    def value(self, x: Array) -> float:
        return self.r2.value(x[:-1, ...])

    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        step = per_coordinate("gamma", gamma, x)
        if step.ndim:
            step = namespace(x).broadcast_to(step, x.shape)[:-1, ...]
        u, value = self.r2.prox(x[:-1, ...], step)
        return _stack(u, x[-1:, ...]), value

    def feasible(self, x: Array) -> Array:
        return _stack(self.r2.feasible(x[:-1, ...]), x[-1:, ...])

    def gradient(self, x: Array) -> Array:
        return _stack(self.r2.gradient(x[:-1, ...]), namespace(x).zeros_like(x[-1:, ...]))

    def curvature(self, x: Array) -> Array:
        return _stack(self.r2.curvature(x[:-1, ...]), namespace(x).zeros_like(x[-1:, ...]))

    def lipschitz(self) -> float:
        return self.r2.lipschitz()


@final
@dataclass(frozen=True, eq=False)
class Scaled(Around):
    """A term times a number, c·r2(x): for SCAD and MCP, say, where that is not r2 with another α.

    Parameters
    ----------
    r2 : Regularizer
        The term.
    c : float
        The number, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import MCP
    >>> Scaled(MCP(alpha=1.0), 0.5).value(np.array([1.0, 9.0])) == 0.5 * MCP(alpha=1.0).value(np.array([1.0, 9.0]))
    True
    """

    r2: Regularizer
    c: float

    def __post_init__(self) -> None:
        check_positive(self.c, "c")

    @property
    def max_step(self) -> float:
        return self.r2.max_step / self.c

    def value(self, x: Array) -> float:
        return self.c * self.r2.value(x)

    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        u, value = self.r2.prox(x, self.c * gamma)
        return u, self.c * value

    def feasible(self, x: Array) -> Array:
        return self.r2.feasible(x)

    def gradient(self, x: Array) -> Array:
        return self.c * self.r2.gradient(x)

    def curvature(self, x: Array) -> Array:
        return self.c * self.r2.curvature(x)

    def lipschitz(self) -> float:
        return self.c * self.r2.lipschitz()


def _stack(rows: Array, last: Array) -> Array:
    return namespace(rows).concat([rows, last], axis=0)
