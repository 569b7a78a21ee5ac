"""r2, what is known about the model x: the interface, the three shapes its terms come in, and what they check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf, sqrt
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, eps_of, namespace, to_numpy
from trimlearn._utils.text import described


class Regularizer(ABC):
    """A term r2(x), known through its value and its proximal map (the paper's section 2).

    The map is prox_{γ r2}(x) = argmin_u  r2(u) + 1/(2γ) ‖u − x‖², and it is exact. Where r2 is nonconvex and several u
    are optimal, one is chosen by a fixed rule, the same on every call. NaN in x comes out as NaN, never as an
    exception: the solver sees it in the objective and steps back.

    To add a term of your own, derive from `Separable`, `Indicator` or, failing these, from this class.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import L1
    >>> r2, x = L1(alpha=2.0), np.array([3.0, 0.5])
    >>> r2.value(x), r2.prox(x, 0.5)
    (7.0, (array([2., 0.]), 4.0))
    """

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Is r2 convex?"""

    @property
    @abstractmethod
    def separable(self) -> bool:
        """Is r2 a sum of functions of one coordinate each?

        If so its prox is exact in any diagonal metric: `gamma` may be an array that broadcasts to x.
        """

    def __repr__(self) -> str:
        return described(self)

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def smooth(self) -> bool:
        """Is r2 twice differentiable everywhere? Then `gradient` and `lipschitz` exist."""
        return False

    @property
    def max_step(self) -> float:
        """1/ρ when r2 is ρ-weakly convex with ρ > 0 (SCAD, MCP), else infinity.

        Below it prox is single-valued and continuous. Above it prox is still exact but jumps.
        """
        return inf

    @abstractmethod
    def value(self, x: Array) -> float:
        """r2(x): infinity outside the domain, up to rounding."""

    @abstractmethod
    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        """The prox of step ``gamma`` > 0 at x, and the value of r2 there."""

    @abstractmethod
    def feasible(self, x: Array) -> Array:
        """The point of dom r2 nearest to x: x itself when r2 is finite everywhere."""

    @final
    def step(self, x: Array, g: Array, gamma: float | Array) -> Array:
        """prox_{γ r2}(x − γ g), taken in float64 and rounded to x's dtype.

        A feature of 1e-20 has a curvature of 1e-40 and wants steps of 1e40, which float32 does not hold, although x and
        g fit.
        """
        xp = namespace(x)
        wide = xp.astype(x, xp.float64, copy=False) - gamma * xp.astype(g, xp.float64, copy=False)
        return xp.astype(self.prox(wide, gamma)[0], x.dtype, copy=False)

    def gradient(self, x: Array) -> Array:
        """∇r2(x), for the smooth terms."""
        raise TypeError(f"{type(self).__name__} is not smooth and has no gradient; use prox instead.")

    def curvature(self, x: Array) -> Array:
        """The diagonal of ∇²r2(x), in the shape of x, for terms that are smooth and separable: by central differences,
        unless a subclass knows better."""
        h = eps_of(x) ** (1 / 3) * (1 + namespace(x).abs(x))
        return (self.gradient(x + h) - self.gradient(x - h)) / (2 * h)

    def lipschitz(self) -> float:
        """The Lipschitz constant of ∇r2, for the smooth terms."""
        raise TypeError(f"{type(self).__name__} is not smooth and has no Lipschitz constant; use prox instead.")


class Separable(Regularizer):
    """A finite penalty r2(x) = Σⱼ ρⱼ(xⱼ), a sum of functions of one coordinate each.

    A subclass says what ρ is (``_penalty``) and what its prox is (``_shrink``), coordinate by coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import Ridge
    >>> Ridge(alpha=2.0).prox(np.array([3.0, -1.5]), np.array([1.0, 0.25]))[0].tolist()
    [1.0, -1.0]
    """

    separable = True

    @abstractmethod
    def _penalty(self, x: Array) -> Array:
        """ρⱼ(xⱼ), coordinate by coordinate."""

    @abstractmethod
    def _shrink(self, x: Array, gamma: Array) -> Array:
        """argmin_u ρⱼ(u) + (u − xⱼ)²/(2γⱼ), coordinate by coordinate; gamma broadcasts to x."""

    @final
    def value(self, x: Array) -> float:
        xp = namespace(x)
        return float(xp.sum(self._penalty(x), dtype=xp.float64))

    @final
    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        u = self._shrink(x, check_step(gamma, x))
        return u, self.value(u)

    @final
    def feasible(self, x: Array) -> Array:
        return x


class Indicator(Regularizer):
    """The indicator of a closed set: r2(x) = 0 inside and infinity elsewhere, and prox is the projection, whatever γ.

    A subclass says what lies in the set (`contains`) and which point of it is nearest (`feasible`).

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.regularizers import NonNegative
    >>> NonNegative().value(np.array([1.0, -1.0])), NonNegative().feasible(np.array([1.0, -1.0])).tolist()
    (inf, [1.0, 0.0])
    """

    separable = False

    @abstractmethod
    def contains(self, x: Array) -> bool:
        """Is x in the set, up to rounding?"""

    @final
    def value(self, x: Array) -> float:
        return 0.0 if self.contains(x) else inf

    @final
    def prox(self, x: Array, gamma: float | Array) -> tuple[Array, float]:
        check_step(gamma, x, None if self.separable else type(self).__name__)
        return self.feasible(x), 0.0


# -- what terms check about their arguments, and the tolerance their sets share ----------------------------------------


def check_reals(name: str, value: Any) -> np.ndarray:
    """``value`` as a float64 array; ValueError unless it holds real numbers, NaN excluded."""
    try:
        reals = np.asarray(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}.") from error
    if np.isnan(reals).any():
        raise ValueError(f"{name} must not be NaN or None, got {value!r}.")
    return reals


def check_alpha(alpha: Any) -> None:
    """A penalty strength, or one per coordinate: finite and not negative."""
    reals = check_reals("alpha", alpha)
    if not (np.isfinite(reals) & (reals >= 0)).all():
        raise ValueError(f"alpha must be finite and >= 0 (0 switches the penalty off), got {alpha!r}.")


def check_is_matrix(x: Array, term: str) -> None:
    """A 2-D x."""
    if x.ndim != 2:
        raise ValueError(f"{term} needs a 2-D x, got shape {tuple(x.shape)}; reshape x to (rows, columns).")


def per_coordinate(name: str, value: Any, x: Array) -> Array:
    """``value`` in the namespace and dtype of x; ValueError unless x is floating-point and it broadcasts to x."""
    if type(x) is np.ndarray and x.dtype.kind == "f" and type(value) is float:  # asked three times a step
        return x.dtype.type(value)
    if not namespace(x).isdtype(x.dtype, "real floating"):
        raise ValueError(f"x must hold real floating-point numbers, got dtype {x.dtype}; convert it first.")
    array = asarray_like(value, x)
    try:
        fits = np.broadcast_shapes(tuple(array.shape), tuple(x.shape)) == tuple(x.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} of shape {tuple(array.shape)} does not broadcast to x of shape {tuple(x.shape)}; "
            "give a scalar or one value per coordinate of x."
        )
    return array


def check_step(gamma: float | Array, x: Array, coupled: str | None = None) -> Array:
    """The step as an array that broadcasts to x. A term that couples the coordinates gives its name: scalars only."""
    xp = namespace(x)
    step = per_coordinate("gamma", gamma, x)
    if coupled is not None and step.ndim:
        raise ValueError(f"gamma must be a scalar: {coupled} couples the coordinates. Got shape {tuple(step.shape)}.")
    if not bool(xp.all((step > 0) & xp.isfinite(step))):
        raise ValueError(f"gamma must be finite and > 0, got {gamma!r}.")
    return step


def rounding(x: Array) -> float:
    """The relative slack within which a point of x's dtype counts as feasible: √eps."""
    return sqrt(float(namespace(x).finfo(x.dtype).eps))


def positive_part(x: Array) -> Array:
    """max(x, 0)."""
    xp = namespace(x)
    return xp.maximum(x, xp.zeros_like(x))
