"""What Algorithm 1 began, finished by second-order steps: when, for whom, and how far it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimlearn import Checkpoint, Problem, Status, solve
from trimlearn.engines import LocalEngine
from trimlearn.losses import Huber, LeastSquares, Logistic, Loss, Softmax
from trimlearn.regularizers import L1, SCAD, GroupL2, Regularizer, Ridge
from trimlearn.smart import alternating, palm, prox_svrg, saga, svrg
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.finish import LEVELS, PASSES, Finished, scout, unpenalised
from trimlearn.smart.method import FEW, SMALL, Record
from trimlearn.weights import AllOnes, CappedSimplex

RNG = np.random.default_rng(2)
N = 200
V = RNG.standard_normal((N, 5))
BETA = np.array([1.0, -2.0, 0.0, 0.5, 1.0])
T = V @ BETA + 0.3 * RNG.standard_normal(N) + 8 * (np.arange(N) < 25)
LABELS = np.where(np.arange(N) < 20, V @ BETA < 0, V @ BETA + RNG.logistic(size=N) > 0).astype(float)
PROBLEM = Problem(Logistic(V, LABELS, intercept=True), CappedSimplex(170), Ridge(1e-3))


# ---- for whom ----


def test_automatic_steps_are_finished_and_given_ones_are_not() -> None:
    for method in (svrg(), saga(), svrg(metric="lbfgs")):
        assert isinstance(method.bind(PROBLEM, 0), Finished)
    untrimmed = Problem(PROBLEM.loss, AllOnes())
    assert isinstance(prox_svrg().bind(untrimmed, 0), Finished)
    for method in (svrg(step=0.1), svrg(step="theory"), svrg(output="random"), svrg(finish=False), palm()):
        assert isinstance(method.bind(PROBLEM, 0), Algorithm1)


def test_only_where_it_is_affordable() -> None:
    def bound(n: int, p: int) -> Any:
        loss = LeastSquares(np.ones((n, p)), np.zeros(n))
        return svrg().bind(Problem(loss, CappedSimplex(n - 1)), 0)

    assert isinstance(bound(SMALL // FEW + 10, FEW), Finished)
    assert isinstance(bound(100, FEW + 1), Finished)
    many = bound(SMALL // FEW + 10, FEW + 1)
    assert isinstance(many, Algorithm1)
    assert not many.finishes


# ---- when ----


def test_algorithm_1_comes_first_and_is_what_it_was() -> None:
    """Until it hands over, a finished run is the run itself."""
    seen: dict[bool, list[Record]] = {}
    for finish in (True, False):
        seen[finish] = solve(PROBLEM, svrg(finish=finish), max_passes=100, tol=0.0).history
    h = PROBLEM.r1.h
    before = next(i for i, record in enumerate(seen[False]) if record.h == h)
    assert before >= 8  # the continuation's w-steps
    for a, b in zip(seen[True][:before], seen[False][:before], strict=True):
        assert (a.k, a.passes, a.objective) == (b.k, b.passes, b.objective)


def test_it_waits_until_w_has_settled_where_the_problem_is_large() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20))
    right = X[:, 0] + 0.5 * rng.logistic(size=60_000) > 0
    y = np.where(rng.random(60_000) < 0.05, ~right, right).astype(float)
    found = solve(Problem(Logistic(X, y, intercept=True), CappedSimplex(57_000), Ridge(1e-3)), svrg())
    assert found.status is Status.CONVERGED
    assert found.passes <= 101
    assert found.decrease <= 1e-4


def test_few_passes_are_not_spent_elsewhere() -> None:
    for passes in (5, 12, PASSES * LEVELS - 1):
        assert solve(PROBLEM, svrg(), max_passes=passes, tol=0.0).passes <= passes + 2
    assert solve(PROBLEM, svrg(), max_passes=60, tol=0.0).passes <= 2 * 60 + 2


def test_a_look_elsewhere_leaves_the_run_its_own_passes() -> None:
    assert solve(PROBLEM, svrg(), max_passes=PASSES * LEVELS + 1).status is Status.CONVERGED


# ---- how far ----


def hard(name: str) -> Problem:
    """Problems on which first-order steps are not at the end after 100 passes."""
    rng = np.random.default_rng(1)
    designs = {
        "correlated": 0.995 * rng.standard_normal((N, 1)) + 0.1 * V,
        "scales": V * 10.0 ** np.linspace(-6, 6, 5),
        "Cauchy": np.column_stack([V[:, :3], rng.standard_cauchy((N, 2))]),
        "offset, no intercept": V + 10,
        "n < p": rng.standard_normal((40, 60)),
    }
    X = designs[name]
    loss: Loss = Huber(X, T[: len(X)], delta=0.5, intercept=name != "offset, no intercept")
    return Problem(loss, CappedSimplex(round(0.8 * len(X))), Ridge(1e-3))


@pytest.mark.parametrize("name", ["correlated", "scales", "Cauchy", "offset, no intercept", "n < p"])
def test_it_gets_to_the_bottom_of_its_valley(name: str) -> None:
    problem = hard(name)
    found = solve(problem, svrg())
    polished = solve(problem, alternating(), w0=found.w, x0=found.x, max_passes=1000, tol=1e-9)
    assert found.objective <= polished.objective * (1 + 1e-3)


@pytest.mark.parametrize("r2", [L1(1e-2), GroupL2(1e-2, groups=[0, 0, 1, 1, 2]), SCAD(0.02)], ids=lambda r2: r2.name)
def test_with_any_penalty(r2: Regularizer) -> None:
    scales = [1e-3, 1, 1e3, 1, 1] if r2.separable else 1  # a prox that couples coordinates has no diagonal metric
    problem = Problem(Softmax(V * scales, LABELS.astype(int), intercept=True), CappedSimplex(170), r2)
    found = solve(problem, svrg())
    polished = solve(problem, alternating(), w0=found.w, x0=found.x, max_passes=400, tol=1e-8)
    assert found.objective <= polished.objective * (1 + 1e-3)


def test_a_look_elsewhere_is_never_worse_and_leaves_the_target() -> None:
    run, engine = svrg().bind(PROBLEM, 0), LocalEngine(PROBLEM)
    assert isinstance(run, Finished)
    engine.max_passes = 400.0
    state = run.init(engine, PROBLEM.loss.start())
    ends = [scout(engine, run.last, state, state.x, levels) for levels in ([], [190.0, 180.0])]
    assert engine.r1 is PROBLEM.r1
    for F, x in ends:
        w = PROBLEM.r1.minimise(PROBLEM.loss.values(x))
        assert PROBLEM.objective(w, x) <= F * (1 + 1e-12)
    made = engine.passes
    F, _ = scout(engine, run.last, state, ends[0][1], [])
    assert F <= ends[0][0]
    assert engine.passes - made <= 3 * PASSES  # from where it ended there is nothing left to look for
    engine.max_passes = engine.passes
    assert scout(engine, run.last, state, state.x, [])[0] == np.inf


def test_a_way_that_leads_nowhere_is_no_minimum() -> None:
    engine, run = LocalEngine(PROBLEM), svrg().bind(PROBLEM, 0)
    assert isinstance(run, Finished)
    state, lost = run.init(engine, np.zeros(6)), np.full(6, np.nan)
    assert scout(engine, run.last, state, lost, [])[0] == np.inf


def test_without_its_penalty_x_is_free() -> None:
    problem = Problem(LeastSquares(V, T), CappedSimplex(175), SCAD(100.0))
    engine = LocalEngine(problem)
    x = unpenalised(engine, np.zeros(5))
    assert np.linalg.norm(x - BETA) < 1
    found = solve(Problem(Logistic(V, LABELS), CappedSimplex(170), SCAD(0.02)), svrg())
    assert found.objective < 0.7 * np.log(2) * 170 / N  # that of x = 0


def test_a_finished_run_resumes(tmp_path: Path) -> None:
    whole = solve(PROBLEM, svrg(), tol=1e-12, max_passes=60)
    for stop in (len(whole.history) // 2, len(whole.history) - 2):
        path, seen = tmp_path / f"{stop}.npz", []

        def callback(record: Record, seen: list[Record] = seen, stop: int = stop) -> bool:
            seen.append(record)
            return len(seen) > stop

        keep = Checkpoint(path, every=0)
        solve(PROBLEM, svrg(), tol=1e-12, max_passes=60, callback=callback, checkpoint=keep)
        again = solve(PROBLEM, svrg(), tol=1e-12, max_passes=60, checkpoint=Checkpoint(path, every=1e9))
        np.testing.assert_array_equal(again.x, whole.x)
        assert again.objective == whole.objective
