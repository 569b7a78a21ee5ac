"""Tables from DataFrames, arrays, Excel, Parquet and NumPy files; and one fingerprint for all of them."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tables_made_up import workbook
from trimlearn.tables import read_table
from trimlearn.tables.fingerprint import fingerprint


def test_excel(tmp_path: Path) -> None:
    rows = [["name", "price", "sold"], ["a", 1.5, True], ["b", 2.0, False], ["c", None, True]]
    table = read_table(workbook(tmp_path / "t.xlsx", {"one": rows}))
    assert [column.kind for column in table.columns] == ["id", "number", "category"]
    assert table.written["price"].tolist() == ["1.5", "2", ""]
    assert table.first_line == 2 and table.notes == ()


def test_a_cover_sheet_is_passed_over(tmp_path: Path) -> None:
    rows = [["item", "kg"], *([f"i{k}", k % 7 + 0.5] for k in range(30))]
    cover = [["Report of 2023"], ["made by", "A. Nother"]]
    table = read_table(workbook(tmp_path / "t.xlsx", {"Cover": cover, "Data": rows, "More": rows[:9]}))
    assert list(table.frame) == ["item", "kg"] and len(table.frame) == 30
    assert table.notes[0] == 'Of 3 sheets the first with a table, "Data", was read.'


TWO_ROWS = {
    "groups": [["name", "size", None, "colour"], [None, "length", "width", None]],
    "units": [["name", "size length", "size", "colour"], [None, None, "width", None]],
    "a title above": [["Birds 2019"], ["name", "size", None, "colour"], [None, "length", "width", None]],
}


@pytest.mark.parametrize("kind", ["xlsx", "csv"])
@pytest.mark.parametrize("head", TWO_ROWS.values(), ids=TWO_ROWS)
def test_names_in_two_rows(tmp_path: Path, head: list[list[Any]], kind: str) -> None:
    rows = [*head, *([f"n{i}", 1.5 * i, 0.5 + i % 7, "red" if i % 2 else "blue"] for i in range(12))]
    path = tmp_path / f"t.{kind}"
    if kind == "xlsx":
        workbook(path, {"one": rows})
    else:  # as a spreadsheet writes it: each line has as many commas
        cells = [[*("" if cell is None else str(cell) for cell in row), "", "", ""][:4] for row in rows]
        path.write_text("\n".join(map(",".join, cells)))
    table = read_table(path)
    assert list(table.frame) == ["name", "size length", "size width", "colour"]
    assert [column.kind for column in table.columns] == ["id", "number", "number", "category"]
    assert len(table.frame) == 12 and table.first_line == len(head) + 1
    assert any("two rows" in note for note in table.notes)


@pytest.mark.parametrize("second", ["missing,n/a", "error,2", "3,"])
def test_a_first_row_of_gaps_is_no_heading(tmp_path: Path, second: str) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n{second}\n" + "".join(f"{i},{i + 1}\n" for i in range(9)))
    assert list(read_table(tmp_path / "t.csv").frame) == ["a", "b"]


def test_excel_with_margins_titles_and_more_sheets(tmp_path: Path) -> None:
    rows = [[None], [None, "Report"], [None], [None, "a", "b"], [None, 1, "x"], [None, 2, None], [None, 3, "y"], [None]]
    table = read_table(workbook(tmp_path / "t.xlsx", {"empty": [], "data": rows, "more": [["q"], [1]]}))
    assert list(table.frame) == ["a", "b"] and table.frame["a"].tolist() == [1, 2, 3]
    assert table.first_line == 5
    assert any('the first, "data"' in note for note in table.notes)


@pytest.mark.parametrize(
    ("rows", "message"), [([], "no sheet holds anything"), ([["a", "b"]], "no rows"), ([["a"], [1]], "1 row")]
)
def test_excel_without_rows(rows: list[list[Any]], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(workbook(tmp_path / "t.xlsx", {"one": rows}))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_that_is_called_a_workbook_is_read_as_text(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.xls").write_bytes("name\tgrams\nanna\t5\nbert\t7\n".encode(encoding))
    table = read_table(tmp_path / "t.xls")
    assert table.frame["grams"].tolist() == [5.0, 7.0]
    assert any("not a workbook as its name says" in note for note in table.notes)
    (tmp_path / "t.xls").write_text("<html><table></table></html>")
    with pytest.raises(ValueError, match="holds a web page or XML"):
        read_table(tmp_path / "t.xls")


@pytest.mark.parametrize("name", ["t.xlsx", "t.parquet", "t.npz", "t.npy"])
@pytest.mark.parametrize("raw", [b"", b"PK nothing of the kind"])
def test_files_that_are_not_what_they_are_called(name: str, raw: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as") as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


FRAME = pd.DataFrame(
    {
        "whole": [1, 2, 4],
        "float": [1.5, np.nan, 3.0],
        "word": ["a", None, "b"],
        "day": pd.to_datetime(["2015-01-01", None, "2015-01-03"]),
        "zone": pd.to_datetime(["2015-01-01 12:00", "2015-01-02 00:00", "2015-01-03 00:00"]).tz_localize(
            "Europe/Berlin"
        ),
        "flag": [True, False, True],
        "class": pd.Categorical(["x", "y", "x"]),
        "float32": np.array([0.1, 0.2, 0.3], np.float32),
        "masked": pd.array([1, None, 3], dtype="Int64"),
        "decimal": [decimal.Decimal("1.5"), decimal.Decimal("2.5"), None],
        "date": [datetime.date(2015, 1, 1), None, datetime.date(2015, 1, 2)],
        "endless": [np.inf, 1.0, 2.0],
    }
)
KINDS = ["number", "number", "text", "date", "date", "category", "category", *["number"] * 3, "date", "number"]
WRITTEN = ["1", "1.5", "a", "2015-01-01", "2015-01-01 12:00:00", "True", "x", "0.1", "1", "1.5", "2015-01-01", "inf"]


def test_masked_entries_are_missing() -> None:
    whole = np.ma.masked_array([[1, 2], [-999, 5], [7, 8]], mask=[[0, 0], [1, 0], [0, 0]])
    for array in (whole, whole.astype(float)):
        table = read_table(array)
        assert [column.missing for column in table.columns] == [1, 0] and table.frame["x0"].tolist()[::2] == [1.0, 7.0]


def test_a_frame_of_all_types() -> None:
    table = read_table(FRAME)
    assert [column.kind for column in table.columns] == KINDS
    assert table.written.iloc[0].tolist() == WRITTEN
    assert table.written["float"].tolist() == ["1.5", "", "3"]
    assert [column.missing for column in table.columns] == [0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]
    assert table.columns[-1].unreadable == (0,)
    assert table.first_line == 0


def test_frames_hold_the_types_they_promise() -> None:
    table = read_table(FRAME)
    for column in table.columns:
        values = table.frame[column.name]
        if column.kind == "number":
            assert values.dtype == np.float64
        elif column.kind == "date":
            assert values.dtype.kind == "M"
        else:
            assert all(value is None or isinstance(value, str) for value in values)
    assert all(isinstance(cell, str) for name in table.written for cell in table.written[name])


def test_parquet(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert [column.kind for column in table.columns] == KINDS
    assert table.fingerprint == read_table(FRAME).fingerprint


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (pd.DataFrame({"a": [1, 2]}, index=["u", "v"]), ["index", "a"]),
        (pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 9], name="nr")), ["nr", "a"]),
        (pd.DataFrame({"a": [1, 2]}, index=[0, 0]), ["a"]),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), ["a", "a (2)"]),
        (pd.DataFrame([[1, 2], [3, 4]]), ["0", "1"]),
        (pd.DataFrame([[1, 2], [3, 4]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])), ["a b", "a c"]),
        (pd.Series([1, 2], name="s"), ["s"]),
        (np.eye(2), ["x0", "x1"]),
        ([[1, 2], [3, 4]], ["x0", "x1"]),
        ({"a": [1, 2]}, ["a"]),
        (np.array([(1, "a"), (2, "b")], dtype=[("x", float), ("y", "U3")]), ["x", "y"]),
    ],
)
def test_names_of_columns(frame: Any, names: list[str]) -> None:
    assert list(read_table(frame).frame) == names


def test_every_row_of_a_frame_is_kept() -> None:
    assert len(read_table(pd.DataFrame({"a": [1.0, 2.0, np.nan]})).frame) == 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.arange(3), "2 dimensions"),
        (np.eye(2) * 1j, "complex"),
        ([[1, 2], [3]], "ragged"),
        (None, "got NoneType"),
        (pd.DataFrame(), "no columns"),
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame({"a": [None, None]}), "all cells are empty"),
    ],
)
def test_what_is_no_table(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(source)


@pytest.mark.parametrize(
    ("arrays", "names"),
    [
        ({"anything": np.eye(3)}, ["x0", "x1", "x2"]),
        ({"X": np.eye(3), "y": ["a", "b", "a"]}, ["x0", "x1", "x2", "y"]),
        ({"X": np.eye(2), "y": np.zeros((2, 1)), "feature_names": ["p", "q"]}, ["p", "q", "y"]),
        ({"a": [1, 2], "b": ["x", "y"]}, ["a", "b"]),
    ],
)
def test_npz(arrays: dict[str, Any], names: list[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    assert list(read_table(tmp_path / "t.npz").frame) == names


def test_npz_of_no_table(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", a=[1, 2], b=[1, 2, 3])
    with pytest.raises(ValueError, match=r"holds no single table: a \(2,\), b \(3,\)"):
        read_table(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="holds Python objects"):
        read_table(tmp_path / "t.npz")


def test_a_table_has_one_fingerprint_however_it_is_stored(tmp_path: Path) -> None:
    text = 'name,x,when\nä,1.50,01.02.2015\nNA,,\n"q, r",None,2\n'
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "u.csv").write_bytes(text.replace(",x,", ";x;").encode("utf-16"))
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str)
    table = read_table(tmp_path / "t.csv")
    assert table.fingerprint == read_table(frame).fingerprint
    frame.to_parquet(tmp_path / "t.parquet")
    assert table.fingerprint == read_table(tmp_path / "t.parquet").fingerprint


def test_another_table_has_another_fingerprint() -> None:
    frame = pd.DataFrame({"a": ["1", "23"], "b": ["4", "5"]})
    marks = {
        read_table(other).fingerprint
        for other in (
            frame,
            frame.rename(columns={"a": "c"}),
            frame.iloc[::-1].reset_index(drop=True),
            frame[["b", "a"]],
            frame.replace("23", "24"),
            pd.DataFrame({"a": ["12", "3"], "b": ["4", "5"]}),
        )
    }
    assert len(marks) == 6


def test_a_slice_has_the_fingerprint_of_its_copy() -> None:
    import pyarrow as pa

    whole = pa.array(["x", "1", "22", ""], pa.large_string())
    assert fingerprint(["a"], [whole[1:3]]) == fingerprint(["a"], [pa.array(["1", "22"], pa.large_string())])


def test_the_dirtied_table_of_cars_is_understood(data_home: Path) -> None:
    cars = pd.read_csv(data_home / "regression" / "TopGear.csv")
    cars["Price"] = [f"£{price:,.0f}" for price in cars["Price"]]
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(len(cars)) * 10, unit="D")
    cars.insert(0, "registered", days.strftime("%d.%m.%Y"))
    table = read_table(cars)
    how = {column.name: (column.kind, column.how) for column in table.columns}
    assert how["registered"] == ("date", "dates, day first")
    assert how["Price"] == ("number", "whole numbers with £ and thousands commas")
    assert how["Type"][0] == "id" and how["Maker"][0] == how["Fuel"][0] == "category" and how["MPG"][0] == "number"
