"""Rows with labels, and what models say of them: all rows of this process, or those of a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.special import expit

from trimlearn._utils.threads import each, filled, total
from trimlearn.robust.labels.flexible_models import FlexibleModels, calibrated
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.robust.trimming import pieces_of

PIECE = 1 << 16  # rows whose labels are judged in one go by a thread: a limit on memory, a few MB for ten classes
TINY = 1e-300  # in place of odds of 0, whose logarithm is none: a normal number, whose inverse is still finite


def label_pieces(n: int) -> list[slice]:
    """n rows in pieces."""
    return pieces_of(n, PIECE)


@final
@dataclass(frozen=True, eq=False)
class LabelJudge:
    """Who judges labels: a linear model; and the flexible ones of a sample where these are asked too, all calibrated as
    the noise model has it."""

    coef: np.ndarray
    intercept: np.ndarray
    flexible: FlexibleModels | None = None
    noise: LabelNoise | None = None

    @classmethod
    def of(cls, fitted: Any, flexible: FlexibleModels | None = None, noise: LabelNoise | None = None) -> Self:
        """By a linear model that was fitted."""
        return cls(np.asarray(fitted.coef_), np.asarray(fitted.intercept_), flexible, noise)

    def opinion(self, X: Any) -> np.ndarray:
        """Predictions for rows: (m, K), of two classes the log-odds (m, 1)."""
        z = np.asarray(X @ self.coef.T.astype(X.dtype) + self.intercept.astype(X.dtype))
        if self.flexible is None or self.noise is None:
            return z
        return calibrated(self.noise, [two_columns(z), *self.flexible.predictions(X)]).astype(np.float32)


@final
@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows X with the numbers of their classes, of which there are K, and sample weights s, None where every row counts
    once. z: an opinion of them that is held, in place of that of any judge."""

    X: Any
    codes: np.ndarray
    K: int
    s: np.ndarray | None = None
    z: np.ndarray | None = None

    @property
    def n(self) -> int:
        """How many they are."""
        return int(self.X.shape[0])

    def holding(self, judge: LabelJudge) -> LabelledRows:
        """The same, with the judge's opinion held."""
        z = np.empty((self.n, 1 if self.K == 2 else self.K), self.X.dtype if judge.flexible is None else np.float32)
        return replace(self, z=filled(z, lambda at: judge.opinion(self.X[at]), label_pieces(self.n)))

    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        """How many rows of each class have each label, (K, K)."""

        def count(at: slice) -> np.ndarray:
            P, codes = self._classes(judge, noise, at), self._codes(at)
            P = P if self.s is None else P * self.s[at, None]
            return np.stack([np.bincount(codes, column, self.K) for column in P.T])

        return total(count, label_pieces(self.n), np.zeros((self.K, self.K)))

    def classes(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        """What the labels should have been, as a loss takes it: P(class | x, label), (n, K); of two classes that of the
        second, (n,)."""
        P = np.empty((self.n, 1 if self.K == 2 else self.K), self.X.dtype)
        filled(P, lambda at: self._classes(judge, noise, at)[:, -P.shape[1] :], label_pieces(self.n))
        return P[:, 0] if self.K == 2 else P

    def scored(self, judge: LabelJudge, noise: LabelNoise) -> tuple[np.ndarray, np.ndarray]:
        """The log-odds that labels are wrong, and the classes suggested."""
        scores = np.empty(self.n, np.float32)
        suggested = np.empty(self.n, np.int8 if self.K <= np.iinfo(np.int8).max else np.int32)

        def note(at: slice) -> None:
            scores[at], suggested[at] = _scored(self._opinion(judge, at), self._codes(at), noise)

        each(note, label_pieces(self.n))
        return scores, suggested

    def scores(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        """The log-odds that labels are wrong."""
        return self.scored(judge, noise)[0]

    def suggested(self, judge: LabelJudge, noise: LabelNoise, names: np.ndarray) -> np.ndarray:
        """The names of the classes suggested."""
        return np.asarray(names[self.scored(judge, noise)[1]])

    def verdict(self, judge: LabelJudge, noise: LabelNoise) -> LabelVerdict:
        """On all of them."""
        every = label_pieces(self.n)
        codes = self._codes(slice(None))
        z = np.concatenate([self._opinion(judge, at) for at in every])
        return LabelVerdict(noise, [two_columns(z)], codes, np.ones(self.n) if self.s is None else self.s)

    def kept(self, w: np.ndarray) -> np.ndarray:
        """How much of each label is kept by the weights w."""
        found = np.zeros(self.K)
        for at in label_pieces(self.n):
            found += np.bincount(self._codes(at), w[at] if self.s is None else w[at] * self.s[at], self.K)
        return found

    def _codes(self, at: slice) -> np.ndarray:
        return self.codes[at].astype(np.int64, copy=False)

    def _opinion(self, judge: LabelJudge, at: slice) -> np.ndarray:
        return judge.opinion(self.X[at]) if self.z is None else self.z[at]

    def _classes(self, judge: LabelJudge, noise: LabelNoise, at: slice) -> np.ndarray:
        """P(class | x, label) of some rows, (m, K)."""
        z, codes = self._opinion(judge, at), self._codes(at)
        if self.K > 2:
            return LabelVerdict(noise, [two_columns(z)], codes, np.ones(len(codes))).classes
        wrong, right = _joint(z, codes, noise)
        wrong /= wrong + right
        first = np.where(codes == 1, wrong, 1 - wrong)
        return np.column_stack([first, 1 - first])


def _scored(z: np.ndarray, codes: np.ndarray, noise: LabelNoise) -> tuple[np.ndarray, np.ndarray]:
    """The log-odds that labels are wrong, by predictions z for their rows, and the classes suggested."""
    if z.shape[1] > 1:
        verdict = LabelVerdict(noise, [two_columns(z)], codes, np.ones(len(codes)))
        return verdict.scores, verdict.suggested
    wrong, right = _joint(z, codes, noise)
    scores = np.log(np.maximum(wrong / right, TINY))
    return scores, codes if noise.epsilon == 0 else np.where(scores <= 0, codes, 1 - codes)


def _joint(z: np.ndarray, codes: np.ndarray, noise: LabelNoise) -> tuple[np.ndarray, np.ndarray]:
    """What `LabelNoise` says in fewer steps, for two classes: P(other class)T[other, label], and the same for the class
    that the label names."""
    p, T = expit(np.where(codes == 1, -z[:, 0], z[:, 0]).astype(np.float64)), noise.bounded
    wrong, right = (P * (1 - 2 * noise.floor) + noise.floor for P in (p, 1 - p))
    return wrong * np.array([T[1, 0], T[0, 1]])[codes], right * np.array([T[0, 0], T[1, 1]])[codes]
