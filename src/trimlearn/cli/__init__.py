"""The command line: ``trimlearn check``, ``predict``, ``demo``, ``stitch`` and ``version``."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NoReturn

from trimlearn._version import __version__
from trimlearn.checks.options import OptionError
from trimlearn.cli import check, demo, predict, stitch

__all__ = ["Parser", "main", "run"]

# Exit codes. 0: done. 1: findings above a limit, as diff and grep use it.
USAGE = 2  # argparse's own exit code for a command line that cannot be right
BAD_DATA = 3  # what was asked for is clear, but the data do not allow it: the next number that is free
INTERRUPTED = 130  # a shell's exit code for Ctrl-C


class Parser(argparse.ArgumentParser):
    """argparse prints the usage before each error; one line that says what is wrong is enough."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {_line(message)}{self._meant(message)} (see {self.prog} --help)\n")

    def _meant(self, message: str) -> str:
        """The options nearest to one that no command has; argparse leaves it to the outermost parser to complain."""
        unknown = re.findall(r"--[\w-]+", message) if message.startswith("unrecognized") else []
        known = {option for parser in self._inner() for option in parser._option_string_actions if option[:2] == "--"}
        near = [word for option in unknown for word in get_close_matches(option, sorted(known), n=1)]
        return f"; did you mean {' and '.join(near)}?" if near else ""

    def _inner(self) -> list[argparse.ArgumentParser]:
        inner = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
        return [self, *(parser for action in inner for parser in action.choices.values())]


class Completion(argparse.Action):
    """Print a shell's completion, by shtab, which is imported only now."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:
        try:
            import shtab
        except ImportError:
            parser.exit(USAGE, f"{parser.prog}: {option_string} needs shtab: pip install trimlearn[cli]\n")
        print(shtab.complete(parser, shell=values))
        parser.exit(0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's own) and return its exit code.

    >>> main(["version"])
    trimlearn 0.1.0
    0
    """
    return run(_parser(), argv)


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run the function ``command`` that the parser has found; what the user can mend is one line on stderr.

    The exit code is what the command returns (None: 0), 2 for what the command line can mend (a file or a package that
    is not there as well), 3 where the data do not allow what was asked for, or where we failed. With ``--debug``, where
    a command has it, the error goes on as it is.
    """
    arguments = parser.parse_args(argv)
    if getattr(arguments, "debug", False):
        return int(arguments.command(arguments) or 0)
    with _plain_warnings(parser.prog):
        try:
            return int(arguments.command(arguments) or 0)
        except BrokenPipeError:  # who reads our output has seen enough, as head does; Python would complain once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (OSError, ImportError, OptionError) as error:  # no such file, folder or column, a missing extra
            return _failed(parser.prog, error, USAGE)
        except ValueError as error:  # photographs that do not overlap, a damaged file
            return _failed(parser.prog, error, BAD_DATA)
        except KeyboardInterrupt:
            return _failed(parser.prog, "interrupted", INTERRUPTED)
        except Exception as error:  # a mistake of ours: still one line
            if not hasattr(arguments, "debug"):
                raise
            why = f"this should not have happened ({type(error).__name__}: {error}); run it again with --debug"
            return _failed(parser.prog, why, BAD_DATA)


def _failed(program: str, why: Any, code: int) -> int:
    if isinstance(why, OSError) and why.strerror and why.filename:  # without its number, which nobody knows
        why = f"{why.filename}: {why.strerror}"
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
        description="Find what is wrong with data, and fit models to the rest.",
        epilog="Exit codes: 0 done, 1 findings above a limit, 2 the command line cannot be right, 3 the data "
        "do not allow what it asks for. Begin with: trimlearn check TABLE --target COLUMN",
    )
    parser.add_argument("--version", action="version", version=f"trimlearn {__version__}")
    parser.add_argument(
        "--print-completion", action=Completion, choices=("bash", "zsh", "tcsh"),
        help="print what makes a shell complete this command; bash: eval \"$(trimlearn --print-completion bash)\"",
    )  # fmt: skip
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (check, predict, demo, stitch):
        command.add_to(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=lambda arguments: print(f"trimlearn {__version__}"))
    return parser
