"""The tables that constants were chosen by: stored as they are, and found again."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

from benchmarks.calibration import names, save, stored, summarise, with_constant
from benchmarks.calibration.__main__ import main
from benchmarks.calibration.scale import TRIED, cell
from trimlearn.robust import scale

FIGURES = ("sigma_bias", "clean_flagged", "bad_kept", "contamination_bias")


def own_value(constant: str) -> float:
    """The constant's value, a cut-off in σ."""
    value = getattr(scale, constant)
    return value if constant == "EXPECTED" else float(stats.norm.isf(value / 2))


@pytest.mark.parametrize("constant", TRIED)
def test_the_value_of_a_constant_is_among_those_tried(constant: str) -> None:
    assert any(own_value(constant) == pytest.approx(value, rel=1e-12) for value in TRIED[constant])
    assert {row["value"] for row in stored("scale")["summary"] if row["constant"] == constant} == set(TRIED[constant])


@pytest.mark.parametrize(("constant", "value"), [("BEYOND_START", 2.0), ("BEYOND_SCALE", 2.6), ("EXPECTED", 0.1)])
@pytest.mark.parametrize(("n", "p", "level"), [(20, 1, 0.0), (50, 5, 0.3)])
def test_cells_are_found_again(constant: str, value: float, n: int, p: int, level: float) -> None:
    key = {"constant": constant, "value": value, "n": n, "p": p, "level": level}
    (row,) = (row for row in stored("scale")["rows"] if key.items() <= row.items())
    again = cell(n, p, level, constant, value)
    for figure in FIGURES:
        assert again[figure] == pytest.approx(row[figure], abs=1e-5)


def summary(constant: str, figure: str) -> dict[float, float]:
    return {row["value"]: row[figure] for row in stored("scale")["summary"] if row["constant"] == constant}


def test_what_the_comments_on_the_constants_say() -> None:
    start, spread = summary("BEYOND_START", "sigma_bias_rms"), summary("BEYOND_SCALE", "sigma_bias_rms")
    assert min(start, key=start.__getitem__) == 2.0
    assert min(start[1.5], start[2.5]) > 1.7 * start[2.0]
    assert spread[2.6] > 1.9 * spread[2.3] > 1.9 * 1.8 * spread[2.0]
    assert summary("BEYOND_SCALE", "clean_flagged_most")[2.0] > 2 * summary("BEYOND_SCALE", "clean_flagged_most")[2.3]
    usual = summary("BEYOND_USUAL", "sigma_bias_rms")
    assert max(usual.values()) < 1.05 * min(usual.values())
    count = summary("BEYOND_COUNT", "contamination_bias_rms")
    assert min(count, key=count.__getitem__) == 3.0


def test_how_far_the_scale_can_be_trusted() -> None:
    own = [row for row in stored("scale")["rows"] if (row["constant"], row["value"]) == ("EXPECTED", 0.4)]
    usual = [row for row in own if row["n"] >= 50 and row["level"] <= 0.3]
    assert max(abs(row["sigma_bias"]) for row in usual) < 0.05
    hard = [row for row in own if row["n"] == 10 * row["p"] and row["level"] == 0.45]
    assert all(0.6 < row["sigma_bias"] < 0.9 and 0.2 < row["bad_kept"] < 0.4 for row in hard)


def test_expected_trades_clean_rows_for_bad_ones() -> None:
    def total(value: float, figure: str) -> float:
        rows = stored("scale")["rows"]
        return sum(
            row[figure]
            for row in rows
            if (row["constant"], row["value"]) == ("EXPECTED", value) and row["n"] == 200 and row["level"] <= 0.3
        )

    assert total(1.6, "clean_flagged") > 2 * total(0.4, "clean_flagged")
    assert total(0.1, "bad_kept") > 1.5 * total(0.4, "bad_kept")


# -- the tools --------------------------------------------------------------------------------------------------------


def test_names_are_the_modules_and_each_has_its_table() -> None:
    assert "scale" in names()
    assert "__main__" not in names()
    for name in names():
        assert stored(name)


def test_a_table_is_written_and_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.calibration.RESULTS", tmp_path)
    rows = [{"a": 1, "b": 1 / 3}, {"a": 1, "b": 1.0}, {"a": 2, "b": 5.0}]
    save("some", {"settings": {"x": 2.5}, "rows": rows, "none": []})
    found = stored("some")
    assert found["settings"] == {"x": 2.5}
    assert found["none"] == []
    assert found["rows"][0]["b"] == pytest.approx(1 / 3, rel=1e-5)
    assert summarise(rows, ("a",), {"most": lambda group: max(row["b"] for row in group)}) == [
        {"a": 1, "most": 1.0},
        {"a": 2, "most": 5.0},
    ]


def test_a_constant_comes_back() -> None:
    before = scale.EXPECTED
    with with_constant(scale, "EXPECTED", 7.0):
        assert scale.EXPECTED == 7.0
    assert before == scale.EXPECTED


def test_the_command_line_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "scale" in capsys.readouterr().err
