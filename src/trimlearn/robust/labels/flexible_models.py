"""Flexible classifiers of a sample that are asked about other rows, which come in blocks, from a disk or elsewhere.

They are those of `trimlearn.robust.labels.flexible`, a forest and the nearest neighbours, and where boosting was
asked about the sample, it. A row that they have seen is known by its contents, so that no number of it has to travel,
and is predicted without itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.extmath import randomized_svd

from trimlearn.robust.distinct import Hashes, row_hashes
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.column_bounds import ColumnBounds, column_bounds
from trimlearn.robust.labels.flexible import (
    DRAWN,
    FEATURES,
    LEAST,
    NEIGHBOURS,
    POWERS,
    ROWS,
    TREES_OF_MANY,
    neighbour_votes,
)
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_em import Floats, Labels


@final
@dataclass(frozen=True)
class FlexibleModels:
    """A forest and some thousand rows to be neighbours of, and what each says of the rows that it has seen.

    bounds, directions: the space in which rows are compared; None: that of the columns. near, votes: the rows seen and
    their classes. prior: shares of the classes. hashes: of the rows seen, in order. own: P(class) of these rows by the
    trees that have not drawn them, and by their neighbours.
    """

    bounds: ColumnBounds
    directions: Floats | None
    forest: Any
    near: Floats
    votes: Floats
    prior: Floats
    hashes: Hashes
    own: tuple[Floats, Floats]
    boosted: BoostedOpinion | None = None

    @classmethod
    def of(
        cls, V: np.ndarray, labels: Labels, K: int, seed: int = 0, *, s: Floats | None = None, boosted: bool = False
    ) -> Self:
        """The models of a sample V (n, p) with labels in 0..K−1: of `ROWS` of its rows at most. s: sample weights.
        boosted: boosting is one of them.

        >>> rng = np.random.default_rng(0)
        >>> ring = rng.uniform(0, 7, 800)
        >>> V = np.column_stack([np.cos(ring), np.sin(ring)]) * (1 + np.arange(800) % 2)[:, None]
        >>> labels = np.arange(800) % 2
        >>> models = FlexibleModels.of(V[:600], labels[:600], 2)
        >>> [float(np.mean(z.argmax(axis=1) == labels)) > 0.95 for z in models.predictions(V)]
        [True, True]
        """
        hashes, s = row_hashes(V), np.ones(len(V)) if s is None else s
        order = np.flatnonzero(s > 0)
        order = order[np.argsort(hashes[order], kind="stable")]
        rng = np.random.default_rng(seed)
        seen = order if len(order) <= ROWS else order[np.sort(rng.choice(len(order), ROWS, replace=False))]
        bounds = column_bounds(V[seen], slice(None))
        unit, directions = bounds.standardise(V[seen]), None
        if V.shape[1] > FEATURES:
            most = min(FEATURES, min(unit.shape) - 1)
            directions = randomized_svd(unit, most, n_iter=POWERS, random_state=seed)[2].T
        F = unit if directions is None else unit @ directions
        draws = max(1, round(DRAWN * len(seen)))
        forest = RandomForestClassifier(TREES_OF_MANY, oob_score=True, max_samples=draws, random_state=seed)
        forest.fit(F, labels[seen], sample_weight=None if np.all(s[seen] == 1) else s[seen])
        votes = np.eye(K)[labels[seen]] * s[seen, None]
        by_trees = np.zeros((len(seen), K))
        by_trees[:, forest.classes_] = np.nan_to_num(forest.oob_decision_function_)
        prior = np.bincount(labels, s, K) / s.sum()
        own = by_trees, _shares(neighbour_votes(F, np.arange(len(F)), votes, _neighbours(votes)))
        more = BoostedOpinion(V, labels, s, seed, hashes).fitted() if boosted else None
        return cls(bounds, directions, forest, F, votes, prior, hashes[seen], own, more)

    def predictions(self, V: np.ndarray) -> list[Floats]:
        """log-probabilities (m, K) of the classes of rows V by each of them, without the rows themselves."""
        F = self.bounds.standardise(V)
        F = F if self.directions is None else F @ self.directions.astype(F.dtype)
        by_trees = np.zeros((len(F), len(self.prior)))
        by_trees[:, self.forest.classes_] = self.forest.predict_proba(F)
        m = len(self.near)
        both = np.concatenate([self.near.astype(F.dtype), F])
        by_neighbours = _shares(neighbour_votes(both, np.arange(m), self.votes, _neighbours(self.votes))[m:])
        hashes = row_hashes(V)
        place = np.minimum(np.searchsorted(self.hashes, hashes), m - 1)
        known = self.hashes[place] == hashes
        found = []
        trusts = TREES_OF_MANY * np.exp(-DRAWN), float(_neighbours(self.votes))
        for P, own, trust in zip((by_trees, by_neighbours), self.own, trusts, strict=True):
            P[known] = own[place[known]]
            found.append(np.log(np.maximum((trust * P + self.prior) / (trust + 1), LEAST)))
        return found if self.boosted is None else [*found, self.boosted.of_others(V)]


def calibrated(noise: LabelNoise, predictions: list[Floats]) -> Floats:
    """Several predictions as one: Σ βᵢz⁽ⁱ⁾ + b, each less its mean in every row. Of two classes the log-odds (m, 1)."""
    z: Floats = noise.bias + sum(
        beta * (prediction - prediction.mean(axis=1, keepdims=True))
        for beta, prediction in zip(noise.temperatures, predictions, strict=True)
    )
    return np.asarray(z[:, 1:] - z[:, :1]) if z.shape[1] == 2 else z


def _neighbours(votes: Floats) -> int:
    return min(NEIGHBOURS, len(votes) - 1)


def _shares(P: Floats) -> Floats:
    return np.asarray(P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300))
