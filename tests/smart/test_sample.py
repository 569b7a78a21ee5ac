"""Starts from a sample of the rows, and quasi-Newton steps on the profile: where rows are many."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from trimlearn import Checkpoint, Problem, Solution, Status, solve
from trimlearn.engines import LocalEngine
from trimlearn.losses import LeastSquares, Logistic, Softmax
from trimlearn.losses.sampled import SampledRows
from trimlearn.regularizers import Ridge
from trimlearn.smart import alternating, svrg
from trimlearn.smart.profile import ProfileSteps
from trimlearn.smart.sample import from_sample
from trimlearn.starts import Continuation
from trimlearn.weights import CappedSimplex, GroupCappedSimplex

N, P = 84_000, 12
RNG = np.random.default_rng(0)
V = RNG.standard_normal((N, P))
RIGHT = RNG.random(N) < 1 / (1 + np.exp(-2 * V @ RNG.standard_normal(P)))
LABELS = np.where(RNG.random(N) < 0.1, ~RIGHT, RIGHT).astype(float)
H = 0.88 * N


def problem(V: object = V, s: np.ndarray | None = None) -> Problem:
    return Problem(Logistic(V, LABELS, intercept=True), CappedSimplex(H), Ridge(1 / N), sample_weight=s)


@pytest.fixture(scope="module")
def found() -> Solution:
    return solve(problem())


def test_the_start_is_at_the_target_and_the_end_as_good_as_a_path_over_all_rows(found: Solution) -> None:
    """The same valley, in fewer passes."""
    slow = solve(problem(), start=Continuation())
    assert found.history[0].h == H
    assert slow.history[0].h == N
    assert found.status is Status.CONVERGED
    assert found.passes < 0.75 * slow.passes
    assert found.objective <= slow.objective * (1 + 1e-5)


def test_a_sample_keeps_the_share_that_all_rows_keep() -> None:
    part = LocalEngine(problem()).sample(20_000, seed=0)
    assert part is not None
    assert part.problem.n < 20_000  # some were drawn twice, and count once
    assert part.problem.r1.h / part.problem.n == pytest.approx(H / N)


def test_a_zero_that_is_written_down_tells_nothing_of_its_column() -> None:
    A = sp.csr_array(V[:, :2])
    A.data[1::2] = 0.0
    assert LocalEngine(Problem(Logistic(A, LABELS), CappedSimplex(H))).sample(10_000, seed=0) is None


def test_every_record_is_lower_than_the_one_before(found: Solution) -> None:
    values = [record.objective for record in found.history]
    assert len(values) > 2
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))


def test_alternating_and_given_starts_are_what_they_were() -> None:
    assert solve(problem(), alternating(), max_passes=4).history[0].h == N
    assert solve(problem(), svrg(finish=False), max_passes=4).history[0].h == N


def test_the_same_bits_on_any_number_of_threads(found: Solution) -> None:
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert np.array_equal(solve(problem()).x, found.x)


def test_resumed_it_is_the_same_run(found: Solution, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    for stop in (3, 5, 100):
        again = solve(problem(), checkpoint=Checkpoint(file, every=0), callback=lambda r, k=stop: r.k >= k)
    assert np.array_equal(again.x, found.x)


# ---- which samples ----


def test_a_column_that_hardly_varies_in_the_sample_forbids_it() -> None:
    """Its coefficient would be a guess, and rows that contradict it trimmed."""
    rare = V.copy()
    rare[:, 3] = RNG.random(N) < 1e-3
    assert LocalEngine(problem(rare)).sample(10_000, 0) is None
    assert LocalEngine(problem(sp.csr_array(rare))).sample(10_000, 0) is None
    assert from_sample(LocalEngine(problem(rare)), 0) is None
    assert solve(problem(rare), max_passes=3).history[0].h == N


def test_a_constant_column_does_no_harm() -> None:
    constant = V.copy()
    constant[:, 3] = 7.0
    assert solve(problem(constant), max_passes=30).objective < np.log(2)


def test_a_sample_is_drawn_by_sample_weights() -> None:
    s = np.where(np.arange(N) % 3 == 0, 0.0, np.where(np.arange(N) % 3 == 1, 1.0, 4.0))
    whole = Problem(problem().loss, CappedSimplex(0.8 * s.sum()), Ridge(1 / N), sample_weight=s)
    part = LocalEngine(whole).sample(10_000, 0)
    assert part is not None
    assert isinstance(part.problem.loss, SampledRows)
    rows, times = part.problem.loss._rows, np.asarray(part.problem.s)
    assert np.all(s[rows] > 0)
    assert part.problem.S == 10_000
    assert part.problem.r1.h == pytest.approx(8_000)
    assert times[s[rows] == 4].sum() == pytest.approx(8_000, rel=0.03)


def test_a_sample_has_the_losses_of_its_rows() -> None:
    for whole in (problem(), problem(sp.csr_array(V))):
        part = LocalEngine(whole).sample(10_000, 1)
        assert part is not None
        assert isinstance(part.problem.loss, SampledRows)
        x, rows = whole.loss.generic(), part.problem.loss._rows
        assert np.array_equal(part.problem.loss.values(x), whole.loss.values(x)[rows])
        c = np.full(len(rows), 1 / len(rows))
        of_all = np.zeros(N)
        of_all[rows] = c
        assert np.allclose(part.problem.loss.hessian(x, c), whole.loss.hessian(x, of_all), rtol=1e-10, atol=1e-14)


def test_groups_are_not_sampled() -> None:
    groups = np.arange(N) % 2
    r1 = GroupCappedSimplex(groups, [0.44 * N, 0.44 * N])
    assert LocalEngine(Problem(problem().loss, r1, Ridge(1 / N))).sample(10_000, 0) is None


def test_a_sample_that_flatters_itself_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimlearn.smart.sample.SURPRISE", -1.0)
    assert from_sample(LocalEngine(problem()), 0) is None
    assert solve(problem(), max_passes=3).history[0].h == N


# ---- steps on the profile ----


def test_a_step_that_does_not_bring_what_it_promised_is_replaced(found: Solution) -> None:
    """With a Hessian that is far too small every step overshoots: it is taken back, and Newton's are made instead."""
    run = svrg().bind(problem(), 0)
    engine = LocalEngine(run.first.problem)  # type: ignore[union-attr]
    engine.max_passes = 100.0
    x = from_sample(engine, 0)
    assert x is not None
    state = run.init(engine, x)
    run.begin_near(engine, state)
    steps = run.steps  # type: ignore[union-attr]
    assert isinstance(steps, ProfileSteps)
    before = state.base + engine.problem.r2.value(x)
    for failures in (1, 2):
        state.metric.profile = 1e4 * np.eye(P + 1)
        steps.advance(engine, state)
        assert state.failures == failures
        assert state.record is not None
        assert state.record.objective <= before
        before = state.record.objective
    assert state.metric.profile is None
    for _ in range(5):
        steps.advance(engine, state)
    assert state.record.objective <= found.objective * (1 + 1e-4)
    engine.evaluate(state.x)
    assert engine.reweigh(inf).gap >= 0


def test_classes_too() -> None:
    t = (V[:, :3] + RNG.gumbel(size=(N, 3))).argmax(axis=1)
    t = np.where(RNG.random(N) < 0.1, (t + 1) % 3, t)
    found = solve(Problem(Softmax(V, t, intercept=True), CappedSimplex(H), Ridge(1 / N)))
    assert found.history[0].h == H
    assert found.decrease <= 1e-4


def test_a_profile_that_is_hardly_curved_does_not_make_longer_steps() -> None:
    """Rows that lie ever denser draw x on by steps that stay as long: a secant of G would say that it is flat, and
    send the next step far beyond them."""
    t = np.log(np.linspace(0.01, 1.0, 4000))
    problem = Problem(LeastSquares(np.ones((4000, 1)), t), CappedSimplex(400))
    engine, plain = LocalEngine(problem), alternating().bind(problem, 0)
    x = np.array([-1.5])
    engine.set_best_weights(x)
    state = plain.init(engine, x)
    engine.max_passes, steps, moved = np.inf, ProfileSteps(plain), []
    for _ in range(3):
        before = state.x
        steps.advance(engine, state)
        moved.append((state.x - before).item())
        np.testing.assert_allclose(state.metric.profile, [[10.0]])  # the inverse of the Hessian h/n, as it was
    assert 0 < moved[2] < moved[1] < moved[0] < 1.2 * moved[2]
