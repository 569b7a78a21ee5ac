"""Folded concave penalties: like L1 near zero, constant far away, so that large coefficients are not shrunk.

Both are ρ-weakly convex. For γ < 1/ρ the one-dimensional prox problem is convex and one formula holds on each piece.
For γ >= 1/ρ it is concave on the curved piece, whose minimum then lies at an end: two minimisers of the other pieces
compete, and the point where they tie is known in closed form. Thresholds are used rather than a comparison of
objective values, because values that agree to eps can belong to points that are √eps apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from trimlearn._utils.arrays import Array, namespace
from trimlearn._utils.validation import check_positive
from trimlearn.regularizers.base import Separable, check_alpha, per_coordinate, positive_part


@final
@dataclass(frozen=True, eq=False)
class SCAD(Separable):
    """The smoothly clipped absolute deviation r2(x) = Σⱼ ρ(|xⱼ|) [1]_.

    With λ = α and a > 2,

        ρ(t) = λt                                for t <= λ,
               (2aλt − t² − λ²) / (2(a − 1))     for λ < t <= aλ,
               λ²(a + 1)/2                       for t > aλ.

    ρ is 1/(a − 1)-weakly convex: max_step = a − 1. The prox is exact for every γ > 0.

    Parameters
    ----------
    alpha : float or array
        The strength α; an array that broadcasts to x gives one for each coordinate.
    a : float
        Where ρ becomes constant, in units of α; > 2. 3.7 is the value of [1]_.

    References
    ----------
    .. [1] J. Fan and R. Li, Variable selection via nonconcave penalized likelihood and its oracle properties, J. Am.
       Stat. Assoc. 96 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = SCAD(alpha=1.0, a=3.0).prox(np.array([1.5, 2.5, 5.0]), 1.0)
    >>> u.tolist(), value
    ([0.5, 2.0, 5.0], 4.25)
    """

    alpha: float | Array = 1.0
    a: float = 3.7
    convex = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_positive(self.a, "a", above=2)

    @property
    def max_step(self) -> float:
        return float(self.a) - 1

    def _penalty(self, x: Array) -> Array:
        xp = namespace(x)
        t, lam, a = xp.abs(x), per_coordinate("alpha", self.alpha, x), float(self.a)
        curved = (2 * a * lam * t - t * t - lam * lam) / (2 * (a - 1))
        flat = xp.broadcast_to(lam * lam * (a + 1) / 2, t.shape)
        return xp.where(t <= lam, lam * t, xp.where(t <= a * lam, curved, flat))

    def _shrink(self, x: Array, gamma: Array) -> Array:
        xp = namespace(x)
        t, lam, a = xp.abs(x), per_coordinate("alpha", self.alpha, x), float(self.a)
        convex = gamma < a - 1
        gap = xp.where(convex, a - 1 - gamma, xp.ones_like(gamma))
        # The bounds hold in exact arithmetic; they matter when gap is mostly rounding error.
        curved = xp.minimum(xp.maximum(((a - 1) * t - gamma * a * lam) / gap, lam), t)
        curved = xp.where(convex & (t <= a * lam), curved, t)
        return xp.sign(x) * xp.where(t <= lam * self._soft_until(gamma), positive_part(t - gamma * lam), curved)

    def _soft_until(self, gamma: Array) -> Array:
        """The largest |x|/λ that is soft-thresholded; for γ >= a − 1 it ties there with not being shrunk at all."""
        xp, a = namespace(gamma), float(self.a)
        tie = xp.where(gamma <= a + 1, (a + 1 + gamma) / 2, xp.sqrt(gamma * (a + 1)))
        return xp.where(gamma < a - 1, 1 + gamma, tie)


@final
@dataclass(frozen=True, eq=False)
class MCP(Separable):
    """The minimax concave penalty r2(x) = Σⱼ ρ(|xⱼ|) [1]_.

    With λ = α and b > 1,

        ρ(t) = λt − t²/(2b)    for t <= bλ,
               bλ²/2           for t > bλ.

    ρ is 1/b-weakly convex: max_step = b. The prox is exact for every γ > 0: firm thresholding below b, hard
    thresholding from there on.

    Parameters
    ----------
    alpha : float or array
        The strength α; an array that broadcasts to x gives one for each coordinate.
    b : float
        Where ρ becomes constant, in units of α; > 1. [1]_ calls it γ, which is the step here.

    References
    ----------
    .. [1] C.-H. Zhang, Nearly unbiased variable selection under minimax concave penalty, Ann. Stat. 38 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> u, value = MCP(alpha=1.0, b=2.0).prox(np.array([0.5, 1.5, 5.0]), 1.0)
    >>> u.tolist(), value
    ([0.0, 1.0, 5.0], 1.75)
    """

    alpha: float | Array = 1.0
    b: float = 3.0
    convex = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_positive(self.b, "b", above=1)

    @property
    def max_step(self) -> float:
        return float(self.b)

    def _penalty(self, x: Array) -> Array:
        xp = namespace(x)
        t, lam, b = xp.abs(x), per_coordinate("alpha", self.alpha, x), float(self.b)
        flat = xp.broadcast_to(b * lam * lam / 2, t.shape)
        return xp.where(t <= b * lam, lam * t - t * t / (2 * b), flat)

    def _shrink(self, x: Array, gamma: Array) -> Array:
        xp = namespace(x)
        t, lam, b = xp.abs(x), per_coordinate("alpha", self.alpha, x), float(self.b)
        convex = gamma < b
        slope = xp.where(convex, 1 - gamma / b, xp.ones_like(gamma))
        # The bound by t holds in exact arithmetic; it matters when slope is mostly rounding error.
        firm = xp.minimum(positive_part(t - gamma * lam) / slope, t)
        small = xp.where(convex, firm, xp.zeros_like(t))
        free_from = lam * xp.where(convex, b * xp.ones_like(gamma), xp.sqrt(gamma * b))
        return xp.sign(x) * xp.where(t <= free_from, small, t)
