"""``trimlearn demo``: a dirty table, wrong labels among digits, outlying judges."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimlearn.cli.show import check_folder, print_table

if TYPE_CHECKING:
    from trimlearn.demo import DemoResult


def add_to(commands: Any) -> None:
    """Add this command to argparse's sub-parsers."""
    parser = commands.add_parser("demo", help="find what is wrong in bundled data: a dirty table, labels, judges")
    parser.add_argument("--out", type=Path, default="demo-output", help="folder for the files (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="folder that holds mnist/: use MNIST instead of the bundled digits")
    parser.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> None:
    check_folder(arguments.out)
    from trimlearn.demo import run

    _print(run(arguments.out, arguments.data, progress=sys.stderr.isatty()))


def _print(result: DemoResult) -> None:
    digits, judges = result.digits, result.judges
    n, wrong = len(digits.data.y), int(digits.data.is_wrong.sum())
    flagged = int(digits.table["outlier"].sum())
    print_table(
        f"{digits.data.name}: {n} rows, {wrong} labels wrong ({wrong / n:.0%}). "
        f"TrimmedLogisticRegression() estimates {digits.contamination:.0%}, and flags {flagged}.",
        ["fit", "test accuracy", "wrong labels found", "right ones accused", "seconds"],
        [
            [name, f"{fit.accuracy:.1%}", f"{fit.detected:.1%}", f"{fit.false_positives:.1%}", f"{fit.seconds:.1f}"]
            for name, fit in (("plain", digits.plain), ("trimmed", digits.trimmed))
        ],
    )
    odd = judges.table[judges.table["outlier"]]
    print_table(
        f"US Judges: TrimmedPCA(2) explains {len(judges.table) - len(odd)} of {len(judges.table)}, but not",
        ["judge", "score", "kind"],
        [[judges.data.names[row["row"]], f"{row['score']:.1f}", row["kind"]] for row in odd],
    )
    print("Written:", *result.files)
    if result.penguins is None or result.report is None:
        print('The report on a dirty table needs pandas: pip install "trimlearn[cli]", and run this again.')
        return
    headline = " ".join(result.penguins.results["headline"])
    print(f"\nA dirty table, {len(result.penguins.parts.table.frame)} penguins: {headline}")
    print(f"Open this page in a browser: {result.report.absolute()}")
