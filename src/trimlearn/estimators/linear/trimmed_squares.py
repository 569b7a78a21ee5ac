"""The parts of a robust linear fit without selection: least trimmed squares, what is mere chance, smooth weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import is_sparse
from trimlearn.estimators.linear.data import Examples
from trimlearn.estimators.linear.problems import LinearFit, Solver
from trimlearn.losses import LeastSquares
from trimlearn.losses.exact import COLUMNS
from trimlearn.progress import stage
from trimlearn.robust.regression.chance import are_few, looks_by_chance
from trimlearn.robust.regression.lts import least_median_of_squares, least_trimmed_squares
from trimlearn.robust.regression.mm import MMFit, WeightedRows, mm_estimate
from trimlearn.robust.verdict import Verdict
from trimlearn.solution import Status

if TYPE_CHECKING:
    from trimlearn.estimators.linear.linear import TrimmedLinearRegression

__all__ = ["found_by_chance", "smooth_fit", "trimmed_fit", "written_out"]

WRITTEN_OUT = 20_000_000  # entries up to which a sparse X is written out to look for a start: 160 MB


def written_out(rows: Examples, intercept: bool) -> np.ndarray:
    """The design, the intercept's column last."""
    return LeastSquares(rows.X, rows.t, intercept=intercept).linear.design(np.arange(rows.n))


def trimmed_fit(
    model: TrimmedLinearRegression, rows: Examples, h: float, x0: Array | None, solver: Solver
) -> LinearFit:
    """The trimmed fit that keeps h, from x0 or from many starts."""
    if model.criterion == "lms":
        A, t = written_out(rows, model.fit_intercept), rows.t.astype(np.float64)
        found = least_median_of_squares(A, t, h, rows.s, seed=solver.seed)
        return LinearFit(found.coef, found.w, found.objective, [], Status.CONVERGED)
    starts: list[str | Array] = ["continuation"]
    if x0 is not None:
        starts = [x0]
    elif model.method is None and not (is_sparse(rows.X) and rows.n * model._parameters > WRITTEN_OUT):
        stage("least trimmed squares from many starts")
        A, t = written_out(rows, model.fit_intercept), rows.t.astype(np.float64)
        x = least_trimmed_squares(A, t, h, rows.s, seed=solver.seed).coef
        starts = [x] if model.penalty is None else [x, "continuation"]
    return solver.trimmed(model._problem(rows, h), h, starts)


def found_by_chance(
    model: TrimmedLinearRegression, rows: Examples, half: float, verdict: Verdict, seed: int
) -> bool:
    """Whether rows were left out that a fit to so few rows leaves out of clean ones as well."""
    if verdict.inliers.all() or model.penalty is not None or not are_few(rows.n, model._parameters):
        return False
    A, t = written_out(rows, model.fit_intercept), rows.t.astype(np.float64)
    return looks_by_chance(A, t, half, rows.s, verdict.scale, seed)


def smooth_fit(
    model: TrimmedLinearRegression,
    rows: Examples,
    raw: tuple[Array, Verdict],
    hard: tuple[Array, Verdict],
    floor: float,
    trusted: bool,
) -> MMFit | None:
    """The MM-estimate from the trimmed fit and the one to all rows explained; None where it is not asked for, where
    nothing is left to be fitted, or X is too large. trusted: see `mm_estimate`."""
    n, q = rows.n, model._parameters
    if model.efficiency != "mm" or model.penalty is not None or rows.S <= q + 1 or hard[1].scale <= floor:
        return None
    if q > COLUMNS or (n * q > WRITTEN_OUT and (is_sparse(rows.X) or model.method is not None)):
        return None
    stage("weights that fall smoothly with the residual")
    c = np.ones(n) if rows.s is None else rows.s.astype(np.float64)
    fit = WeightedRows(written_out(rows, model.fit_intercept), rows.t.astype(np.float64), c)
    (x, by_raw), (y, by_hard) = raw, hard
    starts = (np.asarray(x, np.float64), by_raw), (np.asarray(y, np.float64), by_hard)
    return mm_estimate(fit, *starts, trusted)
