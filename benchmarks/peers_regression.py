"""peers, regression in small samples: errors of four laws, clean and with bad rows, beside lmrob and ltsReg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import run as call
from tempfile import TemporaryDirectory
from warnings import catch_warnings, simplefilter

import numpy as np

from benchmarks.common import Part, Table, Target, say
from benchmarks.peers_rivals import r_there
from trimlearn import TrimmedLinearRegression

__all__ = ["regression"]

LAWS, KINDS = ("normal", "t5", "exponential", "Laplace"), ("vertical", "leverage", "near")
P = 2  # features, beside an intercept
WITHIN, MOST = 1.1, 2.0  # times the error of the better rival: in nine of ten cells, and in every one
CLEAN = {20: 1.1, 50: 1.06, 200: 1.03}  # mean squared error / least squares' on clean normal rows
OFTEN = 5  # times as many samples of clean rows: of intervals that hold the truth a share is asked to a point or two
COVERED = {"normal": 0.935, "t5": 0.90, "exponential": 0.90}  # share of 95 % intervals of slopes that hold the truth

R_CODE = """
given <- commandArgs(TRUE)
suppressPackageStartupMessages(library(robustbase))
sizes <- scan(file.path(given[1], "sizes"), quiet = TRUE)
data <- file(file.path(given[1], "data"), "rb"); out <- c()
for (n in sizes) {
  X <- matrix(readBin(data, "double", n * 2), n, 2); y <- readBin(data, "double", n); set.seed(0)
  slopes <- function(fit) tryCatch(suppressWarnings(fit()$coefficients[2:3]), error = function(e) c(NA, NA))
  out <- c(out, slopes(function() lmrob(y ~ X)), slopes(function() lmrob(y ~ X, setting = "KS2014")),
           slopes(function() ltsReg(X, y, alpha = 0.5, mcd = FALSE)))
}
writeBin(as.double(out), file.path(given[1], "slopes"))
"""


@dataclass(frozen=True)
class Sample:
    """Rows whose true coefficients are 0, the first ``bad`` of them wrong."""

    X: np.ndarray
    y: np.ndarray
    bad: int


def _sample(law: str, n: int, kind: str, level: float, seed: int) -> Sample:
    rng = np.random.default_rng([seed, n, LAWS.index(law), KINDS.index(kind), round(100 * level)])
    X, bad = rng.standard_normal((n, P)), round(level * n)
    y = {
        "normal": rng.standard_normal(n),
        "t5": rng.standard_t(5, n) / np.sqrt(5 / 3),
        "exponential": rng.exponential(size=n) - 1,
        "Laplace": rng.laplace(size=n) / np.sqrt(2),
    }[law]
    if kind == "vertical":
        y[:bad] += rng.uniform(10, 15, bad)
    elif kind == "near":
        y[:bad] = rng.uniform(3, 6, bad)
    else:
        X[:bad] = 10 / np.sqrt(P) + rng.standard_normal((bad, P)) / 2
        y[:bad] = 20 + rng.standard_normal(bad)
    return Sample(X, y, bad)


def _cells(sizes: Sequence[int], levels: Sequence[float]) -> Iterator[tuple[str, int, str, float]]:
    for law in LAWS:
        for n in sizes:
            yield law, n, "vertical", 0.0
            yield from ((law, n, kind, level) for kind in KINDS for level in levels)


def regression(sizes: Sequence[int], levels: Sequence[float], samples: int) -> Part:
    """Mean squared errors of the slopes, coverage of their intervals, and the share of clean rows flagged."""
    cells = {
        cell: [_sample(*cell, seed) for seed in range(samples if cell[3] else OFTEN * samples)]
        for cell in _cells(sizes, levels)
    }
    rivals, done = _rivals([sample for found in cells.values() for sample in found]), 0
    head = ["errors", "n", "bad rows", "share", "ours / least squares on the clean", "ours / better rival", "covered"]
    title = f"regression: slopes of {P} features, {samples} samples a cell, {OFTEN} times as many where no row is bad"
    table = Table(title, [*head, "clean flagged, %"])
    for (law, n, kind, level), found in cells.items():
        say(f"peers: regression, {law}, n = {n:,}, {level:.0%} {kind}")
        own, least, covered, flagged = np.mean([_ours(sample) for sample in found], axis=0).tolist()
        better = float("nan")
        if rivals is not None:
            squares = np.nansum(rivals[done : done + len(found)] ** 2, axis=2).mean(axis=0)
            done += len(found)
            better = own / float(min(squares[0], squares[2]))  # lmrob and ltsReg at their defaults
        name = kind if level else "none"
        table.rows.append([law, n, name, level, own / least, better, covered, 100 * flagged])
    return Part([table], list(_targets(table, sizes)))


def _ours(sample: Sample) -> tuple[float, float, float, float]:
    """Squared errors of ours and of least squares on the clean rows; intervals that hold 0, and clean rows flagged."""
    with catch_warnings():
        simplefilter("ignore")
        model = TrimmedLinearRegression(random_state=0).fit(sample.X, sample.y)
        low, high = model.conf_int()[1:].T
    A = np.column_stack([sample.X, np.ones(len(sample.y))])[sample.bad :]
    least = np.linalg.lstsq(A, sample.y[sample.bad :], rcond=None)[0][:P]
    covered = float(np.mean((low <= 0) & (high >= 0)))
    flagged = 1 - float(model.inlier_mask_[sample.bad :].mean())
    return float(np.sum(model.coef_**2)), float(np.sum(least**2)), covered, flagged


def _rivals(samples: Sequence[Sample]) -> np.ndarray | None:
    """(samples, 3, P): slopes of lmrob, of lmrob with setting KS2014 and of ltsReg, in one run of R; None without R."""
    if not r_there():
        return None
    with TemporaryDirectory() as folder:
        Path(folder, "sizes").write_text(" ".join(str(len(sample.y)) for sample in samples))
        np.concatenate([np.append(sample.X.T, sample.y) for sample in samples]).tofile(Path(folder, "data"))
        call(["Rscript", "--vanilla", "-e", R_CODE, folder], check=True, capture_output=True)
        return np.fromfile(Path(folder, "slopes")).reshape(len(samples), 3, P)


def _targets(table: Table, sizes: Sequence[int]) -> Iterator[Target]:
    rows = table.rows
    for n in set(sizes) & set(CLEAN):
        found = next(row[4] for row in rows if row[:3] == ["normal", n, "none"])
        yield Target(f"clean normal rows, n = {n}: error / least squares'", found, CLEAN[n])
    for law, least in COVERED.items():
        clean = [row[6] for row in rows if row[0] == law and row[2] == "none" and (law == "normal" or row[1] >= 50)]
        if clean:
            yield Target(f"{law} errors: slopes outside their 95 % intervals, most", 1 - min(clean), 1 - least)
    ratios = np.array([row[5] for row in rows if row[2] != "none"])
    if np.all(np.isfinite(ratios)) and len(ratios):
        yield Target(f"cells with an error above {WITHIN} × the better rival's", float(np.mean(ratios > WITHIN)), 0.1)
        yield Target("error / the better rival's, worst cell", float(ratios.max()), MOST)
