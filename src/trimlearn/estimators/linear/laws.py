"""What ``loss`` of a TrimmedGLM stands for: a family of laws, or a classical robust loss of the residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import final

import numpy as np

from trimlearn._utils.validation import check_choice, check_magnitude, check_positive
from trimlearn.estimators.linear.examples import Examples
from trimlearn.inference.families import Family, family
from trimlearn.losses import Gamma, Huber, Logistic, Poisson, SmoothL1, StudentT
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.linear import Layer
from trimlearn.robust.distinct import row_hashes
from trimlearn.robust.labels.copies import are_observations, kish_weights
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.scale import rounding_floor
from trimlearn.robust.verdict import Verdict

FAMILIES: dict[str, Callable[..., PredictionLoss]] = {"poisson": Poisson, "gamma": Gamma, "binomial": Logistic}
# What y may be: the support of each law.
RANGES = {"poisson": (0.0, inf, "counts >= 0"), "gamma": (0.0, inf, "amounts > 0"), "binomial": (0.0, 1.0, "0 to 1")}
# The robust losses, and what ``shape`` is by default: 95 % efficient where errors are normal (Holland and Welsch 1977);
# the degrees of freedom that Lange, Little and Taylor (1989) advise; a tip that is narrow beside the scale.
SHAPES = {"huber": 1.345, "student_t": 4.0, "l1": 0.01}
USUAL = 2.5  # the score above which a label is called an outlier where none of the training data was: as in `judge`
TRIALS = 100  # the most that shares show: two digits are as many as are written down, and of more the floor is low
SAME_SHARE = 1e-4  # of a trial: shares of 100 in float32 are right to 1e-5 of one
ROUNDING = 1e-9  # a score that is less by this share is the same but for rounding


@final
@dataclass(frozen=True)
class RegressionLaw:
    """The law of y given z = ⟨v, x⟩ + x₀, by its name; ``shape``: of a robust loss, None for the usual one."""

    loss: str
    shape: float | None = None

    @property
    def is_family(self) -> bool:
        """Whether it is a law, and not only a loss."""
        return self.loss in FAMILIES

    @property
    def family(self) -> Family:
        return family(self.loss if self.is_family else "normal")

    @property
    def _shape(self) -> float:
        return SHAPES[self.loss] if self.shape is None else self.shape

    def check(self, data: Examples) -> None:
        """Check the name, the shape, and what they ask of the data."""
        check_magnitude(data.X, "X")
        check_choice(self.loss, (*FAMILIES, *SHAPES), "loss")
        if not self.is_family:
            check_magnitude(data.t, "y")
            check_positive(self._shape, "shape")
            return
        low, high, words = RANGES[self.loss]
        bad = (data.t <= low) if self.loss == "gamma" else (data.t < low) | (data.t > high)
        if bad.any():
            raise ValueError(f"Some value(s) of y are out of the valid range of loss={self.loss!r}: {words}.")

    def check_both_labels(self, data: Examples) -> None:
        """Refuse labels of one class only, in all rows that count: a block of them may well hold one."""
        there = data.t if data.s is None else data.t[data.s > 0]
        if self.loss == "binomial" and are_labels(there) and np.ptp(there) == 0:
            raise ValueError(f"y holds one class only, {there[0]:g}; loss='binomial' needs both 0 and 1.")

    def make(self, rows: Examples, unit: float, intercept: bool) -> PredictionLoss:
        """The loss of these rows. unit: of the residuals."""
        X, t, layer = rows.X, rows.t, Layer(intercept=intercept)
        if self.is_family:
            return FAMILIES[self.loss](X, t, **layer)
        if self.loss == "huber":
            return Huber(X, t, delta=self._shape * unit, **layer)
        if self.loss == "student_t":
            return StudentT(X, t, nu=self._shape, sigma=unit, **layer)
        return SmoothL1(X, t, eps=self._shape * unit, **layer)

    def residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Residuals, signed, that are about normal where the model holds: of a family, those of the deviance."""
        if not self.is_family:
            return np.asarray(t - z)
        f, slope = self.family.evaluate(z.astype(np.float64), t.astype(np.float64))
        return np.asarray(-np.sign(slope) * np.sqrt(2 * np.maximum(f, 0)))

    def size(self, t: np.ndarray) -> float:
        """The spread of the residuals where it is known, else 0: that of counts and labels is. Shares come from unknown
        numbers of trials, of which the fewest are known."""
        if self.loss == "poisson":
            return 1.0
        return fewest_trials(t) ** -0.5 if self.loss == "binomial" else 0.0

    def floor(self, t: np.ndarray) -> float:
        """What the scale of the residuals cannot be below."""
        return max(self.size(t), rounding_floor(np.ones(1) if self.is_family else t))

    def evidence(self, rows: Examples) -> Examples:
        """The rows weighed by how many observations they are. Rows that are there several times with other targets are
        observations. Of other weights, such as shares of many trials and of few, they prove no more than so many equal
        ones."""
        if rows.s is None:
            return rows
        s = rows.s.astype(np.float64)
        trials = self.loss == "binomial" and np.allclose(s * rows.t, np.round(s * rows.t))
        counts = not trials and are_observations(row_hashes(rows.X), rows.t, s)
        return replace(rows, s=s if counts else kish_weights(s))

    def half(self, rows: Examples, coefficients: int, labels: JudgedLabels | None) -> float:
        """The rows to keep while nothing is known: see `half_of`. Of labels, as many as are right."""
        if labels is not None:
            return max(half_of(rows.S, rows.S, coefficients), rows.S * (1 - labels.verdict.noise.epsilon))
        s = np.ones(rows.n) if rows.s is None else rows.s
        return half_of(rows.S, min(float(s[off].sum()) for off in self.off_bounds(rows.t)), coefficients)

    def off_bounds(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which targets are not the least that the law knows, and which are not the largest."""
        low, high, _ = RANGES.get(self.loss, (-inf, inf, ""))
        return t > low, t < high


NORMAL_ERRORS = RegressionLaw("normal")  # about a linear model


def half_of(total: float, events: float, coefficients: int) -> float:
    """The rows to keep of so many, of which ``events`` do not lie at a bound of the law: half of these, and half a row
    more for each coefficient, besides the others. A fit to rows that are all 0, or to few others, explains them
    perfectly, by means of 0."""
    return min(total, total - events + (events + coefficients + 1) // 2)


def fewest_trials(t: np.ndarray) -> float:
    """The fewest trials of which all these can be shares, inf for more than `TRIALS`: 1 for labels. Shares of so many
    have residuals of a deviance whose size is about 1/√trials.

    >>> fewest_trials(np.array([0.0, 0.5, 1.0])), fewest_trials(np.array([0.2, 0.5])), fewest_trials(np.array([0.123]))
    (2, 10, inf)
    """
    shares = np.unique(t).astype(np.float64)
    whole = (m for m in range(1, TRIALS + 1) if np.all(np.abs(m * shares - np.round(m * shares)) < SAME_SHARE))
    return next(whole, inf)


def are_labels(t: np.ndarray) -> bool:
    """Whether there is nothing but 0 and 1."""
    return bool(np.all((t == 0) | (t == 1)))


def verdict_on_labels(labels: JudgedLabels, scores: np.ndarray, share: float | None) -> Verdict:
    """By models that have not seen the labels. The cut-off is that of the scores, for rows to come."""
    inliers = labels.verdict.keep(share) > 0
    cutoff = max(USUAL, float(scores.max())) if inliers.all() else float(scores[~inliers].min()) * (1 - ROUNDING)
    return Verdict(1.0, cutoff, inliers, labels.verdict.noise.epsilon)
