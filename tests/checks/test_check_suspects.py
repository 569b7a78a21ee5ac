"""Findings are put together row by row, and said in sentences that name the row, the value and what is expected."""

from __future__ import annotations

from dataclasses import replace

import made_up
import pandas as pd
import pytest

from trimlearn.checks.findings import DuplicateRows, OddRow, WrongCell
from trimlearn.checks.names import Names
from trimlearn.checks.suspects import find_suspects
from trimlearn.checks.why import Reasons
from trimlearn.checks.words import caveats, count_findings, headline, next_steps
from trimlearn.tables import read_table


def said(parts):
    """Row → kind and why."""
    reasons = Reasons(parts, Names(parts.table))
    return {s.row: (s.kind, reasons.why(s)) for s in find_suspects(parts)}


def test_the_most_probable_comes_first_and_findings_of_a_row_add_up():
    table = made_up.table()
    parts = made_up.parts(made_up.fuel(table, {3: 0.5, 7: 0.93, 20: 0.6}), (made_up.PRICE,), of=table)
    suspects = find_suspects(parts)
    assert [s.row for s in suspects] == [3, 7, 20]
    assert [s.probability for s in suspects] == pytest.approx([1 - 0.5 * 0.1, 0.93, 0.6])
    assert suspects[0].kinds == ("cell", "target") and suspects[0].kind == "wrong cell"


def test_settled_rows_are_no_longer_suspect():
    table = made_up.table()
    parts = made_up.parts(made_up.fuel(table, {3: 0.5, 7: 0.93}), of=table)
    assert [s.row for s in find_suspects(parts, frozenset({7}))] == [3]


def test_reasons_for_labels():
    table = made_up.table()
    found = said(made_up.parts(made_up.fuel(table, {7: 0.93, 20: 0.6}), of=table))
    assert found[7] == ("wrong label", "Fuel is Petrol; rows like it are Diesel. Both models say so.")
    assert found[20] == ("wrong label", "Fuel is Diesel; rows like it are Petrol. Only the linear model says so.")


def test_reasons_for_numbers_and_cells():
    table = made_up.table()
    found = said(made_up.parts(made_up.number(table, 5, 4.5), (made_up.PRICE,), of=table))
    assert found[5][0] == "wrong number"
    assert found[5][1] == "MPG is 45.5; rows like it have about 4.5: 10 times too large. Both models say so."
    assert found[3] == (
        "wrong cell", "Price is £2,125,000; the others are about 21,250: 100 times too large."
    )  # fmt: skip


def test_reasons_for_many_cells_end_somewhere():
    wrong = tuple(WrongCell(1, "Price", 1.0, 2.0, 5.0, 0.9, "sign") for _ in range(5))
    kind, why = said(made_up.parts(wrong=wrong))[1]
    assert kind == "wrong cells" and "the sign is wrong" in why and why.endswith("2 more cells look wrong.")


def test_reasons_for_rows_and_twins():
    twins = (
        DuplicateRows((0, 2, 4, 6, 8, 10), "exact"),
        DuplicateRows((11, 13), "near", ("Price",)),
    )
    found = said(made_up.parts(odd=(OddRow(30, 9.0, 0.8, ("Price", "MPG")),), duplicates=twins))
    assert found[30][0] == "unlike all other rows" and "most of all in Price and MPG" in found[30][1]
    assert 0 not in found and found[2] == ("duplicate", "It is the same as line 2, line 6, line 8 and 2 more rows.")
    assert found[13] == ("near-duplicate", "It is nearly the same as line 13; only Price differs.")


def test_rows_with_the_same_id_and_little_else_are_not_called_the_same():
    table = made_up.table()
    written = table.written.assign(Name=["twin" if i in (5, 6) else f"car {i}" for i in range(made_up.N)])
    twins = (DuplicateRows((5, 6), "near", ("Fuel", "Price", "MPG")),)
    kind, why = said(made_up.parts(duplicates=twins, of=replace(table, written=written)))[6]
    assert kind == "same id" and why == "It has the same Name as line 7, though they have little else in common."


def test_rows_that_contradict_each_other_are_both_suspect_and_mere_copies_come_last_without_a_probability():
    table = made_up.table()
    twins = (DuplicateRows((11, 12), "contradictory", ("Fuel",)), DuplicateRows((40, 41), "exact"))
    parts = made_up.parts(made_up.fuel(table, {7: 0.3}), duplicates=twins, of=table)
    found = said(parts)
    assert found[12] == ("contradicts line 13", "It is the same as line 13 but for Fuel: Diesel here, Petrol there.")
    assert [s.row for s in find_suspects(parts)] == [11, 12, 7, 41]
    assert find_suspects(parts)[-1].probability is None
    assert count_findings(parts, find_suspects(parts))["wrong_rows"] == 3


def test_the_headline_says_shares_counts_and_agreement():
    table = made_up.table()
    parts = made_up.parts(made_up.fuel(table, {7: 0.93, 20: 0.6, 9: 0.8}), (made_up.PRICE,), of=table)
    assert headline(parts, count_findings(parts, find_suspects(parts))) == [
        "About 13 % of the values of Fuel and 1 cell in 1 row look wrong.", "Two models agree on 2 of 3."
    ]  # fmt: skip
    assert next_steps(parts, count_findings(parts, find_suspects(parts)))[-1].endswith(
        "rows that look wrong are left out, wrong cells are empty in it."
    )


def test_wrong_rows_that_stand_close_together_are_told() -> None:
    def told(rows: list[int]) -> list[str]:
        cells = tuple(WrongCell(row, "Price", 1.0, 2.0, 5.0, 0.9) for row in rows)
        parts = made_up.parts(wrong=cells)
        steps = next_steps(parts, count_findings(parts, find_suspects(parts)))
        return [step for step in steps if "close together" in step]

    assert told([1, *range(20, 29), made_up.N - 1]) == [
        "9 of the 11 rows that look wrong stand close together, line 22 to line 30: what happened there?"
    ]
    assert told(list(range(0, made_up.N, 4))) == []


@pytest.mark.parametrize(
    ("flagged", "wrong", "first"),
    [
        ({}, (), "Nothing looks wrong in these 60 rows."),
        ({7: 0.9}, (), "1 of 60 values of Fuel looks wrong."),
        ({}, (made_up.PRICE,), "1 cell in 1 row looks wrong."),
    ],
)
def test_headlines_of_little(flagged, wrong, first):
    table = made_up.table()
    parts = made_up.parts(made_up.fuel(table, flagged), wrong, of=table)
    assert headline(parts, count_findings(parts, find_suspects(parts)))[0] == first


def test_caveats_of_all_parts_are_said_once_and_doubtful_levels_and_few_rows_with_them():
    table = made_up.table()
    judged = replace(made_up.fuel(table, {7: 0.9}, contamination=0.45), caveats=("A caveat of cells.", "Another."))
    said = caveats(made_up.parts(judged, (made_up.PRICE,), of=table))
    assert said.count("A caveat of cells.") == 1 and "Another." in said

    few = replace(table, frame=table.frame[:30], written=table.written[:30])
    assert "only 30 rows" in caveats(made_up.parts(of=few))[0]
    assert caveats(made_up.parts()) == []


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        (["1", "2"], 21_249.6, "21200"),
        (["£1,200", "3"], 21_249.6, "21,200"),
        (["1.25", "2.5"], 3.14159, "3.14"),
        (["1.5"], 3.14159, "3.1"),
        (["12,5", "3,25"], 3.14159, "3,14"),
        (["1.234,50"], 1234.5, "1.230"),
        (["1.234,50", "80,20"], 80.25, "80,2"),
        (["1.234,50", "80,20"], 1234567.0, "1.230.000"),
        (["0.001"], 0.00123, "0.001"),
        (["1"], float("nan"), ""),
        (["1"], -0.2, "0"),
        (["1e30"], 2e30, "2e+30"),
    ],
)
def test_expected_values_are_written_as_their_column_is(written, value, text):
    table = read_table(pd.DataFrame({"Price": (written * made_up.N)[: made_up.N]}), number="Price")
    assert Names(table).number(value, "Price") == text


def test_cells_that_could_not_be_read_are_no_reason_to_rest():
    table = made_up.table()
    columns = tuple(replace(column, unreadable=(4, 9) if column.name == "MPG" else ()) for column in table.columns)
    parts = made_up.parts(of=replace(table, columns=columns))
    found = count_findings(parts, [])
    assert headline(parts, found) == ["Nothing looks wrong in these 60 rows, but 2 cells could not be read."]
    assert next_steps(parts, found)[0].startswith("See what is written")


def test_a_row_with_a_wrong_cell_is_not_said_to_have_none():
    table = made_up.table()
    odd = OddRow(3, 2.0, 0.8, ("MPG",))
    why = said(made_up.parts(wrong=(made_up.PRICE,), odd=(odd,), of=table))[3][1]
    assert "Without that, too, the row is unlike all others, most of all in MPG." in why and "to blame" not in why


def test_no_factor_is_named_where_about_nothing_is_expected():
    table = made_up.table()
    around = table.frame.assign(MPG=table.frame["MPG"] - 43.5)
    around.loc[5, "MPG"] = 50.0
    table = replace(table, frame=around, written=table.written.assign(MPG=around["MPG"].astype(str)))
    assert "times" not in said(made_up.parts(made_up.number(table, 5, 0.05), of=table))[5][1]
