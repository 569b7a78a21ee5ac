"""Warnings as sentences for the reader of a report: none is lost, and none is said twice."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# For who writes the code, not for who reads the table: Python's own kinds of such warnings.
FOR_PROGRAMMERS = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, FutureWarning)
ARITHMETIC = "encountered in"  # what NumPy says of overflow, and of what comes of it
TOO_LARGE = "some numbers are too large or too small to calculate with; give such columns in other units."
SENTENCES = re.compile(r"(?<=[.!?]) +(?=[A-Z])")  # where one ends and the next begins
OPTIONS = re.compile(r"\b(contamination|sample_weight|outlier_probability_|max_passes)\b")  # those our warnings advise


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
        sentence = _without_options(lines[0]) if lines else warning.category.__name__
        if issubclass(warning.category, RuntimeWarning) and ARITHMETIC in str(warning.message):
            sentence = TOO_LARGE
        if (said := f"From {who}: {sentence}") not in sentences:
            sentences.append(said)


def _without_options(text: str) -> str:
    """The text without the sentences that advise options of estimators, which nobody can give to a check.

    >>> _without_options("Half of y is 0. It may be rounded. Then give a contamination.")
    'Half of y is 0. It may be rounded.'
    """
    kept = [sentence for sentence in SENTENCES.split(text) if not OPTIONS.search(sentence)]
    return " ".join(kept) or text
