"""trust, labels: the figures of many draws, by table and by condition, and what they have to reach."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from benchmarks.common import NOTHING, Table, Target
from benchmarks.trust_data import CLEAN, NOISES, Noise

__all__ = ["BINS", "Draw", "Figures", "figures", "tables", "targets"]

NOISY = NOISES[1:]
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Draw:
    """What was found on one draw. Shares in per cent; findable: wrong rows found by cutting our own scores where a
    tenth of those above is innocent, by the truth; nan: nothing is wrong, or no such figure."""

    table: str
    noise: Noise
    wrong: float
    estimate: float
    accuracy: float
    accuracy_plain: float
    accuracy_oracle: float
    log_loss: float
    log_loss_plain: float
    auroc: float
    auroc_plain: float
    listed: int
    innocents: float
    found: int
    findable: int
    rows_given: np.ndarray  # rows by the probability of being wrong that they were given, a figure for each of `BINS`
    wrong_given: np.ndarray  # those of them that are wrong
    warned: bool
    seconds: float


@dataclass(frozen=True)
class Figures:
    """Means over the draws of one table; ratios are ratios of means. Per cent and points."""

    wrong: float
    estimate: float
    error: float  # |estimate − wrong|
    gain: float  # accuracy − plain's
    way: float  # oracle's accuracy − plain's
    log_loss: float  # / plain's
    auroc: float
    auroc_gain: float  # − plain's
    misranked: float  # 1 − AUROC, / plain's
    empty: float  # per cent of draws in which nothing is listed
    innocents: float
    found: float  # / findable, 1 at most: a list that is too long does not pay
    warned: float
    seconds: float


def figures(draws: Sequence[Draw]) -> Figures:
    """Of draws of one table."""

    def mean(figure: Callable[[Draw], float]) -> float:
        return float(np.mean([figure(each) for each in draws]))

    auroc, auroc_plain = mean(lambda each: each.auroc), mean(lambda each: each.auroc_plain)
    findable = mean(lambda each: each.findable)
    return Figures(
        wrong=mean(lambda each: each.wrong),
        estimate=mean(lambda each: each.estimate),
        error=mean(lambda each: abs(each.estimate - each.wrong)),
        gain=mean(lambda each: each.accuracy - each.accuracy_plain),
        way=mean(lambda each: each.accuracy_oracle - each.accuracy_plain),
        log_loss=mean(lambda each: each.log_loss) / mean(lambda each: each.log_loss_plain),
        auroc=auroc,
        auroc_gain=auroc - auroc_plain,
        misranked=(1 - auroc) / (1 - auroc_plain) if auroc_plain < 1 else nan,
        empty=100 * mean(lambda each: each.listed == 0),
        innocents=mean(lambda each: each.innocents),
        found=min(1.0, mean(lambda each: each.found) / findable) if findable else nan,
        warned=100 * mean(lambda each: each.warned),
        seconds=mean(lambda each: each.seconds),
    )


def by_table(draws: Sequence[Draw], asked: Collection[Noise]) -> dict[str, Figures]:
    """The figures of every table over the conditions asked for; each condition has the same number of draws."""
    chosen = [each for each in draws if each.noise in asked]
    names = dict.fromkeys(each.table for each in chosen)
    return {name: figures([each for each in chosen if each.table == name]) for name in names}


# -- the verdicts ---------------------------------------------------------------------------------------------------


def targets(draws: Sequence[Draw]) -> list[Target]:
    """The table's figure is a mean over its draws; what is the worst is that of the worst table."""
    return [*_clean_targets(draws), *_noisy_targets(draws), *_ranking_targets(draws), *_list_targets(draws)]


def _values(found: dict[str, Figures], name: str) -> np.ndarray:
    return np.array([getattr(each, name) for each in found.values()])


def _mean(found: dict[str, Figures], name: str, sign: int = 1) -> float:
    """Over the tables for which there is such a figure."""
    values = sign * _values(found, name) + 0.0  # no −0
    return float(np.nanmean(values)) if not np.all(np.isnan(values)) else nan


def _worst(found: dict[str, Figures], name: str, sign: int = 1) -> float:
    """Of all tables; nan where one has no such figure."""
    return float(np.max(sign * _values(found, name) + 0.0)) if found else nan


def _cells(draws: Sequence[Draw], asked: Collection[Noise]) -> dict[str, Figures]:
    """As `by_table`, every condition by itself."""
    return {f"{name}, {noise}": found for noise in asked for name, found in by_table(draws, [noise]).items()}


def _of(*kinds: str) -> list[Noise]:
    return [noise for noise in NOISES if noise.kind in kinds]


def _clean_targets(draws: Sequence[Draw]) -> list[Target]:
    clean = by_table(draws, [CLEAN])
    at = "labels, none wrong"
    return [
        Target(f"{at}: accuracy below plain logistic regression's, points, mean", _mean(clean, "gain", -1), 0.3),
        Target(f"{at}: accuracy below plain logistic regression's, points, worst table", _worst(clean, "gain", -1), 1),
        Target(f"{at}: estimate, %, mean", _mean(clean, "estimate"), 1),
        Target(f"{at}: log loss / plain's, worst table", _worst(clean, "log_loss"), 1.05),
        Target(f"{at}: draws in which flag(fdr=0.1) is not empty, %", 100 - _mean(clean, "empty"), 10),
    ]


def _noisy_targets(draws: Sequence[Draw]) -> list[Target]:
    noisy, fifth = by_table(draws, NOISY), by_table(draws, [noise for noise in NOISES if noise.level == 0.2])
    cells, at = _cells(draws, NOISY), "labels, 10–30 % wrong"
    left = 1 - _mean(noisy, "gain") / _mean(noisy, "way")
    return [
        Target(f"{at}: estimate off by, points, mean", _mean(noisy, "error"), 4),
        Target(f"{at}: share left of the way from plain to clean labels' accuracy", left, 0.5),
        Target(f"{at}: accuracy below plain's, points, worst table", _worst(noisy, "gain", -1), 1),
        Target(f"{at}: the same, worst table and condition", _worst(cells, "gain", -1), 1, goal=True),
        Target("labels, 20 % wrong: log loss / plain's, mean", _mean(fifth, "log_loss"), 0.7),
        Target("labels, 20 % wrong: log loss / plain's, worst table", _worst(fifth, "log_loss"), 1.05),
    ]


def _ranking_targets(draws: Sequence[Draw]) -> list[Target]:
    noisy, pair = by_table(draws, NOISY), by_table(draws, _of("pair"))
    cells, below = _cells(draws, NOISY), "ranking: AUROC below that of out-of-fold 1 − p"
    return [
        Target(f"{below}, worst table", _worst(noisy, "auroc_gain", -1), 0.02),
        Target(f"{below}, worst table", _worst(noisy, "auroc_gain", -1), 0.01, goal=True),
        Target(f"{below}, worst table and condition", _worst(cells, "auroc_gain", -1), 0.02, goal=True),
        Target("ranking, pair noise: 1 − AUROC / that of 1 − p, mean", _mean(pair, "misranked"), 0.6),
    ]


def _list_targets(draws: Sequence[Draw]) -> list[Target]:
    listed = by_table(draws, _of("uniform", "pair"))
    at = "flag(fdr=0.1), 10–30 % wrong, uniform and pair"
    return [
        Target(f"{at}: innocents, share, mean", _mean(listed, "innocents") / 100, 0.1),
        Target(f"{at}: innocents, share, worst table", _worst(listed, "innocents") / 100, 0.2),
        Target(f"{at}: missed of what can be found at that share, mean", 1 - _mean(listed, "found"), 0.2),
    ]


# -- the tables -----------------------------------------------------------------------------------------------------

COLUMNS = {
    "wrong, %": "wrong",
    "estimate, %": "estimate",
    "off by": "error",
    "accuracy − plain's": "gain",
    "clean labels' − plain's": "way",
    "log loss / plain's": "log_loss",
    "AUROC": "auroc",
    "− that of 1 − p": "auroc_gain",
    "1 − AUROC / its": "misranked",
    "lists empty, %": "empty",
    "innocents, %": "innocents",
    "found / findable": "found",
    "warned, %": "warned",
    "seconds": "seconds",
}
WORST = {"gain": -1, "log_loss": 1, "auroc_gain": -1, "innocents": 1}  # and the sign of what is bad


def _row(figure: Callable[[str], float]) -> list[Any]:
    values = [figure(name) for name in COLUMNS.values()]
    return [NOTHING if np.isnan(value) else value for value in values]


def tables(draws: Sequence[Draw]) -> list[Table]:
    """The conditions, the probabilities, and every condition with a row for each table."""
    return [_by_condition(draws), _calibration(draws), *_by_condition_and_table(draws)]


def _by_condition(draws: Sequence[Draw]) -> Table:
    count = len({each.table for each in draws})
    table = Table(f"labels: means over the tables, of which there are {count}", ["noise", *COLUMNS])
    for noise in NOISES:
        found = by_table(draws, [noise])
        if found:
            table.rows.append([str(noise), *_row(lambda name, found=found: _mean(found, name))])
    return table


def _calibration(draws: Sequence[Draw]) -> Table:
    chosen = [each for each in draws if each.noise in _of("uniform", "pair")]
    rows, wrong = (np.sum([getattr(each, name) for each in chosen], axis=0) for name in ("rows_given", "wrong_given"))
    table = Table("outlier_probability_, uniform and pair noise", ["from", "to", "rows", "of them wrong, %"])
    for low, high, n, bad in zip(BINS[:-1], BINS[1:], rows, wrong, strict=True):
        table.rows.append([low, high, int(n), 100 * bad / n if n else NOTHING])
    return table


def _by_condition_and_table(draws: Sequence[Draw]) -> list[Table]:
    tables = []
    for noise in NOISES:
        found = by_table(draws, [noise])
        rows = [[name, *_row(lambda column, each=each: getattr(each, column))] for name, each in found.items()]
        if rows:
            tables.append(Table(f"labels, noise: {noise}", ["table", *COLUMNS], [*rows, _worst_row(found)]))
    return tables


def _worst_row(found: dict[str, Figures]) -> list[Any]:
    """The name of the table that is worst in each column that has a target for it."""
    names = list(found)
    row: list[Any] = ["worst"]
    for column in COLUMNS.values():
        values = WORST.get(column, 0) * _values(found, column)
        worst = column in WORST and not np.all(np.isnan(values))
        row.append(names[int(np.nanargmax(values))] if worst else NOTHING)
    return row
