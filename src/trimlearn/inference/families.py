"""Distributions of the target given a linear predictor z: means, information, deviance, p-values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammainc, gammaincc, gammaln, logit, ndtr, pdtr, pdtrc, xlogy

from trimlearn._utils.validation import check_choice
from trimlearn.losses import Gamma, LeastSquares, Logistic, Poisson
from trimlearn.losses.base import PredictionLoss

Vector = NDArray[np.float64]
Map = Callable[[Any], Any]  # elementwise
Tails = Callable[[Vector, Vector, float], tuple[Vector, Vector]]

FARTHEST = 354.0  # |z|: e³⁵⁴ is 10¹⁵⁴, whose square is finite; the losses cut off there too


@final
@dataclass(frozen=True)
class Family:
    """One target y per row, of mean μ(z) and variance φ·V(μ): a generalised linear model's error law."""

    name: str
    loss: type[PredictionLoss]  # half the unit deviance as a function of z
    dispersed: bool  # whether φ is a parameter; it is 1 otherwise
    mean: Map  # μ(z)
    link: Map  # z(μ)
    information: Map  # of one row about its z (Fisher's), for φ = 1
    tails: Tails  # of y, μ and √φ: P(Y < y) + ½P(Y = y) and P(Y > y) + ½P(Y = y)

    def p_values(self, y: Vector, mu: Vector, scale: float = 1.0) -> Vector:
        """Two-sided mid-p-values of targets y whose means are μ: small where y is too small or too large.

        >>> family("poisson").p_values(np.array([3.0, 20.0]), np.array([3.0, 3.0])).round(4)
        array([0.9296, 0.    ])
        """
        return np.asarray(np.minimum(1.0, 2 * np.minimum(*self.tails(y, mu, scale))))

    def evaluate(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Half the unit deviance of every y at z, and its derivative in z."""
        f, r = self.loss(np.zeros((len(y), 1)), y).evaluate(z[:, None])  # type: ignore[call-arg, arg-type]
        return np.asarray(f), np.asarray(r[:, 0])


def _normal_tails(y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
    t = np.asarray((y - mu) / scale)
    return ndtr(t), ndtr(-t)


def _poisson_tails(y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
    below = np.where(y > 0, pdtr(np.maximum(np.ceil(y) - 1, 0), mu), 0.0)  # y need not be whole
    above = pdtrc(np.floor(y), mu)
    at = np.where(y == np.floor(y), np.exp(xlogy(y, mu) - mu - gammaln(y + 1)), 0.0)
    return np.asarray(below + at / 2), np.asarray(above + at / 2)


def _gamma_tails(y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
    shape = scale**-2
    t = np.asarray(shape * y / mu, dtype=np.float64)
    return np.asarray(gammainc(shape, t)), np.asarray(gammaincc(shape, t))


def _binomial_tails(y: Vector, mu: Vector, scale: float) -> tuple[Vector, Vector]:
    below, above = np.where(y > 0, 1 - mu, 0.0), np.where(y < 1, mu, 0.0)
    at = np.where(y == 1, mu, np.where(y == 0, 1 - mu, 0.0))
    return below + at / 2, above + at / 2


def _binomial_information(z: Vector) -> Vector:
    return np.asarray(expit(z) * expit(-z))


def _same(z: Any) -> Any:
    return z


def _exp(z: Any) -> Any:
    """e^z, finite and not 0, so that whatever is computed from it is a number: no target comes near such means."""
    return np.exp(np.clip(z, -FARTHEST, FARTHEST))


FAMILIES = {
    law.name: law
    for law in (
        Family("normal", LeastSquares, True, _same, _same, np.ones_like, _normal_tails),  # φ: the errors' variance
        Family("poisson", Poisson, False, _exp, np.log, _exp, _poisson_tails),  # counts
        Family("gamma", Gamma, True, _exp, np.log, np.ones_like, _gamma_tails),  # √φ: the coefficient of variation
        # labels 0 and 1, or proportions, of which each row counts as one trial
        Family("binomial", Logistic, False, expit, logit, _binomial_information, _binomial_tails),
    )
}


def family(name: str) -> Family:
    """The family of this name.

    >>> float(family("binomial").mean(np.array([0.0]))[0])
    0.5
    """
    check_choice(name, tuple(FAMILIES), "family")
    return FAMILIES[name]
