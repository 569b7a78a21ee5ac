"""Distributions of the target given a linear predictor z: means, information, deviance, p-values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammainc, gammaincc, gammaln, logit, ndtr, pdtr, pdtrc, xlogy

from trimlearn._utils.validation import check_choice
from trimlearn.losses import Gamma, LeastSquares, Logistic, Poisson
from trimlearn.losses.base import PredictionLoss

__all__ = ["FAMILIES", "Family", "family"]

Vector = NDArray[np.float64]


class Family(ABC):
    """One target y per row, of mean μ(z) and variance φ·V(μ): a generalised linear model's error law."""

    name: ClassVar[str]
    loss: ClassVar[type[PredictionLoss]]  # half the unit deviance as a function of z
    dispersed: ClassVar[bool]  # whether φ is a parameter; it is 1 otherwise

    @abstractmethod
    def mean(self, z: Vector) -> Vector:
        """μ(z)."""

    @abstractmethod
    def link(self, mu: float) -> float:
        """z(μ)."""

    @abstractmethod
    def information(self, z: Vector) -> Vector:
        """Fisher information of one row about its z, for φ = 1."""

    @abstractmethod
    def tails(self, y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
        """P(Y < y) + ½P(Y = y) and P(Y > y) + ½P(Y = y); φ = scale²."""

    @final
    def p_values(self, y: Vector, mu: Vector, scale: float = 1.0) -> Vector:
        """Two-sided mid-p-values of targets y whose means are μ: small where y is too small or too large.

        >>> family("poisson").p_values(np.array([3.0, 20.0]), np.array([3.0, 3.0])).round(4)
        array([0.9296, 0.    ])
        """
        return np.asarray(np.minimum(1.0, 2 * np.minimum(*self.tails(y, mu, scale))))

    @final
    def evaluate(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Half the unit deviance of every y at z, and its derivative in z."""
        f, r = self.loss(np.zeros((len(y), 1)), y).evaluate(z[:, None])  # type: ignore[call-arg, arg-type]
        return np.asarray(f), np.asarray(r[:, 0])


@final
class NormalFamily(Family):
    """Normal errors, z = μ; φ is their variance."""

    name, loss, dispersed = "normal", LeastSquares, True

    def mean(self, z: Vector) -> Vector:
        return z

    def link(self, mu: float) -> float:
        return mu

    def information(self, z: Vector) -> Vector:
        return np.ones_like(z)

    def tails(self, y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
        t = np.asarray((y - mu) / scale)
        return ndtr(t), ndtr(-t)


@final
class PoissonFamily(Family):
    """Counts, z = log μ."""

    name, loss, dispersed = "poisson", Poisson, False

    def mean(self, z: Vector) -> Vector:
        return np.exp(z)

    def link(self, mu: float) -> float:
        return float(np.log(mu))

    def information(self, z: Vector) -> Vector:
        return np.exp(z)

    def tails(self, y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
        below = np.where(y > 0, pdtr(np.maximum(np.ceil(y) - 1, 0), mu), 0.0)  # y need not be whole
        above = pdtrc(np.floor(y), mu)
        at = np.where(y == np.floor(y), np.exp(xlogy(y, mu) - mu - gammaln(y + 1)), 0.0)
        return np.asarray(below + at / 2), np.asarray(above + at / 2)


@final
class GammaFamily(Family):
    """Amounts > 0 of constant coefficient of variation √φ, z = log μ."""

    name, loss, dispersed = "gamma", Gamma, True

    def mean(self, z: Vector) -> Vector:
        return np.exp(z)

    def link(self, mu: float) -> float:
        return float(np.log(mu))

    def information(self, z: Vector) -> Vector:
        return np.ones_like(z)

    def tails(self, y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
        shape = scale**-2
        t = np.asarray(shape * y / mu, dtype=np.float64)
        return np.asarray(gammainc(shape, t)), np.asarray(gammaincc(shape, t))


@final
class BinomialFamily(Family):
    """Labels 0 and 1, or proportions, of which each row counts as one trial; z = logit μ."""

    name, loss, dispersed = "binomial", Logistic, False

    def mean(self, z: Vector) -> Vector:
        return expit(z)

    def link(self, mu: float) -> float:
        return float(logit(mu))

    def information(self, z: Vector) -> Vector:
        return expit(z) * expit(-z)

    def tails(self, y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
        below, above = np.where(y > 0, 1 - mu, 0.0), np.where(y < 1, mu, 0.0)
        at = np.where(y == 1, mu, np.where(y == 0, 1 - mu, 0.0))
        return below + at / 2, above + at / 2


FAMILIES: dict[str, Family] = {f.name: f for f in (NormalFamily(), PoissonFamily(), GammaFamily(), BinomialFamily())}


def family(name: str) -> Family:
    """The family of this name.

    >>> float(family("binomial").mean(np.array([0.0]))[0])
    0.5
    """
    check_choice(name, tuple(FAMILIES), "family")
    return FAMILIES[name]
