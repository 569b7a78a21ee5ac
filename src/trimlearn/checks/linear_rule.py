"""Whether a target is an exact sum of multiples of other columns: total = 2 a + b, or 1.8 °C + 32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trimlearn._utils.arrays import Flags, Floats

__all__ = ["linear_rule"]

COLUMNS = 25  # that are tried together, a limit on time
ROWS = 1_000  # that factors are learnt from, a limit on time; all rows are compared with what comes out
PER_COLUMN = 4  # rows for each factor: with fewer, factors that hold in most rows may be found for anything
MISSING = 0.2  # of the cells of a column: one that lacks more is part of no rule
STEPS = 30  # of weighted least squares: each makes the sum of absolute errors smaller, 10 to 20 settle it
CLOSE = 3.0  # units of the last digit: rows this near to what is learnt have the last say on the factors
DECIMALS = 4  # of a factor that people write: 0.0254 metres are an inch
FAR, HIGH = 3.0, 0.9  # times that quantile of the deviations from the median: numbers further off may be wrong
SMALL = 1e-12  # beside the largest singular value: less is rounding


def linear_rule(
    y: Floats, columns: dict[str, Floats], unit: float, holds: Callable[[Floats], Flags], share: float
) -> tuple[str, Floats] | None:
    """The rule in words and what it says for each row; None where no factors with few decimals hold in most rows.

    Parameters
    ----------
    y : ndarray
        The target, NaN where it is missing.
    columns : dict of str to ndarray
        The other numbers.
    unit : float
        Of the last digit of the target.
    holds : callable
        Tells in which rows the target is what it is given.
    share : float
        Of the rows in which it must hold.

    Examples
    --------
    >>> a, b = np.random.default_rng(0).integers(1, 50, (2, 80)).astype(float)
    >>> y = 2 * a + b
    >>> linear_rule(y, {"a": a, "b": b}, 1.0, lambda value: np.abs(y - value) < 0.5, 0.8)[0]
    '2 × a + b'
    """
    names = [name for name, x in columns.items() if np.mean(~np.isfinite(x)) <= MISSING][:COLUMNS]
    if not names or not unit > 0:
        return None
    X = np.column_stack([*(columns[name] for name in names), np.ones(len(y))])
    known = np.flatnonzero(np.isfinite(X).all(axis=1) & np.isfinite(y))
    if len(known) < PER_COLUMN * X.shape[1]:
        return None
    rows = known[:: max(1, len(known) // ROWS)]
    rows = rows[_ordinary(X[rows])]
    factors = _factors(X[rows], y[rows], unit)
    for decimals in range(DECIMALS + 1):
        rounded = np.round(factors, decimals)
        if not rounded[:-1].any():
            continue
        value = np.asarray(X[:, rounded != 0] @ rounded[rounded != 0])
        if holds(value).sum() >= share * np.isfinite(value).sum():
            return _words(names, rounded), value
    return None


def _ordinary(X: Floats) -> Flags:
    """The rows without numbers far from all others: one of them pulls factors as a hundred do."""
    away = np.abs(X - np.median(X, axis=0))
    return np.asarray((away <= FAR * np.maximum(np.quantile(away, HIGH, axis=0), 1e-300)).all(axis=1))


def _factors(X: Floats, y: Floats, unit: float) -> Floats:
    """Those of the least absolute errors, by weighted least squares; then of the rows that they explain."""
    scale = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)
    X = X / scale
    weights = np.ones(len(y))
    for _ in range(STEPS):
        root = np.sqrt(weights)
        beta = np.linalg.lstsq(X * root[:, None], y * root, rcond=SMALL)[0]
        weights = 1.0 / np.maximum(np.abs(y - X @ beta), unit)
    near = np.abs(y - X @ beta) <= CLOSE * unit
    if np.count_nonzero(near) >= PER_COLUMN * X.shape[1]:
        beta = np.linalg.lstsq(X[near], y[near], rcond=SMALL)[0]
    return np.asarray(beta / scale)


def _words(names: list[str], factors: Floats) -> str:
    """2 × a + b − 32."""
    said = ""
    for name, factor in zip([*names, ""], factors.tolist(), strict=True):
        if factor:
            size = f"{abs(factor):.10g}"
            term = size if not name else name if size == "1" else f"{size} × {name}"
            sign = " − " if factor < 0 else " + "
            said += (sign if said else sign.strip().replace("+", "")) + term
    return said
