"""Losses as strangers write them: right ones of many kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from trimlearn._utils.arrays import Array, namespace
from trimlearn.losses import Linear, Loss, PredictionLoss, select, weighted
from trimlearn.losses.storage import Rows


class Pinball(PredictionLoss):
    """The pinball loss of the quantile q, as it is: with a kink."""

    def __init__(self, V: Any, t: Any, q: float = 0.7) -> None:
        super().__init__(Linear(V))
        self.t, self.q = t, q

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        u = select(self.t, rows) - z[:, 0]
        return np.maximum(self.q * u, (self.q - 1) * u), np.where(u > 0, -self.q, 1 - self.q)[:, None]

    def curvature_bound(self) -> float:
        return float("inf")

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return 0 * u


class Hinge(PredictionLoss):
    """max(0, 1 − tz), t = ±1."""

    def __init__(self, V: Any, t: Any) -> None:
        super().__init__(Linear(V, intercept=True))
        self.t = t

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        t = select(self.t, rows)
        margin = 1 - t * z[:, 0]
        return np.maximum(margin, 0.0), np.where(margin > 0, -t, 0.0)[:, None]

    def curvature_bound(self) -> float:
        return float("inf")

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return 0 * u


class Tukey(PredictionLoss):
    """Tukey's bisquare, c²/6·(1 − (1 − (r/c)²)³) up to r = c: flat beyond."""

    def __init__(self, V: Any, t: Any, c: float = 4.685) -> None:
        super().__init__(Linear(V))
        self.t, self.c = t, c

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        r = z[:, 0] - select(self.t, rows)
        inside = np.maximum(1 - (r / self.c) ** 2, 0.0)
        return self.c**2 / 6 * (1 - inside**3), (r * inside**2)[:, None]

    def curvature_bound(self) -> float:
        return 1.0

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        r = z[:, 0] - select(self.t, rows)
        inside = np.maximum(1 - (r / self.c) ** 2, 0.0)
        return (inside**2 - 4 * (r / self.c) ** 2 * inside)[:, None] * u


class Weibull(Loss):
    """−log likelihood of survival times with censoring: log t = ⟨v, β⟩ + e^s·ε, x = (β, s)."""

    def __init__(self, V: Any, time: Any, died: Any) -> None:
        self.V, self.time, self.died = np.asarray(V), np.log(time), np.asarray(died, float)
        self.n, self.x_shape, self.like = len(self.V), (self.V.shape[1] + 1,), self.V

    def _parts(self, x: Array, rows: Rows) -> tuple[Array, Array, Array]:
        V, died = select(self.V, rows), select(self.died, rows)
        return V, died, (select(self.time, rows) - V @ x[:-1]) / np.exp(x[-1])

    def values(self, x: Array, rows: Rows = None) -> Array:
        _, died, u = self._parts(x, rows)
        return np.exp(u) - died * (u - x[-1])

    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        V, died, u = self._parts(x, rows)
        by_u = np.exp(u) - died
        table = np.column_stack([-V * (by_u / np.exp(x[-1]))[:, None], died - u * by_u])
        return weighted(table, c).sum(axis=0)


class Ordinal(Loss):
    """Proportional odds of three classes: x = (β, a, log(b − a)), P(y ≤ 0) = σ(a − z), P(y ≤ 1) = σ(b − z)."""

    def __init__(self, V: Any, y: Any) -> None:
        self.V, self.y = np.asarray(V), np.asarray(y)
        self.n, self.x_shape, self.like = len(self.V), (self.V.shape[1] + 2,), self.V

    def _parts(self, x: Array, rows: Rows) -> tuple[Array, Array, Array, Array]:
        V = select(self.V, rows)
        low = x[-2] - V @ x[:-2]
        return V, select(self.y, rows), low, low + np.exp(x[-1])

    def values(self, x: Array, rows: Rows = None) -> Array:
        _, y, low, high = self._parts(x, rows)
        middle = -np.log(np.maximum(expit(high) - expit(low), 1e-300))
        return np.where(y == 0, -log_expit(low), np.where(y == 2, -log_expit(-high), middle))

    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        V, y, low, high = self._parts(x, rows)
        between = np.maximum(expit(high) - expit(low), 1e-300)
        d_low, d_high = expit(low) * expit(-low), expit(high) * expit(-high)
        by_low = np.where(y == 0, -expit(-low), np.where(y == 1, d_low / between, 0.0))
        by_high = np.where(y == 2, expit(high), np.where(y == 1, -d_high / between, 0.0))
        both = by_low + by_high
        return weighted(np.column_stack([-V * both[:, None], both, by_high * np.exp(x[-1])]), c).sum(axis=0)

    def start(self) -> Array:
        return np.append(np.zeros(self.V.shape[1]), [-0.5, 0.0])


class Distance(Loss):
    """½‖x − vᵢ‖²: in any array library, of any dtype, with a closed form."""

    def __init__(self, V: Any) -> None:
        self.V, self.n, self.x_shape, self.like = V, V.shape[0], (V.shape[1],), V

    def values(self, x: Array, rows: Rows = None) -> Array:
        return 0.5 * namespace(x).sum((x - select(self.V, rows)) ** 2, axis=1)

    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        return namespace(x).sum(weighted(x - select(self.V, rows), c), axis=0)

    def lipschitz(self) -> Array:
        return namespace(self.V).ones_like(self.V[:, 0])

    def minimiser(self, c: Array, r2: Any, x: Array) -> Array | None:
        if type(r2).__name__ != "Zero":
            return None
        return namespace(x).sum(weighted(self.V, c), axis=0) / namespace(c).sum(c)
