"""Tables for the tests of checks: frames as the reader gives them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trimlearn.tables.table import Column, Kind, Table

__all__ = ["as_table", "related", "workbook"]

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def as_table(frame: pd.DataFrame, **kinds: Kind) -> Table:
    """A frame as a table: numbers, dates and categories, unless ``kinds`` says otherwise."""
    columns = []
    for name in frame.columns:
        kind: Kind = {"f": "number", "M": "date"}.get(frame[name].dtype.kind, "category")  # type: ignore[assignment]
        columns.append(Column(str(name), kinds.get(str(name), kind), missing=int(frame[name].isna().sum())))
    return Table(frame, frame.astype(str), tuple(columns), "made up", 0, "")


def related(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Sizes that go with each other, as people write them: whole numbers, one and two decimals."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=(n, 1)) * 0.4
    X = np.exp(size + 0.1 * rng.normal(size=(n, 5))) * np.array([2000.0, 300.0, 40.0, 9.0, 5000.0])
    frame = pd.DataFrame(X, columns=["weight", "power", "width", "time", "price"])
    return frame.round({"weight": 0, "power": 0, "width": 1, "time": 2, "price": 0})


def workbook(path: Path, sheets: dict[str, list[list[Any]]], merged: tuple[str, ...] = ()) -> Path:
    """The least that Excel takes for a workbook: nothing here writes one otherwise. merged: ranges such as "A2:A4"."""

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{int(value)}</v></c>'
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value!r}</v></c>"

    def sheet(rows: list[list[Any]]) -> str:
        lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        together = "".join(f'<mergeCell ref="{one}"/>' for one in merged)
        merges = f'<mergeCells count="{len(merged)}">{together}</mergeCells>' if merged else ""
        return f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData>{merges}</worksheet>'

    named = [(f"rId{i + 1}", f"sheet{i + 1}.xml", name) for i, name in enumerate(sheets)]
    listed = "".join(f'<sheet name="{name}" sheetId="{key[3:]}" r:id="{key}"/>' for key, _, name in named)
    parts = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/worksheet" Target="worksheets/{file}"/>' for key, file, _ in named
    )
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="{kind}"/></Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="{OFFICE}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{parts}</Relationships>'
        )
        for (_, file, _), rows in zip(named, sheets.values(), strict=True):
            book.writestr(f"xl/worksheets/{file}", sheet(rows))
    return path
