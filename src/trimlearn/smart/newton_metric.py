"""The metric of models with few parameters: the Hessian itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, norm, to_numpy
from trimlearn.regularizers import Regularizer
from trimlearn.smart.method import State
from trimlearn.smart.metrics import Metric

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["NewtonMetric"]


@final
@dataclass(frozen=True)
class NewtonMetric(Metric):
    """M = ∇²(1/S Σ sᵢwᵢfᵢ + r2)(x), renewed at every w-step, where w changes: a pass, and a matrix of order dim(x).

    Rotations of one image are tied to those of all others through chains of matches: no diagonal M sees that. SMART's
    x-steps become stochastic Newton steps (Gauss–Newton where that is the loss's Hessian), whose speed depends neither
    on units nor on how long the chains are. Directions of less than ``floor`` of the largest curvature, in units that
    make M's diagonal 1, stay as they are, among them those that do not show in f at all: there M⁻¹ is 0.
    """

    floor: float = 1e-9

    def check(self, r2: Regularizer) -> None:
        if not (r2.smooth and r2.separable):
            raise ValueError(f"NewtonMetric needs a smooth r2 (Zero, Ridge), not {r2.name}; use metric=None.")

    def learn(self, engine: Engine, state: State, noise: float) -> None:
        x = state.x
        M = engine.hessian(x) + np.diag(np.maximum(to_numpy(engine.problem.r2.curvature(x)).ravel(), 0.0))
        units = np.sqrt(np.where(np.diag(M) > 0, np.diag(M), 1.0))
        values, vectors = np.linalg.eigh(M / np.outer(units, units))
        seen = values > self.floor * values[-1]
        inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
        state.metric.root = asarray_like(vectors * np.sqrt(inverse) / units[:, None], x)  # M⁻¹ = root rootᵀ

    def apply(self, state: State, g: Array) -> Array:
        root = state.metric.root
        return (root @ (root.T @ g.reshape(-1))).reshape(g.shape)

    def scaled_hessp(self, state: State, hessp: Callable[[Array], Array], v: Array) -> Array:
        """rootᵀ H root v."""
        root = state.metric.root
        image = hessp((root @ v.reshape(-1)).reshape(v.shape))
        return (root.T @ image.reshape(-1)).reshape(v.shape)

    def move(self, state: State, point: Array, g: Array, r2: Regularizer) -> Array:
        return point - state.gamma * self.apply(state, g + r2.gradient(point))

    def residual(self, state: State, g: Array, r2: Regularizer, step: float) -> float:
        """‖rootᵀ∇F‖: its square is twice what a Newton step would gain."""
        return norm(state.metric.root.T @ (g + r2.gradient(state.x)).reshape(-1))
