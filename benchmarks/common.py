"""What the benchmarks share: the result and its verdicts, the clock, the machine, tables, JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from trimlearn import __version__
from trimlearn._utils.text import grid
from trimlearn.datasets import load_mnist

__all__ = [
    "NOTHING",
    "Digits",
    "Part",
    "Result",
    "Table",
    "Target",
    "digits",
    "gather",
    "home",
    "interleave",
    "load",
    "machine",
    "merged",
    "render",
    "save",
    "say",
]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LOAD = os.getloadavg()[0] if hasattr(os, "getloadavg") else None  # before the benchmark adds its own
BESIDE = ROOT.parent / "shared" / "data"  # where this project keeps MNIST, unless --data or $TRIMLEARN_DATA says else

Cell = str | float | int | None
NOTHING = "–"  # there is no such figure


@dataclass(frozen=True)
class Target:
    """A figure and the limit it must not exceed. ``goal``: wished for, where the requirement is weaker."""

    what: str
    measured: float  # inf: never reached
    limit: float
    goal: bool = False
    part: str = ""  # of the benchmark, where it has several

    @property
    def met(self) -> bool:
        """Whether the measured figure is within the limit; NaN, which says nothing, is not."""
        return bool(self.measured <= self.limit)

    def as_json(self) -> dict[str, Any]:
        """For the file; inf has no JSON and becomes null."""
        found = {**asdict(self), "measured": _cell(self.measured), "limit": _cell(self.limit), "met": self.met}
        return {key: value for key, value in found.items() if key != "part" or value}


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under their headings."""

    title: str
    columns: Sequence[str]
    rows: list[list[Any]] = field(default_factory=list)
    part: str = ""  # of the benchmark, where it has several

    def as_json(self) -> dict[str, Any]:
        """For the file, numbers to four digits."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_cell(value) for value in row] for row in self.rows],
            **({"part": self.part} if self.part else {}),
        }


@dataclass(frozen=True)
class Part:
    """Tables and the targets they hold: a part of a benchmark that has several."""

    tables: list[Table]
    targets: list[Target]


@dataclass(frozen=True)
class Result:
    """What a benchmark found."""

    benchmark: str
    settings: dict[str, Any]
    targets: list[Target]
    tables: list[Table]

    def as_json(self) -> dict[str, Any]:
        """All of it, with the machine it was read on."""
        return {
            "benchmark": self.benchmark,
            "machine": machine(),
            "settings": self.settings,
            "targets": [target.as_json() for target in self.targets],
            "tables": [table.as_json() for table in self.tables],
        }


def gather(benchmark: str, measures: dict[str, Callable[[], Part]], settings: dict[str, Any]) -> Result:
    """The parts of a benchmark one after the other, each shown as soon as it is known: the whole takes long."""
    found = []
    for name, measure in measures.items():
        say(f"{benchmark}: {name}")
        part = measure()
        tables = [replace(table, part=name) for table in part.tables]
        found.append(Part(tables, [replace(target, part=name) for target in part.targets]))
        say(render(Result(benchmark, {}, found[-1].targets, found[-1].tables).as_json()))
    return Result(
        benchmark=benchmark,
        settings={"parts": ", ".join(measures), **settings},
        targets=[target for part in found for target in part.targets],
        tables=[table for part in found for table in part.tables],
    )


def _cell(value: Any) -> Cell:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.4g}") if isfinite(value) else None
    return None if value is None else str(value)


# -- the clock ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Seconds of one task, and of the reference that ran just before each."""

    seconds: np.ndarray
    reference: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """The cost in units of the reference, one per repetition, so that a slow moment hits both."""
        return np.asarray(self.seconds / self.reference)

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return float(np.median(self.ratios))

    def row(self, name: str) -> list[Any]:
        """name, milliseconds (median), ratio: first quartile, median, third quartile, and best over best."""
        low, middle, high = np.percentile(self.ratios, [25, 50, 75])
        best = self.seconds.min() / self.reference.min()
        return [name, 1e3 * float(np.median(self.seconds)), low, middle, high, best]


Task = tuple[Callable[[], Any], Callable[[Any], Any]]  # prepare, outside the clock; and what is timed, given that


REST = 0.25  # seconds between two timings: OpenBLAS's threads go on spinning for 0.1 s after a product


def interleave(reference: Callable[[], Any], tasks: dict[str, Task], repetitions: int) -> dict[str, Timing]:
    """Reference, task, reference, next task, …: on a machine that others use too, only neighbours compare."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for repetition in range(repetitions + 1):
        for name, (prepare, task) in tasks.items():
            prepared = prepare()
            base = clock(reference)
            sleep(REST)
            taken = clock(partial(task, prepared))
            if repetition:  # the first time warms up caches and buffers
                found[name].append((taken, base))
    return {name: Timing(*np.array(pairs).T) for name, pairs in found.items()}


def clock(task: Callable[[], Any]) -> float:
    """Seconds."""
    begin = perf_counter()
    task()
    return perf_counter() - begin


# -- where and on what ----------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """The machine in words: no names of hosts, people or folders."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = sorted({f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in pools})
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "blas": "; ".join(names) or "unknown",
        "load_before": LOAD,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn")} | {"trimlearn": __version__},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


@dataclass(frozen=True)
class Digits:
    """Digits to classify: V (n, p) float32 in [0, 1] and labels t; the same for a test."""

    name: str
    V: np.ndarray
    t: np.ndarray
    V_test: np.ndarray
    t_test: np.ndarray


def digits(data: Path | None, quick: bool) -> Digits:
    """MNIST, or scikit-learn's bundled digits for a quick try."""
    if quick:
        from sklearn.datasets import load_digits

        V, t = load_digits(return_X_y=True)
        V = (V / 16).astype(np.float32)
        return Digits("digits", V[:1500], t[:1500], V[1500:], t[1500:])
    data = home(data)
    return Digits("MNIST", *load_mnist("train", data, "float32"), *load_mnist("test", data, "float32"))


def home(data: Path | None) -> Path | None:
    """The folder asked for, or this project's own where neither it nor $TRIMLEARN_DATA is given."""
    return BESIDE if data is None and not os.environ.get("TRIMLEARN_DATA") and BESIDE.is_dir() else data


# -- files and text -------------------------------------------------------------------------------------------------


def save(result: Result, folder: Path, *, merge: bool = False) -> Path:
    """Write ``<benchmark>.json``; ``merge``: the parts of it that are there and were not measured again stay."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.benchmark}.json"
    found = result.as_json()
    if merge and path.exists():
        found = merged(load(path), found)
    path.write_text(_dumps(found) + "\n", encoding="utf-8")
    return path


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A result with the parts of two of them, the newer's where both have one. Each part keeps its machine and load."""
    again = new["settings"]["parts"].split(", ")
    kept = [part for part in old["settings"]["parts"].split(", ") if part not in again]
    both = {
        key: [entry for entry in old[key] if entry.get("part") in kept] + new[key] for key in ("targets", "tables")
    }
    machines = {part: old.get("machines", {}).get(part, old["machine"]) for part in kept}
    machines |= dict.fromkeys(again, new["machine"])
    settings = {**new["settings"], "parts": ", ".join([*kept, *again])}
    return {**new, "settings": settings, "machines": machines, **both}


def load(path: Path) -> dict[str, Any]:
    """A result as it was written."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _dumps(value: Any, pad: str = "") -> str:
    """JSON for readers and for `git diff`: what holds no other list or dict takes one line."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if not any(isinstance(part, (dict, list)) for part in parts):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    texts = [_dumps(part, pad + " ") for part in parts]
    if isinstance(value, dict):
        texts = [f"{json.dumps(key)}: {text}" for key, text in zip(value, texts, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "".join(f"\n{pad} {text}," for text in texts)[:-1] + f"\n{pad}{closing}"


def text_of(value: Cell) -> str:
    """A cell for a reader."""
    if value is None:
        return "never"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def say(text: str) -> None:
    """How far a long benchmark is, beside what it prints in the end."""
    print(text, file=sys.stderr, flush=True)


def render(found: dict[str, Any]) -> str:
    """The tables of a result, then its targets, as plain text."""
    blocks = [_plain(table["title"], table["columns"], table["rows"]) for table in found["tables"]]
    return "\n\n".join([*blocks, _plain("targets", TARGET_COLUMNS, target_rows(found["targets"]))])


TARGET_COLUMNS = ["target", "measured", "limit", "verdict"]


def target_rows(targets: list[dict[str, Any]]) -> list[list[Cell]]:
    """What was to be reached, and whether it was."""
    rows: list[list[Cell]] = []
    for target in targets:
        what = f"{target['what']}{' (goal)' if target['goal'] else ''}"
        rows.append([what, target["measured"], target["limit"], "met" if target["met"] else "not met"])
    return rows


def _plain(title: str, columns: Sequence[str], rows: list[list[Cell]]) -> str:
    cells = [list(columns), *[[text_of(value) for value in row] for row in rows]]
    head, *body = grid(cells, left=range(len(columns)))
    return "\n".join([title, *[f"  {line}" for line in [head, "-" * len(head), *body]]])
