"""Columns of words: categories, text, names of rows; and what every reading of a column tells."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Ints
from trimlearn.tables.cells import Cells, says_missing
from trimlearn.tables.numbers import Decimal
from trimlearn.tables.table import Kind

MOST_CATEGORIES = 255  # as many as scikit-learn's histogram boosting takes; beyond, words are text
PER_CATEGORY = 2  # rows that a category has on average: otherwise the words name rows
NAMED_ROWS = 0.95  # of the cells must differ for words to name the rows: a few rows may be there twice
LONGEST_NAME = 60  # letters of a typical name; longer ones are sentences
STROKES = frozenset(("-", "--", "---", "—", "–", ".", "..", "...", "…"))  # instead of a value
YES_NO = [{"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"}, {"on", "off"}]
ID_HEADING = re.compile(
    r"(?i:id|index|idx|nr|no\.?|#|row|row ?names?|row.?id|obs|observation|case|key|uuid|guid|.*[_\s.-]id|id[_\s.-].*)|"
    r".*[a-z](Id|ID)"
)


@final
@dataclass
class Reading:
    """What a column was read as. ``words``: what counted as missing, and how often, empty cells apart."""

    kind: Kind
    values: Any
    how: str
    missing: int
    unreadable: tuple[int, ...] = ()
    words: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    doubt: str = ""  # what other columns may settle
    proved: Decimal | None = None
    day_first: bool | None = None
    names_rows: float = 0.0  # how well it names them: the best column becomes the id


def nothing(cells: Cells, missing: list[bool] | None = None) -> Reading:
    return Reading(
        "empty", np.full(cells.rows, None, dtype=object), "no values", cells.rows, words=count_cells(cells, missing)
    )


def count_cells(cells: Cells, missing: list[bool] | None = None) -> Counter[str]:
    flags = [says_missing(word) for word in cells.words] if missing is None else missing
    found = zip(cells.words, cells.counts.tolist(), flags, strict=True)
    return Counter({word: count for word, count, flag in found if flag and word})


def read_words(cells: Cells, heading: str, forced: Kind | None, how: str = "") -> Reading:
    """Categories, text, names of rows, or always the same."""
    missing = _missing_words(cells.words)
    by_word: NDArray[Any] = np.array(
        [None if gone else word for word, gone in zip(cells.words, missing, strict=True)], dtype=object
    )
    known = int(cells.counts[~np.array(missing)].sum()) if cells.words else 0
    different = missing.count(False)
    if not different:
        return nothing(cells, missing)
    found = Reading("text", by_word[cells.codes], how, cells.rows - known, words=count_cells(cells, missing))
    if forced is not None:
        found.kind, found.names_rows = forced, float(forced == "id")
        found.how = how or ("names the rows" if forced == "id" else f"{different:,} different values")
    elif different == 1:
        found.kind, found.how = "constant", "always the same"
    elif spelt := _yes_no(by_word, cells.counts):
        found.kind, found.how, found.values = "category", "yes or no", np.array([*map(spelt.get, by_word)])[cells.codes]
    elif different <= min(MOST_CATEGORIES, known / PER_CATEGORY):
        found.kind = "category"
        found.how = how or f"{different} different values"
        found.notes += _alike(by_word)
    elif different >= NAMED_ROWS * cells.rows and _typical_length(by_word) <= LONGEST_NAME:
        found.kind, found.names_rows = "id", _names_rows(heading, different == cells.rows)
        found.how = "all different" if different == known else "nearly all different"
    else:
        found.how = how or f"{different:,} different values"
    if forced is None and 1 < different == known < cells.rows / 2 and not missing[int(cells.codes[0])]:
        found.notes.append('each value stands once, above empty cells: if these mean "as above", fill them down first')
    return found


def _missing_words(words: list[str]) -> list[bool]:
    """Which words say that there is no value; "None" and "-" only where enough other values are left."""
    missing = [says_missing(word) for word in words]
    if all(gone or word in STROKES for word, gone in zip(words, missing, strict=True)):
        return [True] * len(words)
    if missing.count(False) == 1 and "None" in words:  # "None" and one other: yes or no
        missing[words.index("None")] = False
    others = missing.count(False) - sum(word in STROKES for word in words)
    if others >= 2 and "+" not in words:
        missing = [flag or word in STROKES for flag, word in zip(missing, words, strict=True)]
    return missing


def _yes_no(words: NDArray[Any], counts: Ints) -> dict[str | None, str | None]:
    """How yes and no are spelt most often, for each spelling; {} where a column holds anything else."""
    known = [word for word in words.tolist() if word is not None]
    if {word.lower() for word in known} not in YES_NO:
        return {}
    usual: dict[str, tuple[int, str]] = {}
    for count, word in zip(counts.tolist(), words.tolist(), strict=True):
        if word is not None and count > usual.get(word.lower(), (0, ""))[0]:
            usual[word.lower()] = (count, word)
    return {None: None} | {word: usual[word.lower()][1] for word in known}


def _alike(words: NDArray[Any]) -> list[str]:
    """A note where categories differ in capitals only."""
    spelt: dict[str, list[str]] = {}
    for word in words.tolist():
        if word is not None:
            spelt.setdefault(word.lower(), []).append(word)
    twice = [f'"{same[0]}" and "{same[1]}"' for same in spelt.values() if len(same) > 1]
    return [f"{twice[0]} differ in capitals only, and count as two values"] if twice else []


def _typical_length(words: NDArray[Any]) -> float:
    return float(np.median([len(word) for word in words[:1000].tolist() if word is not None]))


def _names_rows(heading: str, unique: bool) -> float:
    """How well words name rows: the best are all different, under a heading that says so."""
    told = heading == "Unnamed: 0" or bool(ID_HEADING.fullmatch(heading)) or "name" in heading.lower()
    return 2.0 + 2.0 * unique + told
