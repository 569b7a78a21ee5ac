"""Why some rows lie apart: by error, in a heavy or skewed tail of one law of all rows, or as groups of their own.

Each explanation is a density of the rows, fitted by maximum likelihood, and pays ½ log n for each parameter that the
others have not (Schwarz 1978). The n_b rows that are off are given; that they were chosen for it is in the likelihood,
since n_b log(n_b/n) + n_g log(n_g/n) is nearly minus the logarithm of the number of choices (Symons 1981).

- errors: normal rows; beside them others, in all directions alike, of which log d is normal, or the coordinates are.
- groups: normal rows; beside them one to three groups of the same shape, of another size, each in its place.
- a heavy tail: all rows follow a multivariate t law.
- a skewed tail: all rows are normal after powers or logarithms of the features (Yeo and Johnson 2000). Errors and
  groups may lie beside rows of which that is so.

`python -m benchmarks.calibration explanations` counts what is taken for what.

References: M. J. Symons, Clustering criteria and multivariate normal mixtures, Biometrics 37 (1981). I.-K. Yeo and
R. A. Johnson, A new family of power transformations to improve normality or symmetry, Biometrika 87 (2000).
G. Schwarz, Estimating the dimension of a model, Ann. Statist. 6 (1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi, sqrt
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from trimlearn.robust.cells.transform import ColumnTransform
from trimlearn.robust.scale import TINY
from trimlearn.robust.scatter.chance import PER_DIMENSION, leading_scores
from trimlearn.robust.scatter.steps import FLOOR, Moments, Shrinkage
from trimlearn.robust.scatter.tails import FREEDOMS, SPREAD
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["Explanation", "axes_told", "explanation", "some_rows"]

Explanation = Literal["errors", "heavy tail", "skewed tail", "groups"]
Vector = NDArray[np.float64]

ROWS, AXES, ENTRIES = 1_000, 50, 1_000_000  # that are looked at, limits on time: a second for the most of them
LARGEST: Final = 1e20  # in robust units: the square of any power of it is in range
STEPS: Final = 10  # of EM for a t law, and of k-means, limits on time: each law begins where the last one ended
GROUPS: Final = 3  # as which rows may lie apart: as many more make a ring of errors look like groups
POWERS: Final = np.linspace(-3.0, 5.0, 33)  # of Yeo and Johnson; 0 is the logarithm of values much above the median
DISTINCT: Final = 0.5  # of the values of a feature, at least, that it is transformed: one of few values has no shape
# Logarithm of the likelihood by which a tail must beat normal rows none of which is wrong, and groups errors, to be
# believed: "very strong evidence" by Kass and Raftery (1995), 2 log B > 10.
EVIDENCE: Final = 5.0


def some_rows(far: np.ndarray, s: np.ndarray, features: int) -> NDArray[np.int_]:
    """The numbers of the rows that are looked at: all, or some evenly by how far out they are, whatever the order."""
    rows, most = np.flatnonzero(s > 0), max(10, min(ROWS, ENTRIES // features))
    if len(rows) <= most:
        return rows
    return rows[np.argsort(far[rows], kind="stable")[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]]


def axes_told(total: float) -> int:
    """Along how many axes so many rows, of which half may be off, can tell of."""
    return int(min(AXES, max(1.0, 0.5 * total // PER_DIMENSION)))


def explanation(A: np.ndarray, s: np.ndarray, off: NDArray[np.bool_]) -> Explanation:
    """The likeliest reason why some rows of A, which count s times, are off.

    >>> rng = np.random.default_rng(0)
    >>> A, off = rng.normal(size=(100, 3)), np.arange(100) < 20
    >>> explanation(A + 8.0 * off[:, None] * rng.choice([-1, 1], (100, 3)), np.ones(100), off)
    'errors'
    >>> explanation(A + 8.0 * off[:, None], np.ones(100), off)
    'groups'
    >>> explanation(np.exp(A), np.ones(100), A.sum(axis=1) > 2.0)
    'skewed tail'
    """
    Z = _coordinates(A, s)
    bent, gain = _bent(Z, s, s)
    alone: dict[Explanation, float] = {
        "heavy tail": _t_law(Z, s) - 0.5 * log(float(s.sum())),
        "skewed tail": _normal(bent, s) + gain,
    }
    straight, (bent, gain) = _Beside.of(Z, s, off), _bent(Z, s, s * ~off)
    curved = _Beside.of(bent, s, off)
    if straight is None or curved is None:
        return "errors"
    likeliest = max(alone, key=lambda name: alone[name])
    errors, groups = (max(of(straight), gain + of(curved)) for of in (_Beside.errors, _Beside.groups))
    if alone[likeliest] > max(errors, groups, _normal(Z, s) + EVIDENCE):
        return likeliest
    return "groups" if groups > errors + EVIDENCE else "errors"


def _coordinates(A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The features that vary, in robust units; of many, as many leading principal axes as so many rows can tell of."""
    Z = np.clip(RobustUnits.of(A, s, False).into(A), -LARGEST, LARGEST)
    Z = Z[:, np.ptp(Z, axis=0) > 0]
    axes = axes_told(float(s.sum()))
    return Z if Z.shape[1] <= axes else leading_scores(Z, s)[:, :axes]


@final
@dataclass(frozen=True)
class _Beside:
    """Normal rows, and n_b of n rows beside them: these in coordinates Y in which the others are standard normal."""

    Y: Vector
    c: Vector  # how often each of them counts
    n: float
    base: float  # the log-likelihood of the normal rows, of who is which, and of the change of coordinates

    @classmethod
    def of(cls, Z: np.ndarray, s: np.ndarray, off: NDArray[np.bool_]) -> _Beside | None:
        """None where the others do not vary in all directions: rows off are infinitely far."""
        n, bad, good = float(s.sum()), float(s[off].sum()), float(s[~off].sum())
        at = Moments.of(Z, (s * ~off)[None])
        values, vectors = Shrinkage().eigen(at.S[0])
        if values[0] <= FLOOR:
            return None
        base = _normal(Z[~off], s[~off]) - 0.5 * bad * float(np.log(values).sum())
        split = good * log(good / n) + bad * log(bad / n)
        return cls((Z[off] - at.mu[0]) @ (vectors / np.sqrt(values)), s[off], n, base + split)

    def errors(self) -> float:
        """Of errors in all directions alike: log d is normal, or all coordinates are."""
        bad, k, d2 = float(self.c.sum()), self.Y.shape[1], np.sum(self.Y**2, axis=1)
        y = 0.5 * np.log(np.maximum(d2, TINY))
        mean = float(self.c @ y) / bad
        square = float(self.c @ (y - mean) ** 2)
        spread = sqrt((square + SPREAD**2) / (bad + 1.0))
        sphere = log(2.0) + 0.5 * k * log(pi) - float(gammaln(0.5 * k))  # the log of the surface of the unit sphere
        hump = -bad * (log(spread * sqrt(2.0 * pi)) + sphere + k * mean) - 0.5 * square / spread**2
        wide = -0.5 * bad * k * (1.0 + log(2.0 * pi * max(float(self.c @ d2) / (bad * k), TINY)))
        return float(self.base + max(hump - 1.5 * log(self.n), wide - log(self.n)))

    def groups(self) -> float:
        """Of one group or several: normal as the other rows are, but for the place of each and the size of all."""
        return max((self._groups(number) for number in range(1, GROUPS + 1)), default=-inf)

    def _groups(self, number: int) -> float:
        bad, k = float(self.c.sum()), self.Y.shape[1]
        if bad <= 2 * number:
            return -inf
        member = _nearest(self.Y, self.c, number)
        count = np.array([float(self.c[member == g].sum()) for g in range(number)])
        if not count.all():
            return -inf
        parts = [Moments.of(self.Y, (self.c * (member == g))[None]).S[0] for g in range(number)]
        square = float(count @ [np.trace(S) for S in parts])
        size = (square + k) / (k * (bad + 1.0))  # one row added in thought: copies of a row have no spread of their own
        parameters = number * (k + 1.0) + 1.0
        fit = float(count @ np.log(count / bad)) - 0.5 * k * bad * log(2.0 * pi * size) - 0.5 * square / size
        return float(self.base + fit - 0.5 * parameters * log(self.n))


def _nearest(Y: Vector, c: Vector, number: int) -> NDArray[np.int_]:
    """To which of so many groups each row belongs: k-means, begun at rows as far from each other as can be."""
    centres = Y[[int(np.argmax(np.sum(Y**2, axis=1)))]]
    while len(centres) < number:
        away = np.min([np.sum((Y - centre) ** 2, axis=1) for centre in centres], axis=0)
        centres = np.vstack([centres, Y[np.argmax(away)]])
    member = np.zeros(len(Y), dtype=np.int_)
    for _ in range(STEPS):
        member = np.argmin([np.sum((Y - centre) ** 2, axis=1) for centre in centres], axis=0)
        inside = (member == np.arange(number)[:, None]) * c
        count = inside.sum(axis=1)[:, None]
        centres = np.where(count > 0, inside @ Y / np.maximum(count, TINY), centres)
    return member


def _normal(Z: np.ndarray, s: np.ndarray) -> float:
    """The greatest log-likelihood of a normal law."""
    n, values = float(s.sum()), Shrinkage().eigen(Moments.of(Z, s[None]).S[0])[0]
    return -0.5 * n * float(np.sum(np.log(2.0 * pi * values) + 1.0))


def _t_law(Z: np.ndarray, s: np.ndarray) -> float:
    """The greatest log-likelihood of a multivariate t law, of the degrees of freedom tried."""
    n, k = float(s.sum()), float(Z.shape[1])
    at, best = Moments.of(Z, s[None]), -inf
    for m in FREEDOMS[1:]:
        for _ in range(STEPS):
            w = s * (m + k) / (m + at.squared_distances(Z, Shrinkage())[0])
            mean, S = Moments.of(Z, w[None])
            at = Moments(mean, S * float(w.sum()) / n)
        d2 = at.squared_distances(Z, Shrinkage())[0]
        volume = 0.5 * float(np.sum(np.log(Shrinkage().eigen(at.S[0])[0]))) + 0.5 * k * log(m * pi)
        constant = float(gammaln(0.5 * (m + k)) - gammaln(0.5 * m)) - volume
        best = max(best, n * constant - 0.5 * (m + k) * float(s @ np.log1p(d2 / m)))
    return best


def _bent(Z: np.ndarray, s: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, float]:
    """The columns by the powers of Yeo and Johnson that make each likeliest to be normal for rows that count c times;
    and the log of by how much densities of all rows change, less what the powers cost."""
    Z, gain, n = np.array(Z), 0.0, float(s.sum())
    for j, x in enumerate(Z.T):
        if len(np.unique(x)) > max(2.0, DISTINCT * len(x)):
            curves = [ColumnTransform("yeo-johnson", float(power), 0.0, 1.0, 0.0, 0.0, 1.0) for power in POWERS]
            bent = np.column_stack([curve.into(x) for curve in curves])
            slopes = np.column_stack([curve.log_slope(x) for curve in curves])
            variance = c @ (bent - c @ bent / c.sum()) ** 2 / c.sum()
            best = int(np.argmax(c @ slopes - 0.5 * c.sum() * np.log(np.maximum(variance, TINY))))
            Z[:, j], gain = bent[:, best], gain + float(s @ slopes[:, best]) - 0.5 * log(n)
    return Z, gain
