"""Documents of a check, made up: what the page is tried with. Their cells hold all that cells can hold."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from typing import Any

__all__ = ["HOSTILE", "sample"]

# Each would do harm, or look wrong, on a page that takes it for anything but text.
HOSTILE = (
    "<script>window.ran = true</script>",
    "<img src=x onerror='window.ran = true'>",
    "</script><script>window.ran = true</script>",
    "<!-- <script>",
    "]]>",
    "&lt;b&gt; & \"quotes\" 'and' `ticks`",
    "שלום עולם (RTL) مرحبا",
    "👩‍👩‍👧‍👦 🇩🇪 é",
    "two\nlines\r\nand\ttabs",
    '=HYPERLINK("http://example.org", "click")',
    "@SUM(A1)",
    "x" * 3000,
    "line\u2028separator\u2029here",
    "${alert(1)} {{1+1}} %s $title",
    "  spaces around  ",
    "\ud800 half a pair",
    "",
)
MODELS = ("Giulietta", "Golf", "Fiesta", "i30", "Civic", "Astra", "Clio", "Octavia", "A3", "Focus", "Leon", "Mégane")
MAKERS = ("Alfa Romeo", "Volkswagen", "Ford", "Hyundai", "Honda", "Vauxhall", "Renault", "Škoda", "Audi", "Seat")
ERRORS = ("100 times too large", "10 times too large", "sign", "digits swapped", "")
COLUMNS = (
    ("Maker", "category", "words"),
    ("Model", "id", "names the rows"),
    ("Price", "number", "numbers with £ and thousands commas"),
    ("Fuel", "category", "words"),
    ("MPG", "number", "numbers"),
    ("Weight", "number", "numbers with kg"),
    ("Height", "number", "numbers"),
    ("Acceleration", "number", "numbers, decimal comma"),
    ("First sold", "date", "dates, day first"),
    ("Verdict", "text", "not used by the models"),
    ("Doors", "number", "numbers"),
    ("Boot", "number", "numbers with litres"),
    ("Insurance", "category", "words"),
    ("Spare", "empty", ""),
)


def png(size: int, seed: int) -> str:
    """A small grey picture as a data URL."""
    random_ = random.Random(seed)
    lines = b"".join(b"\0" + bytes(random_.randrange(256) for _ in range(size)) for _ in range(size))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(whole).decode()


def row_values(random_: random.Random) -> list[str]:
    """A car that does not exist."""
    return [
        random_.choice(MAKERS),
        f"{random_.choice(MODELS)} {random_.randrange(1, 9)}.{random_.randrange(10)}",
        f"£{random_.randrange(8000, 60000):,}",
        random_.choice(["Petrol", "Diesel"]),
        str(random_.randrange(25, 75)),
        f"{random_.randrange(900, 2200)} kg",
        str(random_.randrange(1380, 1800)),
        f"{random_.uniform(6, 14):.1f}".replace(".", ","),
        f"{random_.randrange(1, 29):02d}/{random_.randrange(1, 13):02d}/2011",
        "Drives well, and is quiet.",
        str(random_.choice([3, 5])),
        f"{random_.randrange(200, 600)} l",
        random_.choice(["low", "high"]),
        "",
    ]


def suspect(k: int, n: int, random_: random.Random, whole: bool, images: bool, regression: bool) -> dict[str, Any]:
    """The k-th of n suspects."""
    values = row_values(random_)
    row = 3 * k + 1
    probability = round(0.995 - 0.6 * k / max(1, n), 4)
    kind = ("target", "cell", "target", "cell", "row", "duplicate")[k % 6]
    kinds = [kind] if k % 5 else ["target", "cell"]
    target = None
    if "target" in kinds:
        given, suggested = (
            (values[4], "48.2") if regression else (values[3], "Diesel" if values[3] == "Petrol" else "Petrol")
        )
        target = {
            "given": given,
            "suggested": suggested,
            "probability": probability,
            "linear": k % 3 != 0,
            "boosting": k % 4 != 1,
        }
    cells = []
    if "cell" in kinds:
        values[2] = f"£{random_.randrange(800000, 6000000):,}"
        cells.append(
            {
                "column": "Price",
                "value": values[2],
                "expected": f"{random_.randrange(9000, 50000)}",
                "probability": probability,
                "score": 12.0,
                "error": ERRORS[k % 5],
            }
        )
        if k % 7 == 0:
            cells += [
                {
                    "column": name,
                    "value": f"-{j}14",
                    "expected": f"{j}41",
                    "probability": 0.8,
                    "score": -6.0,
                    "error": "sign",
                }
                for j, name in enumerate(["Weight", "Height", "Boot"], 1)
            ]
    words = {
        "target": "wrong number" if regression else "wrong label",
        "cell": "wrong cell",
        "row": "unlike all other rows",
        "duplicate": f"contradicts line {row + 11}",
    }
    return {
        "row": row,
        "line": row + 2,
        "id": values[1],
        "kind": words[kinds[0]],
        "kinds": kinds,
        "probability": None if kinds == ["duplicate"] and k % 4 else probability,
        "score": round(12 - 9 * k / max(1, n), 2),
        "why": f"Cars of this weight and price are mostly of the other kind: {int(90 + 9 * probability)} of 100.",
        "target": target,
        "cells": cells,
        "odd": {"score": 7.5, "probability": probability, "columns": ["Weight", "Height", "Boot"]}
        if "row" in kinds
        else None,
        "duplicates": [{"rows": [row, row + 9], "kind": "contradictory", "differs": ["Fuel"]}]
        if "duplicate" in kinds
        else [],
        "values": values if whole else None,
        "neighbours": [{"row": 5 * j + k, "line": 5 * j + k + 2, "values": row_values(random_)} for j in range(3)]
        if whole
        else [],
        "image": png(28, k) if images else None,
    }


def sample(n: int = 38, *, hostile: bool = False, images: bool = False, regression: bool = False) -> dict[str, Any]:
    """The document of a check that found n suspects; ``hostile``: with markup and script in all names and values."""
    random_ = random.Random(0)
    suspects = [suspect(k, n, random_, k < 2000, images, regression) for k in range(n)]
    names = [name for name, _, _ in COLUMNS]
    target = (
        {"name": "MPG", "task": "regression", "classes": []}
        if regression
        else {"name": "Fuel", "task": "classification", "classes": ["Diesel", "Petrol"]}
    )
    document: dict[str, Any] = {
        "format": "trimlearn-check/1",
        "version": "0.1.0",
        "created": "2026-11-16T07:30:00+00:00",
        "seed": 0,
        "source": {
            "name": "cars.csv",
            "rows": max(297, 3 * n + 20),
            "columns": len(COLUMNS),
            "fingerprint": f"f1ce{n}{regression:d}{hostile:d}",
            "first_line": 2,
        },
        "target": target,
        "headline": ["About 13 % of the labels and 41 cells in 38 rows look wrong.", "Two models agree on 31 of 37."],
        "next": [
            "Look at the ten rows at the top of the table: nine of ten are expected to be wrong.",
            "Say keep, drop or correct, and export your decisions.",
            "Check again with --decisions decisions.csv.",
        ],
        "caveats": [
            "With 297 rows a probability can be off by 0.1.",
            "No column but Price and Weight tells much of Fuel: labels are hard to judge here.",
        ],
        "notes": ["“£21,995” was read as 21995 in Price.", "Spare holds nothing and was left out."],
        "columns": [
            {
                "name": name,
                "kind": kind,
                "how": how,
                "missing": 7 * j % 30,
                "unreadable": j % 3,
                "wrong_cells": 12 - j if kind == "number" else 0,
                "typical_error": ERRORS[j % 5] if kind == "number" else "",
                "examples": row_values(random_)[j : j + 1] * 3,
            }
            for j, (name, kind, how) in enumerate(COLUMNS)
        ],
        "models": [
            {"model": model, "fit": fit, "measure": "share of labels predicted", "value": value, "better": "higher"}
            for model, fit, value in (
                ("linear", "plain", 0.81),
                ("linear", "trimmed", 0.92),
                ("boosting", "plain", 0.88),
                ("boosting", "trimmed", 0.93),
            )
        ],
        "counts": {
            "suspects": n,
            "targets": sum(s["target"] is not None for s in suspects),
            "cells": sum(len(s["cells"]) for s in suspects),
            "cell_rows": sum(bool(s["cells"]) for s in suspects),
            "odd_rows": sum(s["odd"] is not None for s in suspects),
            "duplicates": sum(bool(s["duplicates"]) for s in suspects),
            "agreed": sum(bool(s["target"] and s["target"]["linear"] and s["target"]["boosting"]) for s in suspects),
        },
        "suspects": suspects,
        "charts": [
            {"type": "unknown", "title": "Scores", "description": "Scores of all rows, and where they are cut."}
        ],
        "decisions": None,
    }
    if hostile:
        spoil(document, names)
    return document


def spoil(document: dict[str, Any], names: list[str]) -> None:
    """Puts the hostile texts into every place where a user's words stand."""
    bad = list(HOSTILE)
    document["source"]["name"] = bad[0] + bad[5]
    for place in ("headline", "next", "caveats", "notes"):
        document[place] = [f"{text} a sentence" for text in bad[:6]]
    renamed = {name: f"{name} {bad[j % len(bad)]}" for j, name in enumerate(names)}
    for column in document["columns"]:
        column["name"] = renamed[column["name"]]
        column["how"], column["typical_error"], column["examples"] = bad[0], bad[1], bad[2:5]
    document["target"] = {"name": renamed["Fuel"], "task": "classification", "classes": bad}
    document["decisions"] = {"file": bad[1], "count": 2, "sentences": bad[:3]}
    document["charts"] = []
    for k, s in enumerate(document["suspects"]):
        text = bad[k % len(bad)]
        s["id"] = s["kind"] = s["why"] = text
        if s["target"]:
            s["target"]["given"], s["target"]["suggested"] = text, bad[(k + 1) % len(bad)]
        for cell in s["cells"]:
            cell["column"], cell["value"], cell["error"] = renamed[cell["column"]], text, bad[1]
            cell["expected"] = bad[(k + 2) % len(bad)]
        if s["odd"]:
            s["odd"]["columns"] = [renamed["Weight"]]
        for group in s["duplicates"]:
            group["differs"] = [renamed["Fuel"]]
        s["values"] = [bad[(k + j) % len(bad)] for j in range(len(names))]
        for near in s["neighbours"]:
            near["values"] = [bad[(k + j + 1) % len(bad)] for j in range(len(names))]
