"""peers, who is found: TrimmedCovariance() and TrimmedPCA() beside robustbase's covMcd and rrcov's PcaHubert.

Normal rows of which the first K features have five times the standard deviation of the others. Bad ones are moved, by
4 to 10 standard deviations of the distribution they come from: together; each in a direction of its own; or each in
two features of its own. For components they are moved among the other features only: rows far out within the subspace
are no errors to TrimmedPCA, while PcaHubert flags them as well.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Final
from warnings import catch_warnings, simplefilter

import numpy as np

from benchmarks.common import Part, Table, say
from trimlearn import TrimmedCovariance, TrimmedPCA

__all__ = ["scatter"]

K: Final = 2  # components, given to both
SHARES: Final = 0.1, 0.2, 0.3, 0.4  # of bad rows: a row of the tables is the mean over them
NEAR, FAR = 4.0, 10.0  # standard deviations by which bad rows are moved
KINDS: Final = "together", "each elsewhere", "in two features"
R_CODE: Final = """
suppressMessages({library(robustbase); library(rrcov)})
folder <- commandArgs(TRUE)[1]
sizes <- matrix(scan(file.path(folder, "sizes"), quiet = TRUE), 2)
from <- file(file.path(folder, "data"), "rb"); to <- file(file.path(folder, "found"), "wb")
for (i in seq_len(ncol(sizes))) {
  n <- sizes[1, i]; p <- sizes[2, i]; rows <- function() matrix(readBin(from, "double", n * p), n); set.seed(i)
  mcd <- suppressWarnings(covMcd(rows())); pca <- PcaHubert(rows(), k = 2)
  writeBin(as.double(c(mcd$mcd.wt == 0, mcd$cov, !pca@flag, pca@loadings)), to)
}
close(to)
"""

Fit = tuple[np.ndarray, np.ndarray]  # which rows are flagged, and what was estimated


@dataclass(frozen=True)
class Sample:
    """Rows X, the first ``bad`` of them moved, and the standard deviations of the others; ``beside``: the same, moved
    away from the subspace of the first K features only."""

    X: np.ndarray
    beside: np.ndarray
    bad: int
    deviations: np.ndarray

    @classmethod
    def draw(cls, n: int, p: int, kind: str, share: float, seed: int) -> Sample:
        """One of them."""
        rng = np.random.default_rng([n, p, KINDS.index(kind), round(100 * share), seed])
        Z, bad = rng.standard_normal((n, p)), round(share * n)
        count, moved = 1 if kind == "together" else bad, []
        far = rng.uniform(NEAR, FAR, (count, 1))
        for first in (0, K):
            towards = rng.standard_normal((count, p - first))
            if kind == "in two features":
                towards *= rng.random(towards.shape).argsort(axis=1) < 2
            moved.append(Z.copy())
            moved[-1][:bad, first:] += far * towards / np.linalg.norm(towards, axis=1, keepdims=True)
        deviations = np.where(np.arange(p) < K, 5.0, 1.0)
        return cls(moved[0] * deviations, moved[1] * deviations, bad, deviations)

    def rates(self, flagged: np.ndarray) -> list[float]:
        """Bad rows and good ones flagged, in per cent."""
        return [100 * float(flagged[: self.bad].mean()), 100 * float(flagged[self.bad :].mean())]

    def covariance_error(self, covariance: np.ndarray) -> float:
        """‖Σ^(−½)CΣ^(−½) − I‖, beside that of the covariance of the good rows."""
        errors = [
            np.linalg.norm(C / np.outer(self.deviations, self.deviations) - np.eye(len(C)))
            for C in (covariance, np.cov(self.X[self.bad :], rowvar=False))
        ]
        return float(errors[0] / errors[1])

    def angle(self, axes: np.ndarray) -> float:
        """The largest, in degrees, between the span of the columns and that of the first K features."""
        return float(np.degrees(np.arccos(np.clip(np.linalg.svd(axes[:K], compute_uv=False).min(), 0.0, 1.0))))


def scatter(sizes: Sequence[int], features: Sequence[int], samples: int) -> Part:
    """Bad and good rows flagged, the error of the covariance, and of the components, for each n × p and kind."""
    cells = [(n, p, kind) for n in sizes for p in features for kind in KINDS]
    drawn = {cell: [Sample.draw(*cell, share, k) for share in SHARES for k in range(samples)] for cell in cells}
    theirs = _in_r([sample for cell in cells for sample in drawn[cell]])
    if theirs is None:
        return Part([Table("scatter beside R", ["why"], [["not run: no R with robustbase and rrcov"]])], [])
    title = f"{{}}: means of {samples} samples for each of {len(SHARES)} shares of bad rows"
    head, tail = ["n", "p", "bad rows"], ["found, %", "clean flagged, %"]
    mcd = Table(title.format("covariance beside R"), [*head, *_both("covMcd", *tail, "error of Σ / clean rows'")])
    pca = Table(title.format("components beside R"), [*head, *_both("PcaHubert", *tail, "angle, degrees")])
    at = 0
    for cell in cells:
        say("peers: scatter, n = {:,}, p = {}, {}".format(*cell))
        found = [_ours(sample) for sample in drawn[cell]]
        beside = theirs[at : at + len(found)]
        at += len(found)
        for j, (table, error) in enumerate(((mcd, Sample.covariance_error), (pca, Sample.angle))):
            figures = [
                [value for fit in (mine[j], other[j]) for value in (*sample.rates(fit[0]), error(sample, fit[1]))]
                for sample, mine, other in zip(drawn[cell], found, beside, strict=True)
            ]
            mean = np.mean(figures, axis=0)
            mean[[2, 5]] = np.median(figures, axis=0)[[2, 5]]  # a single fit that breaks down would be all one sees
            table.rows.append([*cell, *mean[[0, 3, 1, 4, 2, 5]].tolist()])
    return Part([mcd, pca], [])


def _both(other: str, *figures: str) -> list[str]:
    return [heading for figure in figures for heading in (f"{figure}", f"{other}'s")]


def _ours(sample: Sample) -> tuple[Fit, Fit]:
    with catch_warnings():
        simplefilter("ignore")  # a share that is not known exactly is no news here
        mcd = TrimmedCovariance(random_state=0).fit(sample.X)
        pca = TrimmedPCA(K, random_state=0).fit(sample.beside)
    return (~mcd.inlier_mask_, mcd.covariance_), (~pca.inlier_mask_, pca.components_.T)


def _in_r(samples: Sequence[Sample]) -> list[tuple[Fit, Fit]] | None:
    """What covMcd and PcaHubert find at their defaults, in one run of R; None without them."""
    if which("Rscript") is None:
        return None
    with TemporaryDirectory() as folder:
        Path(folder, "sizes").write_text(" ".join(f"{n} {p}" for n, p in (sample.X.shape for sample in samples)))
        rows = [X.T.ravel() for sample in samples for X in (sample.X, sample.beside)]  # column by column
        np.concatenate(rows).tofile(Path(folder, "data"))
        try:
            subprocess.run(["Rscript", "--vanilla", "-e", R_CODE, folder], check=True, capture_output=True)
        except subprocess.CalledProcessError:  # R without the packages
            return None
        found, fits = iter(np.fromfile(Path(folder, "found"))), []
        for sample in samples:
            n, p = sample.X.shape
            flags, C, off, axes = (np.fromiter(found, float, count) for count in (n, p * p, n, p * K))
            fits.append(((flags > 0, C.reshape(p, p)), (off > 0, axes.reshape(K, p).T)))
        return fits
