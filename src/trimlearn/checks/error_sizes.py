"""How large errors of a number are, row by row: by what is predicted, and by what the other columns tell.

Errors of a large house's price are larger than those of a small one's, and those of a castle's larger than of both.
Where that is not known, all castles are wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from trimlearn._utils.arrays import Flags, Floats

WINDOW, SHARE = 40, 0.125  # rows at least, and share of them, whose median gives the size of errors near a prediction
KNOTS = 50  # predictions at which it is taken, a limit on time; between them it is interpolated
CHANCE = 1.165  # over √k is the standard deviation of the logarithm of a median of k half-normal errors
LOWEST = 0.3  # of the common size: rows that happen to be fitted well are no reason to call the next one wrong
NO_ERROR, MANY = 1e-6, 0.6  # of the mean error: no error at all; and the share of rows that have one as a rule
TINY = 1e-12  # a scale whose logarithm is finite
FOREST_ROWS = 3_000  # up to which sizes are learnt by a forest; of more, boosting learns as much in a tenth of the time
BOOSTED = 5_000  # rows that each of two boosting models learns from, a limit on time: a tenth of a second
# Of these models: on 11 sets of errors they explain as much as 100 trees of a forest do, or more.
SMALL_STEPS: dict[str, Any] = {"max_iter": 40, "max_leaf_nodes": 8, "min_samples_leaf": 50, "max_bins": 63}
FEWEST = 100  # rows: of fewer, ten in each leaf are all there is to learn
TREES, LEAF = 100, 10  # some 37 have not seen a row; the mean of ten logarithms of errors has a deviation of a third
MOST_FEATURES = 10  # that a split chooses from; a limit on time: of half of 50, three forests took 50 s on 100,000 rows
SMALLEST = 0.05  # the share of smallest errors that count alike: the logarithm of one near 0 tells nothing
# Of the variance of the logarithms of errors, what the other columns must explain to be believed. Where sizes depend on
# nothing they explain -0.08 to 0.01 of it, where they do 0.1 to 0.45, on real tables of 130 to 900 rows.
EXPLAINED = 0.02


def error_sizes(predicted: Floats, r: Floats, floor: float, X: Floats | None = None, seed: int = 0) -> Floats:
    """The typical |r| of each row, of residuals r about predictions by models that have not seen it.

    By the prediction alone, unless trees find that the features X tell more: each row is judged by trees that have not
    seen it.

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
    """The logarithm that the features expect, and which share of its variance they explain, both for unseen rows."""
    if len(logs) > FOREST_ROWS:
        return _by_halves(X, logs, seed)
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAF,
        max_features=min(MOST_FEATURES, (X.shape[1] + 1) // 2),
        bootstrap=True,
        oob_score=True,
        random_state=seed,
    ).fit(X, logs)
    unseen = np.asarray(forest.oob_prediction_, dtype=np.float64)
    return unseen, _explained(logs, unseen)


def _by_halves(X: Floats, logs: Floats, seed: int) -> tuple[Floats, float]:
    """The same where rows are many: two boosting models, of some rows each, and each asked about the other's."""
    halves = np.array_split(np.random.default_rng(seed).permutation(len(logs)), 2)
    fitted = [np.sort(half[:BOOSTED]) for half in halves]
    models = [
        HistGradientBoostingRegressor(**SMALL_STEPS, early_stopping=False, random_state=seed).fit(X[rows], logs[rows])
        for rows in fitted
    ]
    asked = [(models[1], fitted[0]), (models[0], fitted[1])]
    unseen = [np.asarray(model.predict(X[rows]), dtype=np.float64) for model, rows in asked]
    explained = _explained(logs[np.concatenate(fitted)], np.concatenate(unseen))
    learnt = np.zeros(len(logs))
    if explained >= EXPLAINED:
        for model, half in zip(models[::-1], halves, strict=True):
            learnt[half] = model.predict(X[half])
    return learnt, explained


def _explained(logs: Floats, unseen: Floats) -> float:
    return 1 - float(np.mean((logs - unseen) ** 2)) / max(float(np.var(logs)), TINY)


def telling_rows(r: Floats, floor: float) -> Flags:
    """Which rows tell how large errors are. Where most numbers are the same and predicted exactly, the others do."""
    off = np.abs(r) > NO_ERROR * max(float(np.mean(np.abs(r))), floor)
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
