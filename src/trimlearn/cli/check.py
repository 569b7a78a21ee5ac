"""``trimlearn check``: what is wrong with a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimlearn.checks.options import OptionError
from trimlearn.cli.show import check_folder

if TYPE_CHECKING:
    from trimlearn.checks.found import Check

# What a shell offers for an argument; shtab's own constants, so that shtab is needed only where it is asked for.
FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
FOLDERS = {"bash": "_shtab_compgen_dirs", "zsh": "_files -/", "tcsh": "d"}
EXAMPLES = """\
examples:
  trimlearn check cars.csv                          cells, rows and duplicates
  trimlearn check cars.csv --target Price           the same, and which prices are wrong
  trimlearn check cars.csv --target Fuel --id Name --drop Notes,Colour
  trimlearn check cars.csv --target Fuel --decisions decisions.csv
                                                    again, with what you decided in the report
  trimlearn check photos/ --labels labels.csv       wrong labels of images
  trimlearn check cars.csv --fail-above 0.1 --quiet stop a pipeline where more than 10 % of the rows look wrong

files in DIR: report.html (open it first), flagged.csv, clean.csv, results.json, repeat.py; with a target, model.json.

exit codes: 0 done, 1 more rows look wrong than --fail-above allows, 2 the command line cannot be right, 3 the data do
not allow what was asked for.
"""


def add_to(commands: Any) -> None:
    """Add this command to argparse's sub-parsers."""
    parser = commands.add_parser(
        "check",
        help="find wrong cells, labels and rows in a table, and write a report",
        description="Find what is wrong with a table, and write a report that anybody can open.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    table = parser.add_argument(
        "table", metavar="TABLE", type=Path, help="CSV, TSV, Parquet, Excel, npz; or a folder of images, with --labels"
    )
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict, whose wrong values are looked for")
    out = parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the files (default: TABLE's name + -check)"
    )
    _add_columns(parser)
    files = {
        "labels": "of a folder of images: a CSV of file and label",
        "features": "of images: an .npy, a row of numbers for each, in place of pixels",
        "decisions": "what you decided in the report, as exported there",
    }
    for name, what in files.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=what).complete = FILES
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default: %(default)s)")
    parser.add_argument(
        "--fail-above", type=_share, metavar="SHARE", help="exit with 1 where a larger share of the rows looks wrong"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--json", action="store_true", help="print the findings in short as JSON, and nothing else")
    parser.add_argument("--debug", action="store_true", help="show the whole error where something fails")
    parser.set_defaults(command=_run)
    table.complete = FILES
    out.complete = FOLDERS


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns", "Names with commas between them; an option may come several times.")
    for name, what in (
        ("categorical", "hold categories, whatever they look like"),
        ("date", "hold dates"),
        ("number", "hold numbers"),
        ("drop", "are not used"),
    ):
        group.add_argument(f"--{name}", metavar="COLUMNS", action="append", default=[], help=f"these {what}")
    group.add_argument("--id", metavar="COLUMN", help="this names the rows")
    group.add_argument(
        "--task", choices=("regression", "count", "classification"), help="what the target is (default: as it looks)"
    )


def _share(text: str) -> float:
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"must be a share between 0 and 1, got {text}")
    return share


def _run(arguments: argparse.Namespace) -> int:
    out = arguments.out or Path(f"{arguments.table.resolve().stem or 'table'}-check")
    check_folder(out)
    _check_files(arguments)
    with _progress(not (arguments.quiet or arguments.json)) as progress:
        found = _found(arguments, progress)
        files = found.write(out)
    if arguments.json:
        from trimlearn.checks.document import abridged

        print(json.dumps(abridged(found.results) | {"files": {n: str(p) for n, p in files.items()}}, indent=1))
    elif not arguments.quiet:
        print(found.summary())
        print(f"\nReport: {files['report.html']}")
    counts, rows = found.results["counts"], found.results["source"]["rows"]
    share = counts["wrong_rows"] / max(rows, 1)
    return int(arguments.fail_above is not None and share > arguments.fail_above)


def _found(arguments: argparse.Namespace, progress: Callable[[str], None]) -> Check:
    from trimlearn.checks.check import check

    columns = ("categorical", "date", "number", "drop")
    options: dict[str, Any] = {name: _split(getattr(arguments, name)) for name in columns}
    options |= {name: getattr(arguments, name) for name in ("id", "task", "labels", "features", "decisions", "seed")}
    return check(arguments.table, arguments.target, progress=progress, **options)


def _split(options: list[str]) -> tuple[str, ...]:
    """Names from options, each of which may hold several with commas between them; quotes keep a comma in a name."""
    import csv

    return tuple(name.strip() for line in csv.reader(options, skipinitialspace=True) for name in line if name.strip())


def _check_files(arguments: argparse.Namespace) -> None:
    """Raise where a file that is named is not there, before any work."""
    table = arguments.table
    if not table.exists():
        raise OptionError(f"there is no file {table}")
    for name in ("labels", "features", "decisions"):
        path = getattr(arguments, name)
        if path is not None and not path.is_file():
            raise OptionError(f"--{name}: there is no file {path}")
    if table.is_dir() and arguments.labels is None:
        raise OptionError(f"{table} is a folder: give a file, or --labels with the labels of the images in it")
    if arguments.labels is not None and not table.is_dir():
        raise OptionError(f"--labels is for a folder of images, {table} is a file: name the labels by --target")
    if arguments.features is not None and arguments.labels is None:
        raise OptionError("--features needs --labels: the labels of the images")


@contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done, where there is a terminal to show it on."""
    if not wanted or not sys.stderr.isatty() or not find_spec("rich"):
        yield lambda sentence: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("") as status:
        yield lambda sentence: status.update(escape(sentence) + " …")
