"""growth: how the gradient evaluations to a fixed stationarity grow with n, rows of one distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from benchmarks.common import Result, Table, Target, say
from trimlearn import Problem, Solution, solve
from trimlearn.losses import Logistic
from trimlearn.smart import SMART, page, palm, svrg
from trimlearn.weights import CappedSimplex

__all__ = ["QUICK", "Plan", "run"]

SMART_EXPONENT, PALM_EXPONENT = 0.75, 1.15  # targets: the theory says 2/3 and 1
ITERATIONS = 100  # at least as many must be needed at every n
WRONG = 0.05  # share of the rows that are outliers, and are trimmed
FLIPPED, TRIMMED = 0.15, 0.1  # the same where rows lie near the threshold
AUTO, PALM, EASIER = "svrg, auto", "palm, auto, momentum 0.9", "svrg, auto, an easier problem"

# The same momentum for all, so that the methods differ in what an iteration costs and not in how many they need.
METHODS: dict[str, Callable[[], SMART]] = {
    AUTO: lambda: svrg(finish=False),  # Algorithm 1 itself: what finishes it costs n a step
    "svrg, γ = 0.1, momentum 0.9": lambda: svrg(step=0.1, momentum=0.9),
    "page, auto": page,
    PALM: lambda: palm(momentum=0.9),
}
NAMES = [*METHODS, EASIER]


@dataclass(frozen=True)
class Plan:
    """The sizes; the level of ‖∇ₓF(w, x)‖ to reach, and stationarity_w; seeds (PALM draws nothing: one)."""

    sizes: tuple[int, ...] = tuple(round(10 ** (3 + k / 2)) for k in range(7))
    level: float = 4e-4
    level_w: float = 1e-4
    seeds: tuple[int, ...] = (0, 1, 2)
    d: int = 20
    correlation: float = 0.97
    near: bool = False  # labels flipped at random, so that many rows lie near the threshold and w settles slowly
    max_passes: float = 20_000


FULL = Plan()
QUICK = Plan(sizes=(300, 1000, 3000), level=4e-3, seeds=(0,), d=5, correlation=0.9)


def run(plan: Plan = FULL) -> Result:
    """Gradient evaluations at every n, and the exponents fitted to them."""
    table = Table(
        f"to ‖∇ₓF‖ ≤ {plan.level:g}, means over the seeds",
        ["method", "n", "gradient evaluations", "passes", "iterations", "w-steps", "seconds", "reached"],
    )
    for n in plan.sizes:
        table.rows.extend(_row(name, method(), n, plan) for name, method in METHODS.items())
        table.rows.append(_row(EASIER, svrg(finish=False), n, replace(plan, near=True, correlation=0.9)))
    costs = {name: [(row[1], row[2] if row[-1] else inf) for row in table.rows if row[0] == name] for name in NAMES}
    fits = {name: exponent(points) for name, points in costs.items()}
    fewest = min(row[4] for row in table.rows if row[0] == AUTO)
    return Result(
        benchmark="growth",
        settings={"d": plan.d, "correlation": plan.correlation, "level": plan.level, "seeds": list(plan.seeds)},
        targets=[
            Target("exponent of SMART (svrg, auto)", fits[AUTO], SMART_EXPONENT),
            Target("exponent of PALM, its distance from 1", abs(fits[PALM] - 1), PALM_EXPONENT - 1),
            Target(f"{ITERATIONS} / the fewest iterations SMART took", ITERATIONS / fewest if fewest else inf, 1.0),
        ],
        tables=[
            Table(
                "fitted exponents: gradient evaluations ~ n^exponent",
                ["method", "exponent", "from n ≥ 10⁴ on"],
                [[name, fits[name], exponent(points, 10_000)] for name, points in costs.items()],
            ),
            table,
        ],
    )


def _row(name: str, method: SMART, n: int, plan: Plan) -> list[Any]:
    runs = [reach(method, n, seed, plan) for seed in (plan.seeds[:1] if name == PALM else plan.seeds)]
    say(f"n = {n}: {name}, {runs[0][0].seconds:.1f} s")
    means = np.mean([_columns(solution) for solution, _ in runs], axis=0)
    return [name, n, *map(float, means), all(reached for _, reached in runs)]


def exponent(points: list[tuple[int, float]], least: int = 0) -> float:
    """The slope of log cost over log n by least squares; inf where a run did not reach the level."""
    n, cost = np.array([point for point in points if point[0] >= least] or points).T
    return float(np.polyfit(np.log(n), np.log(cost), 1)[0]) if np.all(np.isfinite(cost)) and len(n) > 1 else inf


def reach(method: SMART, n: int, seed: int, plan: Plan) -> tuple[Solution, bool]:
    """Solve from w = h/n, x = 0 to the level, which is the same at every n; and whether it was reached."""
    problem = trimmed_logistic(n, seed, plan)
    x0 = problem.loss.start()
    first = float(np.linalg.norm(problem.loss.gradient(x0, np.full(n, problem.r1.h / n**2, dtype=np.float32))))
    level = plan.level / first  # a record's stationarity_x is relative to its first value
    solution = solve(
        problem,
        method,
        start=None,
        max_passes=plan.max_passes,
        tol=0,
        seed=seed,
        callback=lambda record: record.stationarity_x <= level and record.stationarity_w <= plan.level_w,
    )
    return solution, solution.stationarity_x <= level and solution.stationarity_w <= plan.level_w


def _columns(solution: Solution) -> tuple[float, ...]:
    last = solution.history[-1]
    return solution.counts.gradients, solution.passes, last.k, len(solution.history), solution.seconds


def trimmed_logistic(n: int, seed: int, plan: Plan) -> Problem:
    """Logistic regression, correlations ϱ^|i−j| between features (condition number about 1,100), float32.

    A twentieth of the rows lie five times as far out and on the wrong side: what is trimmed. Or, ``near``: 15 % of the
    labels are flipped, wherever their rows lie, and 10 % trimmed.
    """
    rng = np.random.Generator(np.random.SFC64(seed))
    i = np.arange(plan.d)
    C = plan.correlation ** np.abs(i[:, None] - i)
    V = rng.standard_normal((n, plan.d), dtype=np.float32) @ np.linalg.cholesky(C).T.astype(np.float32)
    x = (-1.0) ** i
    z = V @ (2 * x / np.sqrt(x @ C @ x)).astype(np.float32)  # of standard deviation 2
    t = rng.random(n, dtype=np.float32) < 1 / (1 + np.exp(-z))
    wrong = rng.random(n, dtype=np.float32) < (FLIPPED if plan.near else WRONG)
    if plan.near:
        t ^= wrong
    else:
        t[wrong] = z[wrong] < 0
        V[wrong] *= 5
    return Problem(Logistic(V, t.astype(np.int64)), CappedSimplex((1 - (TRIMMED if plan.near else WRONG)) * n))
