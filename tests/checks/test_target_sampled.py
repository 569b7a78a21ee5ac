"""A target with so many rows that models learn from some of them, and what the caveats say of that."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from trimlearn.checks import target, target_labels, target_learners, target_linear, threads
from trimlearn.checks.target import judge_target
from trimlearn.checks.threads import TOGETHER, threads_for
from trimlearn.tables.table import Column, Table

N = 600


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 600 rows counts as large."""
    monkeypatch.setattr(target_learners, "PLANS", ((10**12, 1, 2),))
    monkeypatch.setattr(target_learners, "FOREST_ROWS", 100)
    monkeypatch.setattr(target_learners, "BOOSTED", 250)
    monkeypatch.setattr(target, "BOOSTED", 250)
    monkeypatch.setattr(target_linear, "ROWS", 200)
    monkeypatch.setattr(target_labels, "FITTED", 300)


def make() -> tuple[Table, np.ndarray]:
    """A line through two columns, and labels by its sign; every thirtieth row is wrong in both."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 2))
    z = 2 * X[:, 0] - X[:, 1]
    wrong = np.flatnonzero(np.abs(z) > 1)[::20]
    frame = pd.DataFrame(X, columns=["x1", "x2"]).assign(y=10 * z + rng.normal(size=N))
    label = z > 0
    frame.loc[wrong, "y"] += 60
    label[wrong] = ~label[wrong]
    frame["label"] = np.where(label, "good", "bad")
    columns = *(Column(name, "number") for name in ("x1", "x2", "y")), Column("label", "category")
    return Table(frame, frame.astype(str), columns, "made up", 0, ""), wrong


def without(table: Table, name: str) -> Table:
    frame = table.frame.drop(columns=name)
    return Table(frame, frame.astype(str), tuple(c for c in table.columns if c.name != name), "made up", 0, "")


@pytest.mark.parametrize("name", ["y", "label"])
def test_a_sample_finds_what_is_wrong_and_says_so(few: None, name: str) -> None:
    made, wrong = make()
    made = without(made, "label" if name == "y" else "y")
    found = judge_target(made, made.frame, name)
    assert found.flagged[wrong].mean() > 0.8 and np.delete(found.flagged, wrong).mean() < 0.03
    used = len(found.fits["rows"])
    said = f"The linear model was fitted to a sample of {used}, and boosting to samples of 250, of 600 rows."
    assert used <= 200 and [c for c in found.caveats if "sample" in c] == [said]
    assert len(found.scores) == 4


def test_rows_that_a_person_left_out_are_no_sample() -> None:
    made, wrong = make()
    made = without(made, "label")
    made.frame.loc[[3, 4], "y"] = np.nan
    found = judge_target(made, made.frame, "y", pinned={int(wrong[0]): True, 7: False})
    assert not [c for c in found.caveats if "sample" in c]


@pytest.mark.parametrize("name", ["y", "label"])
def test_predictions_are_kept_for_every_row_that_was_judged(few: None, name: str) -> None:
    made, wrong = make()
    made = without(made, "label" if name == "y" else "y")
    made.frame.loc[5, name] = None
    found = judge_target(made, made.frame, name)
    predicted, there = found.fits["predicted"], np.arange(N) != 5
    assert np.all(np.isnan(predicted[5])) and np.all(np.isfinite(predicted[there]))
    if name == "y":
        assert predicted.shape == (N,) and np.corrcoef(predicted[there], made.frame.y[there])[0, 1] > 0.5
    else:
        assert predicted.shape == (N, 2) and np.allclose(predicted[there].sum(axis=1), 1)
        right = np.array(found.classes)[predicted.argmax(axis=1)] == made.frame.label
        assert np.delete(right.to_numpy(), [*wrong, 5]).mean() > 0.85


def test_small_tables_and_busy_machines_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.2, 0.2, 0.2), raising=False)
    assert threads_for(TOGETHER - 1) == 1 and threads_for(TOGETHER) is None
    monkeypatch.setattr(os, "getloadavg", lambda: (7.0, 0.2, 0.2), raising=False)
    monkeypatch.setattr(threads, "running_now", lambda: 9.0)
    assert threads_for(TOGETHER) == 1
    monkeypatch.setattr(threads, "running_now", lambda: 0.0)  # what ran in the last minute has ended
    assert threads_for(TOGETHER) is None
    monkeypatch.delattr(os, "getloadavg")
    assert threads_for(TOGETHER) is None


def test_where_nothing_is_wrong_boosting_is_not_asked_again(few: None) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=N)
    learners = target_learners.Learners(X, X, [False, False], y, 0, 0)
    everybody = np.ones(N, dtype=bool)
    first = learners.opinions(everybody)
    second, asked = learners.again(everybody, first)
    assert second is first and asked.all()
    kept = np.arange(N) > 5
    assert not np.array_equal(learners.again(kept, first)[0][0], first[0])


def test_rare_classes_do_not_wreck_boosting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_learners, "SMALL", 500)
    rng = np.random.default_rng(0)
    sizes = np.array([3, 4, 6, 9, *(190,) * 8])
    y = rng.permutation(np.repeat(np.arange(12), sizes))
    X = (1.2 * rng.normal(size=(12, 6)))[y] + rng.normal(size=(len(y), 6))
    learners = target_learners.Learners(X, X, [False] * 6, y, 12, 0)
    assert learners.new_boosting(0).l2_regularization == target_learners.DAMPED
    often = target_learners.Learners(X, X, [False] * 6, np.arange(len(y)) % 12, 12, 0)
    assert often.new_boosting(0).l2_regularization == 0
    model = learners.new_boosting(0).fit(X[::2], y[::2])
    assert np.mean(model.predict(X[1::2]) == y[1::2]) > 0.6


def test_many_classes_are_asked_again_of_some_rows() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(400) % 25
    X = np.column_stack([y % 5, y // 5]) + 0.1 * rng.normal(size=(400, 2))
    learners = target_learners.Learners(X, X, [False, False], y, 25, 0)
    assert learners.plan[1] == target_learners.MANY_FOLDS
    first = [np.zeros((400, 25))]
    second, asked = learners.again(np.ones(400, dtype=bool), first)
    assert 100 < asked.sum() < 200
    assert np.mean(second[0][asked].argmax(axis=1) == y[asked]) > 0.6
    assert not second[0][~asked].any()
