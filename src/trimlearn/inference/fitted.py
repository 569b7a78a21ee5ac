"""What inference has to know of a fit, and the rows that count, seen from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from trimlearn.inference.design import Matrix
from trimlearn.inference.families import family
from trimlearn.losses import Softmax

Vector = NDArray[np.float64]

SMOOTH = (None, "l2")  # penalties under which estimates are normal around their mean
MOST = 2000  # free coefficients of a multinomial model, a limit on memory: its information matrix has 32 MB


@final
@dataclass(frozen=True)
class Fitted:
    """What inference has to know of a fit: minimiser of Σ sᵢwᵢ fᵢ + ½ ridge·‖coef‖², fᵢ half the unit deviance.

    ``scale``: √dispersion, already consistent (truncated errors vary less than all of them do). None: from the Pearson
    residuals of the rows that count, or 1 where the family has no dispersion. sᵢ counts rows: degrees of freedom
    are Σsw less the number of coefficients.

    ``noise``: given where weights follow the residuals smoothly, as those of an M-estimate do. Then cov(θ) is noise² (Σ
    sᵢwᵢaᵢaᵢᵀ)⁻¹, rows of positive weight count as rows in degrees of freedom, and ``bread`` is Σ sᵢwᵢaᵢaᵢᵀ in units of
    Newton's matrix, by which a sandwich has to be larger on both sides.

    ``scatter``: given where θ is a mean of several fits: how far these lie from it, a row for each.

    ``innocence``: the probability of each row of weight 0 that it is right; None: all of them are wrong for certain.
    """

    family: str  # "normal", "poisson", "gamma", "binomial" or "multinomial"
    X: Any  # (n, p), dense or CSR
    y: NDArray[Any]  # (n,); 0..K−1 if multinomial
    coef: NDArray[Any]  # (p,), or (K, p) if multinomial
    intercept: Any  # a number, or (K,); None: there is none
    weights: NDArray[Any]  # w, in [0, 1]
    sample_weight: NDArray[Any] | None = None
    scale: float | None = None
    noise: float | None = None
    bread: float = 1.0
    scatter: Matrix | None = None
    innocence: Vector | None = None
    ridge: float = 0.0
    penalty: str | None = None
    reweighted: bool = True
    feature_names: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    contamination: float | None = None
    name: str = "Trimmed model"

    def __post_init__(self) -> None:
        if self.penalty not in SMOOTH:
            raise ValueError(
                f"penalty={self.penalty!r} selects coefficients: its estimates are not normal, standard errors that "
                "take them for it too small. Fit the features selected again with penalty=None."
            )
        if not self.reweighted and np.any(self.weights < 1):
            raise ValueError("the raw trimmed fit has no standard errors of this kind; fit with reweight=True.")

    @property
    def has_intercept(self) -> bool:
        return self.intercept is not None

    @property
    def dispersed(self) -> bool:
        """Whether a dispersion had to be estimated."""
        return self.family != "multinomial" and family(self.family).dispersed

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the coefficients, class by class."""
        features = [f"x{j}" for j in range(self.X.shape[1])] if self.feature_names is None else self.feature_names
        terms = ("intercept", *features) if self.has_intercept else tuple(features)
        if self.family != "multinomial":
            return terms
        classes = range(len(self.coef)) if self.classes is None else self.classes
        return tuple(f"{k}: {term}" for k in classes for term in terms)

    @property
    def theta(self) -> Matrix:
        """(1 or K, q): intercept first."""
        coef = np.atleast_2d(np.asarray(self.coef, dtype=np.float64))
        if not self.has_intercept:
            return coef
        return np.column_stack([np.broadcast_to(np.asarray(self.intercept, dtype=np.float64), len(coef)), coef])


@final
@dataclass(frozen=True)
class Kept:
    """The rows that count, at the fit: s, w, half deviances f, their derivatives r (m, K) in the K predictors, a root
    of their information (m, K, c), in parameters θ = Cᵀ·coefficients without redundancy, deviance of a constant."""

    X: Any
    s: Vector
    w: Vector
    f: Vector
    r: Matrix
    root: NDArray[np.float64]
    C: Matrix
    null_deviance: float

    @property
    def sw(self) -> Vector:
        return self.s * self.w


def kept(fit: Fitted) -> Kept:
    """The rows of positive weight, only: what the others hold must not be looked at."""
    w = np.asarray(fit.weights, dtype=np.float64)
    s = np.ones_like(w) if fit.sample_weight is None else np.asarray(fit.sample_weight, dtype=np.float64)
    on = np.flatnonzero(s * w > 0)
    X, y, s, w = (fit.X if len(on) == len(w) else fit.X[on]), np.asarray(fit.y)[on], s[on], w[on]
    theta = fit.theta
    z = np.asarray(X @ theta[:, fit.has_intercept :].T, dtype=np.float64)
    z = z + theta[:, 0] if fit.has_intercept else z
    if fit.family == "multinomial":
        return _multinomial(X, y, s, w, z, fit.has_intercept)
    law, y = family(fit.family), y.astype(np.float64)
    f, r = law.evaluate(z[:, 0], y)
    z0 = float(law.link(np.average(y, weights=s * w))) if fit.has_intercept else 0.0
    null = 2 * float(s * w @ law.evaluate(np.full(len(y), z0), y)[0])
    return Kept(X, s, w, f, r[:, None], np.sqrt(law.information(z))[:, :, None], np.ones((1, 1)), null)


def _multinomial(X: Any, y: NDArray[Any], s: Vector, w: Vector, z: Matrix, intercept: bool) -> Kept:
    """The softmax does not change when one vector is added to all classes' coefficients: look at contrasts only."""
    K = z.shape[1]
    C = helmert(K).T  # orthonormal columns, orthogonal to (1, …, 1): Cᵀ drops the redundant direction
    if (K - 1) * (X.shape[1] + intercept) > MOST:
        raise ValueError(f"standard errors are limited to {MOST} free coefficients; select features first.")
    f, r = Softmax(np.zeros((len(y), 1)), y, n_classes=K).evaluate(z)
    share = np.bincount(y.astype(np.int64), weights=s * w, minlength=K) / (s @ w) if intercept else np.full(K, 1 / K)
    null = -2 * float(s * w @ np.log(share[y]))
    q = np.exp(z - z.max(axis=1, keepdims=True))
    q = np.sqrt(q / q.sum(axis=1, keepdims=True))
    root = (np.eye(K) - q[:, :, None] * q[:, None, :]) * q[:, None, :]  # rootᵀroot = diag(p) − ppᵀ, as ‖q‖ = 1
    return Kept(X, s, w, f, r, root @ C, C, null)
