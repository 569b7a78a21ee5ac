"""Make the bundled table of dirty penguins from the clean one: ``python -m benchmarks.penguins penguins-raw.csv``.

The clean table is `penguins-raw.csv` of the Palmer penguins (K. B. Gorman, T. D. Williams and W. R. Fraser, 2014; CC0),
as the package palmerpenguins on PyPI ships it. 200 birds are drawn; then each kind of dirt is laid on as people do:
labels of another species, numbers with a slipped comma, a lost sign or swapped digits, one bird entered twice. What
was changed is written beside it, so that the clean table can be had back.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from trimlearn import datasets

__all__ = ["dirtied", "read_clean"]

BIRDS = 200  # enough to learn three species from, few enough to read through
WRONG_SPECIES, WRONG_CELLS = 14, 24  # 7 % of the labels; 2 % of the numbers, half of what the harder trials have
SEED = 2014  # of the draws below: the year of the study
COLUMNS = {
    "Island": "island",
    "Date Egg": "egg laid",
    "Culmen Length (mm)": "bill length (mm)",
    "Culmen Depth (mm)": "bill depth (mm)",
    "Flipper Length (mm)": "flipper length (mm)",
    "Body Mass (g)": "body mass",
    "Sex": "sex",
    "Delta 15 N (o/oo)": "nitrogen 15",
    "Delta 13 C (o/oo)": "carbon 13",
    "Species": "species",
}
NUMBERS = ("bill length (mm)", "bill depth (mm)", "flipper length (mm)", "body mass", "nitrogen 15", "carbon 13")
HOW = ("10 times too large", "10 times too small", "sign", "digits swapped")

Row = dict[str, str]


def read_clean(path: Path) -> list[Row]:
    """Draw the birds from the raw table, in the order of their eggs."""
    with path.open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    drawn = np.random.default_rng(SEED).choice(len(raw), BIRDS, replace=False)
    return [_bird(raw[i]) for i in sorted(drawn, key=lambda i: (raw[i]["Date Egg"], i))]


def _bird(raw: Row) -> Row:
    row = {"bird": f"{raw['studyName'][-4:]}-{raw['Individual ID']}"}
    row |= {name: "" if raw[old] == "NA" else raw[old] for old, name in COLUMNS.items()}
    return row | {"species": row["species"].split()[0], "sex": row["sex"].lower()}


def dirtied(clean: list[Row], seed: int = SEED) -> tuple[list[Row], dict[str, Any]]:
    """The dirty table, and what is wrong in it: ``labels`` (row, was), ``cells`` (row, column, was, how), ``twice``."""
    rng = np.random.default_rng(seed)
    rows = [dict(row) for row in clean]
    truth: dict[str, Any] = {"labels": [], "cells": [], "twice": []}
    kinds = sorted({row["species"] for row in rows})
    for i in sorted(rng.choice(len(rows), WRONG_SPECIES, replace=False).tolist()):
        truth["labels"].append([i, rows[i]["species"]])
        rows[i]["species"] = str(rng.choice([kind for kind in kinds if kind != rows[i]["species"]]))
    places = [(i, name) for i, row in enumerate(rows) for name in NUMBERS if row[name]]
    for k in sorted(rng.choice(len(places), WRONG_CELLS, replace=False).tolist()):
        i, name = places[k]
        how = HOW[int(rng.integers(len(HOW)))]
        truth["cells"].append([i, name, rows[i][name], how])
        rows[i][name] = _wrong(rows[i][name], how)
    twice = int(rng.integers(len(rows) // 2))
    truth["twice"] = [twice, len(rows)]
    rows.append(dict(rows[twice]))
    return [_as_written(row) for row in rows], truth


def _wrong(text: str, how: str) -> str:
    value = float(text)
    if how == "digits swapped":
        digits = [k for k in range(len(text) - 1) if text[k].isdigit() and text[k + 1].isdigit()]
        worst = max(digits, key=lambda k: abs(float(_swapped(text, k)) - value))
        return _swapped(text, worst)
    factor = {"10 times too large": 10, "10 times too small": 0.1, "sign": -1}[how]
    return f"{value * factor:.10g}"


def _swapped(text: str, k: int) -> str:
    return text[:k] + text[k + 1] + text[k] + text[k + 2 :]


def _as_written(row: Row) -> Row:
    """As people write it: the day first, grams with a unit and thousands commas, "n/k" for what is not known."""
    year, month, day = row["egg laid"].split("-")
    mass = float(row["body mass"] or "nan")
    return row | {
        "egg laid": f"{day}.{month}.{year}",
        "body mass": "" if np.isnan(mass) else f"{mass:,.10g} g",
        "sex": row["sex"] or "n/k",
    }


def main(argv: list[str] | None = None) -> None:
    """Write both files into the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="penguins-raw.csv of the package palmerpenguins")
    rows, truth = dirtied(read_clean(parser.parse_args(argv).table))
    folder = Path(datasets.__file__).parent
    with (folder / "penguins_dirty.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = json.dumps(truth, indent=None, separators=(",", ":")).replace("]],", "]],\n").replace("],[", "],\n[")
    (folder / "penguins_truth.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
