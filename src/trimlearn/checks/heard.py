"""Warnings as sentences for the reader of a report: none is lost, and none is said twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["heard"]


@contextmanager
def heard(sentences: list[str], who: str) -> Iterator[None]:
    """Append each warning that is given inside to ``sentences``, with who gave it.

    >>> from trimlearn._utils.warn import warn
    >>> said = []
    >>> with heard(said, "the linear model"):
    ...     warn("it stopped short.\\nSee the manual.")
    >>> said
    ['From the linear model: it stopped short.']
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(
            warning.category, (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, FutureWarning)
        ):
            continue  # for who writes the code, not for who reads the table
        lines = [line.strip() for line in str(warning.message).strip().splitlines() if line.strip()]
        sentence = f"From {who}: {lines[0] if lines else warning.category.__name__}"
        if sentence not in sentences:
            sentences.append(sentence)
