"""Why a row is suspect, in sentences that are understood at the end of a long day."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.text import and_list
from trimlearn.checks.errors import FACTORS, MISSING, SWAPPED
from trimlearn.checks.findings import DuplicateRows, TargetFindings
from trimlearn.checks.names import Names, clip

if TYPE_CHECKING:
    from trimlearn.checks.parts import Parts
    from trimlearn.checks.suspects import Suspect

PLACE = "in the place of "
SPELLING = ("misspelt", "blanks or capitals")
WORDS = {
    "sign": "the sign is wrong",
    SWAPPED: "two digits are swapped",
    MISSING: "it seems to stand for no value",
    "day and month swapped": "day and month are swapped",
    "misspelt": "it seems misspelt",
    "blanks or capitals": "only blanks or capitals differ",
}
NAMED = 3  # cells, columns or rows that one sentence names
NEAR = 1.25  # a value and what is expected: half the distance, in logarithms, to the next factor that people say


@final
class Reasons:
    """The reasons for the suspects of one check."""

    def __init__(self, parts: Parts, names: Names) -> None:
        self.parts = parts
        self.names = names
        self.rows = "rows" if parts.seen is None else "images"

    def why(self, suspect: Suspect) -> str:
        """All reasons for one suspect, in the order of its kinds."""
        sentences: list[str] = []
        for kind in suspect.kinds:
            if kind == "target":
                sentences += self._target(suspect.row)
            elif kind == "cell":
                sentences += self._cells(suspect)
            elif kind == "row":
                sentences += self._odd(suspect)
            else:
                sentences += [self._twins(suspect.row, group) for group in suspect.duplicates[:1]]
        return " ".join(sentences)

    def _target(self, row: int) -> list[str]:
        judged = self.parts.target
        if judged is None:
            return []
        given, expected = self.names.written(row, judged.name), judged.suggested[row]
        suggested = self.names.value(expected, judged.name)
        if judged.task == "classification":
            what = f"{judged.name} is {clip(given)}; {self.rows} like it are {clip(suggested)}."
            if not judged.flagged[row]:
                what = f"{judged.name} is {clip(given)}, but may be {clip(suggested)}."
            if given == suggested:
                what = f"{judged.name} is {clip(given)}, which is doubtful, but no other label fits better."
        else:
            value = float(self.parts.table.frame[judged.name].iat[row])
            error = _times(value, float(expected)) if self._is_far_from_zero(float(expected)) else ""
            slip = f": {error}" if error else ""
            what = f"{judged.name} is {clip(given)}; {self.rows} like it have about {suggested}{slip}."
        return [what, opinion(judged, row)]

    def _is_far_from_zero(self, expected: float) -> bool:
        """Whether a multiple of what is expected says more than a difference: around 0 any factor comes about."""
        low, high = self._middle_half
        return bool(abs(expected) > (high - low) / 2 or low > 0 or high < 0)

    @cached_property
    def _middle_half(self) -> tuple[float, float]:
        """The quartiles of the target: found once, as suspects can be thousands."""
        x = self.parts.table.frame[self.parts.target.name].to_numpy(dtype=float) if self.parts.target else np.zeros(1)
        low, high = np.nanpercentile(x, [25, 75])
        return float(low), float(high)

    def _cells(self, suspect: Suspect) -> list[str]:
        sentences = []
        for cell in suspect.cells[:NAMED]:
            given = clip(self.names.written(cell.row, cell.column))
            error = f": {error_words(cell.error)}" if cell.error else ""
            expected = self.names.expected(cell)
            rest = "most rows have" if cell.error in SPELLING else self._expectation
            sentences.append(f"{cell.column} is {given}; {rest} {expected}{error}.")
        if (more := len(suspect.cells) - NAMED) > 0:
            sentences.append(f"{more} more {'cell looks' if more == 1 else 'cells look'} wrong.")
        return sentences

    @property
    def _expectation(self) -> str:
        """By what a number was judged: where there is one column of numbers, by the others in it."""
        table, target = self.parts.table, self.parts.target
        judged = [name for name in table.of_kind("number", "date") if target is None or name != target.name]
        return "the rest of the row suggests about" if len(judged) > 1 else "the others are about"

    def _odd(self, suspect: Suspect) -> list[str]:
        columns = suspect.odd.columns if suspect.odd is not None else ()
        most = f", most of all in {and_list(columns[:NAMED])}" if columns else ""
        if suspect.cells:
            return [f"Without that, too, the row is unlike all others{most}."]
        if len(columns) == 1:
            return [f"The row is unlike all others in {columns[0]} alone: see whether that is wrong."]
        return [f"As a whole the row is unlike all others{most}; no single cell is to blame."]

    def _twins(self, row: int, group: DuplicateRows) -> str:
        others = [twin for twin in group.rows if twin != row]
        twins = and_list([self.names.place(twin) for twin in others[:NAMED]], more=len(others) - NAMED, what="rows")
        if self.names.share_only_an_id(group):
            return f"It has the same {self.names.id_column} as {twins}, though they have little else in common."
        if group.kind == "exact":
            return f"It is the same as {twins}."
        columns = and_list(group.differs[:NAMED], more=len(group.differs) - NAMED, what="columns")
        verb = "differs" if len(group.differs) == 1 else "differ"
        if group.kind == "near":
            return f"It is nearly the same as {twins}{f'; only {columns} {verb}' if columns else ''}."
        judged = self.parts.target
        column = judged.name if judged is not None else next(iter(group.differs), "")
        here, there = (clip(self.names.written(twin, column)) for twin in (row, others[0]))
        return f"It is the same as {twins} but for {column}: {here} here, {there} there."


def error_words(error: str) -> str:
    """The name of an error, such that it can end a sentence."""
    if error.startswith(PLACE):
        return f"it seems to be exchanged with {error.removeprefix(PLACE)}"
    return WORDS.get(error, error)


def opinion(judged: TargetFindings, row: int) -> str:
    """Which of the two models doubt a target."""
    linear, boosting = bool(judged.by_linear[row]), bool(judged.by_boosting[row])
    if linear and boosting:
        return "Both models say so."
    if linear or boosting:
        return f"Only the {'linear' if linear else 'boosting'} model says so."
    return "Neither model is sure alone."


def _times(value: float, expected: float) -> str:
    """The slip of the pen that leads from what is expected to the value, if it is a common one.

    >>> _times(470.0, 46.0), _times(60.0, 46.0)
    ('10 times too large', '')
    """
    if not (isfinite(value) and isfinite(expected)) or expected == 0:
        return ""
    for name, factor in FACTORS.items():
        if 1 / NEAR < value / factor / expected < NEAR:
            return error_words(name)
    return ""
