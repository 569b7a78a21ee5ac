"""Textbook twins: each method as its paper prints it, in plain NumPy, every gradient written out, no shortcut taken.

They read the random numbers trimlearn reads, through `Draws`, and yield (w, x) after every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from math import ceil, inf
from typing import Any

import numpy as np

from trimlearn._utils.arrays import asarray_like, to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import LeastSquares, Logistic, Loss, Softmax
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, NonNegative, Regularizer, Ridge, Sphere, Zero
from trimlearn.smart.draws import Draws
from trimlearn.smart.method import Method
from trimlearn.smart.row_laws import GivenRows, Recipe
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

Vector = np.ndarray
Iterates = Iterator[tuple[Vector, Vector]]


@dataclass
class Twin:
    """A problem as its formulas: fᵢ and ∇fᵢ one by one, the two w-steps, the prox of r2."""

    V: Vector
    f: Callable[[Vector], Vector]
    G: Callable[[Vector], Vector]
    project: Callable[[Vector], Vector]
    best: Callable[[Vector], Vector]
    prox: Callable[[Vector, Any], Vector]
    s: Vector
    weighted: bool

    @property
    def n(self) -> int:
        return len(self.s)

    def draws(self, seed: int, k: int) -> Draws:
        return Draws(seed, k, self.n, np.cumsum(self.s) if self.weighted else None)

    def mean(self, y: Vector) -> Vector:
        return sum(si * yi for si, yi in zip(self.s, y, strict=True)) / sum(self.s)

    def wG(self, w: Vector, x: Vector) -> Vector:
        """wᵢ∇fᵢ(x), all n of them."""
        return np.array([wi * gi for wi, gi in zip(w, self.G(x), strict=True)])

    def w_step(self, w: Vector, x: Vector, tau: float) -> Vector:
        return self.best(self.f(x)) if tau == inf else self.project(w - tau / sum(self.s) * self.f(x))


# ---- the terms ----


def loss_twin(kind: str, V: Vector, t: Vector) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]:
    """fᵢ and ∇fᵢ."""

    def softmax(z: Vector) -> Vector:
        return np.exp(z) / np.exp(z).sum()

    if kind == "least squares":
        f = lambda x: np.array([(v @ x - ti) ** 2 / 2 for v, ti in zip(V, t, strict=True)])  # noqa: E731
        G = lambda x: np.array([(v @ x - ti) * v for v, ti in zip(V, t, strict=True)])  # noqa: E731
    elif kind == "logistic":
        f = lambda x: np.array([np.log(1 + np.exp(v @ x)) - ti * (v @ x) for v, ti in zip(V, t, strict=True)])  # noqa: E731
        G = lambda x: np.array([(1 / (1 + np.exp(-v @ x)) - ti) * v for v, ti in zip(V, t, strict=True)])  # noqa: E731
    else:
        f = lambda x: np.array([-np.log(softmax(v @ x)[ti]) for v, ti in zip(V, t, strict=True)])  # noqa: E731
        G = lambda x: np.array(  # noqa: E731
            [np.outer(v, softmax(v @ x) - np.eye(x.shape[1])[ti]) for v, ti in zip(V, t, strict=True)]
        )
    return f, G


def project_capped(v: Vector, s: Vector, h: float) -> Vector:
    """clip(v − λ, 0, 1), λ by bisection until Σ s clip = h."""
    lo, hi = v.min() - 1, v.max()
    for _ in range(80):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if s @ np.clip(v - mid, 0, 1) > h else (lo, mid)
    return np.where(s > 0, np.clip(v - (lo + hi) / 2, 0, 1), 0.0)


def best_capped(f: Vector, s: Vector, h: float) -> Vector:
    """Weight 1 to the smallest losses, until h is used up. No ties."""
    w, left = np.zeros(len(f)), h
    for i in np.argsort(f):
        if s[i] > 0:
            w[i] = min(1.0, left / s[i])
            left -= w[i] * s[i]
    return w


Solver = Callable[[Vector, Vector, float], Vector]


def weights_twin(r1: WeightSet, s: Vector, groups: Vector) -> tuple[Callable[..., Vector], Callable[..., Vector]]:
    """The projection and the best w, of the set ``r1``."""

    def solve(solver: Solver, v: Vector) -> Vector:
        if isinstance(r1, AllOnes):
            return np.where(s > 0, 1.0, 0.0)
        if isinstance(r1, CappedSimplex):
            return solver(v, s, r1.h)
        w = np.zeros(len(v))
        for label, quota in zip(r1.labels, r1.quotas(len(v)), strict=True):
            w[groups == label] = solver(v[groups == label], s[groups == label], quota)
        return w

    return lambda v: solve(project_capped, v), lambda f: solve(best_capped, f)


def prox_twin(r2: Regularizer) -> Callable[[Vector, Any], Vector]:
    if isinstance(r2, Ridge):
        return lambda x, gamma: x / (1 + gamma * r2.alpha)
    if isinstance(r2, L1):
        return lambda x, gamma: np.sign(x) * np.maximum(np.abs(x) - gamma * r2.alpha, 0)
    if isinstance(r2, NonNegative):
        return lambda x, gamma: np.maximum(x, 0)
    if isinstance(r2, Sphere):
        return lambda x, gamma: r2.radius * x / np.sqrt(np.sum(x * x))
    assert isinstance(r2, Zero)
    return lambda x, gamma: x


GROUPS = np.array(list("abbca" * 20))
LOSSES: dict[str, type[Loss]] = {"least squares": LeastSquares, "logistic": Logistic, "softmax": Softmax}


def table(kind: str, n: int, p: int = 3, seed: int = 0) -> tuple[Vector, Vector]:
    """Rows and targets; a fifth of the targets are wrong."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, p))
    x = rng.normal(size=(p, 3)) if kind == "softmax" else rng.normal(size=p)
    bad = rng.random(n) < 0.2
    if kind == "softmax":
        return V, (np.argmax(V @ x, axis=1) + bad) % 3
    if kind == "logistic":
        t = ((V @ x > 0) ^ bad).astype(float)
        return V, t if len(set(t)) == 2 else np.arange(n) % 2.0
    return V, V @ x + 0.1 * rng.normal(size=n) + 5 * bad


def make(
    kind: str, r1: WeightSet, r2: Regularizer | None = None, n: int = 24, s: Vector | None = None
) -> tuple[Problem, Twin]:
    """The problem and its twin, on the same rows."""
    r2 = Zero() if r2 is None else r2
    V, t = table(kind, n)
    ones = np.ones(n) if s is None else np.asarray(s, dtype=float)
    twin = Twin(V, *loss_twin(kind, V, t), *weights_twin(r1, ones, GROUPS[:n]), prox_twin(r2), ones, s is not None)
    return Problem(LOSSES[kind](V, t), r1, r2, s), twin


def groups(n: int, h: float) -> GroupCappedSimplex:
    return GroupCappedSimplex(GROUPS[:n], h)


def point(problem: Problem, seed: int = 1) -> Any:
    """A random x of dom r2, as the problem's own kind of array."""
    x = np.random.default_rng(seed).normal(size=problem.loss.x_shape)
    return problem.r2.feasible(asarray_like(x, problem.loss.like))


def iterates(method: Method, problem: Problem, x: Any, seed: int = 3, w: Any = None) -> Iterates:
    """(w, x) of trimlearn's own run, after every iteration."""
    engine = LocalEngine(problem)
    if w is not None:
        engine.set_weights(w)
    run = method.bind(problem, seed)
    state = run.init(engine, x)
    while True:
        run.advance(engine, state)
        yield to_numpy(engine.weights), to_numpy(state.x)


def assert_same(ours: Iterates, theirs: Iterates, steps: int, rtol: float = 1e-12) -> None:
    """Equality of (w, x) at each of ``steps`` iterations, and that something moved."""
    seen = []
    for k, (w, x), (w_twin, x_twin) in zip(range(steps), ours, theirs, strict=False):
        np.testing.assert_allclose(w, w_twin, rtol=rtol, atol=rtol, err_msg=f"w at iteration {k}")
        np.testing.assert_allclose(x, x_twin, rtol=rtol, atol=rtol, err_msg=f"x at iteration {k}")
        seen.append(x)
    assert len(seen) == steps
    assert np.all(np.isfinite(seen[-1]))
    assert not np.allclose(seen[0], seen[-1], rtol=1e-3)


def given(rows: Any) -> Recipe:
    """A recipe for these rows, whatever the seed."""
    return Recipe(GivenRows(np.asarray(rows)))


# ---- the methods ----


def saga(T: Twin, w: Vector, x: Vector, seed: int = 3, *, b: int, q: float, gamma: float, tau: float = inf) -> Iterates:
    """Algorithm 1 with Dₖ = Iₖ, a table of all yᵢ."""
    y = T.wG(w, x)
    for k in count():
        draws = T.draws(seed, k)
        if draws.uniform() < q:
            w = T.w_step(w, x, tau)
            y = T.wG(w, x)
        else:
            batch, new = draws.rows(b), T.wG(w, x)
            g = sum(new[i] - y[i] for i in batch) / b + T.mean(y)
            for i in batch:
                y[i] = new[i]
            x = T.prox(x - gamma * g, gamma)
        yield w, x


def svrg(
    T: Twin,
    w: Vector,
    x: Vector,
    seed: int = 3,
    *,
    b: int,
    q: float,
    gamma: float,
    tau: float = inf,
    beta: float = 0.0,
    restart: float = inf,
) -> Iterates:
    """SVRG with a snapshot x̃, its full gradient, and heavy-ball momentum β; a w-step at every restart-th iteration."""
    anchor, last = x, x
    for k in count():
        draws = T.draws(seed, k)
        if draws.uniform() < q or (k + 1) % restart == 0:
            w = T.w_step(w, x, tau)
            anchor = x
        else:
            here, there = T.wG(w, x), T.wG(w, anchor)
            g = sum(here[i] - there[i] for i in draws.rows(b)) / b + T.mean(there)
            x, last = T.prox(x + beta * (x - last) - gamma * g, gamma), x
        yield w, x


def scaled_svrg(
    T: Twin, w: Vector, x: Vector, seed: int = 3, *, b: int, q: float, gamma: float, beta: float = 0.0
) -> Iterates:
    """SVRG in the metric M = m₂ + ν·m₄/m₂, scaled to a smallest M⁻¹ of 1, renewed after 1, 4, 16, … w-steps."""

    def inverse() -> Vector:
        share = T.s * w / sum(T.s * w)
        second, fourth = share @ T.V**2, share @ T.V**4
        M = second + fourth / second / (b * (1 - beta))
        return (M.max() / M).reshape(-1, *[1] * (x.ndim - 1))

    anchor, last, w_steps, inv = x, x, 1, inverse()
    for k in count():
        draws = T.draws(seed, k)
        if draws.uniform() < q:
            w, anchor, w_steps = T.w_step(w, x, inf), x, w_steps + 1
            inv = inverse() if w_steps in (1, 4, 16, 64) else inv
        else:
            here, there = T.wG(w, x), T.wG(w, anchor)
            g = sum(here[i] - there[i] for i in draws.rows(b)) / b + T.mean(there)
            x, last = T.prox(x + beta * (x - last) - gamma * inv * g, gamma * inv), x
        yield w, x


def prox_saga(
    T: Twin, w: Vector, x: Vector, seed: int = 3, *, b: int, gamma: float, independent: bool = False
) -> Iterates:
    """SAGA at w = 1; after every ⌈n/b⌉ steps one iteration only looks."""
    y, period = T.wG(w, x), ceil(T.n / b)
    for k in count():
        if k % (period + 1) != period:
            draws = T.draws(seed, k)
            batch, new = draws.rows(b), T.wG(w, x)
            g = sum(new[i] - y[i] for i in batch) / b + T.mean(y)
            for i in draws.rows(b) if independent else batch:
                y[i] = new[i]
            x = T.prox(x - gamma * g, gamma)
        yield w, x


def palm(
    T: Twin, w: Vector, x: Vector, seed: int = 3, *, gamma: float, tau: float = inf, cyclic: bool = True
) -> Iterates:
    """Bolte, Sabach and Teboulle: a proximal gradient step in w, one in x; in turn or by a fair coin."""
    for k in count():
        if k % 2 == 0 if cyclic else T.draws(seed, k).uniform() < 0.5:
            w = T.w_step(w, x, tau)
        else:
            x = T.prox(x - gamma * T.mean(T.wG(w, x)), gamma)
        yield w, x


def prox_gradient(T: Twin, w: Vector, x: Vector, seed: int = 3, *, gamma: float) -> Iterates:
    """One proximal gradient step in (w, x) jointly."""
    while True:
        w, x = T.w_step(w, x, gamma), T.prox(x - gamma * T.mean(T.wG(w, x)), gamma)
        yield w, x


def sg(
    T: Twin,
    w: Vector,
    x: Vector,
    seed: int = 3,
    *,
    b: int,
    q: float,
    gamma: float,
    half: float = 10.0,
    growth: float = 0.0,
    tau: float = inf,
) -> Iterates:
    """Minibatch proximal gradients, γₖ = γ/(1 + passes/half), batches of min(n, ⌈b(1 + growth·k)⌉)."""
    passes, moved = 1.0, False  # the start is evaluated
    for k in count():
        draws = T.draws(seed, k)
        if draws.uniform() < q:
            w = T.w_step(w, x, tau)
            passes, moved = passes + moved, False
        else:
            batch, all_ = draws.rows(min(T.n, ceil(b * (1 + growth * k)))), T.wG(w, x)
            step = gamma / (1 + passes / half)
            x = T.prox(x - step * sum(all_[i] for i in batch) / len(batch), step)
            passes, moved = passes + len({i for i in batch if w[i] > 0}) / T.n, True
        yield w, x


def page(T: Twin, w: Vector, x: Vector, seed: int = 3, *, b: int, q: float, gamma: float, tau: float = inf) -> Iterates:
    """Li et al.: g ← ∇F with probability q, else g + 1/b Σ wᵢ(∇fᵢ(xᵏ) − ∇fᵢ(xᵏ⁻¹)); x moves where w does not."""
    g, last = T.mean(T.wG(w, x)), x
    for k in count():
        draws = T.draws(seed, k)
        if draws.uniform() < q:
            w = T.w_step(w, x, tau)
            g, last = T.mean(T.wG(w, x)), x
        else:
            new, old = T.wG(w, x), T.wG(w, last)
            g = g + sum(new[i] - old[i] for i in draws.rows(b)) / b
            x, last = T.prox(x - gamma * g, gamma), x
        yield w, x
