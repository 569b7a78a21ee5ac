"""Tables of words are written by Arrow, as they would be row by row."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from trimlearn.tables import write

CELLS = [
    "",
    "a",
    "=1+1",
    "-5",
    "-5.25",
    "-x",
    "+44 1",
    "\u00a0=1",
    "'=x",
    'say "x"',
    "a,b",
    "l1\nl2",
    "\t=1",
    "＝1",
    "-1e5",
]
CELLS += ["-1,000", "'tis", "@a", None, " =2", "-", "c\rd"]


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_both_ways_give_the_same_cells(tmp_path, rows):
    rng = np.random.default_rng(rows)
    columns = {name: pd.array([CELLS[i] for i in rng.integers(0, len(CELLS), rows)], dtype="str") for name in "ab"}
    frame = pd.DataFrame(columns | {"=head,er": pd.array(["x"] * rows, dtype="str")})
    assert write._joined(frame) is not None
    write.write_csv(frame, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    assert read == [["a", "b", "'=head,er"], *([write.harmless(cell) for cell in row] for row in cells)]


def test_numbers_and_half_characters_go_the_other_way(tmp_path):
    assert write._joined(pd.DataFrame({"a": ["x"], "b": [1.5]})) is None
    write.write_csv(pd.DataFrame({"a": ["x", "\ud800"], "b": ["1", "2"]}, dtype=object), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines() == ["a,b", "x,1", "?,2"]
