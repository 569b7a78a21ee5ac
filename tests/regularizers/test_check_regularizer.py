"""check_regularizer is silent where a term is right, and says what is wrong; terms of one's own in Newton's steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from trimlearn import Problem, regularizers, solve
from trimlearn.losses import LeastSquares, Logistic
from trimlearn.regularizers import (
    L0,
    L1,
    ExceptIntercept,
    GroupL2,
    Indicator,
    Regularizer,
    Ridge,
    Scaled,
    Separable,
    check_regularizer,
)
from trimlearn.smart import alternating
from trimlearn.weights import AllOnes, CappedSimplex

X = np.array([3.0, -0.2, 1.0, 0.5])
M = np.arange(6.0).reshape(3, 2) - 2.2
ABSTRACT = {"Indicator", "Regularizer", "Separable", "check_regularizer"}
SPECIAL: dict[str, Any] = {
    "L0": lambda: L0(alpha=0.7),
    "ExceptIntercept": lambda: ExceptIntercept(Ridge(0.3)),
    "Scaled": lambda: Scaled(L1(0.3), 2.0),
    "GroupL2": lambda: GroupL2(0.5, groups=np.array([0, 0, 1])),
}


@pytest.mark.parametrize("name", sorted(set(regularizers.__all__) - ABSTRACT))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_silent_on_the_packages_own(name: str, dtype: Any) -> None:
    r2 = SPECIAL.get(name, getattr(regularizers, name))()
    check_regularizer(r2, M.astype(dtype))
    if name not in ("Stiefel", "Rank", "GroupL2"):
        check_regularizer(r2, X.astype(dtype), seed=1)


class Soft(Separable):
    """α Σ (√(1 + (xⱼ − c)²) − 1): smooth, and neither a square nor about 0."""

    convex, smooth = True, True

    def __init__(self, alpha: float = 0.5, centre: float = 1.0) -> None:
        self.alpha, self.centre = alpha, centre

    def _penalty(self, x: Any) -> Any:
        return self.alpha * (np.sqrt(1 + (x - self.centre) ** 2) - 1)

    def _shrink(self, x: Any, gamma: Any) -> Any:
        u = x + 0 * gamma
        for _ in range(60):  # Newton's steps on a convex function of one variable, halved for safety
            d = u - self.centre
            g = (u - x) / gamma + self.alpha * d / np.sqrt(1 + d**2)
            u = u - g / (1 / gamma + self.alpha)
        return u.astype(x.dtype)

    def gradient(self, x: Any) -> Any:
        d = x - self.centre
        return self.alpha * d / np.sqrt(1 + d**2)

    def lipschitz(self) -> float:
        return self.alpha


class Linked(Regularizer):
    """½α Σ (xⱼ₊₁ − xⱼ)²: smooth, and not separable."""

    convex, separable, smooth = True, False, True

    def __init__(self, alpha: float = 2.0) -> None:
        self.alpha = alpha

    def _matrix(self, n: int) -> Any:
        D = np.diff(np.eye(n), axis=0)
        return self.alpha * D.T @ D

    def value(self, x: Any) -> float:
        return float(0.5 * x @ self._matrix(len(x)) @ x)

    def prox(self, x: Any, gamma: Any) -> Any:
        u = np.linalg.solve(np.eye(len(x)) + gamma * self._matrix(len(x)), x)
        return u, self.value(u)

    def feasible(self, x: Any) -> Any:
        return x

    def gradient(self, x: Any) -> Any:
        return self._matrix(len(x)) @ x

    def lipschitz(self) -> float:
        return 4 * self.alpha


@pytest.mark.parametrize("r2", [Soft(), Linked()], ids=["soft", "linked"])
@pytest.mark.parametrize("inner", [None, "newton", "lbfgs"])
def test_smooth_terms_of_ones_own_are_minimised(r2: Any, inner: str | None) -> None:
    """Newton's steps took every smooth term for a square about 0."""
    check_regularizer(r2, X)
    rng = np.random.default_rng(0)
    V = rng.standard_normal((100, 4))
    t = (V @ [1.0, 2.0, 0.0, -1.0] + rng.standard_normal(100) > 0).astype(float)
    for loss in (Logistic(V, t), LeastSquares(V, t)):
        fit = solve(Problem(loss, AllOnes(), r2), alternating(inner=inner))
        best = minimize(lambda x, f=loss: np.mean(f.values(x)) + r2.value(x), np.zeros(4), options={"gtol": 1e-10})
        assert fit.status.converged
        np.testing.assert_allclose(fit.objective, best.fun, rtol=1e-7)
        np.testing.assert_allclose(fit.x, best.x, atol=2e-3)


def test_a_term_of_ones_own_names_its_settings() -> None:
    """A checkpoint tells runs apart by their text, in another process too."""
    assert repr(Soft(0.5)) == "Soft(alpha=0.5, centre=1.0)"
    problem = Problem(LeastSquares(M, M[:, 0]), CappedSimplex(3), Linked())
    assert repr(problem).endswith("r2=Linked(alpha=2.0))")


# -- what is wrong ----------------------------------------------------------------------------------------------------


def other(**members: Any) -> Regularizer:
    return type("Odd", (Soft,), members)()  # type: ignore[no-any-return]


class Half(Indicator):
    """x ≥ 0, projected badly."""

    convex = True

    def contains(self, x: Any) -> bool:
        return bool(np.all(x >= 0))

    def feasible(self, x: Any) -> Any:
        return np.abs(x)


class Mute(Linked):
    """A prox that gives another value than its own."""

    def prox(self, x: Any, gamma: Any) -> Any:
        return super().prox(x, gamma)[0], 0.0


FAULTS: list[tuple[Regularizer, str]] = [
    (other(_shrink=lambda self, x, gamma: x - 0.5 * gamma), r"prox is not the minimum of value\(u\)"),
    (other(gradient=lambda self, x: 2 * Soft.gradient(self, x)), "gradient is not that of value"),
    (other(curvature=lambda self, x: 0 * x), "curvature is not the derivative of gradient"),
    (other(_penalty=lambda self, x: np.nan * x), "value must give a float"),
    (other(_penalty=lambda self, x: np.sqrt(np.abs(x)), smooth=False), "convex is True, but value is"),
    (other(_shrink=lambda self, x, gamma: x[:1]), r"prox must keep shape and dtype, \(4,\)"),
    (Half(), "prox is not the minimum"),
    (Mute(), "prox must also give the value"),
]


@pytest.mark.parametrize(("r2", "sentence"), FAULTS)
def test_a_fault_is_named(r2: Regularizer, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_regularizer(r2, X)


def test_what_is_no_regularizer() -> None:
    with pytest.raises(ValueError, match="r2 must be a Regularizer, got float"):
        check_regularizer(0.1, X)  # type: ignore[arg-type]
