"""The command line: ``trimlearn demo``, ``stitch`` and ``version``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from trimlearn._version import __version__
from trimlearn.cli import demo, stitch

__all__ = ["Parser", "main", "run"]

BAD_INPUT = 2  # argparse's own exit code for a command line that cannot be right
INTERRUPTED = 130  # a shell's exit code for Ctrl-C


class Parser(argparse.ArgumentParser):
    """argparse prints the usage before each error; one line that says what is wrong is enough."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return its exit code.

    >>> main(["version"])
    trimlearn 0.1.0
    0
    """
    return run(_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run the function ``command`` that the parser has found; what the user can mend is one line on stderr."""
    arguments = parser.parse_args(argv)
    try:
        arguments.command(arguments)
    except (OSError, ValueError, ImportError) as error:  # no such folder, missing or damaged data, a missing extra
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="trimlearn", description="Fit models to data of which an unknown part is wrong.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (demo, stitch):
        command.add_to(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=lambda arguments: print(f"trimlearn {__version__}"))
    return parser
