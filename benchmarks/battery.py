"""battery: how close svrg() comes, untuned, to the least F known: all losses, designs, sizes and regularizers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from benchmarks.common import Result, Table, Target, say
from trimlearn import Problem, Solution, solve
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Poisson, SmoothL1, Softmax, StudentT, Subspace
from trimlearn.losses.base import Loss
from trimlearn.regularizers import (
    L0,
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    GroupL2,
    NonNegative,
    Rank,
    Regularizer,
    Ridge,
    Simplex,
    Sphere,
    Stiefel,
    Zero,
)
from trimlearn.smart import alternating, palm, svrg
from trimlearn.weights import CappedSimplex

__all__ = ["FULL", "QUICK", "Plan", "cases", "run"]

NEAR, FAR = 1e-3, 1e-1  # shares of the least F known by which it may be exceeded
WRONG, TRIMMED = 0.15, 0.2  # shares of the rows that are wrong, and that are trimmed
EXACT = 1e-6  # of F at the start: below, a fit is exact, and its F no longer compared
STEPS = tuple(10.0**k for k in range(-6, 3))  # of palm, in units of 1/L at the start as alternating measures it

Make = Callable[[np.ndarray, np.random.Generator, bool], Loss]


@dataclass(frozen=True)
class Plan:
    """How many rows a case has, and which designs there are."""

    n: int = 400
    large: int = 200_000
    designs: tuple[str, ...] = ()  # all of them
    seeds: tuple[int, ...] = (0,)
    workers: int = max(1, min(2, os.cpu_count() or 1))


FULL = Plan()
QUICK = Plan(n=60, large=300, designs=("offset 1e3", "large"))


@dataclass(frozen=True)
class Case:
    """A problem and what it is called."""

    loss: str
    design: str
    r2: str
    problem: Problem


def run(plan: Plan = FULL) -> Result:
    """F of svrg() at default limits beside the least F known, problem by problem."""
    rows = []
    with ProcessPoolExecutor(plan.workers) as pool:
        for row in pool.map(_row, cases(plan)):
            rows.append(row)
            say("  ".join(str(value) for value in row))
    above, own = (np.array([row[k] for row in rows], dtype=float) for k in (5, 6))
    status = [row[7] for row in rows]
    broken = sum(s == "CONVERGED" and not gap <= NEAR for s, gap in zip(status, own, strict=True))
    columns = ["loss", "design", "r2", "F", "least known", "above", "above own basin", "status"]
    return Result(
        benchmark="battery",
        settings={"n": plan.n, "large": plan.large, "problems": len(rows), "wrong": WRONG, "trimmed": TRIMMED},
        targets=[
            Target(f"share of problems more than {NEAR:g} above the least F known", _share(above > NEAR), 0.1),
            Target(f"share of problems more than {FAR:g} above it", _share(above > FAR), 0.0),
            Target(f"share more than {NEAR:g} above what concentration reaches from there", _share(own > NEAR), 0.02),
            Target("CONVERGED, and yet that far above", broken, 0),
        ],
        tables=[_summary(rows), Table("svrg(), untuned", columns, rows)],
    )


def _share(where: np.ndarray) -> float:
    return float(np.mean(where))


def _row(case: Case) -> list[Any]:
    problem = case.problem
    found = solve(problem, svrg())
    near, rest = _polished(problem, found), _rivals(problem)
    own, least = min(near, found.objective), min(near, found.objective, *rest)
    size = EXACT * abs(problem.objective(found.w, problem.r2.feasible(problem.loss.start())))
    gaps = [(found.objective - best) / max(abs(best), size, 1e-300) for best in (least, own)]
    return [case.loss, case.design, case.r2, found.objective, least, *gaps, found.status.name]


def _polished(problem: Problem, found: Solution) -> float:
    """F where concentration steps with a precise inner solver end, from a solution."""
    return solve(problem, alternating(), w0=found.w, x0=found.x, max_passes=200, tol=1e-7).objective


def _rivals(problem: Problem) -> Iterator[float]:
    """F of what else there is: each may find another minimum."""
    best: Solution | None = None
    yield solve(problem, alternating(), max_passes=200, tol=1e-7).objective
    unit = solve(problem, alternating(), start=None, max_passes=3, tol=0.0).history[0].gamma
    for step in STEPS if problem.n < 10_000 else ():
        found = solve(problem, palm(step=step * unit), max_passes=100)
        if isfinite(found.objective) and (best is None or found.objective < best.objective):
            best = found
    if best is not None:
        yield _polished(problem, best)


def _summary(rows: list[list[Any]]) -> Table:
    """How many problems of each kind of design are near, farther and far."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row[1], Counter())["near" if row[5] <= NEAR else "far" if row[5] > FAR else "farther"] += 1
    return Table(
        "problems by design",
        ["design", "near", "farther", "far"],
        [[design, *[count[kind] for kind in ("near", "farther", "far")]] for design, count in counts.items()],
    )


# -- the problems ---------------------------------------------------------------------------------------------------


def cases(plan: Plan) -> Iterator[Case]:
    """Every loss on every design, and every regularizer on three losses."""
    for seed in plan.seeds:
        for design, make_design in DESIGNS.items():
            if plan.designs and design not in plan.designs:
                continue
            for loss in LOSSES if design not in ("large",) else ("least squares", "logistic", "softmax", "poisson"):
                rng = np.random.default_rng(seed)
                V, intercept = make_design(rng, plan)
                yield _case(loss, design, "ridge", V, rng, intercept, Ridge(1e-3))
        for name, r2 in REGULARIZERS.items():
            for loss in ("least squares", "logistic", "softmax"):
                for design in ("plain", "scales"):
                    if (plan.designs and design not in plan.designs) or (name == "rank" and loss != "softmax"):
                        continue
                    rng = np.random.default_rng(seed)
                    V, intercept = DESIGNS[design](rng, plan)
                    yield _case(loss, design, name, V, rng, intercept, r2)
        if not plan.designs:
            rng = np.random.default_rng(seed)
            A = rng.standard_normal((plan.n, 6)) * np.arange(1, 7)
            A[: plan.n // 10] *= 10
            yield Case("subspace", "plain", "stiefel", Problem(Subspace(A, 2), CappedSimplex(0.8 * plan.n), Stiefel()))


def _case(
    loss: str, design: str, name: str, V: np.ndarray, rng: np.random.Generator, intercept: bool, r2: Regularizer
) -> Case:
    h = float(round((1 - TRIMMED) * len(V)))
    return Case(loss, design, name, Problem(LOSSES[loss](V, rng, intercept), CappedSimplex(h), r2))


def _normal(rng: np.random.Generator, plan: Plan, p: int = 6) -> np.ndarray:
    return rng.standard_normal((plan.n, p))


def _correlated(rng: np.random.Generator, plan: Plan) -> np.ndarray:
    """Columns of correlation 0.99."""
    return 0.995 * rng.standard_normal((plan.n, 1)) + 0.1 * _normal(rng, plan)


def _cauchy(rng: np.random.Generator, plan: Plan) -> np.ndarray:
    return np.column_stack([_normal(rng, plan, 4), rng.standard_cauchy((plan.n, 2))])


DESIGNS: dict[str, Callable[[np.random.Generator, Plan], tuple[np.ndarray, bool]]] = {
    "plain": lambda rng, plan: (_normal(rng, plan), True),
    "scales": lambda rng, plan: (_normal(rng, plan) * 10.0 ** np.linspace(-3, 3, 6), True),
    "wild scales": lambda rng, plan: (_normal(rng, plan) * 10.0 ** np.linspace(-6, 6, 6), True),
    "offset 10": lambda rng, plan: (_normal(rng, plan) + 10, True),
    "offset 1e3": lambda rng, plan: (_normal(rng, plan) + 1e3, True),
    "offset 1e5": lambda rng, plan: (_normal(rng, plan) + 1e5, True),
    "a year": lambda rng, plan: (_normal(rng, plan) * [7, 1, 1, 1, 1, 1] + [2000, 0, 0, 0, 0, 0], True),
    "offset 10, no intercept": lambda rng, plan: (_normal(rng, plan) + 10, False),
    "correlated": lambda rng, plan: (_correlated(rng, plan), True),
    "correlated, no intercept": lambda rng, plan: (_correlated(rng, plan) + 3, False),
    "Cauchy": lambda rng, plan: (_cauchy(rng, plan), True),
    "n = 5": lambda rng, plan: (rng.standard_normal((5, 2)), True),
    "n = 20": lambda rng, plan: (rng.standard_normal((20, 3)), True),
    "n < p": lambda rng, plan: (rng.standard_normal((40, 60)), True),
    "n << p": lambda rng, plan: (rng.standard_normal((50, 400)), True),
    "large": lambda rng, plan: (rng.standard_normal((plan.large, 8)) + 30, True),
}


def _signal(V: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A linear predictor of unit size, whatever the scales and offsets of the columns."""
    U = V - np.median(V, axis=0)
    U = U / np.median(np.abs(U), axis=0)
    z = U @ rng.standard_normal(V.shape[1])
    return np.asarray(z / np.median(np.abs(z)))


def _wrong(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.random(n) < WRONG)


def _real(V: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    z, n = _signal(V, rng), len(V)
    return z + 0.3 * rng.standard_normal(n) + np.where(_wrong(n, rng), 10 + 3 * rng.standard_normal(n), 0)


def _labels(V: np.ndarray, rng: np.random.Generator, K: int) -> np.ndarray:
    Z = np.column_stack([5 * _signal(V, rng) for _ in range(K)]) + rng.gumbel(size=(len(V), K))
    t = np.where(_wrong(len(V), rng), rng.integers(0, K, len(V)), Z.argmax(axis=1))
    t[:K] = np.arange(K)  # every class is there, however few the rows
    return np.asarray(t)


def _counts(V: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mu = np.exp(np.clip(1 + 0.5 * _signal(V, rng), -5, 5))
    return np.where(_wrong(len(V), rng), rng.poisson(60, len(V)), rng.poisson(mu)).astype(float)


def _amounts(V: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mu = np.exp(np.clip(1 + 0.5 * _signal(V, rng), -5, 5))
    return mu * rng.gamma(3.0, 1 / 3, len(V)) * np.where(_wrong(len(V), rng), 50.0, 1.0) + 1e-6


LOSSES: dict[str, Make] = {
    "least squares": lambda V, rng, b: LeastSquares(V, _real(V, rng), intercept=b),
    "huber": lambda V, rng, b: Huber(V, _real(V, rng), delta=0.5, intercept=b),
    "student": lambda V, rng, b: StudentT(V, _real(V, rng), sigma=0.3, intercept=b),
    "smooth l1": lambda V, rng, b: SmoothL1(V, _real(V, rng), eps=0.03, intercept=b),
    "logistic": lambda V, rng, b: Logistic(V, _labels(V, rng, 2), intercept=b),
    "softmax": lambda V, rng, b: Softmax(V, _labels(V, rng, 3), 3, intercept=b),
    "poisson": lambda V, rng, b: Poisson(V, _counts(V, rng), intercept=b),
    "gamma": lambda V, rng, b: Gamma(V, _amounts(V, rng), intercept=b),
}
REGULARIZERS: dict[str, Regularizer] = {
    "zero": Zero(),
    "l1": L1(0.01),
    "elastic net": ElasticNet(0.01),
    "scad": SCAD(0.05),
    "mcp": MCP(0.05),
    "l0": L0(alpha=0.002),
    "l0 ball": L0(k=4),
    "box": Box(-0.3, 0.3),
    "nonnegative": NonNegative(),
    "simplex": Simplex(),
    "sphere": Sphere(),
    "groups": GroupL2(0.01, groups=[0, 0, 1, 1, 2, 2]),
    "rank": Rank(1),
}
