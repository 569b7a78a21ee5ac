"""``trimlearn predict``: what a model that a check wrote says about another table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trimlearn.checks.options import OptionError
from trimlearn.cli.check import FILES

EXAMPLES = """\
examples:
  trimlearn predict cars-check/model.json new.csv                  print the predictions
  trimlearn predict cars-check/model.json new.csv --out with.csv   the table with one more column
"""


def add_to(commands: Any) -> None:
    """Add this command to argparse's sub-parsers."""
    parser = commands.add_parser(
        "predict",
        help="predict the target of another table by a model that a check wrote",
        description="Predict the target of another table by a model that a check wrote.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    model = parser.add_argument("model", metavar="MODEL", type=Path, help="a model.json")
    table = parser.add_argument("table", metavar="TABLE", type=Path, help="CSV, TSV, Parquet, Excel or npz")
    out = parser.add_argument("--out", metavar="FILE", type=Path, help="a CSV: the table and its predictions")
    parser.add_argument("--debug", action="store_true", help="show the whole error where something fails")
    for action in (model, table, out):
        action.complete = FILES
    parser.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> None:
    for path in (arguments.model, arguments.table):
        if not path.is_file():
            raise OptionError(f"there is no file {path}")
    if arguments.out is not None and arguments.out.is_dir():
        raise OptionError(f"--out must be a file, {arguments.out} is a folder")
    from trimlearn.checks.model import with_predictions
    from trimlearn.checks.model_file import load
    from trimlearn.tables.write import write_csv

    model = load(arguments.model)
    table = model.read(arguments.table)
    predicted = with_predictions(model, table)
    if arguments.out is None:
        print(*map(_shown, predicted.iloc[:, -1]), sep="\n")
        return
    write_csv(predicted, arguments.out)
    print(f"Written: {arguments.out}, with {len(predicted):,} predictions in its last column.")


def _shown(value: Any) -> str:
    """A prediction for the eye; a file has all its digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
