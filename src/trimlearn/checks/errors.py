"""The errors that people make when they write numbers down, and what a number was before one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.checks.findings import WrongCell

# What a value was multiplied by, and what that is called. A slip of the comma, or grams for kilograms.
FACTORS = {
    "10 times too large": 10.0,
    "100 times too large": 100.0,
    "1000 times too large": 1000.0,
    "10 times too small": 0.1,
    "100 times too small": 0.01,
    "1000 times too small": 0.001,
    "sign": -1.0,
}
SWAPPED = "digits swapped"
MISSING = "stands for missing"
MONTH = "day and month swapped"
EXCHANGED = "in the place of another"
BREAKS = "in other rows it is "  # what a rule says: "qty × price"
RULES = (*FACTORS, SWAPPED, MONTH, EXCHANGED)
DIGITS = 9  # of a number that may be swapped: beyond, floats have rounding errors among them
STEPS = tuple(float(f"{m}e{k}") for k in range(5, -5, -1) for m in (5, 2, 1))  # 500,000 to 0.0001: people round so
DECIMALS = 4  # of a column that are looked for: measured values have no more
MOST = 0.9  # of the values of a column: of the others, some are wrong
SHARED = 1 / 3  # of the wrong cells of a column: if more than a third came about in one way, that is typical
TWICE = 2  # cells: an error made once is no habit
# How often a value must occur in a column of measurements to be there for a reason: so many times, and this share.
AGAIN, OFTEN = 3, 0.05
FEW_NEGATIVE = 0.02  # of the values of a column: fewer are errors of sign
UNUSUAL = 0.003  # how likely a right value is to have more decimals than the others, where nothing is known of it
SOME = 20_000  # values that tell how a column is written: more change nothing
WRITTEN = 1e-9  # relative: closer numbers are the same but for rounding


@final
@dataclass(frozen=True)
class Writing:
    """How the right values of a column are written: as multiples of ``step``, a few apart; or as they come, for None.

    ``repeated`` and ``counts``: the values that occur again and again, in order, and how often. ``negative``: whether
    negative values are ordinary. ``date``: whether they are days since 1970.
    """

    step: float | None
    repeated: Floats
    counts: Floats
    negative: bool
    date: bool = False

    @classmethod
    def of(cls, x: Floats, date: bool = False) -> Writing:
        """Of the known values x of a column, some of them wrong.

        >>> Writing.of(np.array([1.5, 2.25, 3.01] * 10)).step, Writing.of(np.sqrt(np.arange(2.0, 9.0))).step
        (0.01, None)
        """
        x = x[:: max(1, len(x) // SOME)]
        some = x[x != 0]
        step = next((step for step in STEPS if len(some) and _mostly_on_grid(some, step)), None)
        values, counts = np.unique(x, return_counts=True)
        again = counts >= max(AGAIN, OFTEN * len(x))
        return cls(step, values[again], counts[again].astype(np.float64), bool(np.mean(x < 0) > FEW_NEGATIVE), date)

    @property
    def decimals(self) -> int | None:
        """How many there are; None where they are as they come."""
        return None if self.step is None else max(0, -int(np.floor(np.log10(self.step))))

    def usual(self, x: Floats) -> Flags:
        """Whether values are multiples of the step, as the others are."""
        return np.ones(x.shape, dtype=bool) if self.step is None else _on_grid(x, self.step)

    def count(self, x: Floats) -> Floats:
        """How often values occur, 1 where that is less than AGAIN times."""
        if not len(self.repeated):
            return np.ones(x.shape)
        at = np.clip(np.searchsorted(self.repeated, x - WRITTEN * np.abs(x)), 0, len(self.repeated) - 1)
        same = np.abs(self.repeated[at] - x) <= 2 * WRITTEN * np.abs(x)
        return np.where(same, self.counts[at], 1.0)

    def reveals(self, x: Floats) -> Flags:
        """Whether a value looks wrong by the way it is written: more decimals than others, or a slip of the comma away
        from a value that occurs again and again."""
        if self.step is not None or self.date:
            return ~self.usual(x)
        if not len(self.repeated):
            return np.zeros(x.shape, dtype=bool)
        near = np.max([self.count(x / factor) for factor in FACTORS.values()], axis=0)
        return np.asarray((near > 1) & (self.count(x) <= 1) & (x != 0))


def _mostly_on_grid(x: Floats, step: float) -> bool:
    """Whether MOST of the values are multiples. Where a third of them say no, the others are not asked."""
    first = _on_grid(x[: len(x) // 3], step)
    if np.count_nonzero(~first) > (1.0 - MOST) * len(x) + 1:
        return False
    return bool(np.mean(_on_grid(x, step)) >= MOST)


def _on_grid(x: Floats, step: float) -> Flags:
    scaled = x / step
    return np.asarray(np.abs(scaled - np.rint(scaled)) <= WRITTEN * np.maximum(np.abs(scaled), 1.0))


@final
@dataclass(frozen=True)
class ErrorOrigins:
    """What values were before an error. ``truths`` and ``weights``: (candidates, n); ``rules``: a rule per candidate.

    A weight is the probability of the written value given the truth, beside how much likelier one value is than its
    neighbours: on a grid of decimals, all values that are on it count the same, and those that are not hardly; off
    any grid it is |d truth/d written|, and values that occur again and again count as often as they do.
    """

    rules: tuple[int, ...]
    truths: Floats
    weights: Floats


def origins(x: Floats, writing: Writing, expected: Floats, sigma: Floats) -> ErrorOrigins:
    """What each of the values x, finite ones, may have been.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values of a column.
    writing : Writing
        How its right values are written.
    expected, sigma : ndarray of shape (n,)
        What the others in the row expect, and how well: it fills in decimals that were lost.

    Returns
    -------
    ErrorOrigins
        One candidate for each factor and each place at which two digits may have been swapped.

    Examples
    --------
    >>> x = np.array([120.0])
    >>> found = origins(x, Writing.of(np.arange(100.0, 300.0)), np.array([205.0]), np.array([9.0]))
    >>> [(RULES[rule], float(t)) for rule, t, w in zip(found.rules, found.truths[:, 0], found.weights[:, 0]) if w][-3:]
    [('digits swapped', 102.0), ('digits swapped', 210.0), ('digits swapped', 1020.0)]
    """
    if writing.date:
        truth = _other_month(x)
        return ErrorOrigins((RULES.index(MONTH),), truth[None], np.where(truth != x, 1.0, 0.0)[None])
    found = [
        (rule, x / factor, np.where(x != 0, _beside(x / factor, x, writing, abs(factor)), 0.0))
        for rule, factor in enumerate(FACTORS.values())
    ]
    found += [(len(FACTORS), truth, weight) for truth, weight in _swaps(x, writing, expected, sigma)]
    rules, truths, weights = zip(*found, strict=True)
    return ErrorOrigins(rules, np.array(truths), np.array(weights))


def _other_month(x: Floats) -> Floats:
    """Days since 1970 with day and month exchanged, the same day where there is no such date."""
    days = x.astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    day, month = (days - months).astype(np.int64) + 1, months.astype(np.int64) % 12 + 1
    other = (months - (month - 1) + (day - 1)).astype("datetime64[D]") + (month - 1)
    return np.where((day <= 12) & (day != month), other.astype(np.float64), x)


def _beside(truth: Floats, x: Floats, writing: Writing, factor: float) -> Floats:
    """How likely the truth is to be written beside x, one of neighbours each, if that is a multiple of it."""
    if writing.step is not None:
        return np.where(writing.usual(truth), 1.0, UNUSUAL)
    return writing.count(truth) / (factor * writing.count(x))


def _swaps(x: Floats, writing: Writing, expected: Floats, sigma: Floats) -> Iterable[tuple[Floats, Floats]]:
    """Each swap of two neighbouring digits; also of whole parts that lost their decimals, or their minus."""
    decimals = DECIMALS if writing.decimals is None else writing.decimals
    unit = 10.0**decimals
    whole = np.rint(np.abs(x) * unit)
    usable = (whole > 0) & (whole < 10.0**DIGITS) & _on_grid(x, 1.0 / unit)
    digits = np.where(usable, whole, 0.0).astype(np.int64)
    length = np.floor(np.log10(np.maximum(digits, 1))).astype(np.int64) + 1
    lost = (digits % 10**decimals == 0) & (decimals > 0)
    for k in range(int(length.max(initial=1))):
        low, high = digits // 10**k % 10, digits // 10 ** (k + 1) % 10
        there = usable & (low != high) & (k < length)
        other = digits + (high - low) * (10**k - 10 ** (k + 1))
        there &= (other * 10 != digits) & (digits * 10 != other)  # which a slip of the comma explains
        swapped = other / unit
        weight = there / np.maximum(length - (k < length - 1), 1) * np.where(writing.usual(swapped), 1.0, UNUSUAL)
        whole_part = lost & (k >= decimals)
        most = np.where(whole_part, swapped + 1.0 - 1.0 / unit, swapped)
        weight = np.where(whole_part, weight * unit * np.minimum(1.0, sigma), weight)
        yield np.sign(x) * np.clip(np.sign(x) * expected, swapped, most), weight
        if writing.negative:  # a minus may be lost; nobody adds one
            yield -np.clip(-expected, swapped, most), np.where(x > 0, weight, 0.0)


def typical_errors(cells: Iterable[WrongCell]) -> dict[str, str]:
    """Of each column with wrong cells the error that more than a third of them share, "" where there is none.

    >>> cells = [WrongCell(k, "price", 10.0, 1.0, 9.0, 1.0, "10 times too large") for k in range(3)]
    >>> typical_errors(cells)
    {'price': '10 times too large'}
    """
    errors: dict[str, list[str]] = {}
    for cell in cells:
        errors.setdefault(cell.column, []).append(cell.error)
    found = {}
    for column, named in errors.items():
        error, count = Counter(named).most_common(1)[0]
        found[column] = error if count >= TWICE and count > SHARED * len(named) else ""
    return found
