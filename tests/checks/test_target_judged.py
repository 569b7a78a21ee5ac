"""A target judged: who is flagged, what is suggested, what a person has said, and what cannot be judged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trimlearn.checks.target import judge_target
from trimlearn.checks.target_linear import names_classes
from trimlearn.tables.table import Column, Kind, Table

N = 160
KINDS: dict[str, Kind] = {"label": "category", "y": "number", "count": "number", "group": "category"}

pytestmark = pytest.mark.usefixtures("quick_checks")


def make(seed: int = 0) -> Table:
    """A line through x and a group, labels by its sign, counts; nothing is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    group = rng.choice(["a", "b"], N)
    z = 2 * X[:, 0] - X[:, 1] + (group == "a")
    frame = pd.DataFrame(X, columns=["x1", "x2", "x3"]).assign(group=group)
    frame["y"] = 50 + 10 * z + rng.normal(size=N)
    frame["label"] = np.where(z > 0.5, "good", "bad")
    frame["count"] = rng.poisson(np.exp(0.6 + 0.5 * X[:, 0])).astype(float)
    return table(frame)


def table(frame: pd.DataFrame, **kinds: Kind) -> Table:
    columns = tuple(Column(name, {**KINDS, **kinds}.get(name, "number")) for name in frame.columns)
    return Table(frame, frame.astype(str), columns, "made up", 0, "")


def without(made: Table, *names: str) -> Table:
    return table(made.frame.drop(columns=list(names)))


def test_wrong_labels_are_found_and_set_right() -> None:
    made = without(make(), "y", "count")
    margin = np.abs(2 * made.frame.x1 - made.frame.x2 + (made.frame.group == "a") - 0.5)
    sure = np.flatnonzero(margin > 1)[::10]  # a tenth of those whose class is plain
    made.frame.loc[sure, "label"] = ["bad" if v == "good" else "good" for v in made.frame.label[sure]]
    made.frame.loc[150, "label"] = None
    found = judge_target(made, made.frame, "label")
    assert found.task == "classification" and found.classes == ("bad", "good")
    assert found.flagged[sure].mean() >= 0.8 and np.delete(found.flagged, sure).mean() < 0.05
    given = made.frame.label.to_numpy()
    assert all(found.suggested[row] != given[row] for row in sure if found.flagged[row])
    assert np.isnan(found.probability[150]) and not found.flagged[150] and found.suggested[150] is None
    assert 0.03 < found.contamination < 0.15 and found.noise_matrix is not None
    assert np.allclose(found.noise_matrix.sum(axis=1), 1)
    assert (found.by_linear & found.by_boosting)[sure].mean() > 0.5
    assert {"linear", "plain", "design", "history", "link"} <= set(found.fits)
    assert [score.fit for score in found.scores] == ["plain", "trimmed"] * 2
    assert all(0.5 < score.value <= 1 for score in found.scores)
    assert [c["name"] for c in found.coefficients] == ["intercept", *found.fits["design"].feature_names]


def test_wrong_numbers_are_found_and_what_a_person_said_holds() -> None:
    made = without(make(), "label", "count")
    wrong = np.arange(10)
    made.frame.loc[wrong, "y"] += np.where(made.frame.y[wrong] > 50, -60, 60)
    right = 3
    found = judge_target(made, made.frame, "y", pinned={right: False, 140: True})
    assert found.task == "regression" and found.fits["link"] == "identity"
    assert found.flagged[np.delete(wrong, right)].all() and not found.flagged[right]
    assert found.probability[right] == 0 and found.probability[140] == 1 and found.flagged[140]
    others = np.setdiff1d(np.arange(N), [*wrong, 140])
    assert found.flagged[others].mean() < 0.03
    truth = made.frame.y[others]
    assert np.corrcoef(found.suggested[others].astype(float), truth)[0, 1] > 0.9
    named = {c["name"]: c for c in found.coefficients}
    assert named["x1"]["low"] < named["x1"]["trimmed"] < named["x1"]["high"]
    assert all(np.isfinite([s.value for s in found.scores]))


def test_clean_targets_raise_no_alarm() -> None:
    made = make(3)
    for target in ("label", "y", "count"):
        found = judge_target(made, made.frame, target)
        assert found.flagged.mean() <= 0.03 and found.contamination < 0.05, target


def test_counts_are_told_from_other_whole_numbers() -> None:
    made = without(make(), "y", "label")
    found = judge_target(made, made.frame, "count")
    assert found.task == "count" and found.fits["link"] == "log"
    suggested = found.suggested.astype(float)
    assert np.all(suggested >= 0) and np.all(suggested == np.round(suggested))
    frame = made.frame.assign(count=np.round(np.abs(made.frame.x1) * 3) % 7)
    said = judge_target(table(frame), frame, "count", task="regression")
    assert said.task == "regression"


def test_a_skewed_amount_is_predicted_by_its_logarithm() -> None:
    made = without(make(), "label", "count")
    frame = made.frame.assign(y=np.exp(made.frame.y / 15))
    found = judge_target(table(frame), frame, "y")
    assert found.fits["link"] == "log" and any("logarithm" in caveat for caveat in found.caveats)
    assert np.median(np.abs(np.log(found.suggested.astype(float) / frame.y))) < 0.3


def test_rare_labels_are_not_judged_and_that_is_said() -> None:
    made = without(make(), "y", "count")
    made.frame.loc[[0, 1], "label"] = ["odd", "odder"]
    found = judge_target(made, made.frame, "label")
    assert np.isnan(found.probability[:2]).all() and found.classes == ("bad", "good")
    assert any("not judged: 'odd', 'odder'" in caveat for caveat in found.caveats)


def test_numbers_that_may_be_classes_are_named() -> None:
    made = without(make(), "label", "count")
    frame = made.frame.assign(y=np.digitize(made.frame.y, [40.0, 60.0]) + 1.0)
    assert any("task classification" in caveat for caveat in judge_target(table(frame), frame, "y").caveats)
    found = judge_target(table(frame), frame, "y", task="classification")
    assert found.classes == ("1", "2", "3")


def test_numbers_of_classes_are_judged_as_classes() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, N)
    X = rng.normal(size=(N, 2)) + 6 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[kind]
    wrong = np.arange(0, N, 16)
    kind[wrong] = (kind[wrong] + 1) % 4
    frame = pd.DataFrame(X, columns=["x1", "x2"]).assign(y=kind + 1.0)
    found = judge_target(table(frame), frame, "y")
    assert found.task == "classification" and "taken for the numbers of classes" in found.caveats[0]
    assert found.flagged[wrong].sum() >= len(wrong) / 2 and found.flagged.sum() == found.flagged[wrong].sum()
    assert judge_target(table(frame), frame, "y", task="regression").task == "regression"


def test_quantities_are_no_names() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, other = rng.normal(size=(2, 200))
        for y in (np.clip(np.round(3 + x), 1, 5), rng.poisson(np.exp(1 + 0.5 * x)), np.digitize(x, [-2, -1.5, -1])):
            assert not names_classes(np.column_stack([x, other]), y.astype(float), seed)


def test_every_warning_becomes_a_caveat(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from trimlearn.checks import target as module

    fit = module.fit_linear

    def doubtful(*arguments: object) -> object:
        warnings.warn("it is doubtful.\nmore", stacklevel=1)
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "fit_linear", doubtful)
    made = without(make(), "label", "count")
    assert "From the trimmed linear model: it is doubtful." in judge_target(made, made.frame, "y").caveats


def refused(column: list[object], kind: Kind, match: str, **options: object) -> None:
    frame = pd.DataFrame({"x": np.arange(float(len(column))), "y": column})
    with pytest.raises(ValueError, match=match) as error:
        judge_target(table(frame, y=kind), frame, "y", **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_what_cannot_be_judged_is_refused_in_one_line() -> None:
    refused([1.0] * 40, "constant", "is 1 in every row")
    refused([None] * 40, "empty", "no value in any row")
    refused([1.0, 2.0] * 5, "number", "Only 10 rows have a target")
    refused([f"v{k}" for k in range(300)], "text", "300 different labels in 300 rows")
    refused([f"v{k // 2}" for k in range(60)], "category", "less than two labels")
    refused(["a", "b"] * 20, "category", "does not hold numbers", task="regression")
    refused([-1.0, 2.0, 3.0] * 20, "number", "whole numbers >= 0", task="count")
    refused(["a", "b"] * 20, "category", "task must be", task="ranking")
    refused(list(pd.date_range("2020-01-01", periods=40)), "date", "holds dates")
    frame = pd.DataFrame({"y": [1.0, 2.0, 3.0] * 20, "name": [f"n{k}" for k in range(60)]})
    with pytest.raises(ValueError, match="No other column"):
        judge_target(table(frame, name="id"), frame, "y")
    with pytest.raises(ValueError, match="no column 'z'"):
        judge_target(table(frame, name="id"), frame, "z")


def test_a_number_far_off_that_is_not_called_wrong_is_named() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=150)
    y = 3 * x + 0.3 * rng.standard_t(1.5, size=150)
    found = judge_target(table(pd.DataFrame({"x": x, "y": y})), pd.DataFrame({"x": x, "y": y}), "y")
    farthest = int(np.argmax(found.score))
    assert found.score[farthest] > 12 and not found.flagged[farthest]
    assert any(f"y is {y[farthest]:g} in row {farthest}, " in caveat for caveat in found.caveats)
    quiet = judge_target(without(make(), "label", "count"), without(make(), "label", "count").frame, "y")
    assert not any("look at it" in caveat for caveat in quiet.caveats)
