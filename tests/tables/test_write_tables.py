"""CSV that spreadsheets open without running anything."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimlearn.tables import read_table, write_csv
from trimlearn.tables.write import harmless


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3+cmd",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        '"=1',
        "＝1+1",
        "-",
        "--x",
        "=-5",
    ],
)
def test_formulas_become_text(cell: str) -> None:
    assert harmless(cell) == ("'" + cell if cell != "-" else cell)


@pytest.mark.parametrize(
    "cell", ["-5", "+5", "-1.5e-3", "-12,5", "-1,234.5", "-£300", "+3%", "", "a=b", "x-1", "-.5", "2015-01-01"]
)
def test_plain_numbers_and_words_stay(cell: str) -> None:
    assert harmless(cell) == cell


@given(st.text())
def test_nothing_that_is_written_begins_like_a_formula(cell: str) -> None:
    written = harmless(cell)
    assert written in (cell, "'" + cell)
    if written[:1] in ("=", "@", "\t", "\r"):
        pytest.fail(repr(written))


def test_a_table_comes_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=name": ["=x", "a,b", 'q"r'], "n": [-1.5, None, 3.0], "when": ["", "line\nend", "ä"]})
    write_csv(frame, tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv")
    assert list(table.written) == ["'=name", "n", "when"]
    assert table.written["'=name"].tolist() == ["'=x", "a,b", 'q"r']
    assert table.written["n"].tolist() == ["-1.5", "", "3.0"]
    assert table.written["when"].tolist() == ["", "line\nend", "ä"]
    assert frame["=name"][0] == "=x"  # as it was


def test_columns_of_one_name_are_all_made_harmless(tmp_path: Path) -> None:
    write_csv(pd.DataFrame([["=1", "@2"]], columns=["a", "a"]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,a\n'=1,'@2\n"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("old")

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_csv(pd.DataFrame({"a": [Broken()]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    with pytest.raises(OSError):
        write_csv(pd.DataFrame({"a": [1]}), tmp_path / "none" / "t.csv")


@given(st.lists(st.text(alphabet='0123456789.-eE+,"= a\n', max_size=6), min_size=1, max_size=6))
def test_columns_of_numbers_are_written_as_pandas_writes_them(cells: list[str]) -> None:
    frame = pd.DataFrame({"a": pd.array(cells, dtype="str"), "b": pd.array(["1"] * len(cells), dtype="str")})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write_csv(frame, path)
        written = path.read_bytes().decode()
    assert written == frame.assign(a=[harmless(cell) for cell in cells]).to_csv(index=False, lineterminator="\n")


@given(st.lists(st.from_regex(r"\A-?[0-9]{1,3}(\.[0-9]{1,3})?(e-[0-9]{2})?\Z"), min_size=1, max_size=6))
def test_plain_numbers_are_written_as_they_are(cells: list[str]) -> None:
    frame = pd.DataFrame({"a": pd.array(cells, dtype="str"), "b": pd.array(cells, dtype="str")})
    with tempfile.TemporaryDirectory() as folder:
        write_csv(frame, Path(folder) / "t.csv")
        assert (Path(folder) / "t.csv").read_text().splitlines()[1:] == [f"{cell},{cell}" for cell in cells]
