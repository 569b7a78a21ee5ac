"""Rows in three places: the contract of engines, the search for the threshold, and shards that were lost."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import PROBLEMS, ThreeShards, hold, operations, table
from trimlearn import solve
from trimlearn._utils.digits import histogram, order_keys
from trimlearn.checkpoint import Checkpoint
from trimlearn.engines import LocalEngine
from trimlearn.engines.levels import Level, level
from trimlearn.losses import LeastSquares
from trimlearn.problem import Problem
from trimlearn.smart import alternating, page, palm, prox_svrg, saga, svrg
from trimlearn.smart.method import Method
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_engine_in_three_places_answers_as_one_in_this_process(name: str) -> None:
    problem = PROBLEMS[name]()
    hold(ThreeShards(problem), problem)


@pytest.mark.parametrize("name", ["least squares", "weighted"])
def test_the_contract_tells_an_engine_that_forgets_a_shard(name: str) -> None:
    problem = PROBLEMS[name]()
    engine = ThreeShards(problem)
    engine.shards[1] = engine.shards[0]
    with pytest.raises(AssertionError):
        hold(engine, problem)


METHODS: dict[str, Method] = {
    "svrg": svrg(b=20, q=0.2, step=0.02),
    "svrg-auto": svrg(b=20),
    "svrg-snapshot": svrg(b=20, q=0.2, step=0.02, duals="snapshot"),
    "alternating": alternating(),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["least squares", "weighted", "softmax", "ties"])
def test_a_run_in_three_places_is_the_run_in_this_process(name: str, method: str) -> None:
    problem = PROBLEMS[name]()
    engines = LocalEngine(problem), ThreeShards(problem)
    one, three = (solve(problem, METHODS[method], engine=engine, max_passes=12, seed=4) for engine in engines)
    assert three.objective == pytest.approx(one.objective, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(three.x, one.x, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(three.w, one.w, atol=1e-9)
    assert three.status is one.status


@pytest.mark.parametrize("when", range(3, 55, 7))
def test_a_shard_that_is_lost_changes_nothing(when: int) -> None:
    """It is read again, and brought back to where it stood, whatever was asked last."""
    problem = PROBLEMS["weighted"]()
    undisturbed = solve(problem, svrg(b=20), engine=ThreeShards(problem), max_passes=10)
    engine = ThreeShards(problem)
    ask_all = engine.ask_all

    def losing(*asked: object) -> object:
        if engine.asked == when:
            engine.shards[1] = engine.shard(1)
        return ask_all(*asked)  # type: ignore[arg-type]

    engine.ask_all = losing  # type: ignore[method-assign, assignment]
    disturbed = solve(problem, svrg(b=20), engine=engine, max_passes=10)
    assert engine.asked > when
    np.testing.assert_array_equal(disturbed.x, undisturbed.x)
    np.testing.assert_array_equal(disturbed.w, undisturbed.w)
    assert disturbed.counts == undisturbed.counts


def test_a_checkpoint_holds_no_weight_of_a_row_and_resumes_the_run(tmp_path: Path) -> None:
    problem, file = PROBLEMS["least squares"](), tmp_path / "fit.npz"
    whole = solve(problem, svrg(b=20), engine=ThreeShards(problem), max_passes=14)
    for passes in (5, 14):
        saved = Checkpoint(file, every=0)
        ended = solve(problem, svrg(b=20), engine=ThreeShards(problem), max_passes=passes, checkpoint=saved)
        with np.load(file) as archive:
            assert "w" not in archive.files
    np.testing.assert_array_equal(ended.w, whole.w)
    np.testing.assert_allclose(ended.x, whole.x, rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (saga(b=9), "D = ∅"),
        (palm(), "D = ∅"),
        (svrg(b=9, tau=5.0), "τ = ∞"),
        (page(b=9), "change from step to step"),
        (svrg(b=9, duals="gradients"), "change from step to step"),
    ],
    ids=["saga", "palm", "tau", "page", "gradients"],
)
def test_what_needs_a_state_of_its_own_is_refused_at_once(method: Method, message: str) -> None:
    problem = PROBLEMS["least squares"]()
    engine = ThreeShards(problem)
    with pytest.raises(ValueError, match=message) as error:
        solve(problem, method, engine=engine)
    assert "\n" not in str(error.value)
    assert engine.counts.gradients == 0


def test_groups_are_refused() -> None:
    V, t, _ = table()
    problem = Problem(LeastSquares(V, t), GroupCappedSimplex(np.arange(len(t)) % 2, 60))
    with pytest.raises(ValueError, match="CappedSimplex"):
        solve(problem, svrg(b=9), engine=ThreeShards(problem))


def test_prox_svrg_runs_where_nothing_is_trimmed() -> None:
    problem = PROBLEMS["untrimmed"]()
    found = [solve(problem, prox_svrg(b=20), engine=engine) for engine in (LocalEngine(problem), ThreeShards(problem))]
    np.testing.assert_allclose(found[1].x, found[0].x, rtol=1e-8)


# ---- the threshold ----

numbers = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, -0.0, 1.0, inf, np.nan])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(numbers, min_size=1, max_size=40), st.floats(0.01, 1.0), st.booleans(), st.booleans(), st.integers(0, 99)
)
def test_the_level_gives_the_weights_that_sorting_gives(
    values: list[float], share: float, single: bool, weighted: bool, seed: int
) -> None:
    f = np.array(values, dtype=np.float32 if single else np.float64)
    s = np.random.default_rng(seed).integers(0, 3, len(f)).astype(np.float64) if weighted else None
    total = float(len(f) if s is None else s.sum())
    if total == 0:
        return
    r1 = CappedSimplex(share * total)
    keys = order_keys(f)
    parts = [slice(0, len(f) // 3), slice(len(f) // 3, None)]
    found = level(
        r1,
        total,
        s is None,
        f.dtype,
        lambda *at: sum(histogram(keys[part], None if s is None else s[part], *at) for part in parts),  # type: ignore[arg-type, return-value]
    )
    np.testing.assert_allclose(found.weights(f, s), r1.minimise(f, s), atol=1e-6 if single else 1e-12)


def test_the_order_of_keys_is_that_of_floats() -> None:
    for dtype in (np.float32, np.float64):
        f = np.array(
            [-inf, -1e30, -2.5, -1e-30, -0.0, 0.0, 1e-30, 1.0, np.nextafter(dtype(1), dtype(2)), 1e30, inf], dtype
        )
        keys = order_keys(f)
        assert np.all(np.diff(keys.astype(object)) >= 0)
        assert keys[4] == keys[5] and len(set(keys.tolist())) == len(f) - 1


def test_all_ones_keeps_every_row_that_is_there() -> None:
    found = level(AllOnes(), 3.0, True, np.dtype("f8"), lambda *_: np.zeros(1))
    assert found == Level(inf, 1.0)
    np.testing.assert_array_equal(found.weights(np.array([1.0, inf, np.nan]), np.array([1.0, 1.0, 0.0])), [1, 1, 0])


def test_operations_name_every_number_they_compare() -> None:
    """A contract that compares nothing holds anything."""
    found = operations(LocalEngine(PROBLEMS["least squares"]()))
    assert len(found) >= 20 and all(np.size(value) for value in found.values() if not isinstance(value, tuple))
