"""The bundled dirty table is what its script makes of the clean one."""

from __future__ import annotations

from benchmarks.penguins import NUMBERS, Row, dirtied
from trimlearn.datasets import load_penguins_dirty


def clean_rows() -> list[Row]:
    """The table before, from what is kept of it beside the dirty one."""
    penguins = load_penguins_dirty()
    rows = penguins.rows()[: penguins.twice[1]]
    for i, row in enumerate(rows):
        day, month, year = row["egg laid"].split(".")
        row |= {"egg laid": f"{year}-{month}-{day}", "body mass": row["body mass"].removesuffix(" g").replace(",", "")}
        row |= {"species": penguins.wrong_labels.get(i, row["species"]), "sex": row["sex"].replace("n/k", "")}
    for (i, column), was in penguins.wrong_cells.items():
        rows[i][column] = was
    return rows


def test_the_script_makes_the_bundled_table() -> None:
    penguins = load_penguins_dirty()
    rows, truth = dirtied(clean_rows())
    assert rows == penguins.rows()
    assert {row for row, was in truth["labels"]} == set(penguins.wrong_labels)


def test_every_wrong_cell_differs_from_what_it_was() -> None:
    penguins = load_penguins_dirty()
    rows, clean = penguins.rows(), clean_rows()
    wrong = {
        (i, column)
        for i, row in enumerate(clean)
        for column in NUMBERS
        if row[column] and float(row[column]) != float(rows[i][column].removesuffix(" g").replace(",", ""))
    }
    assert wrong == set(penguins.wrong_cells)
    assert all(rows[i]["species"] != was for i, was in penguins.wrong_labels.items())
    assert rows[penguins.twice[0]] == rows[penguins.twice[1]]
