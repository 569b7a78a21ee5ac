"""Targets between right and wrong: listed where others are wrong, not called wrong. What a line explains is right."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trimlearn import check
from trimlearn.checks.findings import DOUBTFUL
from trimlearn.checks.found import Check
from trimlearn.checks.target import _Judge
from trimlearn.checks.target_task import Target, TargetJudgement

pytestmark = pytest.mark.usefixtures("quick_checks")


def overlapping(seed: int = 0, n: int = 300) -> pd.DataFrame:
    """Two classes that overlap: some of the wrong labels cannot be told from right ones."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 1.5 * label[:, None]
    label[:30] = 1 - label[:30]
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(label, "yes", "no"))


@pytest.fixture(scope="module")
def found(quick_checks: None) -> Check:
    return check(overlapping(), target="kind")


def test_doubtful_targets_are_listed_and_not_called_wrong(found: Check) -> None:
    judged = found.parts.target
    assert judged is not None
    listed = {entry["row"]: entry for entry in found.results["suspects"] if entry["target"]}
    probable = np.flatnonzero(judged.probability >= DOUBTFUL)
    assert set(listed) == set(probable.tolist())
    doubtful = [row for row in listed if not judged.flagged[row]]
    assert doubtful and found.results["counts"]["doubtful"] == len(doubtful)
    for row in doubtful:
        assert listed[row]["kind"].endswith("doubtful label") or listed[row]["kinds"] != ["target"]
        assert listed[row]["target"]["suggested"] != listed[row]["target"]["given"]
        assert "may be" in listed[row]["why"]


def test_they_stay_in_the_clean_table_and_below_the_limit(found: Check, tmp_path) -> None:
    written = found.write(tmp_path)
    clean = pd.read_csv(written["clean.csv"])
    counts = found.results["counts"]
    assert len(clean) == 300 - counts["targets"]
    assert counts["wrong_rows"] <= counts["suspects"] - counts["doubtful"] + counts["cell_rows"]


def test_nothing_is_doubtful_where_nothing_is_wrong() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    found = check(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X.sum(axis=1) + rng.normal(size=200)), target="y")
    assert found.results["counts"]["targets"] == found.results["counts"]["doubtful"] == 0


def test_a_number_far_out_together_with_its_target_is_not_wrong() -> None:
    """Trees cannot go on beyond the rows they have seen, and a lone cell far out looks doubtful: a line explains it."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    table = pd.DataFrame({"x": x, "z": rng.normal(size=1000), "y": x + 0.1 * rng.normal(size=1000)})
    table.loc[5, ["x", "y"]] = 4.5, 4.55
    table.loc[6, "y"] = 2.5
    rows = [entry["row"] for entry in check(table, target="y").results["suspects"] if entry["kind"] == "wrong number"]
    assert rows == [6]


@pytest.mark.parametrize("skewed", [True, False])
def test_skewed_errors_are_no_wrong_values(skewed: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(250, 3))
    errors = np.exp(rng.normal(size=250)) if skewed else rng.normal(size=250) + 9 * (np.arange(250) < 25)
    found = check(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X.sum(axis=1) + errors), target="y")
    count = found.results["counts"]["targets"]
    assert count <= 15 if skewed else count >= 20
    assert any("skewed" in sentence for sentence in found.results["caveats"]) == skewed


def test_few_doubted_values_on_one_side_are_said_to_be_skewed() -> None:
    skewed = np.sort(np.exp(1.2 * np.random.default_rng(0).normal(size=400)))
    judged = TargetJudgement(np.abs(skewed - 1), (np.arange(400) > 390).astype(float), 0.02, np.ones(400))
    asked = Target("y", "regression", np.arange(400), skewed, (), *np.zeros((2, 400), dtype=bool))
    judge = _Judge(asked, [(None, np.zeros((400, 1)))], None, None, str, 0, print)  # type: ignore[list-item, arg-type]
    judge._say(judged, SimpleNamespace(rows=np.arange(400)), False)  # type: ignore[arg-type]
    assert len(judge.caveats) == 1 and "may be skewed" in judge.caveats[0]
