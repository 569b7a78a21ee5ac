"""Rows that a trimmed regression leaves out appeal to the untrimmed one: what X predicts is misfit, not a wrong number.

Rounds that start from half of the rows lose a rare or steep region for good: once it is left out, nobody predicts it.
Wrong numbers lie anywhere, so that a model of all rows, this one left out, comes no nearer to one of them than it does
by chance. To a row of a region it does. Where it does not, since folds hold too few of a group or the model is slow to
see it, a tree of two splits may tell that the features foretell who is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import final

import numpy as np
from sklearn.utils import _safe_indexing

from trimlearn._utils.warn import warn
from trimlearn.estimators.meta.crossfit import (
    EncodedExamples,
    crossfit,
    fit_weighted,
)
from trimlearn.estimators.meta.doubt import doubt_of_left_out
from trimlearn.estimators.meta.foretold import features_as_numbers, foretold
from trimlearn.estimators.meta.rounds import Alternation
from trimlearn.estimators.meta.targets import Judgement
from trimlearn.robust.distinct import Hashes, content_hashes

FOLDS = 5  # of the rows left out, at most: a limit on time, and a group of five is still seen if one is asked about
ROUNDS = 5  # of appeals at most, a limit on time: two are usual
# What rows of regions have in excess of scattered ones, as a share of the way that is left, and in its standard errors.
# Fits to wrong numbers anywhere had that much in none of 150 cases of 200 rows, and in 9 % of 60 rows; fits to steps,
# spikes, curves, corners and rare groups in 88 % and 73 % (python -m benchmarks.calibration appeals).
MORE, SURE = 0.2, 1.5
MOST, WAY = 0.9, 0.5  # a row is heard that comes further than this share of scattered ones, or than half of the way
# How much the error of all rows may grow by rows that are heard: in 95 % of fits to misfit it was 1.12 times as large
# at most, and once 1.7 times (the same); where a line cannot bend to a block of wrong numbers, twice as large.
GROWS = 1.3
# The same for rows that the features foretell, and for those left out after others were heard. If none was, the error
# must be smaller by that much before nothing is trimmed (a choice: errors of 100 rows differ by a tenth by chance).
DIFFERS = 1.15
FAR_OUT = 3.0  # times the quartiles' distance beyond a quartile, as Tukey (1977) calls values in a box plot


@final
@dataclass(frozen=True)
class Appeal:
    """The appeal against the verdicts of one fit's rounds, of which the trimmed fit kept h."""

    run: Alternation
    h: float

    @cached_property
    def _hashes(self) -> Hashes:
        """A number for each row, by its contents: so order and repetition do not matter."""
        return content_hashes(self.run.rows.X, self.run.rows.y, self.run.seed)

    @cached_property
    def _first(self) -> np.ndarray:
        """The first of each of the distinct rows, in the order of their hashes."""
        there = np.flatnonzero(self.run.rows.s > 0)
        return np.asarray(there[np.unique(self._hashes[there], return_index=True)[1]])

    @property
    def _distinct(self) -> Hashes:
        """The hashes of the distinct rows, in order."""
        return np.asarray(self._hashes[self._first])

    def decide(self, w: np.ndarray, found: Judgement) -> tuple[np.ndarray, Judgement]:
        """The weights of the rows that count in the end, 0 or 1 as ``w``, and the judgement by models fitted to them;
        ``w`` and what was ``found`` by it where no appeal changes anything."""
        with self.run.aside():
            heard = self._with_those_heard(w)
            told = self._foretold(heard)
            final = self._untrimmed_if_as_good(self._with_those_learnt(heard, told, heard > w), w)
        if final is not w:
            found, left_out = self.run.judge(final, self.h), 1 - float(self.run.rows.s @ final) / self.run.rows.S
            found = replace(found, inliers=final > 0, contamination=min(found.contamination, left_out))
        if doubt := doubt_of_left_out(self.run, final, found, told):
            warn(doubt)
        return final, found

    def _with_those_heard(self, w: np.ndarray) -> np.ndarray:
        """Rows whose appeal is heard count for good, unless all rows are then predicted worse; the others are judged
        again by models that know them."""
        granted = np.zeros(len(w), dtype=bool)
        for _ in range(ROUNDS):
            granted = granted | self.heard(w)
            more = np.where(granted, 1.0, w)
            if np.array_equal(more, w) or self.error(more) > GROWS * self.error(w):
                break
            w = self._judged_again(more, granted)
        return w

    def _foretold(self, w: np.ndarray) -> np.ndarray:
        """Which of the rows left out their features foretell, without those that are far off even among these: a wrong
        number may lie in a group."""
        out, there, told = w <= 0, self.run.rows.s > 0, np.zeros(len(w), dtype=bool)
        if not out[self._first].any() or (X := features_as_numbers(self.run.rows.X)) is None:
            return told
        found = foretold(X[self._first], out[self._first])
        if found.any():
            off = np.sqrt(self.run.losses(w))[self._first[found]]
            low, high = np.quantile(off, (0.25, 0.75))
            found[found] = off <= high + FAR_OUT * (high - low)
        told[there] = np.isin(self._hashes[there], self._distinct[found])
        return told

    def _with_those_learnt(self, w: np.ndarray, told: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """Rows foretold count for good, as those heard, if the model learns them beside the others; these are judged
        again."""
        more = np.where(told, 1.0, w)
        learnt = told.any() and (self._predicted_with_others(w, more) or self._fitted_with_others(w, more, told))
        return self._judged_again(more, told | heard) if learnt else w

    def _predicted_with_others(self, w: np.ndarray, more: np.ndarray) -> bool:
        """Whether models fitted with weights ``more`` predict all rows as well as those fitted with w, and do not leave
        the rows of w for others, as a line does that bad leverage points pull at."""
        s, (f0, f) = self.run.rows.s, (np.sqrt(self.run.losses(v)) for v in (w, more))
        return bool(s @ f <= DIFFERS * (s @ f0) and (s * w) @ f <= GROWS * ((s * w) @ f0))

    def _fitted_with_others(self, w: np.ndarray, more: np.ndarray, told: np.ndarray) -> bool:
        """Whether one model comes near to all rows that it is fitted to. That shows nothing of wrong numbers, to which
        a tree comes near too; but that these are none is known, and folds may hold too few of them."""
        target, t, counts = self.run.target, self.run.rows.t, self.run.rows.s * w
        f0, f = (np.sqrt(target.losses(self._fitted(v), t)) for v in (w, more))
        return bool(f[told].mean() <= (1 - WAY) * f0[told].mean() and counts @ f <= GROWS * (counts @ f0))

    def _fitted(self, w: np.ndarray) -> np.ndarray:
        """Predictions of all rows by the model of those that count."""
        model = fit_weighted(self.run.estimator, self.run.rows, w, self.run.seed)
        return self.run.target.predict(model, self.run.rows.X)

    def _judged_again(self, more: np.ndarray, granted: np.ndarray) -> np.ndarray:
        """The weights 1 of the rows granted, and of those that models fitted with weights ``more`` explain."""
        inliers = self.run.judge(more, self.h).inliers
        return np.where((self.run.rows.s > 0) & (inliers | granted), 1.0, 0.0)

    def _untrimmed_if_as_good(self, w: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Where some rows are still left out and all rows are predicted as well with them (if none was heard: better),
        nothing is trimmed, with a warning."""
        there, limit = self.run.rows.s > 0, 1 / DIFFERS if w is before else DIFFERS
        everyone = there.astype(np.float64)
        if not np.any(everyone > w) or self.error(everyone) > limit * self.error(w):
            return w
        warn(
            f"{np.mean(before[there] == 0):.0%} of the rows do not follow the trimmed fit, but the features predict "
            "them: the model learns them from all rows, so nothing is trimmed. Give a contamination if they are wrong "
            "nevertheless.",
        )
        return everyone

    def error(self, w: np.ndarray) -> float:
        """The mean absolute error of all rows, right or wrong, by models fitted with weights w to others: √f, since a
        few wrong numbers decide a mean of squares."""
        return float(self.run.rows.s @ np.sqrt(self.run.losses(w))) / self.run.rows.S

    def heard(self, w: np.ndarray) -> np.ndarray:
        """Which of the rows left out are predicted by the others, if more are than scattered rows would be."""
        rows, heard = self.run.rows, np.zeros(len(w), dtype=bool)
        out = (w <= 0) & (rows.s > 0)
        if not out.any():
            return heard
        way = self._way(rows, out)
        if way.mean() <= MORE:
            return heard
        chance = self._way(*self._scattered(w, out))
        excess, room = way.mean() - chance.mean(), 1 - chance.mean()
        error = sqrt((way.var() + chance.var()) / max(len(way) - 1, 1))
        if excess > max(MORE * room, SURE * error):
            near = self._distinct[out[self._first]][way > min(WAY, float(np.quantile(chance, MOST)))]
            heard[out] = np.isin(self._hashes[out], near)
        return heard

    def _way(self, rows: EncodedExamples, out: np.ndarray) -> np.ndarray:
        """For each distinct row left out how far a model of all rows but it goes from the prediction without any of
        them to what the row is: 1 − √(f/f₀), 0 at least."""
        run, asked = self.run, self._first[out[self._first]]
        k = min(FOLDS, len(asked))
        fold = np.full(len(out), -1)
        fold[out] = np.searchsorted(self._hashes[asked], self._hashes[out]) % k
        everyone = np.flatnonzero(rows.s > 0)
        splits = [(everyone[fold[everyone] != j], asked[fold[asked] == j]) for j in range(k)]
        P = crossfit(run.estimator, rows, np.ones(len(out)), splits, run.target.predict, run.seed, run.n_jobs)[asked]
        f0, f = (run.target.losses(p, rows.t[asked]) for p in (self._without(rows, out, asked), P))
        return np.asarray(1 - np.sqrt(np.minimum(f, f0) / np.where(f0 > 0, f0, 1.0)))

    def _without(self, rows: EncodedExamples, out: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Predictions for the rows ``asked`` about, by the model of all that are not left out."""
        model = fit_weighted(self.run.estimator, rows, np.where(out, 0.0, 1.0), self.run.seed)
        return self.run.target.predict(model, _safe_indexing(rows.X, asked))

    def _scattered(self, w: np.ndarray, out: np.ndarray) -> tuple[EncodedExamples, np.ndarray]:
        """The same rows, their errors dealt out anew: so y looks where who is left out has nothing to do with X; and
        who is left out then. y stays within its range, for losses that know no other."""
        rows, first = self.run.rows, self._first
        P = self.run.predictions(w).copy()
        P[out] = self._without(rows, out, np.flatnonzero(out))
        y = np.asarray(rows.t, dtype=np.float64).reshape(P.shape)
        there = np.flatnonzero(rows.s > 0)
        dealt = first[np.random.default_rng(self.run.seed).permutation(len(first))]
        giver = dealt[np.searchsorted(self._distinct, self._hashes[there])]
        scattered, out_now = y.copy(), np.zeros_like(out)
        scattered[there] = np.clip(P[there] + (y - P)[giver], y[there].min(axis=0), y[there].max(axis=0))
        out_now[there] = out[giver]
        scattered = scattered.reshape(rows.y.shape).astype(rows.y.dtype if rows.y.dtype.kind == "f" else np.float64)
        return replace(rows, y=scattered, t=scattered), out_now
