"""trust, the data: tables with labels made wrong in the training part, and with clean labels in the test part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common import home
from trimlearn.datasets.locate import find_folder

__all__ = ["CLEAN", "FOLDS", "NOISES", "Labelled", "Noise", "Sample", "draw", "noises", "read"]

OWN = ("iris", "wine", "breast_cancer", "digits")  # those that come with scikit-learn
FOLDS = 3  # two thirds to learn from, one to test on


@dataclass(frozen=True)
class Noise:
    """uniform: to any other class; pair: k to k + 1; one-way: ``level`` of the largest class to the next."""

    kind: str
    level: float

    def __str__(self) -> str:
        return f"{self.kind} {self.level:.0%}" if self.level else "none"

    def apply(self, y: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        """The labels, a share ``level`` of them made wrong."""
        largest = np.flatnonzero(y == np.bincount(y).argmax())
        rows = rng.permutation(largest if self.kind == "one-way" else len(y))
        rows = rows[: round(self.level * len(rows))]
        given = y.copy()
        given[rows] += rng.integers(1, K, len(rows)) if self.kind == "uniform" else 1
        return given % K


CLEAN = Noise("none", 0.0)
LEVELS = (0.1, 0.2, 0.3)
NOISES = (CLEAN, *[Noise(kind, level) for kind in ("uniform", "pair") for level in LEVELS], Noise("one-way", 0.2))


@dataclass(frozen=True)
class Labelled:
    """A table X with clean labels y in 0 … K − 1."""

    name: str
    X: np.ndarray
    y: np.ndarray

    def __str__(self) -> str:
        return self.name

    @property
    def K(self) -> int:
        """The number of classes."""
        return int(self.y.max()) + 1


def read(data: Path | None) -> Iterator[Labelled]:
    """The tables of tabular/, where there is such a folder, and scikit-learn's own."""
    folder = find_folder("tabular", home(data), holding="*.npz")
    for path in [] if folder is None else sorted(folder.glob("*.npz"), key=lambda path: path.stem.lower()):
        with np.load(path) as found:
            yield Labelled(path.stem, found["X"].astype(np.float64), found["y"].astype(np.int64))
    for name in OWN:
        yield Labelled(f"sklearn {name}", *getattr(datasets, f"load_{name}")(return_X_y=True))


def noises(table: Labelled, asked: tuple[Noise, ...]) -> list[Noise]:
    """With two classes pair is uniform, and is left out."""
    return [noise for noise in asked if table.K > 2 or noise.kind != "pair"]


@dataclass(frozen=True)
class Sample:
    """One draw: the training part with labels as given and as they are, and the test part."""

    X: np.ndarray
    given: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    K: int

    @property
    def wrong(self) -> np.ndarray:
        """Which of the given labels are wrong."""
        return np.asarray(self.given != self.y)


def draw(table: Labelled, noise: Noise, seed: int, fold: int, rows: int) -> Sample:
    """At most ``rows`` of the table, all but one of `FOLDS` parts to train on, standardised by these."""
    X, y = table.X, table.y
    if len(y) > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    train, test = list(folds.split(X, y))[fold]
    scaler = StandardScaler().fit(X[train])
    given = noise.apply(y[train], table.K, np.random.default_rng([seed, fold]))
    return Sample(scaler.transform(X[train]), given, y[train], scaler.transform(X[test]), y[test], table.K)
