"""The metric M of an x-step, x ← prox^M_{γ r2}(x − γ M⁻¹g): Euclidean, diagonal, L-BFGS, or the Hessian itself.

A metric is only offered where the prox stays exact: a diagonal one for separable r2, the last two for smooth r2, whose
gradient then joins the step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, dot, namespace, norm, to_numpy
from trimlearn._utils.text import described
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart.method import MetricMemory, State
from trimlearn.smart.row_laws import ALL

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine


class Metric(ABC):
    """The metric M of an x-step, x ← prox^M_{γ r2}(x − γ M⁻¹g), with what it has learned kept in ``state.metric``.

    To add one of your own, derive from this class and pass it as ``metric`` to `svrg` and its relatives. γ is measured
    in it: M need not be scaled.

    Examples
    --------
    >>> from trimlearn.smart import Metric, svrg
    >>> class Units(Metric):
    ...     def check(self, r2):
    ...         if not r2.smooth:
    ...             raise ValueError("Units needs a smooth r2.")
    ...     def learn(self, engine, state, noise):
    ...         pass
    ...     def apply(self, state, g):
    ...         return g / 4
    >>> method = svrg(metric=Units())
    """

    def __repr__(self) -> str:
        return described(self)

    @abstractmethod
    def check(self, r2: Regularizer) -> None:
        """Raise ValueError where the step would not be exact."""

    @abstractmethod
    def learn(self, engine: Engine, state: State, noise: float) -> None:
        """Bring M up to date at a w-step; ``noise`` is the share of one draw in a batch, amplified by momentum."""

    def watch(self, state: State, difference: Array) -> None:
        """See the difference 1/b Σ(wᵢ∇fᵢ(x) − yᵢ) of an x-step, before x moves."""
        return

    def forget(self, state: State) -> None:
        """Drop what was learned from steps that were taken back."""
        return

    @abstractmethod
    def apply(self, state: State, g: Array) -> Array:
        """M⁻¹g, which may be in float64 where g is not."""

    def inverse(self, state: State) -> Array | float:
        """The diagonal of M⁻¹, as far as it has one."""
        return 1.0

    def scaled_hessp(self, state: State, hessp: Callable[[Array], Array], v: Array) -> Array:
        """A matrix with the eigenvalues of M⁻¹H, times v, where ``hessp`` multiplies by H; symmetric if it can be."""
        return self.apply(state, hessp(v))

    def move(self, state: State, point: Array, g: Array, r2: Regularizer) -> Array:
        """prox^M_{γ r2}(point − γ M⁻¹g)."""
        return r2.step(point, self.apply(state, g), state.gamma)

    def residual(self, state: State, g: Array, r2: Regularizer, step: float) -> float:
        """‖x − prox_{s r2}(x − s g)‖/s, s the step: zero where x is stationary for the gradient g. In a diagonal metric
        both the prox and the norm are its own, so that a feature of small scale counts as much as any other."""
        inverse = self.inverse(state)
        return norm((state.x - r2.step(state.x, g, step * inverse)) / inverse**0.5) / step


@final
@dataclass(frozen=True)
class Euclidean(Metric):
    """M = I."""

    def check(self, r2: Regularizer) -> None:
        return

    def learn(self, engine: Engine, state: State, noise: float) -> None:
        return

    def apply(self, state: State, g: Array) -> Array:
        return g


@final
@dataclass(frozen=True)
class Diagonal(Metric):
    """Mⱼ = m₂ⱼ + ν·m₄ⱼ/m₂ⱼ, m₂ and m₄ the moments of the design's column j under w, ν the noise of one draw.

    The first term makes the step invariant to the scales of the features. The second bounds what a single draw can do
    to a feature that few rows have, where the mean curvature says nothing about a minibatch's.
    """

    def check(self, r2: Regularizer) -> None:
        if not r2.separable:
            raise ValueError(f"metric='diagonal' needs a separable r2, {r2.name} is not; use metric=None.")

    def learn(self, engine: Engine, state: State, noise: float) -> None:
        # Again only after 1, 4, 16, 64, … w-steps: the moments cost more than a product with the design.
        if state.w_steps & (state.w_steps - 1) or state.w_steps.bit_length() % 2 == 0:
            return
        total, second, fourth = engine.column_moments()
        xp = namespace(second)
        M = second / total + noise * fourth / xp.where(second > 0, second, xp.ones_like(second))
        most = xp.finfo(M.dtype).max ** 0.5
        M = xp.where(M < most, M, xp.full_like(M, most))  # also where moments have overflowed
        largest = xp.max(M)
        if not largest > 0:
            M, largest = xp.ones_like(M), xp.ones_like(largest)
        state.metric.inverse = largest / xp.where(M > 0, M, xp.ones_like(M) * largest)

    def apply(self, state: State, g: Array) -> Array:
        return state.metric.inverse * g

    def inverse(self, state: State) -> Array | float:
        return state.metric.inverse

    def scaled_hessp(self, state: State, hessp: Callable[[Array], Array], v: Array) -> Array:
        """M^-½ H M^-½ v: with features of scales 10⁻⁴ and 10⁴, M⁻¹H is far too skew for power iterations."""
        xp = namespace(v)
        root = xp.astype(xp.sqrt(state.metric.inverse), v.dtype, copy=False)
        return root * hessp(root * v)

    def move(self, state: State, point: Array, g: Array, r2: Regularizer) -> Array:
        return r2.step(point, g, state.gamma * state.metric.inverse)


@final
@dataclass(frozen=True)
class LBFGS(Metric):
    """M⁻¹ by the two-loop recursion over secant pairs, one per w-step, at no cost.

    Between two w-steps the estimator itself measures gradient differences for one w: the mean over the x-steps of
    x − x̃ and of 1/b Σ wᵢ(∇fᵢ(x) − ∇fᵢ(x̃)) is a secant pair over all rows they drew. (This needs Dₖ = ∅.)
    """

    memory: int = 8

    def check(self, r2: Regularizer) -> None:
        if not r2.smooth:
            raise ValueError(f"metric='lbfgs' needs a smooth r2 (Zero, Ridge), not {r2.name}; use metric=None.")

    def watch(self, state: State, difference: Array) -> None:
        if state.moved and state.anchor is not None:
            old, new = state.metric.sums, namespace(difference).stack([state.x - state.anchor, difference])
            state.metric.sums = new if old is None else old + new

    def learn(self, engine: Engine, state: State, noise: float) -> None:
        sums, state.metric.sums = state.metric.sums, None
        if sums is None:
            return
        xp = namespace(sums)
        r2, anchor = engine.problem.r2, state.anchor
        s, y = sums[0], sums[1]
        y = y + (r2.gradient(anchor + s) - r2.gradient(anchor))
        if dot(s, y) <= 1e-8 * norm(s) * norm(y):  # not a direction of clearly positive curvature
            return
        pair = xp.stack([s, y])[None]
        pairs = state.metric.pairs
        state.metric.pairs = pair if pairs is None else xp.concat([pairs, pair])[-self.memory :]

    def forget(self, state: State) -> None:
        state.metric = MetricMemory()

    def apply(self, state: State, g: Array) -> Array:
        pairs = state.metric.pairs
        if pairs is None:
            return g
        rho = [1.0 / dot(pair[0], pair[1]) for pair in pairs]
        alpha = [0.0] * len(rho)
        xp = namespace(g)
        q = xp.astype(g, xp.float64, copy=False)
        for i in reversed(range(len(rho))):
            alpha[i] = rho[i] * dot(pairs[i][0], q)
            q = q - alpha[i] * pairs[i][1]
        y = pairs[-1][1]
        q = q / (rho[-1] * dot(y, y))
        for i in range(len(rho)):
            q = q + (alpha[i] - rho[i] * dot(pairs[i][1], q)) * pairs[i][0]
        return q

    def move(self, state: State, point: Array, g: Array, r2: Regularizer) -> Array:
        xp = namespace(point)
        return xp.astype(point - state.gamma * self.apply(state, g + r2.gradient(point)), point.dtype, copy=False)


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


def default_metric(problem: Problem) -> Metric:
    """The diagonal metric, where it can be measured and the prox stays exact in it."""
    return Diagonal() if problem.r2.separable and isinstance(problem.loss, PredictionLoss) else Euclidean()


def make_metric(metric: str | Metric | None, default: Metric) -> Metric:
    """The metric meant by the argument ``metric``."""
    if metric is None:
        return default
    if isinstance(metric, Metric):
        return metric
    named: dict[str, Metric] = {"euclidean": Euclidean(), "diagonal": Diagonal(), "lbfgs": LBFGS()}
    if metric not in named:
        raise ValueError(f"metric must be one of {', '.join(map(repr, named))} or None, got {metric!r}.")
    return named[metric]


def first_step(engine: Engine, x: Array, inverse: Array | float = 1.0) -> float:
    """1 over the curvature along the gradient at x in the metric whose inverse is given, over all rows: a pass, and the
    same whatever the order of rows."""
    u, L = unit(inverse * engine.mean_duals()), 0.0
    if u is not None:
        u = namespace(x).astype(u, x.dtype, copy=False)
        L = abs(dot(u, engine.hessp(x, u, ALL)) / dot(u, u / inverse))
    return 1.0 / L if isfinite(L) and L > 0 and 1.0 / L < inf else 1.0


def unit(v: Array) -> Array | None:
    """v/‖v‖; None where that is not a direction."""
    length = norm(v)
    return v / length if isfinite(length) and length > 0 else None
