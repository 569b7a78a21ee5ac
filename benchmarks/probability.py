"""probability: is a row that is given a probability of 0.8 of being wrong so in 8 cases of 10?

Errors are normal, and wrong rows lie 3 to 5 standard deviations off (near), 8 to 100 (far), or together (cluster); in
some data none is. *law*: scores whose law is known, which is what `trimlearn.inference.probability` was tuned on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtr

from benchmarks.common import NOTHING, Result, Table, Target, say
from trimlearn import TrimmedCovariance, TrimmedGLM, TrimmedGraphicalLasso, TrimmedLinearRegression, TrimmedPCA
from trimlearn.inference import probability
from trimlearn.inference.probability import flag, row_probabilities

__all__ = ["QUICK", "Plan", "run"]

KINDS = (("none", 0.0), ("near", 0.03), ("near", 0.1), ("near", 0.2), ("far", 0.1), ("cluster", 0.1))
EDGES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
FDR = 0.1  # the default of `flag`
# What the constants of `trimlearn.inference.probability` might have been instead, one changed at a time.
ALTERNATIVES: dict[str, tuple[Any, ...]] = {
    "BEGIN": (np.array([4.0]), np.array([3.0, 6, 12, 24]), np.array([5.0, 8, 12, 20]), np.arange(4.0, 26, 3)),
    "REACH": (2.0, 3.0, 8.0, 15.0),
    "PRIOR": (0.0, 5.0, 10.0, 40.0, 80.0),
}
Draw = Callable[[np.random.Generator, int, str, int], tuple[Any, ...]]


@dataclass(frozen=True)
class Plan:
    """Rows, and how many data sets of every kind; four times as many in which nothing is wrong. ``law``: the same where
    the law of scores is known, which takes no fits."""

    sizes: tuple[tuple[int, int], ...] = ((50, 8), (200, 5), (1000, 3))
    law: tuple[tuple[int, int], ...] = ((50, 200), (200, 60), (1000, 20), (5000, 6))


FULL, QUICK = Plan(), Plan(((50, 2),), ((50, 2),))


def offsets(rng: np.random.Generator, kind: str, k: int) -> np.ndarray:
    """How far k wrong rows lie off, in standard deviations."""
    return rng.uniform(3, 5, k) if kind == "near" else rng.uniform(8, 100, k) if kind == "far" else np.full(k, 6.0)


def normal_scores(rng: np.random.Generator, n: int, kind: str, k: int) -> tuple[np.ndarray]:
    z = rng.normal(size=n)
    z[:k] += offsets(rng, kind, k)
    return (2.0 * ndtr(-np.abs(z)),)


def regression(rng: np.random.Generator, n: int, kind: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 4))
    if kind == "cluster":
        X[:k] = 3.0 + 0.1 * X[:k]
    y = X.sum(axis=1) + rng.normal(size=n)
    y[:k] += offsets(rng, kind, k) * (1.0 if kind == "cluster" else rng.choice([-1.0, 1.0], k))
    return X, y


def counts(rng: np.random.Generator, n: int, kind: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    X = 0.5 * rng.normal(size=(n, 4))
    mean = np.exp(1.5 + X.sum(axis=1))
    y = rng.poisson(mean).astype(float)
    y[:k] += np.round(offsets(rng, kind, k) * np.sqrt(mean[:k]))
    return X, y


def cloud(rng: np.random.Generator, n: int, kind: str, k: int, p: int = 4) -> tuple[np.ndarray]:
    Z = rng.normal(size=(n, p))
    way = np.ones((k, p)) if kind == "cluster" else rng.normal(size=(k, p))
    Z[:k] = (0.3 if kind == "cluster" else 0.0) * Z[:k]
    Z[:k] += way / np.linalg.norm(way, axis=1, keepdims=True) * (p**0.5 + offsets(rng, kind, k)[:, None] - 1.0)
    return (Z @ np.linalg.qr(rng.normal(size=(p, p)))[0] * np.arange(1.0, p + 1),)


def plane(rng: np.random.Generator, n: int, kind: str, k: int, p: int = 6) -> tuple[np.ndarray]:
    X, axes = rng.normal(size=(n, p)), np.linalg.qr(rng.normal(size=(p, p)))[0]
    X[:, :2] *= 8.0
    off = np.ones((k, p - 2)) if kind == "cluster" else rng.normal(size=(k, p - 2))
    X[:k, 2:] = off / np.linalg.norm(off, axis=1, keepdims=True) * (2.0 + offsets(rng, kind, k)[:, None] - 1.0)
    return (X @ axes,)


CASES: dict[str, tuple[Callable[[], Any] | None, Draw]] = {
    "law": (None, normal_scores),
    "TrimmedLinearRegression": (lambda: TrimmedLinearRegression(random_state=0), regression),
    "TrimmedGLM, Poisson": (lambda: TrimmedGLM(random_state=0), counts),
    "TrimmedCovariance": (lambda: TrimmedCovariance(random_state=0), cloud),
    "TrimmedGraphicalLasso": (lambda: TrimmedGraphicalLasso(alpha=0.05, random_state=0), cloud),
    "TrimmedPCA": (lambda: TrimmedPCA(2, random_state=0), plane),
}


def run(plan: Plan = FULL) -> Result:
    """The share of wrong rows among those of about one probability; and lists made for a tenth of innocents."""
    between = [f"{low:g}–{high:g}" for low, high in zip(EDGES, (*EDGES[1:], 1.0), strict=True)]
    table = Table(
        f"% wrong among rows of such a probability; lists for fdr = {FDR:g}: empty if none is wrong, innocent, found",
        ["what", "n", *between, "% empty", "% innocent", "% found"],
    )
    pooled: list[tuple[np.ndarray, np.ndarray]] = []
    for name, (make, draw) in CASES.items():
        for n, repetitions in plan.sizes:
            p, wrong, row = measure(make, draw, n, repetitions)
            table.rows.append([name, n, *_calibration(p, wrong), *row])
            pooled.append((p, wrong))
            say(f"{name}, n = {n}")
    p, wrong = (np.concatenate(parts) for parts in zip(*pooled, strict=True))
    share = float(np.mean(wrong[(p >= 0.7) & (p < 0.9)]))
    return Result(
        benchmark="probability",
        settings={"kinds": [f"{kind} {wrong:g}" for kind, wrong in KINDS], "sizes": list(map(list, plan.sizes))},
        targets=[
            Target("share wrong among rows given 0.7–0.9: how far outside", max(0.0, 0.7 - share, share - 0.9), 0.0),
            Target("lists that are not empty where nothing is wrong, mean", 1.0 - _mean(table, -3), FDR),
            Target("innocents on lists for a tenth, mean", _mean(table, -2), FDR),
        ],
        tables=[table, constants(plan.law)],
    )


def constants(sizes: tuple[tuple[int, int], ...]) -> Table:
    """How well probabilities are calibrated where the law is known, with the constants as they are and with others.

    |wrong − p|: the distance between the share of wrong rows and the mean probability, over the rows of each of the
    ranges above, whose mean is taken. Squared: the mean of (wrong − p)² over all rows, in units of 10⁻³.
    """
    table = Table(
        "the constants of inference/probability.py and others in their place, where the law of scores is known",
        ["constant", "value", "|wrong − p|, %", "squared", "% innocent on lists for a tenth"],
    )
    for name, values in {"as they are": (None,), **ALTERNATIVES}.items():
        for value in values:
            with nullcontext() if value is None else patch.object(probability, name, value):
                found = [measure(None, normal_scores, *size) for size in sizes]
            p, wrong = (np.concatenate([part[k] for part in found]) for k in (0, 1))
            innocent = float(np.mean([part[2][1] for part in found]))
            table.rows.append([name, NOTHING if value is None else str(value), *_errors(p, wrong), innocent])
    return table


def _errors(p: np.ndarray, wrong: np.ndarray) -> list[float]:
    place = np.searchsorted(EDGES, p, side="right")
    gaps = [abs(float(np.mean(wrong[place == k]) - np.mean(p[place == k]))) for k in np.unique(place) if k]
    return [100.0 * float(np.mean(gaps)), 1e3 * float(np.mean((wrong - p) ** 2))]


def measure(
    make: Callable[[], Any] | None, draw: Draw, n: int, repetitions: int
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Probabilities, who is wrong, and per cent of: empty lists, innocents listed, wrong rows listed."""
    rng = np.random.default_rng(0)
    found, empty, innocent, caught = [], [], [], []
    for kind, share in KINDS:
        for _ in range(repetitions * (1 if share else 4)):
            k = round(share * n)
            data, wrong = draw(rng, n, kind, k), np.arange(n) < k
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of doubts about data as odd as these
                p = row_probabilities(*data) if make is None else make().fit(*data).outlier_probability_
            listed = flag(p, FDR)
            found.append((p, wrong))
            if k:
                innocent.append(np.sum(listed & ~wrong) / max(1, listed.sum()))
                caught.append(np.mean(listed[wrong]))
            else:
                empty.append(not listed.any())
    p, wrong = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return p, wrong, [100.0 * float(np.mean(part)) for part in (empty, innocent, caught)]


def _calibration(p: np.ndarray, wrong: np.ndarray) -> list[float]:
    place = np.searchsorted(EDGES, p, side="right")
    parts = [wrong[place == k] for k in range(1, len(EDGES) + 1)]
    return [100.0 * float(np.mean(part)) if len(part) else np.nan for part in parts]


def _mean(table: Table, column: int) -> float:
    return float(np.mean([row[column] for row in table.rows])) / 100.0
