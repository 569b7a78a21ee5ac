"""Centre and covariance of a table of which some cells are wrong, and the cells that they do not explain.

Detection and estimation in turn: given a centre and a covariance, `explain` sets aside the cells that do not fit;
given those, mean and covariance are estimated anew, the cells aside taken for missing (one step of the EM algorithm,
in which each counts as its expectation, plus its conditional covariance). It starts from a correlation matrix that no
single cell can move far, that of wrapped data.

J. Raymaekers and P. J. Rousseeuw (2021), Handling cellwise outliers by sparse regression and robust covariance; the
same (2021), Fast robust correlation for high-dimensional data, Technometrics 63; the same (2023), The cellwise minimum
covariance determinant estimator, Journal of the American Statistical Association.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.cells.rows import JudgedCells, conditional, explain
from trimlearn.robust.cells.tails import LEVEL, Tail, tails
from trimlearn.robust.scale import judge

__all__ = ["CellModel", "fit_cells"]

ROUNDS = 20  # at most, a limit on time: most flags stay the same after 5 to 10
EVERY = 2  # rounds in which every ridge is tried: then the covariance changes little, and so does the best one
SETTLED = 3e-4  # the share of cells that may still change: far below that of wrong ones that anybody looks for
# The share, and the number, of cells that may still change at the end without a word: cells at the border.
NEARLY_SETTLED, FEW = 0.01, 3
# Shares of the identity in the correlation matrix, one of which is chosen by leaving out one row at a time.
RIDGES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 0.6)
# The wrapping function of the paper: linear up to b, then bent down to 0 at c; q1 and q2 as given there.
WRAP_B, WRAP_C, WRAP_Q1, WRAP_Q2 = 1.5, 4.0, 1.540793, 0.8622731
# Of the cells of a column: more are not set aside, or a column comes to agree with ever fewer cells of its own. The
# cellwise MCD has 0.25, but random dirt in 20 % of all cells hits 40 % of a column where there are few rows.
MOST = 0.45
# By what 1 + SMALL/n the scales of columns of n residuals are enlarged, so that 1 to 2 % of the cells of clean normal
# tables are flagged from n = 10 on; with 3 it is 3 % (python -m benchmarks.calibration cells).
SMALL = 10.0
NEARLY = 1.0 - 1e-9  # of a leverage, whose most is 1: beyond, its digits are rounding
LEAST = 1e-3  # of a scale in units of the model's: an exact fit
HALF = 0.5  # of the rows that a scale is asked to trust: the largest breakdown

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class CellModel:
    """Rows z have the centre ``mu`` and the covariance ``Sigma``, inverse ``P``. What the others expect of a cell in
    column j is missed by ``unit[j]`` times the σ of the model, and by the law ``laws[j]`` in units of that."""

    mu: Floats
    Sigma: Floats
    P: Floats
    unit: Floats
    laws: tuple[Tail, ...]
    ridge: float

    def explain(self, Z: Floats, level: float = LEVEL, count_lost: bool = True) -> JudgedCells:
        """The cells of rows Z, NaN where missing, that deviate: ordinary ones do so with the probability ``level``."""
        cutoff = np.array([law.upper(level) for law in self.laws])
        found = explain(Z - self.mu, self.Sigma, self.P, self.unit, cutoff, count_lost)
        return replace(found, expected=found.expected + self.mu)

    def p_values(self, scores: Floats) -> Floats:
        """How likely an ordinary cell is to be as far off, by the scores of `explain`."""
        return np.column_stack([law.p_value(s) for law, s in zip(self.laws, scores.T, strict=True)])


def fit_cells(Z: Floats) -> tuple[CellModel, bool]:
    """The model of the cells of Z, (n, p) with columns about standard normal in their bulk, NaN where missing; and
    whether the flags have settled, or nearly.

    In small tables they may go round: with some cells aside others deviate, and without these the first. Of the models
    on such a round the one with the fewest flags is taken.
    """
    model, trail = _start(Z), list[tuple[CellModel, Flags]]()
    for k in range(ROUNDS):
        cells = model.explain(Z)
        changed = [int(np.count_nonzero(cells.mask != mask)) for _, mask in trail]
        trail.append((model, cells.mask))
        again = [i for i, cells_changed in enumerate(changed) if cells_changed <= SETTLED * Z.size]
        if again:
            return min(trail[again[-1] + 1 :], key=lambda pair: np.count_nonzero(pair[1]))[0], True
        model = _estimated(Z, cells, model.ridge if k > EVERY else 0.0)
    return model, changed[-1] <= max(NEARLY_SETTLED * Z.size, FEW)


def _start(Z: Floats) -> CellModel:
    """The covariance of ψ(z): far and missing cells count as the centre, and no cell for more than 1.5 σ or so."""
    a = np.abs(np.where(np.isfinite(Z), Z, np.inf))
    bent = np.where(a < WRAP_C, WRAP_Q1 * np.tanh(WRAP_Q2 * (WRAP_C - np.minimum(a, WRAP_C))), 0.0)
    W = np.where(a <= WRAP_B, a, bent) * np.where(np.isfinite(Z), np.sign(Z), 0.0)
    W = np.where(W != 0, W - W.sum(axis=0) / np.maximum(np.count_nonzero(W, axis=0), 1), 0.0)
    size = np.sqrt(np.mean(W**2, axis=0))
    W = W / np.where(size > 0, size, 1.0)
    model, _ = _best_ridge(np.zeros(Z.shape[1]), W, W.T @ W / len(W), W != 0)
    return model


def _best_ridge(mu: Floats, F: Floats, S: Floats, known: Flags, near: float = 0.0) -> tuple[CellModel, Floats]:
    """The model with the share of its diagonal in the covariance, the ridge, that predicts the known cells of F best,
    rows left out in turn; and what it misses. ``near``: the ridges about this one are tried, all of them for 0."""
    at = RIDGES.index(near) if near else 0
    scale = np.sqrt(np.maximum(np.diag(S), 1e-12))
    out = np.outer(scale, scale)
    values, V = np.linalg.eigh(S / out)
    sizes = {
        ridge: np.maximum((1.0 - ridge) * values + ridge, min(ridge, 1e-4))
        for ridge in (RIDGES[max(at - 1, 0) : at + 2] if near else RIDGES)
    }
    left = {ridge: _left_out(F, (V / size) @ V.T / out, ridge, known) for ridge, size in sizes.items()}
    ridge = min(left, key=lambda ridge: _loss(left[ridge], known))
    size, normal = sizes[ridge], (Tail(np.inf, 1.0),) * len(mu)
    model = CellModel(mu, (V * size) @ V.T * out, (V / size) @ V.T / out, np.ones(len(mu)), normal, ridge)
    return model, left[ridge]


def _estimated(Z: Floats, cells: JudgedCells, near: float) -> CellModel:
    """Mean and covariance with the cells aside taken for missing; the ridge that predicts best; the columns' units."""
    rows = cells.trusted
    n = int(rows.sum())
    filled = np.where(cells.aside, cells.expected, Z)[rows]
    mu = filled.mean(axis=0)
    S = (filled - mu).T @ (filled - mu) / n + cells.lost / n
    known, off = ~cells.aside[rows], (Z - cells.expected)
    best, left = _best_ridge(mu, filled - mu, S, known, near)
    residuals = np.where(cells.mask, off, np.nan)
    residuals[rows] = np.where(known, left, residuals[rows])
    unit, laws = _units(residuals * np.sqrt(np.diag(best.P)))
    return replace(best, unit=unit, laws=tuple(laws))


def _left_out(F: Floats, P: Floats, ridge: float, known: Flags) -> Floats:
    """What each known cell is off by, given the other known ones, if its row is left out of the covariance.

    That is Σ − a·zzᵀ, inverted by a rank-one update; a = 1/(n − 1), since the row leaves the mean as well, and is n/(n
    − 1) times as far from the mean of the others. Cells that were filled in take no part: they know the others.
    """
    n = len(F)
    G, diagonal = conditional(F, ~known, P)
    a = (1.0 - ridge) / max(n - 1, 1)
    q = np.minimum(a * np.einsum("ij,ij->i", np.where(known, F, 0.0), G), NEARLY)[:, None]
    return np.asarray(n / max(n - 1, 1) * G / ((1.0 - q) * diagonal + a * G**2))


def _loss(left: Floats, known: Flags) -> float:
    """Σ log of the columns' mean absolute residuals."""
    size = np.sum(np.abs(left), axis=0, where=known) / np.maximum(known.sum(axis=0), 1)
    return float(np.sum(np.log(np.maximum(size, 1e-12))))


def _units(R: Floats) -> tuple[Floats, list[Tail]]:
    """The robust scale of each column's residuals, NaN where there is none, and the law they follow in units of it."""
    columns = [r[np.isfinite(r)] for r in R.T]
    scales = [max(judge(r, HALF * len(r) + 0.5).scale, LEAST) if len(r) > 1 else 1.0 for r in columns]
    laws = tails([r / scale for r, scale in zip(columns, scales, strict=True)])
    reach = [float(np.quantile(np.abs(r), 1.0 - MOST)) if len(r) else 0.0 for r in columns]
    least = [size / law.upper(LEVEL) for size, law in zip(reach, laws, strict=True)]
    small = np.array([1.0 + SMALL / max(len(r), 1) for r in columns])
    return small * np.maximum(scales, least), laws
