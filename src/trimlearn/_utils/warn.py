"""Warnings that point at the line of the user's own code, however deep they arise."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

__all__ = ["warn"]

LIBRARIES = ("trimlearn", "sklearn", "joblib")  # whose frames are passed over: they call ours


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package and scikit-learn: there the user asked for what is doubtful.

    `warnings.warn` counts frames instead, of which there is another number in a pipeline, a search or a subclass.
    """
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
