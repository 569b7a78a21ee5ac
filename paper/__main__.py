"""``python -m paper``: the paper's tables and figures, and the page of the documentation that shows them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper.outcome import read_results
from paper.page import write_docs_page
from paper.reproduce import reproduce
from trimlearn.checks.options import OptionError
from trimlearn.cli import Parser, run
from trimlearn.cli.show import check_folder, print_table, progress

NAMES = ("judges", "homography", "panorama", "mnist", "rates")  # in the order in which "all" runs them


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return its exit code."""
    parser = Parser(prog="paper", description="The paper's tables and figures, made again.")
    parser.add_argument("experiment", choices=[*NAMES, "all", "page"], help="page: docs/paper.md from --out")
    parser.add_argument("--out", type=Path, default="paper-output", help="folder for the files (default: %(default)s)")
    parser.add_argument(
        "--data", type=Path, help="folder that holds mnist/, vlfeat/, oxford_affine/, panorama/ (or $TRIMLEARN_DATA)"
    )
    parser.add_argument("--quick", action="store_true", help="a slice of the data: to see everything once")
    parser.add_argument(
        "--modulo", type=int, choices=(9, 10), default=10,
        help="how MNIST's shifted labels wrap: 10 (default), or 9 as the paper prints",
    )  # fmt: skip
    parser.set_defaults(command=_reproduce)
    return run(parser, argv)


def _reproduce(arguments: argparse.Namespace) -> None:
    """Print each table as it is done."""
    if arguments.experiment == "page":
        _page(arguments.out)
        return
    check_folder(arguments.out)
    names = NAMES if arguments.experiment == "all" else (arguments.experiment,)
    written: dict[Path, None] = {}  # in the order first written
    for outcome, files in reproduce(
        names, arguments.out, arguments.data, quick=arguments.quick, modulo=arguments.modulo, say=progress()
    ):
        print(f"\n{outcome.title}\n", *outcome.notes, "", sep="\n")
        for table in outcome.tables:
            print_table(table.title, table.header, table.rows)
            if table.note:
                print(table.note, "\n")
        written.update(dict.fromkeys(files))
    print("Written:", *written, sep="\n  ")


def _page(out: Path) -> None:
    """Write docs/paper.md, from full runs only: what a part or a slice gave would take the place of all the others."""
    results = read_results(out / "results.json")
    if lacking := [name for name in NAMES if results.get(name, {}).get("quick", True)]:
        raise OptionError(f"--out {out} holds no full run of {', '.join(lacking)}: python -m paper all --out {out}")
    print("Written:", write_docs_page(out))


if __name__ == "__main__":
    sys.exit(main())
