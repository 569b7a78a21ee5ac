"""Decisions are put into the table and the fits; a file that is not for this table is refused in one line."""

from __future__ import annotations

from dataclasses import replace

import made_up
import pandas as pd
import pytest

from trimlearn.checks.decisions import apply, how_it_moved, read_decisions
from trimlearn.checks.options import OptionError
from trimlearn.checks.suspects import find_suspects
from trimlearn.tables import read_table

HEADER = "fingerprint,row,what,column,value"


@pytest.fixture
def decided(tmp_path):
    """A function that writes lines into a file and reads them for the target Fuel."""

    def read(*lines, target="Fuel", header=HEADER):
        mark = made_up.table().fingerprint
        path = tmp_path / "decisions.csv"
        path.write_text("\n".join([header, *(line.replace("#", mark) for line in lines)]) + "\n", encoding="utf-8-sig")
        return read_decisions(path, made_up.table(), target)

    return read


def test_decisions_pin_rows_and_cells_and_change_what_is_written(decided):
    found = decided("#,1,keep,,", "#,2,drop,,", '#,3,correct,Price,"£21,250"', "#,4,keep,MPG,", "#,5,relabel,,Diesel")
    assert found.pins.rows == {1: False, 2: True, 5: False}
    assert found.settled == {1, 2} and found.dropped == {2}
    assert {(1, "Price"), (1, "MPG"), (3, "Price"), (4, "MPG"), (5, "Fuel")} <= found.pins.cells
    assert (2, "Price") not in found.pins.cells and (5, "Price") not in found.pins.cells
    assert found.sentence() == "You decided: 2 kept, 1 dropped, 1 relabelled, 1 corrected cell."
    table = apply(found, made_up.table(), "Fuel", ("Diesel", "Petrol"))
    assert table.frame.loc[3, "Price"] == 21_250 and table.written.loc[3, "Price"] == "£21,250"
    assert table.frame.loc[5, "Fuel"] == "Diesel" == table.written.loc[5, "Fuel"]
    assert made_up.table().frame.loc[5, "Fuel"] == "Petrol"
    assert table.fingerprint == made_up.table().fingerprint  # so that further decisions are about the same table


def test_a_label_put_right_in_a_column_named_outright_is_a_relabelled_row(decided):
    assert decided("#,5,correct,Fuel,Diesel").pins.rows == {5: False}


def test_a_cell_can_be_emptied(decided):
    table = apply(decided("#,3,correct,Price,"), made_up.table(), "Fuel")
    assert table.written.loc[3, "Price"] == "" and table.frame["Price"].isna().sum() == 1


def test_a_file_that_a_spreadsheet_saved_again_is_read(decided):
    found = decided("#;1;keep;;", header="fingerprint;row;what;column;value")
    assert found.pins.rows == {1: False}


def test_the_quote_before_a_formula_is_taken_off(decided):
    assert decided("#,1,correct,Name,'=x").written == {(1, "Name"): "=x"}
    assert decided("#,1,correct,Name,'tis").written == {(1, "Name"): "'tis"}


def test_the_quote_before_a_column_is_taken_off_unless_the_column_has_it(tmp_path):
    frame = pd.DataFrame({"=a": [1.5, 2.5, 3.5], "'=b": [1.0, 4.0, 9.0]})
    table = read_table(frame)
    path = tmp_path / "decisions.csv"
    path.write_text(f"{HEADER}\n{table.fingerprint},0,correct,'=a,7\n{table.fingerprint},1,keep,'=b,\n")
    found = read_decisions(path, table, None)
    assert found.written == {(0, "=a"): "7"} and (1, "'=b") in found.pins.cells


@pytest.mark.parametrize(
    ("text", "column", "value", "means"),
    [
        ("a;b\n1,234;2,5\n2,345;3,5\n3,456;4,5\n", "a", '"1,234"', 1.234),
        ("a;b\n1,234;2,5\n2,345;3,5\n3,456;4,5\n", "a", '"12,5"', 12.5),
        ("a;b\n1.234;2,5\n2.345;3,5\n3.456;4,5\n", "a", "7.000", 7000.0),
        ('a,b\n"1,234",2.5\n"2,345",3.5\n"3,456",4.5\n', "a", '"7,000"', 7000.0),
        ("a,b\n1,£5\n2,£6\n3,£7\n", "b", '"£1,200"', 1200.0),
        ("a,b\n12 km,1\n13 km,2\n14 km,3\n", "a", "20 km", 20.0),
        ("a,b\n12 km,1\n13 km,2\n14 km,3\n", "a", "20", 20.0),
        ("a,b\n1/2/2020,13/1/2020\n3/2/2020,14/1/2020\n4/2/2020,15/1/2020\n", "a", "5/6/2020", "2020-06-05"),
    ],
)
def test_a_corrected_cell_is_read_as_the_table_was(text, column, value, means, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    (tmp_path / "decisions.csv").write_text(f"{HEADER}\n{table.fingerprint},0,correct,{column},{value}\n")
    mended = apply(read_decisions(tmp_path / "decisions.csv", table, None), table, None)
    assert mended.frame.loc[0, column] == (pd.Timestamp(means) if isinstance(means, str) else means)
    assert mended.frame.loc[1:].equals(table.frame.loc[1:])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0000,1,keep,,", "another table"),
        ("#,60,keep,,", "from 0 to 59"),
        ("#,-1,keep,,", "from 0 to 59"),
        ("#,x,keep,,", "from 0 to 59"),
        ("#,1,hide,,", "keep, drop, relabel or correct"),
        ("#,1,correct,price,3", "did you mean Price"),
        ("#,1,correct,,3", "which column"),
        ("#,1,relabel,,", "needs a label"),
        ("#,1,keep,", "5 values are needed"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused_by_its_number(decided, line, says):
    with pytest.raises(OptionError, match=says) as caught:
        decided("#,0,keep,,", line)
    assert "decisions.csv, line 3" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("lines", [("#,1,keep,,", "#,1,drop,,"), ("#,1,correct,Price,1", "#,1,correct,Price,2")])
def test_decisions_that_contradict_each_other_are_refused(decided, lines):
    with pytest.raises(OptionError, match="one must be meant"):
        decided(*lines)


def test_relabelling_needs_a_target_and_a_label_that_exists(decided):
    with pytest.raises(OptionError, match="needs a target"):
        decided("#,1,relabel,,Diesel", target=None)
    with pytest.raises(OptionError, match="did you mean Diesel"):
        apply(decided("#,1,relabel,,Deisel"), made_up.table(), "Fuel", ("Diesel", "Petrol"))


def test_a_correction_that_is_no_number_is_refused(decided):
    with pytest.raises(OptionError, match="'cheap', for row 3, cannot be read as a number"):
        apply(decided("#,3,correct,Price,cheap"), made_up.table(), "Fuel")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00\x01", b"PK\x03\x04"])
def test_what_is_no_file_of_decisions_is_refused(content, tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(content)
    with pytest.raises(OptionError, match="is no file of decisions"):
        read_decisions(path, made_up.table(), None)


def test_how_the_fit_moved_is_said():
    table = made_up.table()
    before = made_up.fuel(table, {7: 0.9, 9: 0.8})
    after = replace(
        made_up.fuel(table, {9: 0.8}),
        scores=(replace(before.scores[0], value=0.95),),
        coefficients=({**before.coefficients[0], "trimmed": 0.35},),
    )
    parts = [made_up.parts(target, of=table) for target in (before, after)]
    flagged = tuple(len(find_suspects(part)) for part in parts)
    assert how_it_moved(*parts, flagged) == [
        "Before your decisions 2 rows were suspect; now 1 is.",
        "The share of labels predicted of the linear model went from 0.91 to 0.95.",
        "The coefficient that moved most is that of Price: from 0.3 to 0.35.",
    ]
