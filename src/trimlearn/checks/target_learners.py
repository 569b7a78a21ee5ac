"""Several models, each asked about the targets of rows that it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from trimlearn._utils.arrays import Array, Flags, Floats

# (rows up to which, repetitions, folds) of cross-fitting. With 300 rows the choice of folds alone moves the odds of a
# row as much as the label does; 100,000 rows need no more than half of them for a model as good.
PLANS = ((1_000, 3, 5), (5_000, 1, 5), (20_000, 1, 3), (10**12, 1, 2))
FOREST_ROWS = 10_000  # beyond which boosting has learnt what a forest knows; a limit on time
TREES = 300  # of which some 110 have not seen a row: the standard error of a share of ½ is 5 points
STRENGTH = 10.0  # over the number of features is the variance of a coefficient, a prior: log-odds of 3 in all
WORK = 300_000  # entries, times classes, beyond which nothing is repeated: a limit on time, some 10 s of boosting
LINEAR_ROWS = 5_000  # that a linear model is fitted to, a limit on time: 50 coefficients cost 1 % of the variance
BOOSTED = 20_000  # rows that boosting is fitted to, a limit on time: with 50,000 it errs by 5 % less
MANY_CLASSES = 20  # beyond which boosting has half the rounds and folds, a limit on time: each grows a tree per class
MANY_FOLDS = 3  # folds where classes are so many
# Rows of a class, fewer than a leaf holds, with which 100 rounds of boosting diverge; and the regularisation that stops
# it. On 12 and 30 classes, some of 3 to 10 rows of 5,000, labels predicted rise from 59 and 23 % to 95 and 88 %.
RARE, DAMPED = 20, 1.0
LEAST = 1e-6  # of a probability, as robust.labels.flexible has it: one row of a million is not known from thousands
SMALL = 2_000  # rows up to which boosting is slowed down: steps of 0.07 in leaves of 15 overfit less there than 0.1


@final
@dataclass(frozen=True)
class Learners:
    """Models of y, and their predictions out of sample: log-probabilities (n, K) of labels, else values (n,).

    Parameters
    ----------
    linear, trees : ndarray
        The matrices of both designs.
    categorical : list of bool
        Which columns of ``trees`` hold codes.
    y : ndarray
        Numbers, or the numbers of classes.
    K : int
        The number of classes; 0 for numbers.
    seed : int
        Of folds and models.

    Rows are left out whole, not weighted: with weights scikit-learn's boosting takes five times as long on few rows.
    """

    linear: Floats
    trees: Floats
    categorical: list[bool]
    y: Array
    K: int
    seed: int

    @cached_property
    def plan(self) -> tuple[int, int]:
        """How often the rows are cross-fitted, and in how many folds."""
        repetitions, folds = fold_plan(len(self.y), self.trees.size * max(1, self.K))
        return repetitions, folds if self.K <= MANY_CLASSES else min(folds, MANY_FOLDS)

    def _splits(self, repetition: int) -> list[tuple[Array, Array]]:
        """Of each fold the rows fitted and the rows predicted."""
        kind = (StratifiedKFold if self.K else KFold)(self.plan[1], shuffle=True, random_state=self.seed + repetition)
        with warnings.catch_warnings():  # of classes with fewer rows than folds: some models do without them
            warnings.simplefilter("ignore", UserWarning)
            return list(kind.split(np.zeros(len(self.y)), self.y))

    def opinions(self, kept: Flags) -> list[Floats]:
        """All predictions by models fitted to these rows, boosting's first."""
        found = [self._boosting(kept), self.line(kept)]
        forest = self.forest(kept)
        return found if forest is None else [*found, forest]

    def again(self, kept: Flags, first: list[Floats]) -> tuple[list[Floats], Flags]:
        """The opinions once more, by models fitted to these rows; and who was asked: of others the first ones stand.

        Labels are judged by the first opinions, so that boosting alone is asked: the others found no more on five dirty
        tables. Where rows or classes are many, one boosting model is fitted to some rows and asked about others; where
        rows are many and all are kept, none is: it would say the same.
        """
        asked = np.ones(len(self.y), dtype=bool)
        if not self.sampled and self.K <= MANY_CLASSES:
            return [self._boosting(kept, 1)] if self.K else self.opinions(kept), asked
        if self.sampled and kept.all():
            return first, asked
        if self.sampled:
            rows = _some(np.flatnonzero(kept), BOOSTED, self.seed)
            asked[rows] = False
        else:
            fitted, _ = self._splits(0)[0]
            asked[fitted] = False
            rows = fitted[kept[fitted]]
        model = self.new_boosting(self.seed).fit(self.trees[rows], self.y[rows])
        boosting = first[0].copy()
        boosting[asked] = self._predictions(model, self.trees[asked])
        return [boosting, *first[1:]], asked

    def elsewhere(self, kept: Flags, linear: Floats, trees: Floats) -> tuple[Floats, Floats]:
        """What boosting and the line, fitted to these rows, say of others."""
        rows = np.flatnonzero(kept)
        few, some = (_some(rows, most, self.seed) for most in (LINEAR_ROWS, BOOSTED))
        boosting = self.new_boosting(self.seed).fit(self.trees[some], self.y[some])
        line = self.new_line(self.seed).fit(self.linear[few], self.y[few])
        return self._predictions(boosting, trees), self._predictions(line, linear)

    @property
    def sampled(self) -> bool:
        """Whether rows are so many that boosting is fitted to some of them."""
        return len(self.y) > BOOSTED

    def _boosting(self, kept: Flags, repetitions: int | None = None) -> Floats:
        return self._crossfit(self.new_boosting, self.trees, kept, repetitions)

    def line(self, kept: Flags) -> Floats:
        """By logistic regression, or a robust line."""
        return self._crossfit(self.new_line, self.linear, kept)

    def forest(self, kept: Flags) -> Floats | None:
        """By the trees of a forest that have not seen the row; None where rows are many."""
        if len(self.y) > FOREST_ROWS:
            return None
        options = {"bootstrap": True, "oob_score": True, "random_state": self.seed}
        if self.K:
            model = RandomForestClassifier(TREES, min_samples_leaf=3, **options)
            model.fit(self.linear[kept], self.y[kept])
            P = self._probabilities(model, self.linear)
            P[np.ix_(np.flatnonzero(kept), model.classes_)] = model.oob_decision_function_
            return _logarithm(P)
        model = ExtraTreesRegressor(TREES, min_samples_leaf=3, max_features=0.5, **options)
        model.fit(self.linear[kept], self.y[kept])
        predicted = np.asarray(model.predict(self.linear), dtype=np.float64)
        predicted[kept] = model.oob_prediction_
        return predicted

    def new_boosting(self, seed: int) -> Any:
        """A boosting model, not fitted."""
        options: dict[str, Any] = {"categorical_features": self.categorical, "random_state": seed}
        if len(self.y) <= SMALL or self.sampled:
            options["max_bins"] = self._bins
        if len(self.y) <= SMALL:
            options |= {"learning_rate": 0.07, "min_samples_leaf": 15, "max_leaf_nodes": 15}
        if self.K:
            rounds = (60 if len(self.y) <= SMALL else 100) // (1 if self.K <= MANY_CLASSES else 2)
            if len(self.y) > SMALL and np.bincount(self.y).min() < RARE:
                options["l2_regularization"] = DAMPED
            return HistGradientBoostingClassifier(max_iter=rounds, **options)
        return HistGradientBoostingRegressor(loss="absolute_error", **options)

    @cached_property
    def _bins(self) -> int:
        """Few, since rows are, or time is; but a category has as many as it has levels."""
        codes = self.trees[:, self.categorical]
        return 63 if codes.size == 0 or not np.nanmax(codes, initial=0.0) > 60 else 255

    def new_line(self, seed: int) -> Any:
        """A linear model, not fitted."""
        if self.K:
            return LogisticRegression(C=STRENGTH / self.linear.shape[1], max_iter=500)
        return HuberRegressor(alpha=1.0, max_iter=300)

    def _crossfit(self, new: Callable[[int], Any], X: Floats, kept: Flags, repetitions: int | None = None) -> Floats:
        repetitions = repetitions or self.plan[0]
        total = np.zeros((len(self.y), self.K) if self.K else len(self.y))
        for r in range(repetitions):
            for fitted, predicted in self._splits(r):
                rows = _some(fitted[kept[fitted]], LINEAR_ROWS if X is self.linear else BOOSTED, self.seed)
                model = new(self.seed + r).fit(X[rows], self.y[rows])
                total[predicted] += self._predictions(model, X[predicted])
        return np.asarray(total / repetitions)

    def _predictions(self, model: Any, X: Floats) -> Floats:
        if self.K:
            return _logarithm(self._probabilities(model, X))
        return np.asarray(model.predict(X), dtype=np.float64)

    def _probabilities(self, model: Any, X: Floats) -> Floats:
        P = np.zeros((len(X), self.K))
        P[:, model.classes_] = model.predict_proba(X)
        return P


def fold_plan(n: int, work: int) -> tuple[int, int]:
    """How often n rows are cross-fitted, and in how many folds. work: times features, times classes."""
    repetitions, folds = next((r, k) for most, r, k in PLANS if n <= most)
    return repetitions if work <= WORK else 1, folds


def _logarithm(P: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(P, LEAST)))


def _some(rows: Array, most: int, seed: int) -> Array:
    """All of them, or as many by chance."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
