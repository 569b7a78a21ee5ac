"""`trimlearn.report.charts`: what the specs say is what was found, and no table breaks them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi

import chart_examples as examples
import trimlearn.report
from trimlearn.checks.findings import CellFindings, DuplicateRows, WrongCell
from trimlearn.checks.names import Names
from trimlearn.report.chart_specs import DRAWN, FLAGGED, LISTED, axis, counted, numbers, rows_to_draw, share
from trimlearn.report.charts import charts

FOLDER = Path(trimlearn.report.__file__).parent
MADE = {e.__name__: e() for e in (examples.regression, examples.classification, examples.whole_rows)}
regression, classification, whole_rows = MADE.values()
Spec = dict[str, Any]


def drawn(example: examples.Example, **more: Any) -> dict[str, Spec]:
    """The charts of an example by their keys, after a way through JSON."""
    specs = json.loads(json.dumps(charts(**{**example.arguments, **more}), allow_nan=False))
    assert len({spec["key"] for spec in specs}) == len(specs)
    return {spec["key"]: spec for spec in specs}


@pytest.mark.parametrize("name", MADE)
def test_every_chart_says_what_it_shows(name: str) -> None:
    types = set(re.findall(r"charts\.kinds\.(\w+)|Object\.assign\(charts\.kinds, \{ (\w+), (\w+) \}", _scripts()))
    known = {word for words in types for word in words if word}
    for spec in drawn(MADE[name]).values():
        assert spec["type"] in known
        assert spec["title"]
        assert spec["title"][-1] not in ".!"
        assert re.fullmatch(r"[A-Z].*\.", spec["description"])
        assert spec["table"]["rows"]
        assert all(len(row) == len(spec["table"]["head"]) for row in spec["table"]["rows"])
        assert len(spec["table"]["rows"]) <= LISTED


def _scripts() -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("charts*.js")))


def test_each_kind_of_check_has_its_charts() -> None:
    shared = ["cells", "columns"]
    assert list(drawn(regression)) == [
        "outlier-map", "scores", "probabilities", "calibration", "coefficients", "path", "convergence", *shared,
    ]  # fmt: skip
    assert list(drawn(classification)) == [
        "outlier-map", "scores", "probabilities", "calibration", "noise", *shared, "duplicates",
    ]  # fmt: skip
    assert list(drawn(whole_rows)) == [*shared, "components", "row-scores", "row-map", "quantiles"]


def test_scripts_parse_nothing_and_set_no_style_attribute() -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|[\"']style[\"']|cssText"
    assert re.findall(forbidden, _scripts()) == []


# -- what is said ----------------------------------------------------------------------------------------------------


def test_an_outlier_map_has_the_rows_where_they_are() -> None:
    assert regression.target is not None
    spec = drawn(regression)["outlier-map"]
    row = int(np.nanargmax(regression.target.score))
    at = spec["points"]["name"].index(regression.names[row])
    assert at == spec["label"][0]
    assert spec["points"]["x"][at] == pytest.approx(regression.more["distances"][row], rel=1e-3)
    assert abs(spec["points"]["y"][at]) == pytest.approx(regression.target.score[row], rel=1e-3)
    low = regression.table.frame["MPG"].iloc[row] < regression.target.suggested[row]
    assert (spec["points"]["y"][at] < 0) == low
    assert {"axis": "x", "at": 4.2, "label": "far from others"} in spec["lines"]
    assert spec["y"]["shape"] == "signed"


def test_the_cut_lies_between_the_flagged_and_the_others_or_is_not_drawn() -> None:
    assert regression.target is not None
    target = regression.target
    (line,) = drawn(regression)["scores"]["lines"]
    assert target.score[~target.flagged].max() < line["at"] < target.score[target.flagged].min()
    mixed = target.flagged.copy()
    mixed[np.argsort(-target.score)[0]] = False
    assert drawn(replace(regression, target=replace(target, flagged=mixed)))["scores"]["lines"] == []


def test_the_innocent_among_the_suspects_are_counted_by_their_probabilities() -> None:
    assert regression.target is not None
    flagged = np.arange(297) < 10
    probability = np.where(flagged, 0.8, 0.01)
    spec = drawn(replace(regression, target=replace(regression.target, flagged=flagged, probability=probability)))
    said = spec["probabilities"]["description"].replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("If all 10 were called wrong, about 2 of them would be innocent; about 3 of the others")
    title = "By their probabilities, about 8 of the 10 rows flagged for MPG are wrong"
    assert spec["probabilities"]["title"] == title
    assert sum(bin_["counts"][0] for bin_ in spec["probabilities"]["bins"]) == 10


def test_a_noise_matrix_names_the_commonest_mistake() -> None:
    spec = drawn(classification)["noise"]
    title = "About 14 % of what should be “Diesel” is labelled “Petrol”"
    assert spec["title"].replace("\N{NO-BREAK SPACE}", " ") == title
    worst = next(cell for cell in spec["cells"] if cell["row"] == 0 and cell["column"] == 1)
    assert worst["role"] == "wrong"
    assert spec["row_label"] == "in truth"


def test_of_many_classes_the_noisiest_are_drawn() -> None:
    assert classification.target is not None
    matrix = np.eye(40)
    matrix[30, 30], matrix[30, 31] = 0.5, 0.5
    target = replace(classification.target, classes=tuple(f"c{k}" for k in range(40)), noise_matrix=matrix)
    spec = drawn(replace(classification, target=target))["noise"]
    assert {"c30", "c31"} <= set(spec["rows"])
    assert len(spec["cells"]) == 144
    assert "12 classes" in spec["description"]


@pytest.mark.parametrize(
    ("plain", "title"),
    [
        (2.1, "Trimming moves no coefficient beyond its 95 % interval"),
        (3.5, "Trimming moves the coefficient of “Weight” beyond its 95 % interval"),
        (-1.5, "When rows are trimmed, the coefficient of “Weight” changes its sign"),
        (-0.1, "Trimming moves the coefficient of “Weight” beyond its 95 % interval"),
    ],
)
def test_the_title_of_coefficients_is_what_happened(plain: float, title: str) -> None:
    assert regression.target is not None
    one = ({"name": "Weight", "plain": plain, "trimmed": 2.0, "low": 1.0, "high": 3.0},)
    spec = drawn(replace(regression, target=replace(regression.target, coefficients=one)))["coefficients"]
    assert spec["title"] == title
    assert spec["items"] == [{"name": "Weight", "points": [plain, 2], "low": 1, "high": 3}]


def test_coefficients_without_intervals_are_drawn_without() -> None:
    assert regression.target is not None
    some = (
        {"name": "Weight", "plain": 1.0, "trimmed": 2.0, "low": None, "high": float("nan")},
        {"name": "b", "plain": 1.0, "trimmed": float("nan"), "low": 0.0, "high": 1.0},
    )
    spec = drawn(replace(regression, target=replace(regression.target, coefficients=some)))["coefficients"]
    assert spec["items"] == [{"name": "Weight", "points": [1, 2], "low": None, "high": None}]


def test_who_leaves_is_in_order_and_rows_without_a_target_are_skipped() -> None:
    assert regression.target is not None
    score = regression.target.score.copy()
    score[:3] = np.nan
    leaves = np.full(294, np.inf)
    leaves[[5, 9]] = 0.05, 0.025  # of the rows that have a target: rows 8 and 12 of the table
    path = SimpleNamespace(leaves_at=leaves, elbow=0.05, auto=0.04)
    spec = drawn(replace(regression, target=replace(regression.target, score=score)), path=path)["path"]
    assert [item["name"] for item in spec["items"]] == [regression.names[12], regression.names[8]]
    assert spec["title"].endswith(f", “{regression.names[12]}” leaves first")
    assert "about 4" in spec["description"]


@pytest.mark.parametrize(("moves", "word"), [(1e-9, "settled"), (0.3, "still moving"), (np.nan, "still moving")])
def test_convergence_is_not_claimed_where_there_is_none(moves: float, word: str) -> None:
    assert regression.target is not None
    history = [examples.record(0, 4.0, 1.0), examples.record(1, 2.0, 0.1), examples.record(2, 1.9, moves)]
    target = replace(regression.target, fits={"history": history})
    assert word in drawn(replace(regression, target=target))["convergence"]["title"]


def test_reliability_counts_what_came_true() -> None:
    assert classification.target is not None
    n = len(classification.table.frame)
    given = classification.table.frame["Fuel"].to_numpy()
    sure = np.where((given == "Diesel")[:, None], [0.75, 0.25], [0.25, 0.75])
    spec = drawn(classification, predicted=sure)["calibration"]
    assert spec["points"]["x"] == [0.75]
    assert spec["points"]["y"] == [1]
    assert spec["points"]["name"] == [f"{n} rows"]
    assert "more often than the model says" in spec["title"]


def test_a_cell_map_says_what_was_written_and_what_was_expected() -> None:
    spec = drawn(regression)["cells"]
    worst = max(regression.cells.cells, key=lambda cell: abs(cell.score))
    row, column = spec["rows"].index(regression.names[worst.row]), spec["columns"].index(worst.column)
    (cell,) = [c for c in spec["cells"] if (c["row"], c["column"]) == (row, column)]
    assert cell["lines"][0] == f"{worst.column} of {regression.names[worst.row]}"
    assert str(regression.table.written[worst.column].iloc[worst.row]) in cell["lines"][1]
    assert cell["role"] == ("high" if worst.score > 0 else "low")
    assert len(spec["rows"]) == 30
    assert "of 41" in spec["description"]


def test_a_cell_of_words_is_neither_high_nor_low() -> None:
    words = WrongCell(7, "Fuel", "Deisel", "Diesel", 12.0, 0.99, "spelling")
    later = WrongCell(8, "Price", "2204-05-31", "2024-05-31", 9.0, 0.99)
    spec = drawn(replace(regression, cells=CellFindings((words, later), regression.table.frame, {})))["cells"]
    first, second = (cell for cell in spec["cells"] if cell["role"] != "missing")
    assert (first["sign"], second["sign"]) == ("≠", "+")
    assert first["lines"][1].endswith("→ Diesel expected")
    assert "≠ is another word" in spec["description"]


def test_quantiles_are_those_of_normal_rows() -> None:
    assert whole_rows.rows is not None
    spec = drawn(whole_rows)["quantiles"]
    n = len(whole_rows.rows.scores)
    assert max(spec["points"]["x"]) == pytest.approx(chi.ppf((n - 0.5) / n, 8), rel=1e-3)
    assert sorted(spec["points"]["y"]) == numbers(np.sort(whole_rows.rows.scores))


def test_without_an_odd_row_nothing_alarms() -> None:
    assert whole_rows.rows is not None
    spec = drawn(replace(whole_rows, rows=replace(whole_rows.rows, odd=())))
    assert "row-map" not in spec
    assert "quantiles" not in spec
    assert spec["row-scores"]["title"] == "No row of 250 is unlike all others as a whole"
    assert "10 rows beyond the cut-off are not called odd: not all models agree." in spec["row-scores"]["description"]


def test_contradictory_duplicates_come_first() -> None:
    spec = drawn(classification)["duplicates"]
    assert spec["title"] == "Three groups of rows repeat each other, one of them with contradictory targets"
    assert spec["items"][0]["counts"] == [2, 0, 0]
    assert "duplicates" not in drawn(classification, duplicates=[DuplicateRows((1, 2), "exact")])


def test_a_group_of_its_own_is_not_called_unusual() -> None:
    far = np.where(np.arange(297) % 3 == 0, 9.0, 2.0)
    spec = drawn(classification, distances=far, distance_limit=4.0)["outlier-map"]
    assert "unusual" not in spec["title"]
    assert not any(line["axis"] == "x" for line in spec["lines"])


def test_coefficients_of_what_is_no_column_are_left_out() -> None:
    assert regression.target is not None
    parts = tuple({"name": f"component {k}", "plain": 1.0, "trimmed": 2.0, "low": 1.0, "high": 3.0} for k in range(3))
    assert "coefficients" not in drawn(replace(regression, target=replace(regression.target, coefficients=parts)))


def test_given_and_expected_share_an_axis_that_shows_both() -> None:
    assert regression.target is not None
    frame = regression.table.frame.copy()
    middle = float(np.median(frame["MPG"]))
    frame.loc[3, "MPG"] = 8 * middle
    spec = drawn(replace(regression, table=replace(regression.table, frame=frame)))["calibration"]
    assert spec["x"]["shape"] == spec["y"]["shape"] != "linear"


# -- what does not apply is left out -----------------------------------------------------------------------------------


def test_nothing_found_is_nothing_drawn() -> None:
    clean = tuple(replace(column, missing=0) for column in regression.table.columns)
    table = replace(regression.table, columns=clean)
    none = CellFindings((), table.frame, {})
    assert charts(table=table, cells=none, target=None, rows=None, names=str) == []


NAN, NO = np.full(297, np.nan), np.zeros(297, dtype=bool)


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"flagged": NO, "by_linear": NO, "by_boosting": NO}, {"probabilities"}),
        ({"flagged": ~NO}, set()),
        ({"score": NAN, "probability": NAN, "suggested": NAN, "flagged": NO},
         {"outlier-map", "scores", "probabilities", "calibration"}),
        ({"score": np.ones(297), "probability": np.ones(297), "suggested": np.ones(297)}, set()),
        ({"coefficients": ()}, {"coefficients"}),
        ({"fits": {}}, {"convergence"}),
        ({"score": np.where(NAN > 0, 1, 1e300)}, set()),
    ],
)  # fmt: skip
def test_a_target_of_any_kind(changes: dict[str, Any], gone: set[str]) -> None:
    assert regression.target is not None
    found = drawn(replace(regression, target=replace(regression.target, **changes)))
    assert set(drawn(regression)) - set(found) == gone


@pytest.mark.parametrize(
    ("more", "gone"),
    [
        ({"distances": None}, {"outlier-map"}),
        ({"distances": np.ones(5)}, {"outlier-map"}),
        ({"distances": np.full(297, np.inf)}, {"outlier-map"}),
        ({"distances": np.zeros(297)}, set()),
        ({"distance_limit": np.inf}, set()),
        ({"distance_limit": None}, set()),
        ({"path": None}, {"path"}),
        ({"path": SimpleNamespace(leaves_at=np.full(5, 0.1), elbow=0.1, auto=None)}, {"path"}),
        ({"path": SimpleNamespace(leaves_at=np.full(297, np.inf), elbow=0.1, auto=None)}, {"path"}),
        ({"path": SimpleNamespace(leaves_at=np.full(297, 0.1), elbow=0.0, auto=None)}, {"path"}),
    ],
)
def test_what_is_not_given_is_left_out(more: dict[str, Any], gone: set[str]) -> None:
    assert set(drawn(regression)) - set(drawn(regression, **more)) == gone


def test_missing_labels_and_labels_that_are_numbers() -> None:
    assert classification.target is not None
    frame = classification.table.frame.copy()
    frame["Fuel"] = np.where(np.arange(297) % 50 == 0, np.nan, (frame["Fuel"] == "Diesel").astype(float))
    classes = tuple(str(k) for k in range(40))
    predicted = np.full((297, 40), 0.01)
    predicted[:, 1] = 0.61
    target = replace(classification.target, classes=classes, suggested=np.full(297, "1"))
    numbered = replace(classification, table=replace(classification.table, frame=frame), target=target)
    found = drawn(numbered, predicted=predicted)
    assert found["calibration"]["points"]["name"] == ["291 rows"]
    assert {row[1] for row in found["scores"]["table"]["rows"]} <= {"0", "1", ""}
    words = frame.assign(Fuel=np.where(np.arange(297) < 9, None, classification.table.frame["Fuel"]))
    assert list(drawn(replace(classification, table=replace(classification.table, frame=words)))) == list(
        drawn(classification)
    )


def test_what_the_fits_hold_need_not_be_given() -> None:
    assert regression.target is not None
    held = replace(regression, target=replace(regression.target, fits={**regression.target.fits, **regression.more}))
    assert drawn(replace(held, more={})) == drawn(regression)


def test_infinite_scores_are_drawn_and_said() -> None:
    assert regression.target is not None
    score = np.where(regression.target.flagged, np.inf, regression.target.score)
    spec = drawn(replace(regression, target=replace(regression.target, score=score)))["scores"]
    assert len(spec["points"]["x"]) == 297
    assert "Infinite scores (24)" in spec["description"]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 12])
def test_few_rows(n: int) -> None:
    example = examples.regression(n, 1)
    assert {"cells", "columns"} >= set(drawn(example)) - set(drawn(regression)) == set()


def test_a_hundred_thousand_rows_stay_small() -> None:
    example = examples.regression(100_000, 3_000)
    assert example.target is not None
    specs = charts(**example.arguments)
    assert len(json.dumps(specs)) < 700_000
    spec = specs[0]
    there = set(spec["points"]["name"])
    assert all(example.names[int(row)] in there for row in np.flatnonzero(example.target.flagged))
    assert f"{DRAWN:,} of" in spec["description"]


# -- words and numbers -------------------------------------------------------------------------------------------------


def test_of_too_many_flagged_rows_the_worst_are_kept() -> None:
    n = 20_000
    worst = np.arange(n, dtype=np.float64)
    rows, note = rows_to_draw(np.arange(n), np.ones(n, dtype=bool), worst, worst)
    assert len(rows) == FLAGGED
    assert set(range(n - 1000, n)) <= set(rows.tolist())
    assert note == "Drawn are 4,000 of 20,000 flagged rows: the outermost, and some by chance."


def test_axes_are_logarithmic_where_the_range_asks_for_it() -> None:
    assert axis("a", [1, 2, 3])["shape"] == "linear"
    assert axis("a", [1, 2, 300])["shape"] == "log"
    assert axis("a", [0, 1, 2, 300])["shape"] == "signed"
    assert axis("a", [1, 2, 300], zero=True)["shape"] == "signed"
    assert axis("a", [])["shape"] == "linear"
    assert axis("a", [0, 0, np.nan])["shape"] == "linear"


def test_rows_without_a_name_go_by_the_line_of_the_file() -> None:
    assert "line 2" in drawn(regression, names=Names(regression.table).of_row)["outlier-map"]["points"]["name"]
    table = replace(regression.table, first_line=0)
    specs = drawn(replace(regression, table=table), names=Names(table).of_row)
    assert "row 0" in specs["outlier-map"]["points"]["name"]


def test_words() -> None:
    assert counted(9, "row") == "nine rows"
    assert counted(10, "row") == "10 rows"
    assert share(0.5).endswith("%")
