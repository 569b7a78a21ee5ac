"""Figure 2 and Table 1: F* is below everything seen and survives a bad cache; the theory's numbers, by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, isfinite, log, nan, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paper import rates
from paper.outcome import Outcome, write_outcome
from paper.rates import counts as rates_counts
from paper.rates import optimum as rates_optimum
from paper.rates.counts import COLUMNS, CountSettings, Row, algorithms, guarantee, measure, power
from paper.rates.level import CONTINUED, METHODS, Level, LevelSettings, compare
from paper.rates.optimum import Optimum, best_weights_objective, lowest
from paper.rates.pictures import draw_counts, draw_levels
from paper.rates.runs import Entry, Run, trimmed_softmax
from paper.rates.sheets import ERRORS, count_sheets, level_sheet, order
from paper.side_by_side import side_by_side
from trimlearn import Problem, solve
from trimlearn.datasets import load_digits_contaminated, shift_labels
from trimlearn.smart import svrg
from trimlearn.smart.theory import saga_theory, svrg_theory, theorem1

FEW = LevelSettings(passes=25, long_passes=24, palm=(0.5, 2), sg=((3, 20), (1e4, inf)), alternating=(5, 10))


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits: float32 rows, true labels."""
    data = load_digits_contaminated(0.0)
    return data.X.astype(np.float32), data.y_true


@pytest.fixture(scope="module")
def problem(digits: tuple[np.ndarray, np.ndarray]) -> Problem:
    V, y = digits
    return trimmed_softmax(V, shift_labels(y, 0.2, 10, seed=0)[0], 0.2)


@pytest.fixture(scope="module")
def level(digits: tuple[np.ndarray, np.ndarray]) -> Level:
    return compare(*digits, 0.2, FEW)


# -- the problem and the runs -----------------------------------------------------------------------------------------


def test_the_problem_is_the_papers(problem: Problem) -> None:
    assert problem.r1.h == round(0.7 * 1797)
    w, x = np.full(1797, problem.r1.h / 1797), np.ones((64, 10))
    f = problem.loss.values(x.astype(np.float32))
    assert f == pytest.approx(log(10), rel=1e-6)  # every class alike
    assert problem.objective(w, x) == pytest.approx(problem.r1.h / 1797 * log(10) + 0.01 / (2 * 1797) * 640, rel=1e-6)


def test_nothing_is_below_f_star(level: Level) -> None:
    seen = [record.objective for run in level.runs.values() for record in run.solution.history if record.h <= level.h]
    assert level.f_star <= min(seen)
    assert level.f_star <= min(level.optimum.runs.values()) == level.optimum.objective
    assert level.f_star > 0
    for name in METHODS:
        passes, errors = level.errors(name)
        assert np.all(errors >= 0)
        assert np.all(np.diff(passes) >= 0)
        assert level.final(name) >= 0


def test_f_star_is_lowered_by_the_runs_shown(digits: tuple[np.ndarray, np.ndarray], monkeypatch: Any) -> None:
    poor = Optimum(1e3, np.zeros((64, 10)), {"a poor one": 1e3})
    monkeypatch.setattr("paper.rates.level.lowest", lambda *args, **options: poor)
    found = compare(*digits, 0.2, replace(FEW, passes=8))
    seen = [F for run in found.runs.values() for F in run.solution.trace("objective")]
    assert found.f_star == min(seen) < 1e3


def test_every_method_starts_at_the_same_point(level: Level) -> None:
    for name in set(METHODS) - {CONTINUED}:
        first = level.runs[name].solution.history[0]
        assert first.objective == pytest.approx(level.h / 1797 * log(10), rel=1e-6)
    shown = level.errors(CONTINUED)[0]
    history = level.runs[CONTINUED].solution.history
    assert history[0].h == 1797  # untrimmed, and not drawn
    assert shown[0] == next(record.passes for record in history if record.h == level.h)


def test_the_best_of_a_grid_is_shown(level: Level) -> None:
    assert level.tried == {**dict.fromkeys(METHODS, 1), "PALM": 2, "SG": 2, "alternating": 2}
    assert level.runs["PALM"].entry.settings == "γ = 2"
    assert level.runs["SG"].entry.settings == "γ = 3, halved after 20 passes"  # 1e4 overshoots
    assert level.final("SMART-SVRG") < level.final("PALM")
    assert level.final("SMART-SAGA") < level.final("PALM")


def a_level(**curves: list[tuple[float, float]]) -> Level:
    """F* = 1 and h = 10."""
    runs = {}
    for name, points in curves.items():
        history = [SimpleNamespace(passes=passes, objective=F, h=10.0) for passes, F in points]
        runs[name] = Run(Entry(name, "", svrg()), SimpleNamespace(history=history), 60)  # type: ignore[arg-type]
    return Level(0.1, 10.0, Optimum(1.0, None, {}), runs, dict.fromkeys(curves, 1), 1.0)


def test_passes_to_an_error_are_read_off_the_records() -> None:
    found = a_level(a=[(1, 101.0), (7, 11.0), (20, 2.5), (40, 1.5), (70, 1.0)], b=[(1, 200.0), (5, nan)])
    assert [found.needs("a", error) for error in ERRORS] == [1, 7, 40, 70]
    assert [found.needs("b", error) for error in ERRORS] == [inf] * 4
    assert found.final("a") == pytest.approx(1.5 ** (1 / 3) - 1)  # at 60, between 40 and 70, in log F


def test_side_by_side_keeps_the_order_and_passes_errors_on() -> None:
    assert list(side_by_side(lambda k: 10 - k, list(range(8)))) == list(range(10, 2, -1))
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda k: 1 // k, [1, 0]))


# -- F* in a file -----------------------------------------------------------------------------------------------------


@pytest.fixture
def searches(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The searches for F* that were made: a short solve each, in place of long ones."""
    made: list[float] = []
    x = solve(problem, svrg(), max_passes=5, tol=0).x

    def search(problem: Problem, passes: float, say: Any) -> Optimum:
        made.append(passes)
        F = best_weights_objective(problem, x)
        return Optimum(F, x, {"short": F})

    monkeypatch.setattr(rates_optimum, "_search", search)
    return made


def test_f_star_is_sought_once(problem: Problem, searches: list[float], tmp_path: Path) -> None:
    first, second = lowest(problem, 24, tmp_path), lowest(problem, 24, tmp_path)
    assert searches == [24]
    assert (first.cached, second.cached) == (False, True)
    assert second.objective == pytest.approx(first.objective, rel=1e-6)
    assert second.runs == first.runs
    np.testing.assert_array_equal(second.x, first.x)
    lowest(problem, 24)  # nowhere to look
    lowest(problem, 30, tmp_path)  # other settings
    other = Problem(problem.loss, problem.r1.at_h(1000), problem.r2)
    assert lowest(other, 24, tmp_path).objective < first.objective
    assert searches == [24, 24, 30, 24]


def tampered(**changes: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with np.load(path) as file:
            content = {**file, **changes}
        np.savez(path, **{name: value for name, value in content.items() if value is not None})

    return change


BROKEN: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "no archive": lambda path: path.write_text('{"objective": 1e-9}'),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "a pickle": lambda path: (
        np.save(path.with_suffix(".npy"), np.array([{}]), allow_pickle=True) or path.with_suffix(".npy").replace(path)
    ),
    "a part missing": tampered(runs=None),
    "F* too low": tampered(objective=1e-9),
    "F* not a number": tampered(objective=nan),
    "another model": tampered(x=np.zeros((64, 10), np.float32)),
    "a model of another shape": tampered(x=np.zeros((3, 2))),
    "a model of NaN": tampered(x=np.full((64, 10), nan)),
    "runs of another kind": tampered(runs=json.dumps([1, 2])),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_cache_is_ignored_and_replaced(
    problem: Problem, searches: list[float], tmp_path: Path, broken: str
) -> None:
    first = lowest(problem, 24, tmp_path)
    (path,) = tmp_path.iterdir()
    BROKEN[broken](path)
    again = lowest(problem, 24, tmp_path)
    assert not again.cached
    assert again.objective == first.objective
    assert lowest(problem, 24, tmp_path).cached  # it is whole again
    assert searches == [24, 24]
    assert list(tmp_path.iterdir()) == [path]


def test_a_cache_that_cannot_be_written_is_said(problem: Problem, searches: list[float], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    said: list[str] = []
    assert lowest(problem, 24, tmp_path / "file" / "rates", say=said.append).objective > 0
    assert any("could not be kept" in line for line in said)


def test_the_search_itself(problem: Problem) -> None:
    said: list[str] = []
    found = lowest(problem, 24, say=said.append)
    assert len(said) == len(found.runs) == len(rates_optimum.LONG) + len(rates_optimum.FINISH)
    assert found.objective == min(found.runs.values())
    assert found.objective == pytest.approx(best_weights_objective(problem, found.x), rel=1e-5)
    long = min(found.runs[name] for name in rates_optimum.LONG)
    assert all(found.runs[name] <= long * (1 + 1e-5) for name in rates_optimum.FINISH)  # they go on from the best


# -- Table 1, the theory's --------------------------------------------------------------------------------------------

# The paper's Table 1, its two prox entries in the second row put right.
TABLE1 = """
n + n^(2/3)/ε | 1/ε | 1/(nε) | 1/ε
n + κ·n^(2/3)·log(1/ε) | κ·log(1/ε) | (κ/n)·log(1/ε) | κ·log(1/ε)
n + n^(2/3)/ε | n^(2/3)/ε | 1/(n^(1/3)·ε) | 1/ε
n + κ·n^(2/3)·log(1/ε) | κ·n^(2/3)·log(1/ε) | (κ/n^(1/3))·log(1/ε) | κ·log(1/ε)
n/ε | n/ε | 1/ε | 1/ε
κ·n·log(1/ε) | κ·n·log(1/ε) | κ·log(1/ε) | κ·log(1/ε)
"""


def test_the_orders_are_table_1s() -> None:
    printed = [[cell.strip() for cell in line.split("|")] for line in TABLE1.strip().splitlines()]
    assert [[order(algorithm, column) for column in COLUMNS] for algorithm in algorithms()] == printed


def test_svrgs_guarantee_by_hand() -> None:
    n, b, gap, epsilon = 1000, 100, 0.7, 0.02
    q_prime = (1 - 1 / n) ** b
    a = sqrt(q_prime * 1.01 / (2 * b)) / (1 - sqrt(q_prime))
    gamma = 1 / (4 * a + 1)
    eta = 2 + 4 * gamma * (a + 1)
    k = ceil(gap * 4 * eta / (q_prime * gamma * epsilon))
    found = guarantee(svrg_theory(n, b, L=1.0), gap, epsilon)
    assert found.iterations == k
    by_hand = (n + k * (1 - q_prime) * n + k * q_prime * b, k * (1 - q_prime) * n, k * (1 - q_prime), k * q_prime)
    assert [getattr(found, column) for column in COLUMNS] == pytest.approx(by_hand, rel=1e-9)


def test_sagas_guarantee_with_an_error_bound_by_hand() -> None:
    n, b, gap, epsilon, mu = 1000, 100, 0.7, 1e-5, 0.02
    stays = (1 - 1 / n) ** (b + 1)  # q'(1 − ρ)
    a = sqrt((1 - 1 / n) * 1.01 / (2 * b * sqrt(stays))) / (1 - stays**0.25)
    gamma = 1 / (4 * a + 1)
    eta = 2 + 4 * gamma * (a + 1)
    delta = max(1 - mu * (1 - 1 / n) * gamma / (4 * eta), sqrt(stays))
    k = ceil(log(gap / epsilon) / -log(delta))
    found = guarantee(saga_theory(n, b, L=1.0, error_bound=True), gap, epsilon, mu)
    assert found.iterations == pytest.approx(k, abs=1)
    assert found.prox_r1 == pytest.approx(k / n, rel=1e-3)
    assert found.functions == pytest.approx(k, rel=1e-3)
    assert found.gradients == pytest.approx(n + k + k * (1 - 1 / n) * b, rel=1e-3)


def test_palms_guarantees_by_hand() -> None:
    n, gap, epsilon, mu = 1000, 0.7, 1e-3, 0.02
    a = sqrt(0.5 * 1.01 / (2 * n))  # θ = 1
    gamma = 1 / (4 * a + 1)
    decrease = 0.5 * gamma / (4 * (2 + 4 * gamma * (a + 1)))
    rates_of_palm = theorem1(n, n, L=1.0, rho=1.0, q=0.5)
    k = ceil(gap / (decrease * epsilon))
    found = guarantee(rates_of_palm, gap, epsilon)
    assert [getattr(found, column) for column in COLUMNS] == pytest.approx([n + k * n, k * n / 2, k / 2, k / 2])
    k = ceil(log(gap / epsilon) / -log(1 - mu * decrease))
    found = guarantee(rates_of_palm, gap, epsilon, mu)
    assert found.iterations == k
    assert [getattr(found, column) for column in COLUMNS] == pytest.approx([n + k * n, k * n / 2, k / 2, k / 2])


def test_the_methods_take_the_corollaries_steps() -> None:
    problem = rates_counts.small_problem(100, seed=0)
    for algorithm in algorithms():
        rates_of = algorithm.rates(100)
        run = algorithm.method(rates_of).bind(problem, 0)
        assert (run.rule.gamma, run.rule.eta, run.tau) == (rates_of.gamma, rates_of.eta, rates_of.tau)
        assert run.j.chance == rates_of.q
        assert run.b == (100 if algorithm.name == "PALM" else 22)
        assert run.momentum == 0
        rho = run.refresh.rho(100, run.b)
        expected = {"PALM": 1.0, "SMART (SVRG)": 0.0, "SMART (SAGA)": 1 - 0.99**22}
        assert rho == pytest.approx(expected[algorithm.name])


def test_the_residuals_by_hand() -> None:
    problem = rates_counts.small_problem(100, seed=1)
    rates_of = svrg_theory(100, 22, L=1.0)
    V, t = problem.loss.linear.storage.fetch(slice(None)), problem.loss.t[:, 0]
    w, x = np.full(100, 0.9), np.zeros(5)
    F, x_sq, w_sq = rates_counts._look(problem, w, x, rates_of)
    assert F == pytest.approx(0.9 * np.mean(t**2) / 2)
    step = rates_of.gamma / rates_of.eta
    gradient = -0.9 * V.T @ t / 100
    assert x_sq == pytest.approx(float(gradient @ gradient) / (1 + step * 1e-3) ** 2)  # Ridge shrinks
    f = t**2 / 2  # w stays inside: the projection only takes the mean off
    assert w_sq == pytest.approx(float(np.sum((f - f.mean()) ** 2)) / 100**2)
    solution = solve(problem, tol=0)
    assert max(rates_counts._look(problem, solution.w, solution.x, rates_of)[1:]) < 1e-20


# -- Table 1, counted -------------------------------------------------------------------------------------------------

FEWER = CountSettings(sizes=(32, 128), shown=32, seeds=(0,), residuals=(3.2e-2, 1.6e-2), gaps=(1e-1, 1e-4))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return measure(FEWER)


def test_the_guarantee_holds(rows: list[Row]) -> None:
    assert len(rows) == 12
    for row in rows:
        for epsilon in row.counted:
            counted, guaranteed = np.array(row.counted[epsilon]), np.array(row.guaranteed[epsilon])
            assert np.all(counted <= guaranteed), (row.algorithm, row.n, epsilon)
        for smaller, larger in zip(sorted(row.counted)[:-1], sorted(row.counted)[1:], strict=True):
            assert row.counted[smaller][0] > row.counted[larger][0]


def test_what_an_evaluation_costs(rows: list[Row]) -> None:
    for row in rows:
        for gradients, functions, prox_r1, prox_r2 in row.counted.values():
            assert functions % row.n == 0
            assert row.n <= functions <= row.n * (1 + prox_r1)  # every w-step evaluates f at most once
            batch = row.n if row.algorithm.name == "PALM" else row.algorithm.rates(row.n).b
            assert functions <= gradients <= functions + batch * prox_r2


def test_powers_of_n(rows: list[Row]) -> None:
    def fitted(name: str, error_bound: bool, epsilon: float) -> float:
        mine = [row for row in rows if (row.algorithm.name, row.algorithm.error_bound) == (name, error_bound)]
        return power([(row.n, row.counted[epsilon][0] - row.n) for row in mine])

    assert 0.5 < fitted("SMART (SVRG)", False, 1.6e-2) < 0.8
    assert fitted("SMART (SAGA)", False, 1.6e-2) < 0.8 < fitted("PALM", False, 1.6e-2) < 1.1
    for row in rows:  # twice the accuracy, twice the work
        if not row.algorithm.error_bound and row.n == 32:
            assert row.counted[1.6e-2][3] / row.counted[3.2e-2][3] == pytest.approx(2, rel=0.1)


def test_kappa_grows_like_n() -> None:
    """Where x is the best for w = h/n the residual of x is 0, and that of w allows no μ beyond a constant over n."""

    def allowed(n: int) -> float:
        problem = rates_counts.small_problem(n, seed=0)
        w = np.full(n, problem.r1.h / n)
        x = problem.loss.minimiser(w / n, problem.r2, problem.loss.start())
        F, x_sq, w_sq = rates_counts._look(problem, w, x, svrg_theory(n, 22, L=1.0))
        assert x_sq < 1e-20
        return w_sq / (F - solve(problem, tol=0).objective)

    assert 2000 * allowed(2000) == pytest.approx(500 * allowed(500), rel=0.2)


def test_what_is_not_reached_is_infinite() -> None:
    found = measure(replace(FEWER, sizes=(32,), residuals=(1e-9,), gaps=(1e-30,), max_iterations=50))
    assert all(value == inf for row in found for counted in row.counted.values() for value in counted)
    for sheet in count_sheets(found, replace(FEWER, residuals=(1e-9,), gaps=(1e-30,))):
        assert {row[4] for row in sheet.rows} == {"not reached"}
        assert {row[7] for row in sheet.rows} == {"–"}


@pytest.mark.parametrize("points", [[(10, 5.0)], [(10, 5.0), (20, inf)], [(10, 0.0), (20, 1.0)]])
def test_power_needs_two_numbers(points: list[tuple[float, float]]) -> None:
    assert np.isnan(power(points))


def test_shown_is_one_of_the_sizes() -> None:
    with pytest.raises(ValueError, match="shown"):
        CountSettings(sizes=(10, 20), shown=15)


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_the_tables(level: Level, rows: list[Row]) -> None:
    sheet = level_sheet([level], FEW.passes)
    assert [row[1] for row in sheet.rows] == list(METHODS)
    assert "best of 2, an end of the grid" in sheet.rows[METHODS.index("PALM")][2]
    assert f"{level.f_star:.4g}" in sheet.note
    first, second = count_sheets(rows, FEWER)
    for half in (first, second):
        assert [len(row) for row in half.rows] == [len(half.header)] * 12
    saga = rows[0]
    assert first.rows[0][:3] == ["SMART (SAGA)", "∇fᵢ", "O(n + n^(2/3)/ε)"]
    assert first.rows[0][4] == f"{saga.counted[1.6e-2][0]:,.0f}"
    assert first.rows[0][5] == "0.67"


def test_the_pictures(level: Level, rows: list[Row]) -> None:
    figure = draw_levels([level, replace(level, wrong=0.4), level], FEW.passes)
    panels = figure.axes
    assert [panel.get_title() for panel in panels[:2]] == ["20% of the labels wrong", "40% of the labels wrong"]
    assert [panel.axison for panel in panels] == [True, True, True, False]
    assert all(panel.get_yscale() == "log" for panel in panels[:3])
    assert len({panel.get_ylim() for panel in panels[:3]}) == 1  # one y axis for all
    drawn = {line.get_label(): line for line in panels[0].lines}
    assert set(drawn) == set(METHODS)
    passes, errors = level.errors("PALM")
    np.testing.assert_allclose(drawn["PALM"].get_xydata(), np.column_stack([passes, errors]))
    left, right = draw_counts(rows).axes
    assert len(left.lines) == len(right.lines) == 6


@pytest.fixture(scope="module")
def quick(data_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        counts = replace(rates.QUICK.counts, sizes=(64,), residuals=(4e-2,), gaps=(1e-1,))
        return rates.run(replace(rates.QUICK, counts=counts), data_home, say=said.append), said


def test_mnist(quick: tuple[Outcome, list[str]], tmp_path: Path) -> None:
    outcome, said = quick
    results = json.loads(json.dumps(outcome.results, allow_nan=False))  # no infinity in it
    (found,) = results["figure2"]
    assert found["h"] == 1400
    assert found["f_star"]["objective"] <= min(found["f_star"]["long_runs"].values())
    methods = found["methods"]
    assert set(methods) == set(METHODS)
    assert methods["SMART-SVRG"]["final"] < 1 < methods["alternating"]["final"] < methods["PALM"]["final"]
    assert methods["PALM"]["needs"]["0.1"] is None
    assert len(said) == 6 + 7 + 6  # one line per search, per run, per row of Table 1
    files = {path.name for path in write_outcome(tmp_path, outcome)}
    assert {"rates_figure2.png", "rates_figure2.svg", "rates_table1.png", "rates_figure2.csv"} <= files
    lines = (tmp_path / "rates_figure2.csv").read_text().splitlines()
    errors = [float(line.rsplit(",", 1)[1]) for line in lines[1:]]
    assert min(errors) >= 0
    assert all(isfinite(error) for error in errors)


def test_full_is_the_papers_experiment() -> None:
    assert rates.FULL.wrong == (0.1, 0.2, 0.3, 0.4)
    assert rates.FULL.rows is None
