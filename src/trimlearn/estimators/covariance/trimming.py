"""Search, judge, keep more, judge again, readmit: how a trimmed location and scatter is found by any criterion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Generic, Protocol, TypeVar, final

import numpy as np

from trimlearn.estimators.detector import FeatureRows
from trimlearn.robust.scatter import chance
from trimlearn.robust.scatter.judge import JudgedScatter
from trimlearn.robust.scatter.mcd import default_h
from trimlearn.robust.verdict import readmit

__all__ = ["FEW", "ScatterCriterion", "TrimmedScatterFit", "fit_trimmed"]


FEW: Final = 5  # rows per feature below which a covariance may be ill-conditioned: Rousseeuw and Van Zomeren (1990)
# Of judging and fitting again. In `benchmarks.calibration scatter` half of the fits need 1 or 2 and the slowest 9, but
# up to a tenth of them go round for ever between verdicts that differ in one or two rows.
ROUNDS: Final = 10
# A row that only so small a share of good ones exceeds is doubted. With half of it or twice as much, a tenth fewer rows
# of a cluster at 5 σ in 50 or 100 rows are found (`benchmarks.calibration scatter`).
DOUBTED: Final = 0.1
FAINT: Final = 0.01  # what a doubted row counts: next to nothing, and it is an inlier all the same


class ScatterModel(Protocol):
    """What a model of some of the rows has."""

    @property
    def w(self) -> np.ndarray:
        """The weights of the rows in it."""

    def squared_distances(self, A: np.ndarray, /) -> np.ndarray:
        """How far rows are from it."""


Model = TypeVar("Model", bound=ScatterModel)


class ScatterCriterion(ABC, Generic[Model]):
    """What is minimised over the h rows kept of ``data``, and how rows are judged by the minimum."""

    data: FeatureRows

    @abstractmethod
    def search(self, h: float) -> Model:
        """The best fit to h rows that is found from many starts."""

    @abstractmethod
    def concentrate(self, model: Model, h: float) -> Model:
        """The fit to h rows that concentration steps from another one lead to."""

    @abstractmethod
    def judge(self, model: Model, h: float) -> JudgedScatter[Model]:
        """Every row by a trimmed fit to h rows."""

    @abstractmethod
    def refit(self, w: np.ndarray, near: Model, h: float) -> JudgedScatter[Model] | None:
        """The fit to rows of these weights, and every row by it, at least h being good; None where they are too few."""

    def doubts(self, judged: JudgedScatter[Model]) -> bool:
        """Whether rows lie apart by more than chance, and others like them may be among the inliers."""
        return False

    def beyond_chance(self, model: Model, off: np.ndarray, expected: float | None = None) -> np.ndarray:
        """Those of the rows off that are apart from the others by more than chance, if these are normal; expected: as
        in `chance.beyond_chance`."""
        d2 = model.squared_distances(self.data.X)
        return chance.beyond_chance(self.data.X, self.data.s, d2, off, expected)

    def group(self) -> np.ndarray | None:
        """The smaller of two groups into which all rows fall by more than chance; None where they do not."""
        return None

    def weight(self, w: np.ndarray) -> float:
        """The sum of the sample weights times w."""
        return float(self.data.s @ w)


@final
@dataclass(frozen=True)
class TrimmedScatterFit(Generic[Model]):
    """The trimmed fit to h rows; what is judged by it; and the same for the fit to the rows that it explains."""

    raw: Model
    h: float
    trimmed: JudgedScatter[Model]
    final: JudgedScatter[Model]


def fit_trimmed(
    criterion: ScatterCriterion[Model], shape: tuple[float, int], h: float | None, start: Model | None, reweight: bool
) -> TrimmedScatterFit[Model]:
    """Fit h of the rows, beginning at ``start`` where there is one, and what that explains if ``reweight``.

    shape: the weight of all rows, and the number of features. h = None: as many as are good, after a first fit that
    as many bad rows as possible cannot spoil.
    """
    kept = least = default_h(*shape) if h is None else h
    raw = criterion.search(kept) if start is None else criterion.concentrate(start, kept)
    trimmed = first = criterion.judge(raw, kept)
    if h is None:  # the share of bad rows is known now: more can be kept
        kept = max(kept, min(shape[0] * (1.0 - trimmed.verdict.contamination), criterion.weight(trimmed.cut.weights)))
        raw = criterion.concentrate(raw, kept)
        trimmed = criterion.judge(raw, kept)
    if not reweight:
        return TrimmedScatterFit(raw, kept, trimmed, trimmed)
    if h is not None:
        return TrimmedScatterFit(raw, kept, trimmed, _readmitted(criterion, trimmed, kept))
    final = _readmitted(criterion, first, least, _undoubted)
    if criterion.doubts(final):
        final = _with_expected(criterion, final, least)
    else:
        final = _not_by_chance(criterion, _readmitted(criterion, trimmed, kept), kept)
    return TrimmedScatterFit(raw, kept, trimmed, _beside_a_group(criterion, final, least))


def _explained(judged: JudgedScatter[Model]) -> np.ndarray:
    """What rows count where a fit is to have all that it explains."""
    return judged.cut.weights


def _undoubted(judged: JudgedScatter[Model]) -> np.ndarray:
    """What rows count where a fit must not have bad ones: of a cluster part of the rows always seems to be explained,
    and each round of a fit to these explains more of the others."""
    return judged.cut.weights * np.where(judged.p_values > DOUBTED, 1.0, FAINT)


def _readmitted(
    criterion: ScatterCriterion[Model],
    trimmed: JudgedScatter[Model],
    h: float,
    weights: Callable[[JudgedScatter[Model]], np.ndarray] = _explained,
) -> JudgedScatter[Model]:
    """The fit to the rows that a fit explains, and every row by it, until these are the same; at least h being good."""

    def refit(rows: np.ndarray, last: JudgedScatter[Model]) -> JudgedScatter[Model] | None:
        return criterion.refit(weights(last), last.model, h)

    return readmit(trimmed, trimmed.verdict, refit, lambda judged: judged.verdict, ROUNDS)[0]


def _with_expected(criterion: ScatterCriterion[Model], judged: JudgedScatter[Model], h: float) -> JudgedScatter[Model]:
    """The same with the doubted rows in the fit, if they are no more than good ones explain, or bad ones lie apart
    from all others; once only, and only where most rows left out are still bad by it."""
    doubted = judged.p_values <= DOUBTED
    expected = DOUBTED / (1.0 - DOUBTED) * criterion.weight(~doubted)
    if not judged.cut.apart and criterion.weight(doubted & judged.verdict.inliers) > expected:
        return judged
    again = criterion.refit(judged.cut.weights, judged.model, h) or judged
    return judged if _mostly_good(criterion, judged.cut.weights == 0, again) else again


def _mostly_good(criterion: ScatterCriterion[Model], rows: np.ndarray, judged: JudgedScatter[Model]) -> bool:
    """Whether most of some rows are inliers."""
    return criterion.weight(rows & judged.verdict.inliers) > 0.5 * criterion.weight(rows)


def _beside_a_group(criterion: ScatterCriterion[Model], judged: JudgedScatter[Model], h: float) -> JudgedScatter[Model]:
    """The same, or the fit to the larger of two groups where most of the smaller one was taken for good."""
    group = criterion.group()
    if group is None or not _mostly_good(criterion, group, judged):
        return judged
    again = criterion.refit(np.where(group, 0.0, 1.0), judged.model, h)
    if again is None:
        return judged
    again = _readmitted(criterion, again, h, _undoubted)
    return judged if _mostly_good(criterion, group, again) else again


def _not_by_chance(criterion: ScatterCriterion[Model], judged: JudgedScatter[Model], h: float) -> JudgedScatter[Model]:
    """The same where it was not chance that set rows apart: a fit to few rows, chosen for being near, has others far
    from it in any case.

    Where chance may be the reason, all is judged again, beginning with all rows but those beyond chance.
    """
    last = inf
    while True:
        off = ~judged.verdict.inliers
        apart = criterion.beyond_chance(judged.model, off)
        if np.array_equal(apart, off) or not criterion.weight(apart) < last:
            return judged
        again = criterion.refit(np.where(apart, 0.0, 1.0), judged.model, h)
        if again is None:
            return judged
        judged, last = _readmitted(criterion, again, h), criterion.weight(apart)
