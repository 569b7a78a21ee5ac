"""Warnings as sentences for the reader of a report: none is lost, and none is said twice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# For who writes the code, not for who reads the table: Python's own kinds of such warnings.
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, FutureWarning)
ARITHMETIC = "encountered in"  # what NumPy says of overflow, and of what comes of it
TOO_LARGE = "some numbers are too large or too small to calculate with; give such columns in other units."


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
        if issubclass(warning.category, FOR_PROGRAMMERS):
            continue
        lines = [line.strip() for line in str(warning.message).splitlines() if line.strip()]
        sentence = lines[0] if lines else warning.category.__name__
        if issubclass(warning.category, RuntimeWarning) and ARITHMETIC in str(warning.message):
            sentence = TOO_LARGE
        if (said := f"From {who}: {sentence}") not in sentences:
            sentences.append(said)
