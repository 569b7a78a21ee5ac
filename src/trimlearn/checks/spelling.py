"""Categories that are spelt in two ways: "Petorl" once and "Petrol" 200 times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from trimlearn.checks.findings import WrongCell
from trimlearn.tables.table import Table

RARE, OFTEN = 2, 20  # times: a word that occurs so seldom may be a slip of one that occurs that many times as often
LONG = 5  # letters: of shorter words, many differ in one letter, as Iran and Iraq
MANY = 10_000  # different words: more are names
FORM = "blanks or capitals"
LETTER = "misspelt"
# The probability that a word is a slip: no two words differ in blanks only; few that people use differ in one letter.
SURE = {FORM: 0.97, LETTER: 0.85}


def misspelt(table: Table, exclude: Sequence[str] = ()) -> list[WrongCell]:
    """The cells of the categories of a table that are spelt unlike the others.

    Parameters
    ----------
    table : Table
        Its columns of the kind "category" are looked at.
    exclude : sequence of str, default=()
        Columns that are left alone.

    Returns
    -------
    list of WrongCell
        In the order of columns and rows; the usual spelling is what was expected.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column
    >>> frame = pd.DataFrame({"fuel": ["Petrol"] * 50 + ["Diesel"] * 30 + ["Petorl"]})
    >>> [(c.row, c.value, c.expected) for c in misspelt(Table(frame, frame, (Column("fuel", "category"),), "", 0, ""))]
    [(80, 'Petorl', 'Petrol')]
    """
    found = []
    for name in table.of_kind("category"):
        column = table.frame[name]
        if name in exclude or column.dtype.kind in "iufbM":
            continue
        counts = {str(word): int(count) for word, count in column.value_counts().items()}
        usual = usual_spellings(counts) if len(counts) <= MANY else {}
        for i in column.index[column.isin(list(usual))]:
            word = str(column[i])
            right, error = usual[word]
            found.append(WrongCell(int(i), name, word, right, float(counts[right]) ** 0.5, SURE[error], error))
    return found


def usual_spellings(counts: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """The rare words that are slips: the usual word for each, and in what they differ.

    >>> usual_spellings({"Petrol": 200, "Petorl": 1, "petrol ": 3, "Diesel": 90, "Type 1": 80, "Type 2": 1})
    {'petrol ': ('Petrol', 'blanks or capitals'), 'Petorl': ('Petrol', 'misspelt')}
    """
    found: dict[str, tuple[str, str]] = {}
    forms: dict[str, list[str]] = defaultdict(list)
    for word in counts:
        forms[" ".join(word.casefold().split())].append(word)
    for words in forms.values():
        best = max(words, key=lambda word: counts[word])
        found |= {word: (best, FORM) for word in words if 2 * counts[word] < counts[best]}
    often = [word for word in counts if counts[word] >= OFTEN]
    slips: dict[str, list[str]] = defaultdict(list)
    for word in often:
        for slip in _shortened(word):
            slips[slip].append(word)
    for word, count in counts.items():
        if count > RARE or word in found or len(word) < LONG:
            continue
        near = {right for slip in _shortened(word) for right in slips[slip] if _one_slip(word, right)}
        near = {right for right in near if counts[right] >= OFTEN * count}
        if near:
            found[word] = (max(near, key=lambda right: counts[right]), LETTER)
    return found


def _shortened(word: str) -> Iterable[str]:
    """The word, and the word without one of its letters: words one slip apart have one of these in common."""
    return {word, *(word[:k] + word[k + 1 :] for k in range(len(word)))}


def _one_slip(a: str, b: str) -> bool:
    """Whether two words differ in one letter, or in the order of two, not the first one, and not in a digit.

    >>> _one_slip("Petorl", "Petrol"), _one_slip("Pertol", "Petrol"), _one_slip("Gambia", "Zambia")
    (True, True, False)
    """
    start = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    rest_a, rest_b = a[start:], b[start:]
    while rest_a and rest_b and rest_a[-1] == rest_b[-1]:
        rest_a, rest_b = rest_a[:-1], rest_b[:-1]
    letters = all(c.isalpha() for c in rest_a + rest_b)
    swapped = len(rest_a) == 2 and rest_a == rest_b[::-1]
    return start > 0 and letters and (swapped or max(len(rest_a), len(rest_b)) == 1)
