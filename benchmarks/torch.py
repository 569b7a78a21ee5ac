"""torch: networks on wrong labels, `trim` at its defaults beside plain training; what it costs; TorchLoss's cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import torch_loss
from benchmarks.common import Part, Result, Table, Target, digits, gather
from benchmarks.torch_images import Images, accuracy, cross_entropy, device, noises, seconds, shifted
from benchmarks.trust_data import CLEAN, Noise, draw, read

__all__ = ["FULL", "PARTS", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much of it: rows of MNIST on a CPU (all of them on a GPU), epochs, tables and seeds."""

    quick: bool = False
    rows: int = 5_000
    epochs: int | str = "auto"
    digit_seeds: tuple[int, ...] = (0, 1, 2)
    names: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (0,)
    table_rows: int = 900
    repeats: int = 3


FULL = Plan()
QUICK = Plan(True, 300, 4, (0,), ("sklearn iris",), (0,), 150, 1)

WRONG = Noise("uniform", 0.2)
WORST, GAIN = 1.0, 1.0  # tables: points below plain training at most, and mean points gained at 20 %


def _mlp(p: int, K: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(p, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, K))


def _images(plan: Plan, data: Path | None) -> Images:
    return Images.read(data, plan.rows, plan.epochs, plan.quick)


def _digits(plan: Plan, data: Path | None) -> Part:
    """The paper's noise, several seeds."""
    return shifted(_images(plan, data), plan.digit_seeds)


def _noises(plan: Plan, data: Path | None) -> Part:
    """Other noise and another network."""
    return noises(_images(plan, data), 0)


def _tables(plan: Plan, data: Path | None) -> Part:
    """A dense network on tables, with 0 and 20 % of the labels wrong."""
    import torch

    from trimlearn.torch import trim

    rows, differences = [], {"0": list[float](), "20": list[float]()}
    for table in (table for table in read(data) if plan.names is None or table.name in plan.names):
        line: list[Any] = [table.name]
        for key, noise in (("0", CLEAN), ("20", WRONG)):
            found = []
            for seed in plan.seeds:
                sample = draw(table, noise, seed, 0, plan.table_rows)
                x, x_test = (torch.tensor(a, dtype=torch.float32) for a in (sample.X, sample.X_test))
                fit = partial(trim, loss_fn=cross_entropy(), dataset=(x, torch.tensor(sample.given)), progress=False)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what cannot be decided is said; here it is counted
                    pair = [fit(_mlp(x.shape[1], table.K), contamination=level) for level in (0.0, "auto")]
                found.append([accuracy(r.module, x_test, torch.tensor(sample.y_test)) for r in pair])
            plain, trimmed = np.mean(found, axis=0)
            differences[key].append(float(trimmed - plain))
            line += [plain, trimmed, trimmed - plain]
        rows.append(line)
    columns = ["table", "plain", "trim", "gain", "plain, 20 % wrong", "trim, 20 % wrong", "gain, 20 % wrong"]
    both = differences["0"] + differences["20"]
    return Part(
        [Table(f"accuracy of a dense network in per cent, mean of {len(plan.seeds)} draws", columns, rows)],
        [
            Target("tables, 0 and 20 % wrong: points lost on the worst", -min(both), WORST),
            Target("tables, 20 % wrong: mean points lost", -float(np.mean(differences["20"])), -GAIN),
        ],
    )


def _seconds(plan: Plan, data: Path | None) -> Part:
    """What `trim` costs."""
    epochs, batch = (4, 64) if plan.quick else (12, 256 if device()[0].type == "cuda" else 128)
    return seconds(_images(plan, data), epochs, batch, plan.repeats)


def _loss(plan: Plan, data: Path | None) -> Part:
    """A pass of TorchLoss, over few rows and over many."""
    sizes = (True,) if plan.quick else (True, False)
    parts = [torch_loss.measure(digits(data, small), 3 * plan.repeats) for small in sizes]
    return Part([t for part in parts for t in part.tables], [t for part in parts for t in part.targets])


Measure = Callable[[Plan, Path | None], Part]
PARTS: dict[str, Measure] = {
    "digits": _digits,
    "noises": _noises,
    "seconds": _seconds,
    "tables": _tables,
    "loss": _loss,
}


def run(plan: Plan = FULL, data: Path | None = None, parts: Sequence[str] = tuple(PARTS)) -> Result:
    """The parts asked for, one after the other."""
    settings = {**asdict(plan), "device": device()[1]}
    return gather("torch", {name: partial(PARTS[name], plan, data) for name in parts}, settings)
