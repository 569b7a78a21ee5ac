"""What a check may be told, looked at before the work begins: a mistake is one line that names the nearest word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any, get_args

from trimlearn.checks.findings import Task
from trimlearn.tables.names import find_names, near_names

if TYPE_CHECKING:
    from trimlearn.tables.table import Table

LISTED = 8  # names that one line of an error holds, as many as a reader takes in


OPTIONS = ("target", "categorical", "date", "number", "drop", "id", "labels", "features")


class OptionError(ValueError):
    """An argument, or a command line, that cannot be right: the caller can mend it, whatever the data hold."""


@contextmanager
def of_option() -> Iterator[None]:
    """Make an error that begins with the name of an option one of options: the reader of tables begins so."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith(tuple(f"{name}: " for name in OPTIONS)):
            raise OptionError(str(error)) from error
        raise


def names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several, as a tuple.

    >>> names("Price"), names(["a", "b"]), names(None)
    (('Price',), ('a', 'b'), ())
    """
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def one_of(known: Iterable[str], name: str) -> str:
    """The end of a sentence about a name that is not known: the nearest known ones, else the first few.

    >>> one_of(["Price", "Weight"], "price")
    'did you mean Price?'
    >>> one_of(["Price", "Weight"], "xyz")
    'there are Price, Weight.'
    """
    known = list(known)
    if near := near_names(name, known):
        return f"did you mean {' or '.join(near)}?"
    shown = ", ".join(known[:LISTED])
    return f"there are {shown}{f' and {len(known) - LISTED} more' if len(known) > LISTED else '.'}"


def no_more_options(unknown: dict[str, Any], known: Iterable[str]) -> None:
    """Raise for a keyword that no option has."""
    for name in unknown:
        raise TypeError(f"check has no option {name!r}: {one_of(known, name)}")


def check_task(task: str | None) -> None:
    """Raise for a task that is none."""
    if task is not None and task not in get_args(Task):
        raise OptionError(f"task must be one of {', '.join(get_args(Task))}, got {task!r}.")


def check_seed(seed: Any) -> None:
    """Raise for a seed that no generator takes."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**32:
        raise OptionError(f"seed must be a whole number from 0 to {2**32 - 1}, got {seed!r}.")


def check_target_column(table: Table, target: str | None, id: str | None) -> None:
    """Raise where the target cannot be judged, whatever its cells say."""
    if target is None:
        return
    kinds = {column.name: column.kind for column in table.columns}
    with of_option():
        find_names(target, list(kinds), "target")
    if target == id:
        raise OptionError(f"target: column {target!r} is the id: what names rows cannot be predicted.")
    if kinds[target] == "empty":
        raise ValueError(f"target: column {target!r} is empty, so that there is nothing to judge.")
    if kinds[target] == "constant":
        raise ValueError(f"target: column {target!r} has one value only, so that no row can be told from another.")
