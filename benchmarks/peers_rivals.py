"""The rivals: linear fits by one signature, each with its own clock; and which rivals there are on this machine."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.linear_model import HuberRegressor, LinearRegression, RANSACRegressor, TheilSenRegressor

from benchmarks.common import Table
from trimlearn import TrimmedLinearRegression

__all__ = ["LTS_REG", "OURS", "Line", "Rival", "least_squares", "ours", "presence", "r_there", "rivals", "there"]

OURS, LTS_REG, LMROB = "TrimmedLinearRegression", "ltsReg", "lmrob"
SIGMAS = 3.0  # of fit, remove, refit

READ = """
given <- commandArgs(TRUE)
n <- as.integer(given[2]); p <- as.integer(given[3])
suppressPackageStartupMessages(library(robustbase))
X <- matrix(readBin(file.path(given[1], "X"), "double", n * p), n, p)
y <- readBin(file.path(given[1], "y"), "double", n)
set.seed(0)
begin <- proc.time()[["elapsed"]]
"""
R_CODE = READ + """
fit <- suppressWarnings(ltsReg(X, y, alpha = 0.5, mcd = FALSE))  # mcd: a diagnosis of X, not of the regression
seconds <- proc.time()[["elapsed"]] - begin
writeBin(as.double(c(seconds, fit$coefficients, fit$raw.coefficients, fit$lts.wt)), file.path(given[1], "fit"))
"""
LMROB_CODE = READ + """
fit <- suppressWarnings(lmrob(y ~ X))
seconds <- proc.time()[["elapsed"]] - begin
flagged <- fit$rweights <= 0.1 / n  # what summary() calls an outlier
writeBin(as.double(c(seconds, fit$coefficients, fit$init.S$coefficients, !flagged)), file.path(given[1], "fit"))
"""
R_VERSIONS = """
cat(R.version.string, ", robustbase ", as.character(packageVersion("robustbase")), ", ", basename(La_library()), sep="")
"""


@dataclass(frozen=True)
class Line:
    """A linear fit: coefficients with the intercept last; those of the trimmed fit before reweighting; rows flagged."""

    theta: np.ndarray
    seconds: float
    raw: np.ndarray | None = None
    flagged: np.ndarray | None = None  # None: this one does not say


Rival = Callable[[np.ndarray, np.ndarray], Line]


def ours(X: np.ndarray, y: np.ndarray, **settings: Any) -> Line:
    """TrimmedLinearRegression, everything at default but ``settings``."""
    model, seconds = _fit(TrimmedLinearRegression(**settings, random_state=0), X, y)
    raw = np.append(model.raw_coef_, model.raw_intercept_) if model.reweight else _theta(model)
    return Line(_theta(model), seconds, raw, ~model.inlier_mask_)


def rivals() -> dict[str, Rival]:
    """Those that are there, by name."""
    found: dict[str, Rival] = {
        "least squares": least_squares,
        "three sigma": _three_sigma,
        "Huber": _huber,
        "RANSAC": _ransac,
        "TheilSen": _theil_sen,
    }
    if there("statsmodels"):
        found |= {"RLM": partial(_rlm, norm="HuberT"), "RLM, Tukey": partial(_rlm, norm="TukeyBiweight")}
    return found | ({LTS_REG: _lts_reg} if r_there() else {})


# -- linear fits ----------------------------------------------------------------------------------------------------


def _fit(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """The model fitted, and the seconds; that it stopped short, or found no consensus, shows in the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = perf_counter()
        model.fit(X, y)
        return model, perf_counter() - begin


def _theta(model: Any) -> np.ndarray:
    return np.append(model.coef_, model.intercept_)


def least_squares(X: np.ndarray, y: np.ndarray) -> Line:
    """scikit-learn's LinearRegression."""
    model, seconds = _fit(LinearRegression(), X, y)
    return Line(_theta(model), seconds)


def _three_sigma(X: np.ndarray, y: np.ndarray) -> Line:
    """Fit, remove what is beyond three standard deviations, fit again, until nothing more is removed."""
    begin = perf_counter()
    kept = np.ones(len(y), dtype=bool)
    while True:
        model = LinearRegression().fit(X[kept], y[kept])
        r = y - model.predict(X)
        more = kept & (np.abs(r) <= SIGMAS * r[kept].std(ddof=X.shape[1] + 1))
        if np.array_equal(more, kept) or more.sum() <= X.shape[1] + 1:
            return Line(_theta(model), perf_counter() - begin, flagged=~kept)
        kept = more


def _huber(X: np.ndarray, y: np.ndarray) -> Line:
    model, seconds = _fit(HuberRegressor(max_iter=1000), X, y)
    return Line(_theta(model), seconds, flagged=model.outliers_)


def _ransac(X: np.ndarray, y: np.ndarray) -> Line:
    try:
        model, seconds = _fit(RANSACRegressor(random_state=0), X, y)
    except ValueError:  # no consensus found
        return Line(np.full(X.shape[1] + 1, np.inf), np.inf)
    return Line(_theta(model.estimator_), seconds, flagged=~model.inlier_mask_)


def _theil_sen(X: np.ndarray, y: np.ndarray) -> Line:
    model, seconds = _fit(TheilSenRegressor(random_state=0), X, y)
    return Line(_theta(model), seconds)


def _rlm(X: np.ndarray, y: np.ndarray, norm: str) -> Line:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import statsmodels.api as sm

        begin = perf_counter()
        A = np.column_stack([X, np.ones(len(y))])
        theta = sm.RLM(y, A, M=getattr(sm.robust.norms, norm)()).fit().params
        return Line(np.asarray(theta), perf_counter() - begin)


def lmrob(X: np.ndarray, y: np.ndarray) -> Line:
    """robustbase's MM-estimate at its defaults; ``raw`` is its start, an S-estimate."""
    return _in_r(LMROB_CODE, X, y)


def _lts_reg(X: np.ndarray, y: np.ndarray) -> Line:
    return _in_r(R_CODE, X, y)


def _in_r(code: str, X: np.ndarray, y: np.ndarray) -> Line:
    """A fit of robustbase, in R, which times itself: start and transfer do not count."""
    n, p = X.shape
    with TemporaryDirectory() as folder:
        np.asarray(X, dtype=np.float64).T.tofile(Path(folder, "X"))  # column by column
        np.asarray(y, dtype=np.float64).tofile(Path(folder, "y"))
        _r(code, folder, str(n), str(p))
        found = np.fromfile(Path(folder, "fit"))
    theta, raw = np.roll(found[1 : p + 2], -1), np.roll(found[p + 2 : 2 * p + 3], -1)  # R has the intercept first
    return Line(theta, float(found[0]), raw, found[2 * p + 3 :] == 0)


# -- who is there ---------------------------------------------------------------------------------------------------


def _r(code: str, *given: str) -> str:
    command = ["Rscript", "--vanilla", "-e", code, *given]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@cache
def _r_versions() -> str | None:
    try:
        return _r(R_VERSIONS) if which("Rscript") else None
    except subprocess.CalledProcessError:  # R without robustbase
        return None


def r_there() -> bool:
    """Whether ltsReg can be run."""
    return _r_versions() is not None


def there(package: str) -> bool:
    """Whether a Python package is installed."""
    return _version(package) is not None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def presence() -> Table:
    """Every rival's version, or that it was not there to be compared."""
    names = {
        "scikit-learn": _version("scikit-learn"),
        "statsmodels": _version("statsmodels"),
        "cleanlab": _version("cleanlab"),
        "R with robustbase": _r_versions(),
    }
    return Table("rivals", ["package", "version"], [[name, found or "absent"] for name, found in names.items()])
