"""What any engine must do: every operation of engines/base.py is a map over rows and one sum.

`ThreeShards` cuts the rows of a problem in three and does just that, in this process; `operations` asks an engine for
all it can do, so that one engine can be held to another.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import Engine, LocalEngine
from trimlearn.engines.cluster.losses import loss_of
from trimlearn.engines.shard import Reply, Shard, Standing, answer, part
from trimlearn.engines.sharded import ShardedEngine
from trimlearn.losses import LeastSquares, Logistic, Poisson, Softmax
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, Ridge
from trimlearn.smart.draws import Stream
from trimlearn.smart.row_laws import ALL, Nothing, Recipe, WithReplacement
from trimlearn.weights import AllOnes, CappedSimplex

N = 90


class ThreeShards(ShardedEngine):
    """Rows in three places, of which none knows the others: what goes there and back is pickled."""

    def __init__(self, problem: Problem, cuts: tuple[int, int] = (11, 60)) -> None:
        super().__init__(problem, problem.s is None)
        self.cuts = (0, *cuts, problem.n)
        self.shards = [self.shard(i) for i in range(3)]
        self.asked = 0

    def shard(self, i: int) -> Shard:
        """The shard as it is when it was just read."""
        loss: Any = self.problem.loss
        lo, hi = self.cuts[i], self.cuts[i + 1]
        t = to_numpy(loss.t)
        t = t[:, 0] if loss.linear.K is None and t.ndim == 2 else t
        s = None if self.problem.s is None else to_numpy(self.problem.s)
        own = loss_of(loss).make(loss.linear.storage.V[lo:hi], t[lo:hi])
        before = 0.0 if s is None else float(np.cumsum(s)[lo - 1]) if lo else 0.0
        return Shard(part(self.problem, own, None if s is None else s[lo:hi]), lo, self.problem.n, before)

    def ask_all(self, serial: int, standing: Standing | None, then: int, task: Callable[..., Any], args: Any) -> Reply:
        self.asked += 1
        asked = pickle.dumps((serial, standing, then, task, args))
        replies = [pickle.loads(pickle.dumps(answer(shard, *pickle.loads(asked)))) for shard in self.shards]
        return replies[0] + replies[1] + replies[2]

    def collect(self, task: Callable[[Shard], np.ndarray]) -> np.ndarray:
        self.ask(Shard.mean_duals)  # so that all stand where they should
        return np.concatenate([task(shard) for shard in self.shards])


def table(seed: int = 0, p: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, a linear target with gross errors, and sample weights with zeros among them."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(N, p)) + 1.0
    t = V @ np.arange(1.0, p + 1) + 0.3 * rng.normal(size=N)
    t[::9] += 25.0
    return V, t, np.array([1.0, 2.0, 0.0, 0.75, 3.0] * (N // 5))


def _problems() -> dict[str, Callable[[], Problem]]:
    V, t, s = table()
    labels = np.sort((np.arange(N) * 3) // N)  # shards of one class: rows are sorted by it
    one = np.repeat([0.0, 1.0], [N // 3, N - N // 3])
    return {
        "least squares": lambda: Problem(LeastSquares(V, t, intercept=True), CappedSimplex(70.5)),
        "weighted": lambda: Problem(LeastSquares(V, t, intercept=True), CappedSimplex(90.25), Ridge(0.1), s),
        "softmax": lambda: Problem(Softmax(V, labels, 3, intercept=True, center=V.mean(0)), CappedSimplex(60), None, s),
        "logistic in float32": lambda: Problem(Logistic(V.astype(np.float32), one), CappedSimplex(77), L1(0.01)),
        "poisson": lambda: Problem(Poisson(V, np.round(np.abs(t)), intercept=True), CappedSimplex(80)),
        "ties": lambda: Problem(LeastSquares(np.ones((N, 1)), (np.arange(N) % 4.0) ** 2), CappedSimplex(50.5)),
        "untrimmed": lambda: Problem(LeastSquares(V, t), AllOnes(), None, s),
    }


PROBLEMS = _problems()


def operations(engine: Engine) -> dict[str, Any]:
    """What the engine answers to everything it can be asked, in an order in which a run might ask."""
    problem = engine.problem
    rng = np.random.default_rng(5)
    x, old, u = (0.3 * rng.normal(size=problem.loss.x_shape).astype(to_numpy(problem.loss.like).dtype) for _ in "abc")
    draws = engine.draws(3, 17)
    batch = Recipe.of(WithReplacement(40), draws)
    probe = Recipe.of(WithReplacement(25), engine.draws(3, 17, Stream.PROBE))
    found: dict[str, Any] = {"start": engine.weights, "evaluate": engine.evaluate(old), "gap": engine.gap()}
    found["mean before"] = engine.mean_duals()
    step = engine.reweigh(inf)
    found |= {"value": step.value, "step's gap": step.gap, "weights": engine.weights, "losses": engine.losses}
    found |= {"mean": engine.mean_duals(), "no gap": engine.gap()}
    found["difference"], found["change"] = engine.difference(x, batch, Recipe(Nothing()))
    found["full difference"] = engine.difference(x, ALL, Recipe(Nothing()))[0]
    found["f and g"] = engine.value_gradient(x)
    found |= {"hessp": engine.hessp(x, u, probe), "hessian": engine.hessian(x), "all": engine.hessp(x, u, ALL)}
    found["moments"] = engine.column_moments()
    exact = engine.minimise(x)
    found["exact"] = np.zeros(1) if exact is None else exact
    engine.set_even_weights()
    found["even"] = engine.weights
    engine.set_best_weights(x)
    found["best"] = engine.weights
    engine.set_weights(np.where(np.arange(problem.n) % 2, 0.25, 1.0) * (1 if problem.s is None else problem.s > 0))
    found["given"] = engine.value_gradient(x)
    found["counts"] = (engine.counts.gradients, engine.counts.functions, engine.counts.skipped, engine.counts.prox_r1)
    return found


def hold(engine: Engine, to: Problem) -> None:
    """Assert that an engine answers as the one in this process does."""
    expected, found = operations(LocalEngine(to)), operations(engine)
    single = to_numpy(to.loss.like).dtype == np.float32
    rtol, atol = (2e-4, 2e-5) if single else (1e-9, 1e-11)
    for name, value in expected.items():
        parts = zip(value, found[name], strict=True) if isinstance(value, tuple) else [(value, found[name])]
        for wanted, got in parts:
            np.testing.assert_allclose(to_numpy(got), to_numpy(wanted), rtol=rtol, atol=atol, err_msg=name)
