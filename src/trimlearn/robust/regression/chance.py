"""Whether clean data would look as bad: with few rows per coefficient, half of them can be fitted far too well."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.scale import judge

Floats = NDArray[np.float64]

FEW_ROWS = 3  # per coefficient: below, the half that is fitted has less than two for each, and clean data look bad
CLEAN_SETS = 9  # simulated: a limit on time, enough to tell what a tenth would look like
CHANCE_LEVEL = 0.01  # of the test: of a hundred clean data sets, one may be called bad (a choice)
SIMULATED = 10_000  # entries of the design up to which they are, a limit on time: they are nine more searches


def are_few(n: int, coefficients: int) -> bool:
    """Whether there are few rows per coefficient.

    >>> are_few(20, 5), are_few(20, 10)
    (False, True)
    """
    return n < FEW_ROWS * coefficients


def looks_by_chance(A: Floats, t: Floats, h: float, s: Floats | None, scale: float, seed: int) -> bool:
    """Whether the residuals of least squares exceed the robust ``scale``, of a fit to h rows, by no more than they do
    in clean data on the design A, simulated; False where A is too large for that, or has no more rows than columns.

    The logarithms of that ratio are taken for normal, and the one seen must lie beyond the interval in which Student's
    law expects another one.

    >>> rng = np.random.default_rng(0)
    >>> A, t = rng.normal(size=(20, 8)), rng.normal(size=20)
    >>> looks_by_chance(A, t, 14, None, scale=0.5, seed=0)
    True
    >>> looks_by_chance(A, np.where(np.arange(20) < 4, 50.0, t), 14, None, scale=0.5, seed=0)
    False
    """
    n, q = A.shape
    if n <= q or A.size > SIMULATED:
        return False
    draw = np.random.Generator(np.random.Philox(key=seed))
    seen = _least_squares_scale(A, t, s) / scale
    clean = np.log([_excess(A, np.asarray(draw.standard_normal(n)), h, s) for _ in range(CLEAN_SETS)])
    reach = stdtrit(CLEAN_SETS - 1, 1 - CHANCE_LEVEL) * clean.std(ddof=1) * sqrt(1 + 1 / CLEAN_SETS)
    return bool(np.log(seen) <= clean.mean() + reach)


def _excess(A: Floats, t: Floats, h: float, s: Floats | None) -> float:
    """The scale of the residuals of least squares, in units of the robust one."""
    r = t - A @ least_trimmed_squares(A, t, h, s).coef
    return _least_squares_scale(A, t, s) / judge(r, h, A.shape[1], s).scale


def _least_squares_scale(A: Floats, t: Floats, s: Floats | None) -> float:
    c = np.ones(len(t)) if s is None else s
    root = np.sqrt(c)
    r = t - A @ np.linalg.lstsq(A * root[:, None], t * root, rcond=None)[0]
    return float(np.sqrt((c @ r**2) / max(c.sum() - A.shape[1], 1.0)))
