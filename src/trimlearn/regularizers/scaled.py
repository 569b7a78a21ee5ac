"""A term times a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_positive
from trimlearn.regularizers.around import Around
from trimlearn.regularizers.base import Regularizer


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

    def lipschitz(self) -> float:
        return self.c * self.r2.lipschitz()
