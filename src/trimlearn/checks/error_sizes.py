"""How large errors of a number are, row by row: by what is predicted, and by what the other columns tell.

Errors of a large house's price are larger than those of a small one's, and those of a castle's larger than of both.
Where that is not known, all castles are wrong.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from trimlearn.checks.findings import Flags, Floats

__all__ = ["TINY", "error_sizes", "local_scale", "telling_rows"]

WINDOW, SHARE = 40, 0.125  # rows at least, and share of them, whose median gives the size of errors near a prediction
KNOTS = 50  # predictions at which it is taken, a limit on time; between them it is interpolated
CHANCE = 1.165  # over √k is the standard deviation of the logarithm of a median of k half-normal errors
LOWEST = 0.3  # of the common size: rows that happen to be fitted well are no reason to call the next one wrong
EXACT, MANY = 1e-6, 0.6  # of the mean error: no error at all; and the share of rows that have one as a rule
TINY = 1e-12  # a scale whose logarithm is finite
FITTED = 3_000  # rows that the sizes are learnt from, a limit on time: one or two seconds
FEWEST = 100  # rows: of fewer, ten in each leaf are all there is to learn
TREES, LEAF = 100, 10  # some 37 have not seen a row; the mean of ten logarithms of errors has a deviation of a third
MOST_FEATURES = 10  # that a split chooses from; a limit on time: of half of 50, three forests took 50 s on 100,000 rows
SMALLEST = 0.05  # the share of smallest errors that count alike: the logarithm of one near 0 tells nothing
# Of the variance of the logarithms of errors, what the other columns must explain to be believed. Where sizes depend on
# nothing they explain -0.08 to 0.01 of it, where they do 0.1 to 0.45, on real tables of 130 to 900 rows.
EXPLAINED = 0.02


def error_sizes(predicted: Floats, r: Floats, floor: float, X: Floats | None = None, seed: int = 0) -> Floats:
    """The typical |r| of each row, of residuals r about predictions by models that have not seen it.

    By the prediction alone, unless a forest finds that the features X tell more: each row is judged by trees that have
    not seen it.

    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([1.0, 20.0], 200)
    >>> sizes = error_sizes(np.zeros(400), kind * rng.normal(size=400), 0.0, kind[:, None])
    >>> bool(np.median(sizes[200:]) > 10 * np.median(sizes[:200]))
    True
    """
    near = local_scale(predicted, r, floor)
    if X is None or len(r) < FEWEST or not telling_rows(r, floor).all():
        return near
    a = np.abs(r)
    logs = np.log(np.maximum(a, max(float(np.quantile(a, SMALLEST)), floor, TINY)))
    learnt, explained = _by_features(np.column_stack([X, predicted]), logs, seed)
    if explained < EXPLAINED:
        return near
    size = np.exp(learnt)
    size *= float(np.median(a / size))
    return np.maximum(size, max(LOWEST * float(np.median(a)), floor, TINY))


def _by_features(X: Floats, logs: Floats, seed: int) -> tuple[Floats, float]:
    """The logarithm that the features expect, and which share of its variance they explain, both out of the bag."""
    rows = np.arange(len(logs))
    if len(rows) > FITTED:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), FITTED, replace=False))
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAF,
        max_features=min(MOST_FEATURES, (X.shape[1] + 1) // 2),
        bootstrap=True,
        oob_score=True,
        random_state=seed,
    ).fit(X[rows], logs[rows])
    unseen = np.asarray(forest.oob_prediction_, dtype=np.float64)
    explained = 1 - float(np.mean((logs[rows] - unseen) ** 2)) / max(float(np.var(logs[rows])), TINY)
    if len(rows) == len(logs):
        return unseen, explained
    learnt = np.asarray(forest.predict(X), dtype=np.float64) if explained >= EXPLAINED else np.zeros(len(logs))
    learnt[rows] = unseen
    return learnt, explained


def telling_rows(r: Floats, floor: float) -> Flags:
    """Which rows tell how large errors are. Where most numbers are the same and predicted exactly, the others do."""
    off = np.abs(r) > EXACT * max(float(np.mean(np.abs(r))), floor)
    return off if off.mean() < MANY else np.ones(len(r), dtype=bool)


def local_scale(predicted: Floats, r: Floats, floor: float) -> Floats:
    """The median |r| among rows of about this prediction, drawn to that of all rows as far as it may differ by chance.

    >>> level = np.repeat([1.0, 10.0], 500)
    >>> r = level * np.random.default_rng(0).normal(size=1000)
    >>> local_scale(level, r, 0.0)[[0, -1]].round(1)
    array([1.3, 5.7])
    """
    n, a, order = len(r), np.abs(r), np.argsort(predicted, kind="stable")
    telling = telling_rows(r, floor)
    common = max(float(np.median(a[telling])) if telling.any() else 0.0, floor, TINY)
    width = min(n, max(WINDOW, round(SHARE * n)))
    starts = np.unique(np.linspace(0, n - width, KNOTS).astype(np.int64))
    windows = [order[start : start + width] for start in starts]
    at = np.array([np.median(predicted[rows]) for rows in windows])
    size = np.log([max(float(np.median(a[rows])), LOWEST * common) for rows in windows])
    varies = float(np.var(size))
    trust = max(0.0, 1 - CHANCE**2 / width / varies) if varies > 0 else 0.0  # James and Stein (1961)
    near = trust * np.interp(predicted, at, size) + (1 - trust) * np.log(common)
    return np.asarray(np.exp(near), dtype=np.float64)
