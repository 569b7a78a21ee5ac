"""Rows on the workers of a real cluster: the contract, workers that die or are slow, and what users hand in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import killed_driver
from contract import PROBLEMS, hold, table
from killing import kill_when_ready
from trimlearn import TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression, TrimmedPCA, on_dask, solve
from trimlearn.checkpoint import Checkpoint
from trimlearn.checkpoint.fit import FitCheckpoint
from trimlearn.engines import LocalEngine
from trimlearn.engines.cluster import workers as workers_module
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.workers import Workers
from trimlearn.losses import LeastSquares, Subspace
from trimlearn.problem import Problem
from trimlearn.regularizers import Stiefel
from trimlearn.smart import alternating, saga, svrg
from trimlearn.smart.method import Record
from trimlearn.weights import CappedSimplex

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

CLUSTER: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
CLUSTER["scheduler_kwargs"] = {"dashboard_address": ":0"}  # whatever port is free


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with distributed.LocalCluster(**CLUSTER) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def rows(n: int = 4000, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A linear model of n rows, and which of them are wrong."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, p)) + 3.0
    bad = rng.random(n) < 0.15
    return V, V @ np.arange(1.0, p + 1) + rng.normal(size=n) + np.where(bad, 15.0, 0.0), bad


def problem(n: int = 4000) -> Problem:
    V, t, _ = rows(n)
    return Problem(LeastSquares(V, t, intercept=True), CappedSimplex(0.8 * n))


# ---- the engine ----


@pytest.mark.parametrize("name", ["weighted", "softmax", "logistic in float32"])
def test_the_workers_answer_as_one_process(client: Any, name: str) -> None:
    whole = PROBLEMS[name]()
    engine = DaskEngine.of(whole, client)
    hold(engine, whole)
    engine.close()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_shards_takes_the_steps_of_one_process(client: Any, count: int) -> None:
    whole, method = problem(), svrg(b=600, q=0.2)
    expected = solve(whole, method, engine=LocalEngine(whole), max_passes=4, seed=3)
    workers = Workers(client)
    workers.addresses = (workers.addresses * 2)[:count]
    found = solve(whole, method, engine=DaskEngine.of(whole, workers), max_passes=4, seed=3)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-8)
    np.testing.assert_array_equal(found.w, expected.w)
    assert found.counts == expected.counts


def test_a_driver_that_was_killed_goes_on_from_its_checkpoint(client: Any, tmp_path: Path) -> None:
    whole, method, file = problem(), svrg(b=600, q=0.2, step=0.05), tmp_path / "fit.npz"
    expected = solve(whole, method, engine=DaskEngine.of(whole, client), max_passes=5)

    def killed(record: Record) -> None:
        if record.passes > 2.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saved = Checkpoint(file, every=0)
        solve(whole, method, engine=DaskEngine.of(whole, client), max_passes=5, callback=killed, checkpoint=saved)
    found = solve(whole, method, engine=DaskEngine.of(whole, client), max_passes=5, checkpoint=file)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-9)
    np.testing.assert_array_equal(found.w, expected.w)


def test_a_slow_worker_is_waited_for_and_named(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def nap(shard: Any) -> tuple[float]:
        """A task for which one worker takes long; workers do not import this module for it."""
        time.sleep(0.8 if shard.lo else 0.0)
        return (1.0,)

    whole = problem(200)
    engine = DaskEngine.of(whole, client)
    engine.evaluate(np.zeros(5))
    monkeypatch.setattr(workers_module, "PATIENCE", 0.3)
    said: list[str] = []
    engine.say = said.append
    with pytest.warns(UserWarning, match="slow worker holds up all others: waiting for 1 of 2 shards.*tcp://"):
        assert engine.ask(nap) == (2.0,)
    assert any("1 of 2 shards" in sentence for sentence in said)
    engine.close()


def test_nothing_is_left_on_the_scheduler_by_many_rounds(client: Any) -> None:
    def known(dask_scheduler: Any) -> tuple[int, int]:
        return len(dask_scheduler.tasks), len(dask_scheduler.task_prefixes)

    engine = DaskEngine.of(problem(200), client)
    x = np.zeros(5)
    for _ in range(20):
        engine.evaluate(x)
    before = client.run_on_scheduler(known)
    for _ in range(100):
        engine.evaluate(x)
    after = client.run_on_scheduler(known)
    assert after[0] <= before[0] + 8  # a round's own, on their way out
    assert after[1] <= before[1] + 1
    engine.close()


# ---- bad input ----


def test_a_client_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "PATIENCE", 0.3)
    whole = problem(100)
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client"):
        DaskEngine.of(whole, "tcp://nowhere")
    with distributed.LocalCluster(**{**CLUSTER, "n_workers": 0}) as cluster:
        empty = distributed.Client(cluster, set_as_default=False)
        with empty, pytest.raises(ValueError, match="client has no workers"):
            DaskEngine.of(whole, empty)
        with pytest.raises(ValueError, match="client is closed"):
            DaskEngine.of(whole, empty)


def test_what_a_cluster_does_not_take_is_refused_in_one_sentence(client: Any) -> None:
    whole = problem(100)
    engine = DaskEngine.of(whole, client)
    for method, message in ((saga(b=9), "D = ∅"), (svrg(b=9, tau=5.0), "τ = ∞")):
        with pytest.raises(ValueError, match=message):
            solve(whole, method, engine=engine)
    with pytest.raises(ValueError, match="not Subspace"):
        DaskEngine.of(Problem(Subspace(rows(50)[0], 2), CappedSimplex(40), Stiefel()), client)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda A, b: (A[:, :3], b), r"partition 1.* has columns 3|has columns 4, .*columns 3"),
        (lambda A, b: (A.astype(np.float32), b), "dtype float64, .* has dtype float32"),
        (lambda A, b: (A, b[:-1]), "X has 50 rows and y 49"),
        (
            lambda A, b: (np.where(np.arange(50)[:, None] == 7, np.nan, A), b),
            "X holds NaN or infinity in row 7 of part",
        ),
        (lambda A, b: (A, np.where(np.arange(50) == 9, np.inf, b)), "y holds NaN or infinity in row 9 of partition"),
        (lambda A, b: (A.astype(str), b), "X must hold numbers"),
    ],
    ids=["width", "dtype", "length", "nan", "inf", "text"],
)
def test_shards_that_do_not_agree_are_named(client: Any, change: Any, message: str) -> None:
    from dask import delayed

    V, t, _ = rows(50)
    parts = [(V, t), change(V, t)]
    X = da.concatenate(
        [da.from_delayed(delayed(A), (np.nan, 4), float) for A, _ in parts], allow_unknown_chunksizes=True
    )
    y = da.concatenate([da.from_delayed(delayed(b), (np.nan,), float) for _, b in parts], allow_unknown_chunksizes=True)
    with client.as_current(), pytest.raises(ValueError, match=message) as error:
        TrimmedLinearRegression().fit(X, y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (None, r"y holds no label in row 5 of partition 1 \(counted"),
        (np.nan, r"y holds no label in row 5 of partition 1 \(counted"),
        (7, "y holds labels of several kinds, text and numbers: write all of them as text"),
    ],
)
def test_labels_that_are_none_are_named(client: Any, spoilt: Any, message: str) -> None:
    V, _, bad = rows(60)
    y = np.where(bad, "yes", "no").astype(object)
    y[35] = spoilt
    X, labels = da.from_array(V, chunks=30), da.from_array(y, chunks=30)
    with client.as_current(), pytest.raises(ValueError, match=message) as error:
        TrimmedLogisticRegression().fit(X, labels)
    assert "\n" not in str(error.value)
    numbers = da.concatenate([labels[:30], da.ones(30, chunks=30, dtype=int)])
    with client.as_current(), pytest.raises(ValueError, match="labels of several kinds"):
        TrimmedLogisticRegression().fit(X, numbers)


def test_collections_are_never_computed_in_silence(client: Any) -> None:
    V, t, _ = rows(60)
    X, y = da.from_array(V, chunks=20), da.from_array(t, chunks=20)
    with pytest.raises(ValueError, match=r"takes arrays in memory here, got Array of Dask: call compute\(\)"):
        TrimmedPCA().fit(X, y)
    with client.as_current(), pytest.raises(ValueError, match="y has 59 rows and X 60"):
        TrimmedLinearRegression().fit(X, y[:-1])
    with pytest.raises(ValueError, match="y must be a Dask collection"), client.as_current():
        TrimmedLinearRegression().fit(X, list(t))


# ---- the estimators ----


def sample_of(monkeypatch: pytest.MonkeyPatch, m: int) -> None:
    """Fits on Dask start from so many rows, and never from all."""
    monkeypatch.setattr("trimlearn.estimators.streamed.WHOLE", 0)
    monkeypatch.setattr("trimlearn.estimators.streamed.SAMPLED", m)


@pytest.mark.parametrize("sampled", [None, 1000], ids=["all rows in the sample", "some"])
def test_linear_regression_of_dask_arrays_is_that_of_numpy_arrays(
    client: Any, sampled: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sampled is not None:
        sample_of(monkeypatch, sampled)
    V, t, bad = rows(3000)
    expected = TrimmedLinearRegression(contamination=0.2, random_state=0).fit(V, t)
    X = da.from_array(V, chunks=(700, 2))
    with client.as_current():
        model = TrimmedLinearRegression(contamination=0.2, random_state=0).fit(X, da.from_array(t, chunks=1100))
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
        lazy = (model.weights_, model.raw_weights_, model.outlier_scores_, model.inlier_mask_, model.predict(X))
        assert all(isinstance(found, da.Array) and found.shape == (3000,) for found in lazy)
        np.testing.assert_array_equal(model.inlier_mask_.compute(), expected.inlier_mask_)
        np.testing.assert_allclose(model.predict(X).compute(), expected.predict(V), rtol=1e-5)
        np.testing.assert_allclose(model.outlier_scores_.compute(), expected.outlier_scores_, atol=1e-4)
        again = model.outlier_score(X, da.from_array(t, chunks=700)).compute()
        np.testing.assert_allclose(again, model.outlier_scores_.compute(), rtol=1e-9, atol=1e-12)
    assert np.mean(expected.inlier_mask_ != bad) > 0.99


def test_a_data_frame_keeps_its_names_and_weights_count_rows(client: Any) -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    V, t, s = table()
    frame = pd.DataFrame(V, columns=["a", "b", "c", "d"]).assign(t=t, s=s)
    lazy = dd.from_pandas(frame, npartitions=4)
    options: dict[str, Any] = {"contamination": 0.2, "random_state": 0, "efficiency": "reweight"}
    expected = TrimmedLinearRegression(**options).fit(frame[["a", "b", "c", "d"]], t, s)
    with client.as_current():
        model = TrimmedLinearRegression(**options).fit(lazy[["a", "b", "c", "d"]], lazy["t"], lazy["s"])
        assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
        predicted = model.predict(lazy[["a", "b", "c", "d"]]).compute()
    np.testing.assert_allclose(predicted, expected.predict(frame[["a", "b", "c", "d"]]), rtol=1e-8)


def test_columns_of_a_frame_may_be_numbers_of_several_kinds(client: Any) -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    V, t, _ = rows(120, p=3)
    frame = pd.DataFrame({"a": V[:, 0], "b": V[:, 1] > 3, "c": np.round(V[:, 2]).astype(int)})
    frame["d"] = pd.array(V[:, 1], dtype="Float64")
    expected = TrimmedLinearRegression(contamination=0.2, random_state=0).fit(frame.astype(float), t)
    order = np.random.default_rng(0).permutation(120)  # an index without divisions

    def lazy(table: Any) -> Any:
        return dd.from_pandas(table.set_index(order), npartitions=3, sort=False)

    y = lazy(pd.DataFrame({"t": t}))["t"]
    with client.as_current():
        model = TrimmedLinearRegression(contamination=0.2, random_state=0).fit(lazy(frame), y)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
        assert model.inlier_mask_.compute().tolist() == expected.inlier_mask_.tolist()
        for value, message in (("x", "column 'd' of X holds"), (pd.NA, "X holds NaN or infinity in row 7")):
            other = frame.copy()
            other["d"] = other["d"].astype(object) if isinstance(value, str) else other["d"]
            other.loc[7, "d"] = value
            with pytest.raises(ValueError, match=message):
                TrimmedLinearRegression().fit(lazy(other), y)


def test_workers_that_die_over_the_same_rows_are_told() -> None:
    """As they do where memory is short: the nanny starts a new one, and that dies too."""
    import dask

    def dies(_: int) -> None:
        """Workers do not import this module for it."""
        import os

        os._exit(1)

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        options = {**CLUSTER, "n_workers": 1, "silence_logs": 50}
        cluster = distributed.LocalCluster(**options)
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            workers = Workers(client)
            with pytest.raises(RuntimeError, match=r"workers died again and again .* for want of memory: use more"):
                workers.gather(workers.place(dies, [(0,)], "rows"))


def labels(kind: str, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Rows in float32, a tenth of them with a wrong label: of two classes that a line parts, or a circle, or three."""
    rng = np.random.default_rng(4)
    V = rng.normal(size=(n, 4)).astype(np.float32)
    t = {
        "line": V @ [2.0, -3.0, 1.0, 2.0] + rng.logistic(size=n) > 0,
        "circle": V[:, 0] ** 2 + V[:, 1] ** 2 > 1.4,
        "three": (4 * V[:, :3] + rng.gumbel(size=(n, 3))).argmax(axis=1),
    }[kind].astype(np.int64)
    return V, np.where(rng.random(n) < 0.1, (t + 1) % (t.max() + 1), t)


def shards(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """So many, on as many workers as there are."""
    made = Workers.__init__

    def make(self: Workers, client: Any) -> None:
        made(self, client)
        self.addresses = (self.addresses * 2)[:count]

    monkeypatch.setattr(Workers, "__init__", make)


@pytest.mark.filterwarnings("ignore:.*look like a model that is too simple")  # no line parts a circle from the rest
@pytest.mark.parametrize(
    ("kind", "count", "options"),
    [
        ("line", 1, {}),
        ("line", 4, {"contamination": 0.12}),
        ("circle", 2, {}),
        ("three", 2, {"fit_intercept": False}),
        ("three", 4, {"contamination": 0.12, "reweight": False}),
    ],
)
@pytest.mark.parametrize("asked", [True, False], ids=["all models asked", "beyond"])
def test_labels_on_workers_are_judged_as_those_of_arrays(
    client: Any, kind: str, count: int, options: dict[str, Any], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_of(monkeypatch, 300)
    if not asked:
        monkeypatch.setattr("trimlearn.estimators.streamed.STREAMED", 2500)
    shards(monkeypatch, count)
    V, t = labels(kind)
    V[7, 1] = 1e6 if asked else V[7, 1]  # drawn in where a copy is small enough
    t = np.array(["Bern", "Oslo", "Rome"])[t] if asked else t
    expected = TrimmedLogisticRegression(random_state=0, **options).fit(V, t)
    with client.as_current():
        X, y = da.from_array(V, chunks=(230, 2)), da.from_array(t, chunks=310)
        found = TrimmedLogisticRegression(random_state=0, **options).fit(X, y)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        np.testing.assert_array_equal(found.inlier_mask_.compute(), expected.inlier_mask_)
        np.testing.assert_array_equal(found.raw_weights_.compute(), expected.raw_weights_)
        np.testing.assert_array_equal(found.suggested_labels_.compute(), expected.suggested_labels_)
        np.testing.assert_allclose(found.outlier_scores_.compute(), expected.outlier_scores_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
    assert found.contamination_ == pytest.approx(expected.contamination_, abs=1e-6)
    assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-5)


@pytest.mark.usefixtures("quick_fits")  # the share is given
def test_a_fit_to_labels_that_is_interrupted_goes_on(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every answer that it waits for."""
    sample_of(monkeypatch, 300)
    V, t = labels("line", 500)
    X, y = da.from_array(V, chunks=200), da.from_array(t, chunks=200)
    real, left = FitCheckpoint.write, [0]

    def write(self: FitCheckpoint) -> None:
        real(self)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(FitCheckpoint, "write", write)
    model, ends = TrimmedLogisticRegression(0.12, random_state=0), 0
    with client.as_current():
        expected = clone(model).fit(X, y)
        while True:  # each time a little further
            ends += 1
            left[0] = 2
            try:
                found = clone(model).fit(X, y, checkpoint=Checkpoint(tmp_path / "fit.npz", 0.0))
                break
            except KeyboardInterrupt:
                assert ends < 40
        assert ends > 3
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        assert found.objective_ == expected.objective_
        for attribute in ("weights_", "raw_weights_", "outlier_scores_"):
            one, other = (getattr(fit, attribute).compute() for fit in (found, expected))
            np.testing.assert_array_equal(one, other)


def test_labels_that_are_text_and_a_shard_of_one_class(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    V, _, bad = rows(700)
    z = (V - 3.0) @ np.array([2.0, -3.0, 1.0, 2.0])
    y = np.where((z > 0) ^ bad, "yes", "no")
    order = np.argsort(y, kind="stable")
    V, y = V[order], y[order]
    expected = TrimmedLogisticRegression(random_state=0).fit(V, y)
    X, labels = da.from_array(V, chunks=(200, 4)), da.from_array(y, chunks=200)
    with client.as_current():
        few = TrimmedLogisticRegression(random_state=0).fit(X, labels)
        np.testing.assert_array_equal(few.inlier_mask_.compute(), expected.inlier_mask_)
        sample_of(monkeypatch, 500)
        many = TrimmedLogisticRegression(random_state=0).fit(X, labels)
        right = ~bad[order]
        told = [np.mean(mask == right) for mask in (many.inlier_mask_.compute(), expected.inlier_mask_)]
        assert told[0] > told[1] - 0.05 and told[1] > 0.9
        assert many.contamination_ == pytest.approx(bad.mean(), abs=0.04)
        np.testing.assert_array_equal(many.predict(X).compute(), many.predict(V))
        probable = many.predict_proba(X)
        assert isinstance(probable, da.Array) and probable.shape == (700, 2)
        np.testing.assert_allclose(probable.compute(), many.predict_proba(V))
        assert set(many.suggested_labels_.compute()) == {"yes", "no"}


@pytest.mark.parametrize("sampled", [None, 500], ids=["all rows in the sample", "some"])
def test_weights_of_classes_are_those_of_their_rows(
    client: Any, sampled: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    V, t = labels("three", 900)
    weights = {0: 1.0, 1: 3.0, 2: 0.5}
    model = TrimmedLogisticRegression(random_state=0)
    expected = clone(model).fit(V, t, np.array([1.0, 3.0, 0.5])[t])  # in memory class_weight judges no labels
    if sampled is not None:
        sample_of(monkeypatch, sampled)
    X, y = da.from_array(V, chunks=200), da.from_array(t, chunks=200)
    with client.as_current():
        found = clone(model).set_params(class_weight=weights).fit(X, y)
        same = clone(model).fit(X, y, da.from_array(np.array([1.0, 3.0, 0.5])[t], chunks=200))
        np.testing.assert_allclose(found.coef_, same.coef_, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(found.inlier_mask_.compute(), same.inlier_mask_.compute())
        if sampled is None:
            assert found.objective_ == expected.objective_
            np.testing.assert_array_equal(found.inlier_mask_.compute(), expected.inlier_mask_)
        assert np.mean(found.inlier_mask_.compute() != expected.inlier_mask_) < 0.02


def test_balanced_classes_are_weighed_by_how_often_they_are_seen(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_of(monkeypatch, 500)
    V, t = labels("three", 900)
    X, y = da.from_array(V, chunks=200), da.from_array(t, chunks=200)
    even = 900 / (3 * np.bincount(t))
    model = TrimmedLogisticRegression(random_state=0)
    with client.as_current():
        balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
        same = clone(model).fit(X, y, da.from_array(even[t], chunks=200))
        np.testing.assert_allclose(balanced.coef_, same.coef_, rtol=1e-6, atol=1e-6)
        with pytest.raises(ValueError, match="trimmed whatever their class: give balanced_trimming=False"):
            TrimmedLogisticRegression(balanced_trimming=True).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        TrimmedGLM("poisson", 0.1, random_state=0, method=alternating()),
        TrimmedGLM("huber", 0.1, random_state=0, method=alternating(), tol=1e-5),
        TrimmedLinearRegression(0.1, penalty="elasticnet", alpha=0.05, random_state=0),
    ],
    ids=["poisson", "huber", "elastic net"],
)
def test_models_without_a_closed_form_are_those_of_numpy_arrays(
    client: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_of(monkeypatch, 400)
    counts = isinstance(model, TrimmedGLM) and model.loss == "poisson"
    V, t = killed_driver.rows("poisson" if counts else "linear")
    expected = clone(model).fit(V, t)
    X, y = da.from_array(V, chunks=(250, 3)), da.from_array(t, chunks=250)
    with client.as_current():
        found = clone(model).fit(X, y)
        # The unit of a robust loss is the scale of least trimmed squares, which has many minima that are about as good.
        unit = 1 if counts or isinstance(model, TrimmedLinearRegression) else expected._unit / found._unit
        assert unit == pytest.approx(1, abs=0.03)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5 if unit == 1 else 0.06)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5 if unit == 1 else 1e-2)
        np.testing.assert_array_equal(found.inlier_mask_.compute(), expected.inlier_mask_)
        np.testing.assert_allclose(found.predict(X).compute(), found.predict(V))
        np.testing.assert_allclose(found.outlier_score(X, y).compute(), found.outlier_scores_.compute(), rtol=1e-6)
        assert np.abs(found.outlier_probability_.compute() - expected.outlier_probability_).max() < 0.15


@pytest.mark.usefixtures("quick_fits")  # the share is given
def test_penalties_of_labels_and_what_is_no_count(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_of(monkeypatch, 800)
    V, t = killed_driver.rows("logistic")
    X, y = da.from_array(V, chunks=(250, 3)), da.from_array(t, chunks=250)
    options: dict[str, Any] = {"penalty": "l1", "C": 0.05, "random_state": 0}
    with client.as_current():
        found = TrimmedLogisticRegression(0.1, **options).fit(X, y)
        expected = TrimmedLogisticRegression(0.1, **options).fit(V, t)
        assert found.objective_ <= expected.objective_ * (1 + 1e-5)  # there are several minima
        assert np.mean(found.inlier_mask_.compute() != expected.inlier_mask_) < 0.02
        with pytest.raises(ValueError, match="penalty must be"):
            TrimmedLogisticRegression(penalty="mcp").fit(X, y)
        with pytest.raises(ValueError, match="labels 0 and 1 in large data are for TrimmedLogisticRegression"):
            TrimmedGLM("binomial", 0.1, random_state=0).fit(X, y)
        counts = killed_driver.rows("poisson")[1]
        counts[850] = -1.0  # not in the sample
        with pytest.raises(ValueError, match="out of the valid range of loss='poisson': counts >= 0") as error:
            TrimmedGLM("poisson", 0.1, method=alternating(), random_state=0).fit(X, da.from_array(counts, chunks=250))
        assert "\n" not in str(error.value)


def test_files_are_read_by_the_workers(client: Any, tmp_path: Path) -> None:
    V, t, _ = rows(900)
    for i in range(3):
        np.save(tmp_path / f"part-{i}.npy", np.column_stack([V, t])[300 * i : 300 * (i + 1)])
    expected = TrimmedLinearRegression(random_state=0).fit(V, t)
    files = on_dask(sorted(map(str, tmp_path.glob("*.npy"))), target=-1, client=client)
    model = TrimmedLinearRegression(random_state=0).fit(files)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
    with client.as_current():
        np.testing.assert_array_equal(model.inlier_mask_.compute(), expected.inlier_mask_)
    with pytest.raises(ValueError, match="y is a column of the files"):
        TrimmedLinearRegression().fit(files, t)


def test_a_worker_killed_in_the_middle_changes_nothing(client: Any) -> None:
    whole, method, pids = problem(), svrg(b=500, q=0.2, step=0.05), client.run(os.getpid)
    undisturbed = solve(whole, method, engine=DaskEngine.of(whole, client), max_passes=7)
    records = []

    def killing(record: Record) -> None:
        records.append(record)
        if len(records) == 3:
            threading.Timer(0.02, os.kill, (next(iter(pids.values())), signal.SIGKILL)).start()

    disturbed = solve(whole, method, engine=DaskEngine.of(whole, client), max_passes=7, callback=killing)
    for _ in range(100):
        if (later := client.run(os.getpid)) != pids and len(later) == 2:
            break
        time.sleep(0.1)
    assert set(later.values()) != set(pids.values())
    np.testing.assert_allclose(disturbed.x, undisturbed.x, rtol=1e-6)
    np.testing.assert_array_equal(disturbed.w, undisturbed.w)
    assert disturbed.counts == undisturbed.counts


def test_without_a_client_a_cluster_is_started_and_closed() -> None:
    whole = problem(300)
    found = solve(whole, svrg(b=60, step=0.05), engine="dask", max_passes=4)
    expected = solve(whole, svrg(b=60, step=0.05), max_passes=4)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-9)
    assert isinstance(found.w, np.ndarray)
    with pytest.raises(ValueError, match="No clients"):
        distributed.default_client()


@pytest.mark.timeout(300)  # four processes, where machines are busy
def test_a_fit_whose_driver_is_killed_goes_on(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a solve over all rows, and in the rounds after it."""
    model, early, late = killed_driver.MODEL, tmp_path / "early", tmp_path / "late"
    driver = [sys.executable, killed_driver.__file__, client.scheduler.address, str(early), "3", str(late), "9"]
    kill_when_ready([subprocess.Popen(driver, stdout=subprocess.PIPE, text=True)])
    sample_of(monkeypatch, 300)
    X, y = (da.from_array(a, chunks=200) for a in killed_driver.rows("linear"))
    with client.as_current():
        expected = clone(model).fit(X, y)
        with pytest.raises(ValueError, match="belongs to a fit to other data"):
            clone(model).fit(X, y[::-1], checkpoint=early)
        for file in (early, late):
            found = clone(model).fit(X, y, checkpoint=file)
            for attribute in ("coef_", "intercept_", "objective_", "contamination_"):
                np.testing.assert_array_equal(getattr(found, attribute), getattr(expected, attribute))
            for attribute in ("weights_", "raw_weights_", "outlier_scores_"):
                one, other = (getattr(fit, attribute).compute() for fit in (found, expected))
                np.testing.assert_array_equal(one, other)
