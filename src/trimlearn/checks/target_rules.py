"""Whether a target follows from other columns exactly: an amount that is quantity times price, or a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from operator import itemgetter
from typing import final

import numpy as np

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn._utils.text import and_list
from trimlearn.checks.findings import TargetFindings

HOLDS = 0.8  # of the rows in which all numbers are known: a rule that a fifth break is no rule of this table
SELDOM = 0.05  # of the rows: where more break it, a discount may be the reason, and the models judge them
FINE = 20  # units between the quartiles of a target: the same coarse number comes about without a rule
FEWEST = 20  # rows in which it holds: sums of few small numbers come out right by chance
COLUMNS = 25  # that are tried in pairs, a limit on time: 300 pairs, five rules of each
FIRST = 200  # rows that are tried first: most rules break there
ROUNDED = 0.51  # units of the last digit of the target: rounding, and what binary numbers add to it
EXACTLY = 1e-9  # of the value: as far as the sum of a few binary numbers is known
# The probability that a target is wrong which breaks the rule: one of its numbers may be, and was believed
BROKEN = 0.95
FAR, NEAR = 10.0, 1.0  # scores of targets that break a rule, at least, and that keep it, at most: sizes of errors
TELLS = 0.98  # of the rows: a column from which as many labels can be read off is as good as a copy of them
FIRST_VALUES = 1_000  # that are looked at first, to save time: most columns have too many different ones among them
LEVELS = 3  # times as many values as there are classes, at most: with more they say less than a copy does
TWO: dict[str, Callable[[Floats, Floats], Floats]] = {"+": np.add, "−": np.subtract, "×": np.multiply, "/": np.divide}
LEARNT = 1_000  # that factors are learnt from, a limit on time; all rows are compared with what comes out
PER_COLUMN = 4  # rows for each factor: with fewer, factors that hold in most rows may be found for anything
LACKING = 0.2  # of the cells of a column: one that lacks more is part of no rule
STEPS = 30  # of weighted least squares: each makes the sum of absolute errors smaller, 10 to 20 settle it
CLOSE = 3.0  # units of the last digit: rows this near to what is learnt have the last say on the factors
DECIMALS = 4  # of a factor that people write: 0.0254 metres are an inch
AWAY, HIGH = 3.0, 0.9  # times that quantile of the deviations from the median: numbers further off may be wrong
SMALL = 1e-12  # beside the largest singular value: less is rounding
DIGITS = 6  # decimals that a target is looked at for: beyond, numbers are not written by hand


@final
@dataclass(frozen=True)
class Rule:
    """What a target is said to be, its value in each row, and where it holds.

    Parameters
    ----------
    words : str
        "qty × price".
    value : ndarray
        NaN where a number is missing.
    holds : ndarray of bool
        Where the target is that, but for rounding.
    copy : bool
        Whether it is another column as it stands.
    """

    words: str
    value: Floats
    holds: Flags
    copy: bool = False

    @property
    def known(self) -> Flags:
        """Where it says anything."""
        return np.isfinite(self.value)

    @property
    def broken(self) -> Flags:
        """Where the target is something else."""
        return self.known & ~self.holds

    @property
    def accuses(self) -> bool:
        """Whether those that break it are wrong: few are, and it is more than a copy, which may differ for a reason."""
        share = float(np.mean(self.broken[self.known]))
        return 0 < share <= SELDOM and not self.copy

    def told(self, target: str) -> str:
        """One sentence for the reader."""
        held, known = int(self.holds.sum()), int(self.known.sum())
        rows = f"all {known:,} rows" if held == known else f"{held:,} of {known:,} rows"
        if self.accuses:
            return f"{target} is {self.words} in {rows}: where it is not, it is taken for wrong."
        return (
            f"{target} is {self.words} in {rows}, which are taken for right. If that was made from {target}, leave it "
            "out and check again (--drop)."
        )


def find_rule(y: Floats, columns: dict[str, Floats]) -> Rule | None:
    """The rule that most targets follow, if at least four of five do.

    A copy; a sum, difference, product or ratio of two columns; or a sum of multiples of several.

    >>> rng = np.random.default_rng(0)
    >>> q, p = rng.integers(1, 20, 50).astype(float), rng.uniform(1, 9, 50).round(2)
    >>> amount = (q * p).round(2)
    >>> amount[7] *= 10
    >>> rule = find_rule(amount, {"qty": q, "price": p})
    >>> rule.words, np.flatnonzero(rule.broken).tolist()
    ('qty × price', [7])
    """
    there = np.isfinite(y)
    if not there.any() or np.ptp(y[there]) == 0:
        return None
    unit = _unit(y[there])
    if np.subtract(*np.quantile(y[there], [0.75, 0.25])) < FINE * unit:
        return None
    best: Rule | None = None
    first = {name: x[:FIRST] for name, x in columns.items()}
    for words, make in _makers(columns):
        with np.errstate(all="ignore"):  # a ratio with nothing below it is no number, and so is one of huge numbers
            some = make(first)
            told = there[:FIRST] & np.isfinite(some)
            if _holds(y[:FIRST], some, unit).sum() < HOLDS / 2 * told.sum():
                continue
            made = make(columns)
        value = np.where(there & np.isfinite(made), made, np.nan)
        rule = Rule(words, value, _holds(y, value, unit), words in columns)
        if _enough(rule) and (best is None or rule.holds.sum() > best.holds.sum()):
            best = rule
    return best or _weighted_sum(np.where(there, y, np.nan), columns, unit)


def _enough(rule: Rule) -> bool:
    return bool(rule.holds.sum() >= max(FEWEST, HOLDS * rule.known.sum()))


def _weighted_sum(y: Floats, columns: dict[str, Floats], unit: float) -> Rule | None:
    """A sum of multiples of columns, total = 2 a + b or 1.8 °C + 32, if the target is one.

    None where no factors with few decimals hold in most rows.

    >>> a, b = np.random.default_rng(0).integers(1, 50, (2, 80)).astype(float)
    >>> _weighted_sum(2 * a + b, {"a": a, "b": b}, 1.0).words
    '2 × a + b'
    """
    names = [name for name, x in columns.items() if np.mean(~np.isfinite(x)) <= LACKING][:COLUMNS]
    if not names or not unit > 0:
        return None
    X = np.column_stack([*(columns[name] for name in names), np.ones(len(y))])
    known = np.flatnonzero(np.isfinite(X).all(axis=1) & np.isfinite(y))
    if len(known) < PER_COLUMN * X.shape[1]:
        return None
    rows = known[:: max(1, len(known) // LEARNT)]
    rows = rows[_ordinary(X[rows])]
    factors = _factors(X[rows], y[rows], unit)
    for decimals in range(DECIMALS + 1):
        rounded = np.round(factors, decimals)
        if not rounded[:-1].any():
            continue
        made = np.asarray(X[:, rounded != 0] @ rounded[rounded != 0])
        if _holds(y, made, unit).sum() >= HOLDS * np.isfinite(made).sum():
            value = np.where(np.isfinite(y) & np.isfinite(made), made, np.nan)
            rule = Rule(_sum_words(names, rounded), value, _holds(y, value, unit))
            return rule if _enough(rule) else None
    return None


def _ordinary(X: Floats) -> Flags:
    """The rows without numbers far from all others: one of them pulls factors as a hundred do."""
    away = np.abs(X - np.median(X, axis=0))
    return np.asarray((away <= AWAY * np.maximum(np.quantile(away, HIGH, axis=0), 1e-300)).all(axis=1))


def _factors(X: Floats, y: Floats, unit: float) -> Floats:
    """Those of the least absolute errors, by weighted least squares; then of the rows that they explain."""
    scale = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)
    X = X / scale
    weights = np.ones(len(y))
    for _ in range(STEPS):
        root = np.sqrt(weights)
        beta = np.linalg.lstsq(X * root[:, None], y * root, rcond=SMALL)[0]
        weights = 1.0 / np.maximum(np.abs(y - X @ beta), unit)
    near = np.abs(y - X @ beta) <= CLOSE * unit
    if np.count_nonzero(near) >= PER_COLUMN * X.shape[1]:
        beta = np.linalg.lstsq(X[near], y[near], rcond=SMALL)[0]
    return np.asarray(beta / scale)


def _sum_words(names: list[str], factors: Floats) -> str:
    """2 × a + b − 32."""
    said = ""
    for name, factor in zip([*names, ""], factors.tolist(), strict=True):
        if factor:
            size = f"{abs(factor):.10g}"
            term = size if not name else name if size == "1" else f"{size} × {name}"
            sign = " − " if factor < 0 else " + "
            said += (sign if said else sign.strip().replace("+", "")) + term
    return said


def follow_rule(found: TargetFindings, y: Floats, rule: Rule, settled: Flags) -> TargetFindings:
    """The findings with those targets wrong that break a rule, and those right that keep it; one entry per row.

    settled: rows of which a person has said what they are.
    """
    broken = rule.broken & ~settled if rule.accuses else np.zeros(len(y), dtype=bool)
    kept = rule.holds & ~settled
    probability = np.where(broken, BROKEN, np.where(kept, 0.0, found.probability))
    score = np.where(broken, np.fmax(found.score, FAR), np.where(kept, np.fmin(found.score, NEAR), found.score))
    flagged = (found.flagged | broken) & ~kept
    return replace(
        found,
        probability=probability,
        flagged=flagged,
        score=score,
        suggested=np.where(rule.holds | broken, rule.value, found.suggested.astype(np.float64)),
        contamination=float(np.mean(flagged[np.isfinite(y)])),
        caveats=(rule.told(found.name), *found.caveats),
    )


def _makers(columns: dict[str, Floats]) -> Iterator[tuple[str, Callable[[dict[str, Floats]], Floats]]]:
    """What a target may be, in words, and how it is made from the columns."""
    for name in columns:
        yield name, itemgetter(name)
    if len(columns) > 2:
        yield "the sum of all other numbers", lambda columns: np.asarray(np.sum(list(columns.values()), axis=0))
    for a, b in combinations(list(columns)[:COLUMNS], 2):
        for sign, how in TWO.items():
            yield f"{a} {sign} {b}", partial(_two, how, a, b)
            if sign in "−/":
                yield f"{b} {sign} {a}", partial(_two, how, b, a)


def _two(how: Callable[[Floats, Floats], Floats], a: str, b: str, columns: dict[str, Floats]) -> Floats:
    return how(columns[a], columns[b])


def _holds(y: Floats, value: Floats, unit: float) -> Flags:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(y - value) <= ROUNDED * unit + EXACTLY * np.abs(y))


def _unit(y: Floats) -> float:
    """Of the last decimal that most targets are written with; 0 where there are too many."""
    for decimals in range(DIGITS + 1):
        if np.mean(np.abs(y - np.round(y, decimals)) <= EXACTLY * np.maximum(np.abs(y), 1.0)) >= HOLDS:
            return float(10.0**-decimals) if decimals else 1.0
    return 0.0


def say_copies(labels: Array, columns: dict[str, Array], target: str) -> list[str]:
    """A sentence on columns from which the labels can be read off.

    >>> say_copies(np.array([0, 1, 1, 0]), {"code": np.array(["a", "b", "b", "a"], dtype=object)}, "colour")[0][:44]
    'code tells colour in nearly all rows: if it '
    """
    found = [name for name, values in columns.items() if _reads_off(labels, values)]
    if not found:
        return []
    tell, if_it_is, it = ("tells", "it is a copy", "it") if len(found) == 1 else ("tell", "they are copies", "them")
    return [
        f"{and_list(found)} {tell} {target} in nearly all rows: if {if_it_is} of it, or known only after it, leave "
        f"{it} out and check again (--drop)."
    ]


def _reads_off(labels: Array, values: Array) -> bool:
    most = LEVELS * (int(labels.max()) + 1)
    if len(_levels(values[:FIRST_VALUES])[1]) > most:
        return False
    codes, levels = _levels(values)
    known = codes >= 0
    if len(levels) > most or len(levels) < 2:
        return False
    table = np.zeros((len(levels), int(labels.max()) + 1))
    np.add.at(table, (codes[known], labels[known]), 1.0)
    return bool(table.max(axis=1).sum() >= TELLS * known.sum() and len(set(table.argmax(axis=1))) == table.shape[1])


def _levels(values: Array) -> tuple[Array, Array]:
    """Which of the different words each value is, −1 where it is missing; and these words."""
    import pandas as pd

    codes, different = pd.factorize(values)
    words, place = np.unique(np.asarray(different, dtype=object).astype(str), return_inverse=True)
    return np.append(place, -1)[codes], words
