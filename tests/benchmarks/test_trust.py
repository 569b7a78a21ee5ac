"""The benchmark of trust runs, and its measures measure what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from benchmarks import trust, trust_cases
from benchmarks.__main__ import main
from benchmarks.trust_data import CLEAN, NOISES, Labelled, Noise, draw, noises, read
from benchmarks.trust_figures import BINS, Draw, figures, targets
from benchmarks.trust_labels import aligned, findable, spread
from quick import quickly

UNIFORM, PAIR, ONE_WAY = Noise("uniform", 0.2), Noise("pair", 0.2), Noise("one-way", 0.2)
RNG = np.random.default_rng(0)
TABLE = Labelled("made", RNG.standard_normal((600, 3)) * [1, 10, 0.1] + 5, np.repeat([0, 1, 2], [300, 180, 120]))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The benchmark by its command, on small data, and what it wrote."""
    out = tmp_path_factory.mktemp("results")
    with quickly(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(trust_cases.MODELS, "forest", RandomForestClassifier(5, random_state=0))  # of 100 trees
        assert main(["trust", "--quick", "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads((out / "trust.json").read_text())
    return found


def test_file(written: dict[str, Any]) -> None:
    assert written["benchmark"] == "trust"
    assert written["settings"]["parts"] == ", ".join(trust.PARTS)
    assert all(table["rows"] for table in written["tables"])
    assert all(len(row) == len(table["columns"]) for table in written["tables"] for row in table["rows"])
    for target in written["targets"]:
        assert target["met"] == (target["measured"] is not None and target["measured"] <= target["limit"]), target


def test_every_figure_is_there(written: dict[str, Any]) -> None:
    text = "; ".join(target["what"] for target in written["targets"])
    for what in (
        "estimate, %",
        "estimate off by",
        "log loss",
        "way from plain",
        "AUROC",
        "innocents",
        "missed",
        "draws",
    ):
        assert what in text, what
    for what in ("TrimmedEstimator", "misfit", "wild", "(a)", "(b)", "(c)", "seconds"):
        assert what in text, what
    unknown = [target["what"] for target in written["targets"] if target["measured"] is None]
    assert not unknown


def test_parts_are_those_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["peers", "--parts", "wild"], ["floor", "--parts", "wild"]):
        with pytest.raises(SystemExit):
            main(arguments)
    assert "floor has no parts, not wild" in capsys.readouterr().err


# -- the data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise(noise: Noise) -> None:
    y = TABLE.y
    given = noise.apply(y, 3, np.random.default_rng(0))
    changed = given != y
    base = np.mean(y == 0) if noise.kind == "one-way" else 1.0
    assert changed.mean() == pytest.approx(noise.level * base)
    assert set(np.unique(given)) <= {0, 1, 2}
    if noise.kind == "one-way":
        assert np.all(y[changed] == 0) and np.all(given[changed] == 1)
    if noise.kind == "pair":
        assert np.all(given[changed] == (y[changed] + 1) % 3)
    if noise.kind == "uniform":
        assert len(np.unique((given - y)[changed] % 3)) == 2


def test_draw() -> None:
    samples = [draw(TABLE, PAIR, 0, fold, 300) for fold in range(3)]
    for sample in samples:
        assert (len(sample.y), len(sample.y_test)) == (200, 100)
        np.testing.assert_allclose(sample.X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(sample.X.std(axis=0), 1)
        np.testing.assert_array_equal(np.bincount(sample.y_test), [50, 30, 20])  # stratified, and clean
        assert sample.wrong.mean() == 0.2
    again = draw(TABLE, PAIR, 0, 0, 300)
    np.testing.assert_array_equal(again.given, samples[0].given)
    assert not np.array_equal(draw(TABLE, PAIR, 1, 0, 300).X_test, samples[0].X_test)


def test_pair_needs_three_classes(tmp_path: Path) -> None:
    assert PAIR in noises(TABLE, NOISES)
    two = Labelled("two", TABLE.X, TABLE.y % 2)
    assert {noise.kind for noise in noises(two, NOISES)} == {"none", "uniform", "one-way"}
    (tmp_path / "tabular").mkdir()
    np.savez(tmp_path / "tabular" / "own.npz", X=TABLE.X.astype(np.float32), y=TABLE.y.astype(np.uint8))
    tables = {table.name: table for table in read(tmp_path)}
    assert list(tables) == ["own", "sklearn iris", "sklearn wine", "sklearn breast_cancer", "sklearn digits"]
    assert (tables["own"].K, tables["sklearn digits"].K) == (3, 10)


# -- the measures ---------------------------------------------------------------------------------------------------


def test_findable() -> None:
    wrong = np.array([1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1], dtype=bool)
    assert findable(-np.arange(13.0), wrong) == 9  # 1 of 10 is innocent; 3 of 13 would be too many
    assert findable(np.arange(13.0), ~wrong) == 0
    assert findable(np.arange(3.0), np.zeros(3, dtype=bool)) == 0


def test_a_class_never_seen_has_probability_zero() -> None:
    model = SimpleNamespace(classes_=np.array([0, 2]), predict_proba=lambda X: np.full((len(X), 2), 0.5))
    np.testing.assert_array_equal(aligned(model, np.zeros((1, 1)), 3), [[0.5, 0, 0.5]])


def made(table: str, noise: Noise, **figures: Any) -> Draw:
    none = np.zeros(len(BINS) - 1)
    usual = Draw(
        table, noise, 100 * noise.level, 100 * noise.level, 90, 90, 90, 1, 1, 0.9, 0.9, 0, 0, 0, 0, none, none, False, 1
    )
    return replace(usual, **figures)


def test_figures() -> None:
    found = figures(
        [made("a", UNIFORM, estimate=10.0, found=3, findable=2), made("a", UNIFORM, estimate=30.0, log_loss=2)]
    )
    assert (found.estimate, found.error, found.log_loss, found.found) == (20, 10, 1.5, 1)
    assert isnan(figures([made("a", CLEAN, auroc=nan)]).auroc)


def test_targets_take_the_worst_table() -> None:
    draws = [made(table, noise) for table in "abcd" for noise in (CLEAN, UNIFORM, PAIR)]
    draws += [made("e", CLEAN, accuracy=88), made("e", UNIFORM, accuracy=91, accuracy_oracle=94, innocents=25)]
    draws += [made("e", PAIR, accuracy=91, accuracy_oracle=94, auroc=0.95)]
    found = {(target.what, target.goal): target.measured for target in targets(draws)}
    assert found[
        "labels, none wrong: accuracy below plain logistic regression's, points, mean", False
    ] == pytest.approx(0.4)
    assert found["labels, none wrong: accuracy below plain logistic regression's, points, worst table", False] == 2
    left = found["labels, 10–30 % wrong: share left of the way from plain to clean labels' accuracy", False]
    assert left == pytest.approx(0.75)
    lists = "flag(fdr=0.1), 10–30 % wrong, uniform and pair: innocents, share"
    assert found[f"{lists}, mean", False] == pytest.approx(0.025)
    assert found[f"{lists}, worst table", False] == pytest.approx(0.125)
    assert found["ranking, pair noise: 1 − AUROC / that of 1 − p, mean", False] == pytest.approx(0.9)


def test_a_crash_says_where() -> None:
    def crash(table: Labelled, noise: Noise) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        spread(crash, [(TABLE, ONE_WAY)], 1)
    assert caught.value.__notes__ == ["in crash of made, one-way 20%"]


def test_false_certificates_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def solution(converged: bool, objective: float, x: float) -> Any:
        status = SimpleNamespace(converged=converged)
        return SimpleNamespace(status=status, objective=objective, stationarity_x=x, stationarity_w=0.0)

    good, open_ = (solution(True, 1.0, 1e-5), 1.0), (solution(False, 9.0, 1.0), 1.0)
    false = [(solution(True, F, x), 1.0) for F, x in ((1.0, 1e-3), (1.01, 1e-5), (np.inf, 0.0), (nan, 0.0))]
    monkeypatch.setattr(trust_cases, "_budgets", lambda: [good, open_])
    monkeypatch.setattr(trust_cases, "_offsets", lambda: [good, *false])
    monkeypatch.setattr(trust_cases, "_steps", lambda: [open_])
    assert [target.measured for target in trust_cases.certificates().targets] == [0, 4, 0]
