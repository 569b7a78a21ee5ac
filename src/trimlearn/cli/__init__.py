"""The command line: ``trimlearn demo``, ``stitch`` and ``version``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from trimlearn._version import __version__
from trimlearn.cli import demo, stitch
from trimlearn.cli.show import UsageError

__all__ = ["Parser", "main", "run"]

# Exit codes. 0: done. 1 is kept for findings above a limit, as diff and grep use it.
USAGE = 2  # argparse's own exit code for a command line that cannot be right
BAD_DATA = 3  # what was asked for is clear, but the data do not allow it: the next number that is free
INTERRUPTED = 130  # a shell's exit code for Ctrl-C


class Parser(argparse.ArgumentParser):
    """argparse prints the usage before each error; one line that says what is wrong is enough."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return its exit code.

    >>> main(["version"])
    trimlearn 0.1.0
    0
    """
    return run(_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run the function ``command`` that the parser has found; what the user can mend is one line on stderr.

    The exit code is 0, 2 for what the command line can mend (a file or a package that is not there as well), 3 where
    the data do not allow what was asked for.
    """
    arguments = parser.parse_args(argv)
    with _plain_warnings(parser.prog):
        try:
            arguments.command(arguments)
        except (OSError, ImportError, UsageError) as error:  # no such file or folder, a missing extra
            return _failed(parser.prog, error, USAGE)
        except ValueError as error:  # photographs that do not overlap, a damaged file
            return _failed(parser.prog, error, BAD_DATA)
        except KeyboardInterrupt:
            return _failed(parser.prog, "interrupted", INTERRUPTED)
    return 0


def _failed(program: str, why: Any, code: int) -> int:
    print(f"{program}: {_line(why)}", file=sys.stderr)
    return code


@contextmanager
def _plain_warnings(program: str) -> Iterator[None]:
    """Warnings as one sentence on stderr, each once: which line of this package gave it means nothing to who calls a
    command. Which warnings are shown is left to Python's own filters."""
    said: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        if (line := _line(message)) not in said:
            said.add(line)
            print(f"{program}: warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _line(text: Any) -> str:
    return " ".join(str(text).split())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="trimlearn",
        description="Fit models to data of which an unknown part is wrong.",
        epilog="Exit codes: 0 done, 2 the command line cannot be right, 3 the data do not allow what it asks for.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (demo, stitch):
        command.add_to(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=lambda arguments: print(f"trimlearn {__version__}"))
    return parser
