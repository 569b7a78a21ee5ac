"""The benchmarks run, write what they promise, and judge by what they measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import cores, floor, floor_cases, growth, rates, report, small
from benchmarks.__main__ import main
from benchmarks.common import Digits, Part, Result, Table, Target, gather, interleave, render, save
from trimlearn.smart import svrg


@pytest.fixture(scope="module", autouse=True)
def no_rest() -> Iterator[None]:
    """Between two timings a benchmark waits until threads have stopped spinning: nothing here depends on the clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.common.REST", 0.0)
        yield


@pytest.fixture(scope="module")
def tiny() -> Digits:
    """Three classes in eight features."""
    rng = np.random.default_rng(0)
    t = rng.integers(0, 3, 400)
    V = (rng.random((400, 8)) + np.eye(3, 8)[t]).astype(np.float32)
    return Digits("tiny", V[:300], t[:300], V[300:], t[300:])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every benchmark by its command, on small data, and what it wrote."""
    out = tmp_path_factory.mktemp("results")
    for name in ("floor", "cores", "rates", "growth", "small", "battery"):
        assert main([name, "--quick", "--out", str(out)]) == 0
    return {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}


@pytest.mark.parametrize("name", ["floor", "cores", "rates", "growth", "small", "battery"])
def test_files(written: dict[str, Any], name: str) -> None:
    found = written[name]
    assert set(found) == {"benchmark", "machine", "settings", "targets", "tables"}
    assert found["benchmark"] == name
    assert {"cpu", "cores", "blas", "versions", "load_before"} <= set(found["machine"])
    assert all(len(row) == len(table["columns"]) for table in found["tables"] for row in table["rows"])
    assert all(table["rows"] for table in found["tables"])
    for target in found["targets"]:  # the verdict is the comparison, for every one
        measured = inf if target["measured"] is None else target["measured"]
        assert target["met"] == (measured <= target["limit"]), target


def test_machine_holds_no_names(written: dict[str, Any]) -> None:
    import getpass
    import socket

    text = json.dumps(written, ensure_ascii=False)
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert getpass.getuser() not in json.dumps([found["machine"] for found in written.values()]).split()


def test_a_quick_try_leaves_the_results_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.__main__.RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.growth.QUICK", replace(growth.QUICK, sizes=(50, 100), level=1.0))
    main(["growth", "--quick"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("measured", "limit", "met"), [(1.0, 1.0, True), (1.1, 1.0, False), (inf, 1.0, False), (nan, 1.0, False)]
)
def test_verdict_is_computed(measured: float, limit: float, met: bool, tmp_path: Path) -> None:
    target = Target("what", measured, limit)
    assert target.met is met
    result = Result("name", {}, [target], [Table("title", ["a", "b"], [[1, inf]])])
    found = json.loads(save(result, tmp_path).read_text())
    assert found["targets"][0]["met"] is met
    text = render(found)
    assert text.splitlines()[-1].endswith("  met" if met else "not met")
    assert "never" in text  # inf, which JSON has not


def test_parts_merge_into_the_file_there_is(tmp_path: Path) -> None:
    def run(figures: dict[str, float]) -> dict[str, Any]:
        def measure(name: str, figure: float) -> Part:
            return Part([Table(name, ["a"], [[figure]])], [Target(name, figure, 1.0)])

        result = gather("name", {name: partial(measure, name, x) for name, x in figures.items()}, {"k": len(figures)})
        found: dict[str, Any] = json.loads(save(result, tmp_path, merge=True).read_text())
        return found

    run({"first": 0.5, "second": 0.25})
    found = run({"second": 2.0, "third": 0.75})
    assert [(target["what"], target["measured"]) for target in found["targets"]] == [
        ("first", 0.5),
        ("second", 2.0),
        ("third", 0.75),
    ]
    assert [table["part"] for table in found["tables"]] == ["first", "second", "third"]
    assert found["settings"] == {"parts": "first, second, third", "k": 2}
    assert set(found["machines"]) == {"first", "second", "third"}


def test_interleaved_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("benchmarks.common.perf_counter", lambda: now[0])

    def takes(seconds: float) -> None:
        now[0] += seconds

    def prepare() -> float:
        takes(100.0)  # outside the clock
        return 3.0

    timing = interleave(lambda: takes(2.0), {"task": (prepare, takes)}, 4)["task"]
    np.testing.assert_allclose(timing.seconds, [3.0] * 4)
    np.testing.assert_allclose(timing.ratios, [1.5] * 4)
    assert timing.row("task") == ["task", 3000.0, 1.5, 1.5, 1.5, 1.5]


# -- floor ----------------------------------------------------------------------------------------------------------


def test_floor_verdicts_follow_the_clock(tiny: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    # products that take next to nothing: every step must be judged too dear; and the other way round
    for seconds, met in ((1e-9, False), (1e9, True)):

        def timed(reference: Any, tasks: Any, repetitions: int, seconds: float = seconds) -> Any:
            found = interleave(reference, tasks, repetitions)
            return {name: replace(timing, reference=np.full(1, seconds)) for name, timing in found.items()}

        monkeypatch.setattr(floor, "interleave", timed)
        monkeypatch.setattr(floor_cases, "interleave", timed)
        targets = floor.run(tiny, repetitions=1, passes=3).targets
        assert {target.met for target in targets if "products" in target.what} == {met}


def test_floor_passes_are_passes(tiny: Digits) -> None:
    bench = floor.Bench(floor._problem(tiny, 1.0), svrg(finish=False))
    before = bench.engine.counts.gradients
    drawn, given = bench.state(), bench.state()
    bench.x_steps(drawn)
    evaluated = bench.engine.counts.gradients - before  # rows drawn twice in a batch are evaluated once
    assert 0.85 * 300 < evaluated <= bench.steps * bench.algorithm.b
    bench.x_steps_by(given, bench.rows())
    np.testing.assert_array_equal(drawn.x, given.x)  # both ways of driving it take the same steps
    assert not np.array_equal(drawn.x, bench.state().x)  # and each repetition begins where the first began
    anchored = bench.anchored()
    bench.w_step(anchored)
    assert not anchored.record.restored


def test_cores_time_steps_that_read_no_row(tiny: Digits, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []

    def counted(reference: Any, tasks: Any, repetitions: int) -> Any:
        for prepare, task in list(tasks.values())[:2]:
            engine = task.__self__.engine
            before = engine.counts.gradients
            task(prepare())
            evaluated.append(engine.counts.gradients - before)
        return interleave(reference, tasks, repetitions)

    monkeypatch.setattr(cores, "interleave", counted)
    (table,) = cores.run(tiny, repetitions=1).tables
    assert evaluated[0] > 0.85 * 300
    assert evaluated[1] == 0
    assert [row[0] for row in table.rows] == [2**k for k in range(len(table.rows))]


def test_peak_counts_bytes() -> None:
    assert floor._peak(lambda: np.zeros(1_000_000)) == pytest.approx(8e6, rel=0.01)


# -- rates ----------------------------------------------------------------------------------------------------------


def history(*points: tuple[float, float]) -> Any:
    return SimpleNamespace(history=[SimpleNamespace(passes=passes, objective=F) for passes, F in points])


def a_run(name: str, *points: tuple[float, float]) -> rates.Run:
    return rates.Run(rates.Entry(name, "", svrg(finish=False)), history(*points), 60)


def test_final_is_interpolated_at_the_passes_allowed() -> None:
    assert a_run("", (0, 1.0), (50, 1e-2), (70, 1e-4)).final == pytest.approx(1e-3)
    assert a_run("", (0, 1.0), (50, 1e-2)).final == 1e-2
    assert a_run("", (0, 1.0), (60, 1e-2), (61, 1e-4)).final == 1e-2
    assert a_run("", (0, 1.0), (50, 2.0), (70, inf)).final == 2.0


def test_needs_is_the_first_record_at_or_below() -> None:
    run = a_run("", (1, 1.0), (5, 0.5), (9, 0.6), (12, 0.1))
    assert (run.needs(0.5), run.needs(0.55), run.needs(0.3), run.needs(0.05)) == (5, 5, 12, inf)


def test_against_hand_at_the_level_both_reach() -> None:
    auto, hand = a_run("", (1, 1.0), (30, 0.1), (60, 0.01)), a_run("", (1, 1.0), (20, 0.5), (60, 0.1))
    assert rates.against_hand(auto, hand) == 30 / 60  # auto ends lower: what matters is when it passed hand's end
    assert rates.against_hand(hand, auto) == 60 / 30


def test_best_of_a_grid_ignores_what_diverged() -> None:
    runs = [a_run("sg", (0, 1.0), (60, F)) for F in (nan, 0.3, 0.2, nan, 0.25)]
    assert rates._best(runs)["sg"].final == 0.2


def test_rates_targets_take_the_unluckiest_seed() -> None:
    slow, quick = ((1, 1.0), (40, 0.01), (60, 0.001)), ((1, 1.0), (5, 0.01), (60, 0.001))
    rivals = [a_run(name, (1, 1.0), (60, 0.01)) for name in (*rates.RIVALS, rates.SMART_BY_HAND)]
    for curves, palm_met in (((slow, quick), False), ((quick, quick), True)):
        runs = [a_run(name, *curve) for name in rates.SMARTS for curve in curves] + rivals
        targets = rates._targets(0.1, rates.Plan(), runs, rates._best(runs))
        found = {(target.what, target.goal): target for target in targets}
        palm = found["10% wrong: svrg, auto / palm, passes", False]
        assert palm.met is palm_met
        assert palm.measured == pytest.approx((5 if palm_met else 40) / 60)
        assert found["10% wrong: svrg, auto / alternating, passes", False].met
        assert found["10% wrong: svrg, auto / alternating, passes", True].met is palm_met


def test_rates_table_has_a_row_for_each_method(written: dict[str, Any]) -> None:
    (table,) = written["rates"]["tables"]
    names = [row[0] for row in table["rows"]]
    assert names == [
        *("svrg, auto", "saga, auto", "page, auto", "svrg, auto, continuation", rates.PALM_WITH_MOMENTUM),
        *(rates.SMART_BY_HAND, *rates.RIVALS),
    ]
    ends = {row[0]: row[1].endswith("(end of the grid)") for row in table["rows"]}
    assert ends["palm"] or "auto" in table["rows"][names.index("palm")][1]  # two steps: both are ends
    assert not ends["svrg, auto"]
    finals = {row[0]: row[2] for row in table["rows"]}
    assert finals["svrg, auto"] < finals["palm"]
    assert all(0 <= cell <= 100 for row in table["rows"] for cell in row[5:8])


# -- growth ---------------------------------------------------------------------------------------------------------


def test_exponent() -> None:
    points = [(n, 7.0 * n**0.7) for n in (10, 100, 1000, 100_000)]
    assert growth.exponent(points) == pytest.approx(0.7)
    bent = [*points[:2], (1000, 1000.0), (100_000, 100_000.0)]
    assert growth.exponent(bent, 1000) == pytest.approx(1.0)
    assert growth.exponent([*points, (10**6, inf)]) == inf  # a level that was not reached has no exponent


def test_growth_stops_at_the_level() -> None:
    plan = replace(growth.QUICK, level=0.02)
    solution, reached = growth.reach(svrg(finish=False), 500, 0, plan)
    problem = growth.trimmed_logistic(500, 0, plan)
    gradient = problem.loss.gradient(solution.x, solution.w / 500)
    assert reached
    assert np.linalg.norm(gradient) <= 1.5 * plan.level  # SMART's own norm is its metric's, which is nearly Euclidean
    assert not growth.reach(svrg(finish=False), 500, 0, replace(plan, level=1e-9, max_passes=5))[1]


def test_growth_says_when_nothing_was_reached() -> None:
    plan = replace(growth.QUICK, sizes=(50, 100), level=1e-9, max_passes=3)
    targets = {target.what: target for target in growth.run(plan).targets}
    assert targets["exponent of SMART (svrg, auto)"].measured == inf
    assert not any(target.met for target in targets.values())


# -- small and the report -------------------------------------------------------------------------------------------


def test_small_finds_the_optimum(written: dict[str, Any]) -> None:
    fits, imports = written["small"]["tables"]
    assert [row[2:] for row in fits["rows"]] == [[pytest.approx(small.OPTIMUM, rel=1e-3), 8]] * 2
    assert all(row[1] > 0 for row in imports["rows"])


def test_report(written: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "floor.json").write_text(json.dumps(written["floor"]))
    text = report.write(tmp_path, tmp_path / "page.md").read_text()
    assert text.count("Not run yet") == len(report.TEXTS) - 1
    target = written["floor"]["targets"][0]
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {target['what']}")]
    assert line.endswith("| met |" if target["met"] else "| not met |")
    assert f"| {target['limit']:.3g} |" in line
