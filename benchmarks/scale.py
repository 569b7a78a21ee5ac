"""scale: trimmed fits to Parquet files larger than the memory they are given, beside reading the files once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from shutil import copyfile
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.common import Result, Table, Target, say

__all__ = ["QUICK", "Plan", "run"]

MIB, PASS, READINGS, AGREES = 1024.0, 1.5, 12.0, 1e-5  # anonymous memory in all; times a reading; the same; of F
ROUND, TRIP, DASK = 2.0, 0.1, 1.3  # of an empty round; a tenth of a step; of one process
DIFFERENT = 4  # files whose rows are made up: a limit on time
MODELS = {"linear": "y", "logistic": "label"}  # and the columns of their targets


@dataclass(frozen=True)
class Plan:
    """n × p float32 in so many files, in row groups of so many rows; for the comparison of sources so many rows, and so
    many with labels, which are judged by a sample of them where there are more than 2²² numbers."""

    n: int = 20_000_000
    p: int = 20
    files: int = 16
    group: int = 250_000
    same: int = 20_000
    same_labels: int = 240_000


FULL = Plan()
QUICK = Plan(60_000, 5, 2, 10_000, 3000, 3000)


def run(plan: Plan = FULL) -> Result:
    """Both fits in processes of their own, so that each peak is that of one fit; files lie in $TMPDIR."""
    rows, targets = [], []
    with TemporaryDirectory() as folder:
        write(Path(folder), plan)
        say(f"scale: {plan.n:,} rows written")
        for model in MODELS:
            found = _alone(model, folder, plan.p)
            say(f"scale: {model} fitted in {found['seconds']:.0f} s, a reading takes {found['reading']:.1f} s")
            readings = found["seconds"] / found["reading"]
            rows.append([model, *(found[name] for name in COLUMNS), readings])
            targets += [
                Target(f"{model}: peak anonymous MiB, files of {plan.n:,} rows", found["mib"], MIB),
                Target(f"{model}: a pass over the copy / a reading", found["pass"] / found["reading"], PASS),
                Target(f"{model}: the whole fit, copy included / a reading", readings, READINGS),
            ]
    on_dask = _in_a_process(f"from benchmarks.scale_dask import print_figures; print_figures({plan.n})")
    say(f"scale: a pass on Dask {on_dask['dask']:.1f} s, in one process {on_dask['process']:.1f} s")
    targets += [
        Target("Dask: a round of the engine / an empty one", on_dask["round"] / on_dask["empty"], ROUND),
        Target(f"Dask: a round trip / a step, b = {on_dask['b']:,.0f}", on_dask["trip"] / on_dask["step"], TRIP),
        Target(f"Dask: a pass / that of one process, {plan.n:,} rows", on_dask["dask"] / on_dask["process"], DASK),
    ]
    for model, n, which in (("linear", plan.same, ""), ("logistic", plan.same_labels, ", labels")):
        objective, outliers = same_fit(model, n, plan.p)
        sources = f"F from Parquet, a memory map and NumPy{which}"
        targets.append(Target(f"{sources}: largest relative difference", objective, AGREES))
        targets.append(Target(f"rows flagged by one of them and not by another{which}", float(outliers), 0.0))
    names = ["model", *COLUMNS, "fit / reading"]
    return Result(
        benchmark="scale",
        settings={"n": plan.n, "p": plan.p, "files": plan.files, "row group": plan.group},
        targets=targets,
        tables=[
            Table(f"Parquet, {plan.n:,} × {plan.p} float32, contamination='auto'", names, rows),
            Table(f"Dask, two workers, {plan.n:,} rows: seconds", [*on_dask], [[*on_dask.values()]]),
        ],
    )


COLUMNS = (
    "seconds",
    "copy",
    "pass",
    "reading",
    "mib",
    "contamination",
    "CPU seconds",
    "CPU of a reading",
)  # of what `_fit` says


def write(folder: Path, plan: Plan) -> None:
    """Files with a tenth of gross errors in y, and a tenth of the labels wrong; those after the first are their copies,
    for what rows hold takes longer to make up than to fit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    beta = np.random.default_rng(0).standard_normal(plan.p).astype(np.float32)
    each = plan.n // plan.files
    for k in range(plan.files):
        if k >= DIFFERENT:
            copyfile(folder / f"part-{k % DIFFERENT:03d}.parquet", folder / f"part-{k:03d}.parquet")
            continue
        rng, writer = np.random.default_rng(k + 1), None
        for start in range(0, each, plan.group):
            m = min(plan.group, each - start)
            X = rng.standard_normal((m, plan.p), dtype=np.float32)
            z, bad = X @ beta, rng.random(m) < 0.1
            y = z + 1 + rng.standard_normal(m, dtype=np.float32) + np.where(bad, 15, 0).astype(np.float32)
            label = (rng.random(m) < 1 / (1 + np.exp(-4 * z))) != (rng.random(m) < 0.1)
            table = pa.table({**{f"x{j}": X[:, j] for j in range(plan.p)}, "y": y, "label": label.astype(np.int8)})
            writer = writer or pq.ParquetWriter(folder / f"part-{k:03d}.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None, "a file has rows"
        writer.close()


def _alone(model: str, folder: str, p: int) -> dict[str, float]:
    """What `_fit` finds in a process of its own."""
    return _in_a_process(f"from benchmarks.scale import _fit; _fit({model!r}, {folder!r}, {p})")


def _in_a_process(code: str) -> dict[str, float]:
    """The figures that the code prints last."""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found: dict[str, float] = loads(ran.stdout.splitlines()[-1])
    return found


def _fit(model: str, folder: str, p: int) -> None:
    """Print the figures of one fit: seconds of all of it, of the copy, of a pass and of a reading; MiB."""
    from benchmarks.memory import measure
    from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression, open_dataset
    from trimlearn._utils.threads import team

    data = open_dataset(folder, MODELS[model], columns=[f"x{j}" for j in range(p)], in_memory=False)
    estimator: Any = TrimmedLinearRegression if model == "linear" else TrimmedLogisticRegression
    times, began = [reading(data)], process_time()
    fit = measure(lambda: estimator(random_state=0).fit(data))
    own = process_time() - began
    times.append(reading(data))
    copied = measure(data.copied)
    with team():
        passed = median(_pass(copied.value) for _ in range(3))
    began = process_time()
    times.append(reading(data))
    found = {
        "seconds": fit.seconds,
        "copy": copied.seconds,
        "pass": passed,
        "reading": median(times),
        "mib": np.nan if fit.mib is None else fit.mib + _held(),
        "contamination": fit.value.contamination_,
        "CPU seconds": own,
        "CPU of a reading": process_time() - began,
    }
    print(dumps({name: float(value) for name, value in found.items()}))


def _held() -> float:
    """What the interpreter and its libraries hold before anything is fitted, in MiB: it counts too."""
    code = "import trimlearn.estimators, pyarrow.parquet; print(open('/proc/self/status').read())"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return next(int(line.split()[1]) / 1024 for line in ran.stdout.splitlines() if line.startswith("RssAnon"))


def reading(data: Any) -> float:
    """Seconds in which pyarrow reads the columns used of all files once, and keeps nothing."""
    import pyarrow.parquet as pq

    begin = perf_counter()
    for file in sorted({piece.file for piece in data.pieces}):
        for _ in pq.ParquetFile(file).iter_batches(columns=data.layout.columns):
            pass
    return perf_counter() - begin


def _pass(copy: Any) -> float:
    """Seconds of a pass: the loss, the residual and the gradient of every row."""
    from trimlearn.losses import LeastSquares
    from trimlearn.losses.storage import open_storage

    loss = LeastSquares(open_storage(copy.X), copy.t, intercept=True)
    x, c = loss.start(), np.full(loss.n, 1 / loss.n, loss.like.dtype)
    begin = perf_counter()
    loss.value_gradient(x, c)
    return perf_counter() - begin


def same_fit(model: str, n: int, p: int) -> tuple[float, int]:
    """The largest relative difference of F, and the rows on which they disagree, of fits from three sources, streamed
    and in memory."""
    from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression, open_dataset

    kind, target = {"linear": TrimmedLinearRegression, "logistic": TrimmedLogisticRegression}[model], MODELS[model]
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, Plan(n, p, 2, n))
        columns = [f"x{j}" for j in range(p)]
        X, y = open_dataset(folder, target, columns=columns).load()
        np.save(folder / "X", X)
        mapped = np.load(folder / "X.npy", mmap_mode="r")
        parquet = sorted(folder.glob("*.parquet"))
        sources = [(X, y), (mapped, y)]
        sources += [(open_dataset(parquet, target, columns=columns, in_memory=held), None) for held in (True, False)]
        fits: list[Any] = [kind(random_state=0).fit(*source) for source in sources]
    values, masks = [fit.objective_ for fit in fits], np.array([fit.inlier_mask_ for fit in fits])
    return float(np.ptp(values) / min(values)), int(np.count_nonzero(np.ptp(masks.astype(np.int8), axis=0)))
