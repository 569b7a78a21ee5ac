"""The command line: ``trimlearn demo`` and ``trimlearn version``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trimlearn._version import __version__

if TYPE_CHECKING:
    from trimlearn.demo import DemoResult

__all__ = ["main"]

BAD_INPUT = 2  # argparse's own exit code for a command line that cannot be right


class _Parser(argparse.ArgumentParser):
    """argparse prints the usage before each error; one line that says what is wrong is enough."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return its exit code.

    >>> main(["version"])
    trimlearn 0.1.0
    0
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        arguments.command(arguments)
    except (OSError, ValueError) as error:  # a folder that cannot be written, data that is missing or damaged
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="trimlearn", description="Fit models to data of which an unknown part is wrong.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="find wrong labels and outlying judges in bundled data")
    demo.add_argument("--out", type=Path, default="demo-output", help="folder for the files (default: %(default)s)")
    demo.add_argument("--data", type=Path, help="folder that holds mnist/: use MNIST instead of the bundled digits")
    demo.set_defaults(command=_demo)

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=lambda arguments: print(f"trimlearn {__version__}"))
    return parser


def _demo(arguments: argparse.Namespace) -> None:
    if arguments.out.exists() and not arguments.out.is_dir():
        raise ValueError(f"--out must be a folder, {arguments.out} is a file")
    from trimlearn.demo import run

    _print_demo(run(arguments.out, arguments.data, progress=sys.stderr.isatty()))


def _print_demo(result: DemoResult) -> None:
    digits, judges = result.digits, result.judges
    n, wrong = len(digits.data.t), int(digits.data.is_wrong.sum())
    _print_table(
        f"{digits.data.name}: {n} rows, {wrong} labels wrong, {n - digits.h:.0f} rows flagged",
        ["fit", "test accuracy", "detected", "false positives"],
        [
            [name, f"{fit.accuracy:.1%}", f"{fit.detected:.1%}", f"{fit.false_positives:.1%}"]
            for name, fit in (("plain", digits.plain), ("trimmed", digits.trimmed))
        ],
    )
    _print_table(
        f"US Judges: trimmed PCA, F = {judges.objective:.6f}, {len(judges.outlying)} of {len(judges.w)} trimmed",
        ["judge", "loss"],
        [[name, f"{judges.f[judges.table.names.index(name)]:.3f}"] for name in judges.outlying],
    )
    print("Written:", *result.files)


def _print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A table by rich where it is installed, in plain text where not."""
    if importlib.util.find_spec("rich"):
        from rich import box
        from rich.console import Console
        from rich.table import Table

        print(title)  # as rich's own title it would be folded to the table's width
        table = Table(*header, box=box.SIMPLE_HEAD)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    print(title, *lines, "", sep="\n")
