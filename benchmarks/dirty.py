"""dirty: are the targets found that were made wrong in tables full of other errors?

Each table has 5 % of wild cells, a tenth of wrong labels, a tenth of wrong numbers, an amount with its currency, and a
date that says nothing. It is read, its cells are mended and its target is judged, nothing told. The rival is
scikit-learn's boosting, asked out of fold, on the table without wild cells: it has to find the wrong targets only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict

from benchmarks.common import Result, Table, Target, say
from benchmarks.dirty_tables import TABLES, Source, spoil
from trimlearn.checks.cells import find_cells
from trimlearn.checks.design import tree_design
from trimlearn.checks.findings import TargetFindings
from trimlearn.checks.target import judge_target
from trimlearn.tables.read import read_table

__all__ = ["FULL", "QUICK", "Plan", "run"]

EDGES = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
RECALL = {"label": 0.7, "number": 0.75}
ENOUGH = 40  # rows in a range of probabilities, from which on its share of wrong ones is known to 8 points
Found = tuple[np.ndarray, np.ndarray]  # probabilities, who is wrong


@dataclass(frozen=True)
class Plan:
    """Which tables, and how many draws of errors, a limit on time: nine minutes in all; of TopGear five."""

    tables: tuple[str, ...] = tuple(TABLES)
    seeds: int = 1


FULL, QUICK = Plan(), Plan(("people, 60",), 1)


def run(plan: Plan = FULL, data: Path | None = None) -> Result:
    """Tables × targets × draws of errors."""
    table = Table(
        "wrong targets: precision at 70 % (labels) and 75 % (numbers) of those there are, mean over draws",
        ["table", "target", "rows", "precision", "rival", "wrong flagged", "right flagged", "level found", "seconds"],
    )
    clean = Table("the same tables with right targets", ["table", "target", "flagged", "level found"])
    found: dict[str, list[Found]] = {"label": [], "number": []}
    for name in plan.tables:
        source = TABLES[name](data)
        if source is None:
            say(f"dirty: {name} is not here")
            continue
        for kind, target in (("label", source.label), ("number", source.number)):
            if target is None:
                continue
            say(f"dirty: {name}, {target}")
            parts = [_measure(source, target, kind, seed) for seed in range(5 if name == "TopGear" else plan.seeds)]
            found[kind] += [part[0] for part in parts]
            table.rows.append([name, target, len(parts[0][0][0]), *np.mean([part[1] for part in parts], axis=0)])
            clean.rows.append([name, target, *_alarm(source, target)])
    ranges = Table(
        "the probability that a target is wrong: rows, mean probability and share of wrong ones, all tables",
        ["target", "probability", "rows", "mean", "wrong"],
        [row for kind, parts in found.items() for row in _ranges(kind, parts)],
    )
    return Result(
        benchmark="dirty",
        settings={"tables": ", ".join(plan.tables), "seeds": plan.seeds},
        targets=_targets(table, clean, ranges),
        tables=[table, clean, ranges],
    )


def _measure(source: Source, target: str, kind: str, seed: int) -> tuple[Found, list[float]]:
    """Probabilities, and: precision, the rival's, wrong and right rows flagged, level, seconds."""
    spoilt = spoil(source, seed)
    findings, seconds = _judged(spoilt.frame, target)
    rows = np.flatnonzero(np.isfinite(findings.probability))
    wrong = np.isin(rows, spoilt.labels if kind == "label" else spoilt.numbers)
    p, flagged = findings.probability[rows], findings.flagged[rows]
    doubt = p + 1e-9 * np.clip(findings.score[rows], -1e3, 1e3)  # of equal probabilities the larger score first
    rival = _rival(source.frame, spoilt.frame[target], target, kind, rows)
    precision = [_precision(score, wrong, RECALL[kind]) for score in (doubt, rival)]
    shares = [float(flagged[wrong].mean()), float(flagged[~wrong].mean())]
    return (p, wrong), [*precision, *shares, findings.contamination, seconds]


def _judged(frame: pd.DataFrame, target: str) -> tuple[TargetFindings, float]:
    table = read_table(frame)
    mended = find_cells(table, exclude=(target,)).mended
    begin = process_time()
    return judge_target(table, mended, target), process_time() - begin


def _rival(frame: pd.DataFrame, targets: pd.Series, target: str, kind: str, rows: np.ndarray) -> np.ndarray:
    """How badly boosting explains each target, fitted to the other folds of a table without wild cells."""
    table = read_table(frame.assign(**{target: targets}))
    there = table.frame.iloc[rows]
    design = tree_design(table, there, [target])
    X, y = design.transform(there), there[target].to_numpy()
    options: dict[str, Any] = {"categorical_features": design.categorical, "random_state": 0}
    if kind == "number":
        predicted = cross_val_predict(HistGradientBoostingRegressor(**options), X, y.astype(float), cv=5)
        return np.asarray(np.abs(y.astype(float) - predicted))
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    P = cross_val_predict(HistGradientBoostingClassifier(**options), X, codes, cv=5, method="predict_proba")
    return np.asarray(1 - P[np.arange(len(P)), codes])


def _precision(score: np.ndarray, wrong: np.ndarray, recall: float) -> float:
    """The share of wrong ones on the shortest list, worst first, that holds this share of them."""
    hits = np.cumsum(wrong[np.argsort(-score, kind="stable")])
    k = int(np.searchsorted(hits, np.ceil(recall * wrong.sum())))
    return float(hits[k] / (k + 1))


def _alarm(source: Source, target: str) -> list[float]:
    findings, _ = _judged(spoil(source, 0, targets=False).frame, target)
    return [float(np.mean(findings.flagged)), findings.contamination]


def _ranges(kind: str, parts: list[Found]) -> list[list[Any]]:
    if not parts:
        return []
    p, wrong = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    place, ends = np.searchsorted(EDGES, p, side="right"), (0.0, *EDGES, 1.0)
    return [
        [kind, f"{ends[k]:g}–{ends[k + 1]:g}", int(np.sum(on)), float(p[on].mean()), float(wrong[on].mean())]
        for k in range(len(EDGES) + 1)
        if (on := place == k).any()
    ]


def _targets(table: Table, clean: Table, ranges: Table) -> list[Target]:
    short = {(row[0], row[1]): row[4] - row[3] for row in table.rows}
    gaps = [abs(row[3] - row[4]) for row in ranges.rows if row[2] >= ENOUGH]
    targets = [
        Target(
            "labels and numbers: how far below the rival's precision, mean", float(np.mean(list(short.values()))), 0.0
        ),
        Target("the same, the worst table", max(short.values()), 0.05, goal=True),
        Target("probability: largest distance to the share of wrong ones", max(gaps, default=np.nan), 0.1),
        Target("targets flagged where all are right, mean", float(np.mean([row[2] for row in clean.rows])), 0.03),
    ]
    for row in table.rows:
        if row[:2] == ["TopGear", "MPG"]:
            targets.append(Target("TopGear's MPG: 1 − precision", 1 - row[3], 0.25))
    return targets
