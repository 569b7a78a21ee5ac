"""The comparison with the rivals runs, and its measures measure what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

from benchmarks import large, memory, peers, peers_rivals, peers_scatter
from benchmarks.__main__ import main
from benchmarks.peers_labels import CLEANLAB, Found, _targets, at_rate
from benchmarks.peers_linear import Trial, _breakdown_target, _speed_targets, dirty, trimmed_sum
from benchmarks.peers_rivals import LTS_REG, OURS, Line, least_squares, ours, presence, rivals, there

NO_R = pytest.mark.skipif(not peers_rivals.r_there(), reason="no R with robustbase")
NO_STATSMODELS = pytest.mark.skipif(not there("statsmodels"), reason="no statsmodels")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Both benchmarks by their command, on small data, with what rivals there are, and what they wrote."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.peers_labels._warm_up", lambda data: None)  # for the clock, which nobody asks here
        patch.setattr("benchmarks.peers_homography.REPEATED", 1)
        for name in ("peers", "large"):
            assert main([name, "--quick", "--out", str(out)]) == 0
    return {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}


@pytest.mark.parametrize("name", ["peers", "large"])
def test_files(written: dict[str, Any], name: str) -> None:
    found = written[name]
    assert found["benchmark"] == name
    assert all(table["rows"] for table in found["tables"])
    assert all(len(row) == len(table["columns"]) for table in found["tables"] for row in table["rows"])
    for target in found["targets"]:
        assert target["met"] == (target["measured"] is not None and target["measured"] <= target["limit"]), target


def test_every_part_is_there(written: dict[str, Any]) -> None:
    titles = " ".join(table["title"] for table in written["peers"]["tables"])
    breakdown = ("(a)", "(b)", "(c)", "all of it", "seconds of a fit")
    beside = ("covariance", "scatter beside R", "clean normal rows", "labels", "rare")
    for what in ("rivals", "classics", *breakdown, "clean data", "least trimmed", *beside):
        assert what in titles, what


def test_quick_figures_are_sane(written: dict[str, Any]) -> None:
    targets = {target["what"]: target for target in written["peers"]["targets"] + written["large"]["targets"]}
    for what in ("breakdown (a)", "breakdown (b)", "clean data", "labels, 20% wrong: estimate", "subspace error"):
        (target,) = [target for name, target in targets.items() if what in name]
        assert target["met"], target


def test_absent_rivals_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_rivals, "_version", lambda package: "1" if package == "scikit-learn" else None)
    monkeypatch.setattr(peers_rivals, "_r_versions", lambda: None)
    assert dict(presence().rows) == {
        "scikit-learn": "1",
        "statsmodels": "absent",
        "cleanlab": "absent",
        "R with robustbase": "absent",
    }
    assert list(rivals()) == ["least squares", "three sigma", "Huber", "RANSAC", "TheilSen"]


def test_without_r_scatter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_scatter, "which", lambda name: None)
    (table,) = peers_scatter.scatter((50,), (3,), 1).tables
    assert table.rows == [["not run: no R with robustbase and rrcov"]]


@pytest.mark.parametrize("kind", peers_scatter.KINDS)
def test_bad_rows_lie_where_their_kind_says(kind: str) -> None:
    sample = peers_scatter.Sample.draw(200, 10, kind, 0.3, 0)
    rng = np.random.default_rng([200, 10, peers_scatter.KINDS.index(kind), 30, 0])
    Z = rng.standard_normal((200, 10)) * sample.deviations
    moved = [(X - Z) / sample.deviations for X in (sample.X, sample.beside)]
    assert sample.bad == 60
    for by in moved:
        lengths = np.linalg.norm(by, axis=1)
        assert not lengths[60:].any() and lengths[:60].min() >= 4.0 and lengths[:60].max() <= 10.0
        assert (np.ptp(by[:60], axis=0).max() < 1e-9) == (kind == "together")
        assert ((np.count_nonzero(np.abs(by[:60]) > 1e-9, axis=1) == 2).all()) == (kind == "in two features")
    np.testing.assert_allclose(moved[1][:, : peers_scatter.K], 0.0, atol=1e-12)


def test_parts_alone_leave_the_results_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path)
    monkeypatch.setattr(peers, "FULL", replace(peers.QUICK, samples=((50, 1),)))
    main(["peers", "--parts", "clean"])
    assert not list(tmp_path.iterdir())


# -- the measures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*rivals()])
def test_rivals_agree_on_exact_data(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X @ [2.0, -1.0] + 3 + 1e-6 * rng.standard_normal(60)
    fit = rivals()[name](X, y)
    np.testing.assert_allclose(fit.theta, [2, -1, 3], atol=2e-3)  # Huber stops early; the order is what matters
    assert 0 < fit.seconds < 60


@NO_R
def test_lts_reg_minimises_at_its_raw_fit() -> None:
    case = dirty("vertical", 100, 3, 0)
    fit = rivals()[LTS_REG](*case.data)
    assert fit.raw is not None
    assert trimmed_sum(fit.raw, *case.data, case.h) <= trimmed_sum(fit.theta, *case.data, case.h)
    np.testing.assert_array_equal(fit.flagged, case.bad)


@NO_STATSMODELS
def test_tukey_differs_from_huber() -> None:
    case = dirty("vertical", 100, 2, 0, share=0.2)
    assert case.error(rivals()["RLM, Tukey"](*case.data).theta) < 0.9 * case.error(rivals()["RLM"](*case.data).theta)


def test_trimmed_sum() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 5.0, 1.0, 4.0])
    assert trimmed_sum(np.array([1.0, 0.0]), X, y, 3) == pytest.approx(1 + 1 + 1)
    model = ours(*dirty("vertical", 60, 2, 0).data, reweight=False)
    assert model.raw is not None
    np.testing.assert_array_equal(model.raw, model.theta)


def test_another_basin_needs_more_bad_rows_and_a_lower_objective() -> None:
    case = dirty("cluster", 100, 3, 0)  # few rows, and far: the plane through the cluster is the cheaper one
    through = case.concentrated(least_squares(*case.data).theta)
    assert case.excess(through) < 0
    assert case.other_basin(through)
    assert not case.other_basin(case.clean_basin)
    assert not case.other_basin(through + 100)  # a fit to nothing has a larger objective
    plain = dirty("vertical", 100, 3, 0)
    bad = least_squares(plain.X[plain.bad], plain.y[plain.bad]).theta
    assert plain.bad[plain.kept(bad)].sum() == 45
    assert not plain.other_basin(bad)  # keeps more bad rows, but pays for it


def test_breakdown_is_judged_by_the_worst() -> None:
    case = dirty("vertical", 100, 3, 0)
    good, broken = Line(case.oracle, 1.0, case.clean_basin), Line(case.oracle + 50, 1.0, case.clean_basin)
    assert _breakdown_target("vertical", [Trial(case, OURS, good)]).measured == pytest.approx(1)
    assert not _breakdown_target("vertical", [Trial(case, OURS, good), Trial(case, OURS, broken)]).met
    assert _breakdown_target("vertical", [Trial(case, OURS, good), Trial(case, "Huber", broken)]).met
    assert not _breakdown_target("vertical", []).met  # nothing judged, nothing met


@pytest.mark.parametrize(("seconds", "met"), [(0.3, True), (0.5, False)])
def test_speed_is_judged_within_a_run(seconds: float, met: bool) -> None:
    run = {"the trimmed fit alone": [seconds, 0.0, 1.0], "everything at default": [seconds, 0.0, 1.0]}
    assert _speed_targets("vertical", [run]) == []
    targets = _speed_targets("vertical", [{**run, LTS_REG: [1.0, 0.0, 1.0]}])
    assert [target.met for target in targets] == [met, met, True]


def test_detection_at_a_rate() -> None:
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    bad = np.array([True, False, True, False, True, False])
    assert at_rate(scores, bad, 0) == pytest.approx(100 / 3)
    assert at_rate(scores, bad, 1) == pytest.approx(200 / 3)
    assert at_rate(scores, bad, 3) == 100
    assert at_rate(np.ones(6), bad, 1) == 0  # ties are not detection
    assert isnan(at_rate(scores, np.zeros(6, dtype=bool), 1))


def test_label_targets_follow_the_figures() -> None:
    bad = np.array([True, False, True, False])
    rival = Found(90.0, 1.0, None, True, 50.0, np.array([True, True, False, False]))
    own = Found(93.0, 1.0, None, True, 10.0, bad, np.array([3.0, 0.0, 2.0, 1.0]))
    found = {"TrimmedLogisticRegression": own, CLEANLAB: rival, "clean rows alone": replace(rival, accuracy=93.5)}
    met = {target.what.split(": ")[1]: target.met for target in _targets(0.1, found, bad)}
    assert all(met.values())
    assert len(met) == 5
    bungled = Found(91.0, 31.0, None, True, 20.0, bad, np.array([0.0, 3.0, 1.0, 2.0]))
    worse = {**found, "TrimmedLogisticRegression": bungled}
    assert not any(target.met for target in _targets(0.1, worse, bad))
    assert len(_targets(0.1, {name: value for name, value in found.items() if name != CLEANLAB}, bad)) == 4


def test_memory_is_seen_while_it_is_held() -> None:
    held: list[np.ndarray] = []

    def hold() -> str:
        held.append(np.ones(50 * 2**17))  # 50 MiB
        sleep(0.05)
        return "done"

    found = memory.measure(hold)
    assert found.value == "done"
    assert found.seconds >= 0.05
    assert found.mib is None or 49 < found.mib < 70


def test_large_writes_what_it_says(tmp_path: Path) -> None:
    plan = replace(large.QUICK, n=600, p=12, piece=250)
    A, bad, U = large.write(tmp_path / "A", plan)
    assert A.shape == (600, 12)
    assert A.dtype == np.float32
    assert not A.flags.writeable
    R = A - A[~bad].mean(axis=0)
    distance = np.linalg.norm(R - (R @ U) @ U.T, axis=1)
    assert distance[bad].min() > 3 * distance[~bad].max()
    assert large.angle(U, U) < 1e-12
    assert large.angle(np.eye(12)[:, :3], np.eye(12)[:, 3:6]) == pytest.approx(1)


def test_quick_digits_need_no_files(written: dict[str, Any]) -> None:
    (table,) = [table for table in written["peers"]["tables"] if table["title"].startswith("wrong labels")]
    assert table["title"].endswith("digits")
    assert {row[1] for row in table["rows"]} >= {"TrimmedLogisticRegression", "LogisticRegression", "clean rows alone"}
