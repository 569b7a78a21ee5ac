"""What stands below a table, or is merged in it: remarks, totals, cells that hold for several rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tables_made_up import workbook
from trimlearn.tables import read_table

ROWS = [["ann", 1.5, 20], ["bob", 2.5, 30], ["cat", 4.0, 50], ["dan", 2.0, 10]]
TEXT = "name,x,y\nann,1.5,20\nbob,2.5,30\ncat,4.0,50\ndan,2.0,10\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("below", "notes"),
    [
        ("", []),
        ("Total,10,110\n", ['Line 6 ("Total") sums up the rows above; ignored.']),
        ("Summe:,10,110\n", ['Line 6 ("Summe:") sums up the rows above; ignored.']),
        ("Grand total,,110\n", ['Line 6 ("Grand total") sums up the rows above; ignored.']),
        ("\n* provisional\n", ['Line 7 stands below the table ("* provisional"); ignored.']),
        ("Printed on 4 May, by J. Doe\n", ['Line 6 stands below the table ("Printed on 4 May by J. Doe"); ignored.']),
        ("\nA note\nand another\n", ['Lines 7 to 8 stand below the table ("A note", "and another"); ignored.']),
        (",,\nPrinted on Monday,,\n", ['Line 7 stands below the table ("Printed on Monday"); ignored.']),
        (
            "Total,10,110\n\nSource: our own\n",
            ['Line 8 stands below the table ("Source: our own"); ignored.', 'Line 6 ("Total") sums up the rows above; '
             "ignored."],
        ),
    ],
)  # fmt: skip
def test_remarks_and_totals_below_a_text_are_no_rows(tmp_path: Path, below: str, notes: list[str]) -> None:
    table = read_table(written(tmp_path, TEXT + below))
    assert table.frame["y"].tolist() == [20, 30, 50, 10]
    assert list(table.notes) == notes


@pytest.mark.parametrize("last", ["Total,3,7\n", "total,,\n", "eve,10,110\n", "eve,,\n"])
def test_a_row_that_only_looks_like_it_is_kept(tmp_path: Path, last: str) -> None:
    """Somebody called Total whose numbers are no sums; sums of somebody else; somebody of whom nothing is known."""
    assert len(read_table(written(tmp_path, TEXT + last)).frame) == 5


def test_a_category_called_total_is_none(tmp_path: Path) -> None:
    rows = "".join(f"{kind},{k},{k}\n" for k, kind in enumerate(["total", "part"] * 10))
    table = read_table(written(tmp_path, f"kind,x,y\n{rows}total,190,190\n"))
    assert len(table.frame) == 21


def test_a_line_that_was_cut_is_still_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 6 has 1 field where 3 were expected"):
        read_table(written(tmp_path, TEXT + "eve"))


def test_the_rows_of_a_frame_are_all_meant() -> None:
    frame = pd.DataFrame([*ROWS, ["Total", 10.0, 110]], columns=["name", "x", "y"])
    assert len(read_table(frame).frame) == 5


def test_excel_with_a_footer(tmp_path: Path) -> None:
    rows = [["Sales", None, None], [None] * 3, ["name", "x", "y"], *ROWS, ["Total", 10.0, 110], [None] * 3]
    table = read_table(workbook(tmp_path / "t.xlsx", {"S": [*rows, ["Printed 4 May by J. Doe", None, None]]}))
    assert table.frame["x"].tolist() == [1.5, 2.5, 4.0, 2.0]
    assert table.first_line == 4
    assert [note.split(" ")[1] for note in table.notes] == ["1", "10", "8"]


def test_merged_cells_hold_for_all_their_rows(tmp_path: Path) -> None:
    rows = [["Sales", None], ["region", "x"], ["north", 1.0], [None, 2.0], ["south", 3.0], [None, 4.0], [None, 5.0]]
    table = read_table(workbook(tmp_path / "t.xlsx", {"S": rows}, merged=("A1:B1", "A3:A4", "A5:A7")))
    assert table.frame["region"].tolist() == ["north"] * 2 + ["south"] * 3
    assert "3 cells merged with the one above got its value." in table.notes


def test_values_above_empty_cells_are_told(tmp_path: Path) -> None:
    text = "region,x,y\n" + "".join(
        f"{'north' if k == 0 else 'south' if k == 9 else ''},{k},{k % 7}\n" for k in range(20)
    )
    table = read_table(written(tmp_path, text))
    assert any("fill them down first" in note for note in table.notes)
    rng = np.random.default_rng(0)
    gaps = "region,x\n" + "".join(f"{'ab'[k % 2] if rng.random() < 0.4 else ''},{k}\n" for k in range(40))
    assert not any("fill them down" in note for note in read_table(written(tmp_path, gaps)).notes)


def test_names_that_are_repeated_below_are_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("kind,x\na,1\nb,2\nkind,x\na,3\nb,4\n")
    table = read_table(path)
    assert table.frame["x"].dropna().tolist() == [1, 2, 3, 4] and set(table.frame["kind"].dropna()) == {"a", "b"}
    assert table.notes[0] == "Line 4 repeats the names of the columns: taken for empty."
    assert not any(column.unreadable for column in table.columns)
