"""How sure `find_cells` is, and what constants of checks/cell_odds do: `python -m benchmarks.calibration cell_odds`.

Tables with 5 % of their cells made wrong (see `benchmarks.peers_cells.dirty`): the share found of the wrong cells that
differ by 3 robust σ of their column, the share of right cells flagged, of the cells of the clean table too, in %; the
mean squared error of the probabilities, times 1000; and, of all tables together, the share of wrong cells beside the
probability they are given. Tables under $TRIMLEARN_DATA are there only if it is set.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from benchmarks.calibration import with_constant
from benchmarks.peers_cells import BIG, MAD, dirty, number_columns
from trimlearn.checks import cell_odds
from trimlearn.checks.errors import Writing
from trimlearn.robust.cells.table import TableCells, TableModel, why_left_out

__all__ = ["calibrated", "judged", "probabilities", "run", "tables"]

SEEDS = (0, 1)
MOST_ROWS = 500
WIDES, TAILS, STRAYS = (5.0, 20.0, 80.0), (0.03, 0.1, 0.3), (0.003, 0.01, 0.05)
EDGES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0)
WRONG = 0.5  # from where on a cell is called wrong

Case = tuple[np.ndarray, TableModel, TableCells, np.ndarray, np.ndarray]


def tables() -> dict[str, np.ndarray]:
    """Those that scikit-learn brings, and those under $TRIMLEARN_DATA."""
    loaders = {"wine": load_wine, "breast cancer": load_breast_cancer, "diabetes": load_diabetes, "iris": load_iris}
    found = {name: np.asarray(load().data, dtype=np.float64) for name, load in loaders.items()}
    folder = os.environ.get("TRIMLEARN_DATA")
    if folder:
        found |= {path.stem: number_columns(path) for path in sorted(Path(folder, "regression").glob("*.csv"))}
        for path in sorted(Path(folder, "tabular").glob("*.npz")):
            X = np.load(path)["X"].astype(np.float64)
            rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
            found[path.stem] = X[rows]
    return {name: X[:, [not why_left_out(x) for x in X.T]] for name, X in found.items()}


def judged(truth: np.ndarray, X: np.ndarray) -> Case:
    """The model of a table, its cells, which of them are wrong, and which of those by much."""
    sigma = MAD * np.nanmedian(np.abs(truth - np.nanmedian(truth, axis=0)), axis=0)
    wrong = np.isfinite(truth) & (X != truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = TableModel.fit(X)
    return X, model, model.judge(X), wrong, wrong & (np.abs(X - truth) > BIG * sigma)


def probabilities(case: Case) -> np.ndarray:
    """That each cell is wrong."""
    X, model, cells, *_ = case
    odds = cell_odds.cell_odds(model, X, cells, [Writing.of(x[np.isfinite(x)]) for x in X.T])
    p = np.zeros(X.shape)
    p[odds.row, odds.column] = odds.probability
    return p


def calibrated(p: np.ndarray, wrong: np.ndarray) -> list[dict[str, float]]:
    """Of the cells between two probabilities: how many, their mean probability, and the share that is wrong."""
    rows = []
    for low, high in pairwise(EDGES):
        chosen = (p > low) & (p <= high)
        if chosen.any():
            share, mean = float(wrong[chosen].mean()), float(p[chosen].mean())
            rows.append({"from": low, "cells": int(chosen.sum()), "probability": mean, "wrong": share})
    return rows


def _figures(dirty_cases: Sequence[Case], clean: Case | None = None) -> dict[str, float]:
    ps = [probabilities(case) for case in dirty_cases]
    found = [100 * float(np.mean(p[case[4]] > WRONG)) for p, case in zip(ps, dirty_cases, strict=True) if case[4].any()]
    right = [np.isfinite(case[0]) & ~case[3] for case in dirty_cases]
    flagged = [100 * float(np.mean(p[mask] > WRONG)) for p, mask in zip(ps, right, strict=True)]
    error = [1000 * float(np.mean((p - case[3]) ** 2)) for p, case in zip(ps, dirty_cases, strict=True)]
    out = {"found": float(np.mean(found)), "flagged": float(np.mean(flagged)), "error": float(np.mean(error))}
    if clean is not None:
        out["clean flagged"] = 100 * float(np.mean(probabilities(clean)[np.isfinite(clean[0])] > WRONG))
    return out


def run() -> dict[str, Any]:
    """Each table, how well all are calibrated, and the constants in turn."""
    cases = {name: [judged(X, dirty(X, seed)) for seed in SEEDS] for name, X in tables().items()}
    rows = [{"table": name, **_figures(cases[name], judged(X, X))} for name, X in tables().items()]
    everything = [case for dirty_cases in cases.values() for case in dirty_cases]
    p = np.concatenate([probabilities(case).ravel() for case in everything])
    wrong = np.concatenate([case[3].ravel() for case in everything])
    out: dict[str, Any] = {"summary": rows, "calibrated": calibrated(p, wrong)}
    for module, name, values in (
        (cell_odds, "WIDE", WIDES),
        (cell_odds, "TAIL", TAILS),
        (cell_odds, "STRAY", STRAYS),
    ):
        out[name] = []
        for value in values:
            with with_constant(module, name, value):
                out[name].append({name: value, **_figures(everything)})
    return out
