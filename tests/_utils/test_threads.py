"""`trimlearn._utils.threads`: the same numbers on any number of threads, and BLAS left as it was found."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from trimlearn import Problem, solve
from trimlearn._utils import threads as teams
from trimlearn._utils.threads import each, team, total
from trimlearn.losses import LeastSquares, Poisson, Softmax, Subspace
from trimlearn.regularizers import Ridge, Stiefel, Zero
from trimlearn.smart import alternating, saga, svrg
from trimlearn.smart.method import small
from trimlearn.weights import CappedSimplex


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(params=[1, 2, 3])
def size(request: pytest.FixtureRequest) -> Iterator[int]:
    with threadpool_limits(request.param, user_api="blas"):
        yield request.param


def test_each_keeps_the_order_and_uses_every_thread(size: int) -> None:
    barrier = threading.Barrier(size, timeout=10)

    def task(k: int) -> tuple[int, int]:
        if k < size:  # passes only if that many threads are here at a time
            barrier.wait()
        return k, threading.get_ident()

    with team():
        found = each(task, range(7))
    assert [k for k, _ in found] == list(range(7))
    assert len({ident for _, ident in found}) == size


def test_without_a_team_everything_happens_here(size: int) -> None:
    assert set(each(lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}
    with team(worth_it=False):
        assert set(each(lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}
        assert set(blas_threads()) == {size}


def test_a_task_that_asks_for_more_does_it_itself(size: int) -> None:
    with team():
        found = each(lambda a: sum(each(lambda b: a * b, range(5))), range(6))
    assert found == [10 * a for a in range(6)]


def test_blas_has_one_thread_inside_and_its_own_number_after(size: int) -> None:
    with team():
        assert set(blas_threads()) == {1}
        with team():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {size}


def test_blas_is_restored_whatever_the_order_in_which_threads_leave() -> None:
    entered, leave = threading.Event(), threading.Event()

    def longer() -> list[int]:
        with team():  # beside another team: alone, on its own thread
            entered.set()
            leave.wait(10)
            return each(lambda _: threading.get_ident(), range(4))

    before = blas_threads()
    with ThreadPoolExecutor(1) as pool:
        with team():
            future = pool.submit(longer)
            assert entered.wait(10)
            assert set(blas_threads()) == {1}
        leave.set()
        assert len(set(future.result())) == 1
    assert blas_threads() == before


def test_an_error_in_a_piece_reaches_the_caller(size: int) -> None:
    def task(k: int) -> int:
        if k == 1:
            raise ValueError("piece 1")
        return k

    with pytest.raises(ValueError, match="piece 1"), team():
        each(task, range(3))
    assert set(blas_threads()) == {size}


def test_the_next_team_finds_the_threads_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teams, "_threads_of", lambda controller: 3)
    barrier = threading.Barrier(3, timeout=10)

    def who(_: int) -> int:
        barrier.wait()
        return threading.get_ident()

    with team():
        first = set(each(who, range(3)))
    with team():
        assert set(each(who, range(3))) == first
    with team(size=3), team(size=3):  # one inside the other: threads of its own
        assert not set(each(who, range(3))) & (first - {threading.get_ident()})


def test_no_thread_is_still_at_work_when_an_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teams, "_threads_of", lambda controller: 2)
    main, ended, begun = threading.get_ident(), threading.Event(), threading.Barrier(2, timeout=10)

    def task(_: int) -> None:
        begun.wait()
        if threading.get_ident() == main:
            raise ValueError("here")
        time.sleep(0.1)
        ended.set()

    with team():
        with pytest.raises(ValueError, match="here"):
            each(task, range(2))
        assert ended.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_starts_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teams, "_threads_of", lambda controller: 2)
    with team():
        each(abs, range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of a fork beside threads
        child = os.fork()
    if child == 0:
        with team():
            os._exit(0 if each(abs, range(4)) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_numpy_error_state_holds_in_the_threads(size: int) -> None:
    with team(), np.errstate(over="ignore"):
        found = each(lambda _: np.exp(np.full(1000, 1e4)).max(), range(4))
    assert found == [np.inf] * 4


def test_the_order_of_a_sum_does_not_depend_on_the_threads() -> None:
    terms = 10.0 ** np.random.default_rng(0).uniform(-8, 8, 500)
    sums = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"), team():
            sums.add(total(lambda k: float(terms[k]), range(500), 0.0))
    assert sums == {reduce(add, terms.tolist())}  # `sum` compensates for rounding from Python 3.12 on


def large_problem(name: str) -> Problem:
    """Just over the 10⁶ numbers, rows times parameters, up to which a problem counts as small."""
    rng = np.random.default_rng(1)
    V = rng.standard_normal((26_000 if name in ("sparse", "least squares") else 13_000, 40))
    n = len(V)
    loss, r2 = {
        "softmax": lambda: (Softmax(V.astype(np.float32), rng.integers(0, 4, n)), Ridge(1e-3)),
        "sparse": lambda: (Poisson(sp.csr_array(np.where(V > 1.3, V, 0.0)), rng.poisson(2, n)), Zero()),
        "least squares": lambda: (LeastSquares(V, V[:, 0] + rng.standard_normal(n), intercept=True), Zero()),
        "subspace": lambda: (Subspace(V, 2), Stiefel()),
    }[name]()
    return Problem(loss, CappedSimplex(5 * n / 6), r2)


@pytest.mark.parametrize("method", [svrg(), saga(), alternating()], ids=["svrg", "saga", "alternating"])
@pytest.mark.parametrize("name", ["softmax", "sparse", "least squares", "subspace"])
def test_a_large_solve_gives_the_same_bits_on_any_number_of_threads(name: str, method: svrg) -> None:
    found = []
    for threads in (1, 2, 3):
        problem = large_problem(name)
        assert not small(problem)
        with threadpool_limits(threads, user_api="blas"):
            found.append(solve(problem, method, max_passes=3))
    for other in found[1:]:
        np.testing.assert_array_equal(other.x, found[0].x)
        np.testing.assert_array_equal(other.w, found[0].w)
        assert other.objective == found[0].objective
