"""Boosting, asked about labels that it has not seen, before many are called wrong.

A rule of few columns among many, such as whether two of them have the same sign, is seen neither by a linear model nor
by the forest and the neighbours of `trimlearn.robust.labels.flexible`. To them up to half of its labels look wrong.
Boosting finds such rules, and takes too long to be asked every time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from trimlearn._utils.arrays import to_numpy
from trimlearn._utils.validation import is_sparse
from trimlearn.robust.distinct import Hashes, content_folds, row_hashes, taken_rows
from trimlearn.robust.labels.flexible import LEAST, ROWS
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.noise_level import estimate_noise
from trimlearn.robust.labels.proof import ONE_SIDED, significant
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict

LEAST_ROWS = 200  # of fewer, boosting grows no more than a few leaves of 20 rows
WORK = 1_000  # columns times classes, beyond which nobody is asked, a limit on time: some seconds
# Half of scikit-learn's time. Of the labels of 20,000 rows that two of 60 columns decide by having the same sign, and a
# third by being large, 99 % are found from 4,000; of 150 columns 95 %. With steps of 0.1 and 60 rounds it is 94 and 98.
STEP, ROUNDS = 0.2, 30

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class BoostedOpinion:
    """Boosting in two halves of some thousand rows each, the one asked about the other.

    V: the rows, dense or CSR, wherever they lie; s: sample weights; hashes: those of the rows.

    >>> from trimlearn.robust.distinct import row_hashes
    >>> from trimlearn.robust.labels.verdict import label_verdict
    >>> V = np.random.default_rng(0).standard_normal((1000, 2))
    >>> labels = (V[:, 0] * V[:, 1] > 0).astype(int)  # the same sign, or not: no line parts them
    >>> boosted = BoostedOpinion(V, labels, np.ones(1000), 0, row_hashes(V))
    >>> float(np.mean(boosted.predictions.argmax(axis=1) == labels)) > 0.95
    True
    """

    V: Any
    labels: Labels
    s: Floats
    seed: int
    hashes: Hashes
    classes: int | None = None  # how many there are, if some have no row

    def asked_about(self, verdict: LabelVerdict) -> list[Floats]:
        """The predictions, where labels in doubt are many and boosting explains those it has not seen significantly
        better than this verdict does; else none."""
        if max(verdict.noise.epsilon, verdict.undecided) < MATERIAL or not self.possible:
            return []
        rows, likelihood = self.first_half
        better = significant(likelihood - verdict.log_likelihood[rows], self.s[rows], ONE_SIDED)
        return [self.predictions] if better else []

    @property
    def possible(self) -> bool:
        """Whether rows are enough, and columns and classes few enough."""
        counts = np.bincount(self.labels[self.s > 0])
        enough = counts.sum() >= LEAST_ROWS and self.V.shape[1] * len(counts) <= WORK
        return bool(enough and np.all(np.isin(np.flatnonzero(counts), self.labels[self._rows(0)])))

    @cached_property
    def first_half(self) -> tuple[Rows, Floats]:
        """Rows, and log P(label | x) of them, by a model of others."""
        rows = self._rows(1)
        z = self._predicted(0, rows)
        labels, s = self.labels[rows], self.s[rows]
        return rows, estimate_noise([z], labels, s, largest=False).log_likelihood([z], labels)

    @cached_property
    def predictions(self) -> Floats:
        """log-probabilities (n, K) of all rows, each by the model of the half in which it is not."""
        z = np.empty((len(self.labels), self._K))
        for half in (0, 1):
            asked = np.flatnonzero(self._half != half)
            z[asked] = self._predicted(half, asked)
        return z

    def fitted(self) -> BoostedOpinion:
        """The same for rows from elsewhere: both models are there, which threads may share, and the rows are not."""
        for half in (0, 1):
            self._answered(half, self._taken(self._rows(half)[:1]))
        light = replace(self, V=self.V[:0])
        vars(light).update(_models=self._models, _half=self._half)
        return light

    def of_others(self, V: Floats) -> Floats:
        """The same of rows V from elsewhere: those that are among these are known by their contents."""
        hashes, order = row_hashes(V), np.argsort(self.hashes, kind="stable")
        place = order[np.minimum(np.searchsorted(self.hashes[order], hashes), len(order) - 1)]
        half = np.where(self.hashes[place] == hashes, self._half[place], hashes % np.uint64(2)).astype(np.int64)
        z = np.empty((len(V), self._K))
        for g in (0, 1):
            if np.any(half != g):
                z[half != g] = self._answered(g, np.asarray(V[half != g], dtype=np.float64))
        return z

    @cached_property
    def _half(self) -> Rows:
        return content_folds(self.hashes, self.labels, self.s, 2)

    def _rows(self, half: int) -> Rows:
        """Of one half, in an order that only their contents decide."""
        rows = np.flatnonzero((self._half == half) & (self.s > 0))
        return rows[np.argsort(self.hashes[rows], kind="stable")][:ROWS]

    @cached_property
    def _models(self) -> dict[int, HistGradientBoostingClassifier]:
        return {}

    def _predicted(self, half: int, asked: Rows) -> Floats:
        blocks = [asked[i : i + ROWS] for i in range(0, len(asked), ROWS)]
        return np.concatenate([np.empty((0, self._K)), *(self._answered(half, self._taken(rows)) for rows in blocks)])

    def _answered(self, half: int, A: Floats) -> Floats:
        """log-probabilities of rows A by the model of a half, fitted when first asked."""
        if half not in self._models:
            rows = _by_weight(self._rows(half), self.s)
            model = HistGradientBoostingClassifier(
                learning_rate=STEP, max_iter=ROUNDS, early_stopping=False, random_state=self.seed
            )
            with threadpool_limits(1, user_api="openmp"):  # of few rows, threads wait for each other
                self._models[half] = model.fit(self._taken(rows), self.labels[rows])
        model = self._models[half]
        P = np.zeros((len(A), self._K))
        P[:, model.classes_] = model.predict_proba(A)
        return np.log(np.maximum(P, LEAST))

    @property
    def _K(self) -> int:
        return int(self.labels.max()) + 1 if self.classes is None else self.classes

    def _taken(self, rows: Rows) -> Floats:
        V = taken_rows(self.V, rows)
        return np.asarray(V.toarray() if is_sparse(V) else to_numpy(V), dtype=np.float64)


def _by_weight(rows: Rows, s: Floats) -> Rows:
    """As many rows, each as often as its weight says: with weights boosting looks for its bins twenty times as long.

    >>> _by_weight(np.arange(6), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])).tolist()
    [0, 1, 2, 3, 4, 5]
    >>> _by_weight(np.arange(6), np.array([2.0, 1.0, 0.0, 1.0, 1.0, 1.0])).tolist()
    [0, 0, 1, 3, 4, 5]
    """
    mass = np.cumsum(s[rows])
    if not len(rows) or np.all(s[rows] == s[rows[0]]):
        return rows
    return np.asarray(rows[np.searchsorted(mass, (np.arange(len(rows)) + 0.5) * (mass[-1] / len(rows)))])
