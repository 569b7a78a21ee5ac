"""large: trimmed PCA of a memory map that is not to be held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common import Result, Table, Target, say
from benchmarks.memory import measure
from trimlearn.estimators.pca import TrimmedPCA

__all__ = ["QUICK", "Plan", "run"]

MIB, MINUTES, SUBSPACE = 200.0, 30.0, 1.1  # beyond the map's pages; "not hours"; times the clean rows' own error


@dataclass(frozen=True)
class Plan:
    """n × p float32, k components, a share of the rows far from their subspace; written in pieces of so many rows."""

    n: int = 500_000
    p: int = 375
    k: int = 5
    bad: float = 0.2
    piece: int = 10_000


FULL = Plan()
QUICK = Plan(4000, 30, 3, 0.2, 1000)


def run(plan: Plan = FULL) -> Result:
    """Peak memory, seconds and the subspace; the file lies in the system's temporary folder ($TMPDIR)."""
    with TemporaryDirectory() as folder:
        A, bad, U = write(Path(folder) / "A", plan)
        say(f"large: {A.nbytes / 2**30:.2f} GiB written")
        fit = measure(lambda: TrimmedPCA(plan.k, random_state=0).fit(A))
        say("large: fitted; the clean rows' own components")
        clean = angle(_clean_components(A, bad, plan), U)
    model = fit.value
    error = angle(model.components_.T, U)
    mib = nan if fit.mib is None else fit.mib
    rows: list[list[Any]] = [
        ["seconds", fit.seconds],
        ["peak memory beyond the map's pages, MiB", mib],
        ["the map itself, MiB", 4 * plan.n * plan.p / 2**20],
        ["subspace error: sine of the largest angle", error],
        ["that of the clean rows' PCA", clean],
        ["estimated contamination, %", 100 * model.contamination_],
        ["bad rows flagged, %", 100 * float(np.mean(~model.inlier_mask_[bad]))],
        ["clean rows flagged, %", 100 * float(np.mean(~model.inlier_mask_[~bad]))],
    ]
    return Result(
        benchmark="large",
        settings={"n": plan.n, "p": plan.p, "k": plan.k, "bad": plan.bad},
        targets=[
            Target("trimmed PCA of a memory map: peak MiB beyond the map's pages", mib, MIB),
            Target("trimmed PCA of a memory map: minutes", fit.seconds / 60, MINUTES),
            Target("trimmed PCA of a memory map: subspace error / the clean rows' own", error / clean, SUBSPACE),
        ],
        tables=[Table(f"trimmed PCA of a memory map, {plan.n:,} × {plan.p} float32", ["what", "figure"], rows)],
    )


def write(path: Path, plan: Plan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The map (read only), who is bad, and the basis U of the good rows' subspace, piece by piece."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((plan.p, plan.k)))[0]
    towards = rng.standard_normal(plan.p)
    towards -= U @ (U.T @ towards)
    towards *= 10 * np.sqrt(plan.p) / np.linalg.norm(towards)
    bad = rng.random(plan.n) < plan.bad
    spread = np.linspace(20, 10, plan.k)
    with path.open("wb") as file:
        for begin in range(0, plan.n, plan.piece):
            rows = bad[begin : begin + plan.piece]
            Z = rng.standard_normal((len(rows), plan.k), dtype=np.float32) * spread
            A = Z @ U.T + rng.standard_normal((len(rows), plan.p), dtype=np.float32) + 1
            A[rows] += towards
            A.astype(np.float32).tofile(file)
    return np.memmap(path, np.float32, "r", shape=(plan.n, plan.p)), bad, U


def angle(V: np.ndarray, U: np.ndarray) -> float:
    """The sine of the largest angle between two subspaces with these orthonormal bases."""
    U = U.astype(np.float64)
    return float(np.linalg.norm(U - V @ (V.T @ U), ord=2))


def _clean_components(A: np.ndarray, bad: np.ndarray, plan: Plan) -> np.ndarray:
    """Principal axes of the good rows, their second moments summed piece by piece."""
    total, moments = np.zeros(plan.p), np.zeros((plan.p, plan.p))
    for begin in range(0, plan.n, plan.piece):
        rows = A[begin : begin + plan.piece][~bad[begin : begin + plan.piece]].astype(np.float64)
        total += rows.sum(axis=0)
        moments += rows.T @ rows
    count = np.count_nonzero(~bad)
    mean = total / count
    return np.asarray(np.linalg.eigh(moments / count - np.outer(mean, mean))[1][:, -plan.k :])
