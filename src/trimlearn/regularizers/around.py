"""Terms made of another term."""

from __future__ import annotations

from trimlearn.regularizers.base import Regularizer


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
