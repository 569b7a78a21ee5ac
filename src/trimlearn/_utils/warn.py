"""Warnings that point at the line of the user's own code, however deep they arise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

LIBRARIES = ("trimlearn", "sklearn", "joblib")  # whose frames are passed over: they call ours


_NOTES: ContextVar[list[str] | None] = ContextVar("notes", default=None)
_HELD: ContextVar[list[str] | None] = ContextVar("held", default=None)


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """The warnings of `warn` within the block, each once, whether or not they are shown; those of a block inside are
    that block's.

    >>> with warnings.catch_warnings(), noted_warnings() as notes:
    ...     warnings.simplefilter("ignore")
    ...     warn("few rows")
    >>> notes
    ['few rows']
    """
    notes: list[str] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


@contextmanager
def held_warnings() -> Iterator[list[str]]:
    """The warnings of `warn` within the block, each once, in place of showing them: for whoever says them better.

    Unlike `warnings.catch_warnings` it holds for this thread alone.

    >>> with held_warnings() as held:
    ...     warn("few matches")
    >>> held
    ['few matches']
    """
    held: list[str] = []
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package and scikit-learn: there the user asked for what is doubtful.

    `warnings.warn` counts frames instead, of which there is another number in a pipeline, a search or a subclass.
    """
    notes, held = _NOTES.get(), _HELD.get()
    for heard in (notes, held):
        if heard is not None and message not in heard:
            heard.append(message)
    if held is not None:
        return
    frame = _users_frame()
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _users_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in LIBRARIES and frame.f_code.co_name != "<module>"
