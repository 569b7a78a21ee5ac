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
from benchmarks.common import NOTHING, Part, Result, Table, Target, clock, digits, gather
from benchmarks.trust_data import CLEAN, Noise, draw, read
from trimlearn.datasets import shift_labels

__all__ = ["FULL", "PARTS", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much of it: rows of MNIST on a CPU (all of them on a GPU), epochs, tables and seeds."""

    quick: bool = False
    rows: int = 5_000
    epochs: int | str = "auto"
    names: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (0, 1)
    table_rows: int = 1_500
    repeats: int = 3


FULL = Plan()
QUICK = Plan(True, 300, 4, ("sklearn iris",), (0,), 150, 1)

SHARES = (0.4, 0.2, 0.0)
WRONG = Noise("uniform", 0.2)
# Targets by the share of wrong labels: accuracy and detected in per cent at least, points off the level at most.
DIGITS = {0.4: (97.0, 97.0, 2.0), 0.2: (98.7, 98.5, 1.5)}
HARM, FLAGGED = 0.2, 1.0  # with no wrong labels: points of accuracy lost at most, and per cent flagged
WORST, GAIN = 1.0, 1.0  # tables: points below plain training at most, and mean points gained at 20 %
KNOWN, REDUCED, AUTO = 1.5, 3.0, 3.0  # seconds, in units of plain training


def _device() -> tuple[Any, str]:
    """Where networks are trained, and what it is called."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda"), torch.cuda.get_device_name()
    return torch.device("cpu"), f"CPU, {torch.get_num_threads()} threads"


def _cnn(side: int) -> Any:
    """Two convolutions and two dense layers."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (side // 4) ** 2, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def _mlp(p: int, K: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(p, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, K))


def _losses() -> Any:
    from torch import nn

    return nn.CrossEntropyLoss(reduction="none")


def _accuracy(module: Any, x: Any, y: Any) -> float:
    """Per cent."""
    import torch

    module.eval()
    with torch.no_grad():
        right = [module(a).argmax(1) == b for a, b in zip(x.split(1_000), y.split(1_000), strict=True)]
    return 100 * float(torch.cat(right).float().mean())


def _images(plan: Plan, data: Path | None) -> tuple[Any, np.ndarray, Any, Any, str]:
    """x, t, x_test and t_test on the device, and what they are called."""
    import torch

    device, _ = _device()
    found = digits(data, plan.quick)
    n = plan.rows if device.type == "cpu" else len(found.t)
    side = round(found.V.shape[1] ** 0.5)
    x, x_test = (torch.tensor(V, device=device).view(-1, 1, side, side) for V in (found.V[:n], found.V_test))
    return x, found.t[:n], x_test, torch.tensor(found.t_test, device=device), f"{found.name}, {len(x):,} rows"


def _digits(plan: Plan, data: Path | None) -> Part:
    """A small CNN, labels shifted by one, everything at default."""
    import torch

    from trimlearn.torch import trim

    x, t, x_test, t_test, name = _images(plan, data)
    device, machine = _device()
    rows, targets = [], []
    for share in SHARES:
        y, wrong = shift_labels(t, share, 10, seed=0)
        labels = torch.tensor(y, device=device)
        fit = partial(trim, loss_fn=_losses(), dataset=(x, labels), epochs=plan.epochs, progress=False)
        plain = _accuracy(fit(_cnn(x.shape[-1]).to(device), contamination=0.0).module, x_test, t_test)
        for level in ("auto", share) if share else ("auto",):
            result = fit(_cnn(x.shape[-1]).to(device), contamination=level)
            accuracy, off = _accuracy(result.module, x_test, t_test), ~result.inlier_mask_
            detected = 100 * float(off[wrong].mean()) if share else NOTHING
            level_name = "unknown" if level == "auto" else "known"
            estimate = 100 * result.contamination_
            false = 100 * float(off[~wrong].mean())
            rows.append([f"{share:.0%}", level_name, plain, accuracy, detected, false, estimate])
            if level == "auto":
                targets += _digit_targets(share, plain, accuracy, detected, 100 * float(off.mean()), estimate)
    columns = ["wrong", "level", "untrimmed", "accuracy", "detected", "right ones flagged", "estimate"]
    return Part([Table(f"{name}, labels shifted by one, small CNN, {machine}; per cent", columns, rows)], targets)


def _digit_targets(share: float, plain: float, accuracy: float, *others: Any) -> list[Target]:
    detected, flagged, estimate = others
    if not share:
        return [
            Target("CNN, 0 % wrong: points of accuracy below untrimmed", plain - accuracy, HARM),
            Target("CNN, 0 % wrong: per cent flagged", flagged, FLAGGED),
        ]
    least, found, off = DIGITS[share]
    where = f"CNN, {share:.0%} wrong"
    return [
        Target(f"{where}: per cent of errors on the test", 100 - accuracy, 100 - least),
        Target(f"{where}: per cent of wrong labels missed", 100 - detected, 100 - found),
        Target(f"{where}: points the estimate is off", abs(estimate - 100 * share), off),
    ]


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
                fit = partial(trim, loss_fn=_losses(), dataset=(x, torch.tensor(sample.given)), progress=False)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what cannot be decided is said; here it is counted
                    pair = [fit(_mlp(x.shape[1], table.K), contamination=level) for level in (0.0, "auto")]
                found.append([_accuracy(r.module, x_test, torch.tensor(sample.y_test)) for r in pair])
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
    """`trim` in units of a plain loop of as many epochs."""
    import torch

    from trimlearn.torch import trim

    x, t, _, _, name = _images(plan, data)
    device, machine = _device()
    y = torch.tensor(shift_labels(t, 0.2, 10, seed=0)[0], device=device)
    epochs, batch = (4, 64) if plan.quick else (12, 256 if device.type == "cuda" else 128)

    def finished(task: Callable[[], Any]) -> None:
        task()
        if device.type == "cuda":
            torch.cuda.synchronize()

    def trimmed(**options: Any) -> Callable[[], Any]:
        same = {"epochs": epochs, "batch_size": batch, "progress": False}
        return lambda: trim(_cnn(x.shape[-1]).to(device), _losses(), (x, y), **same, **options)

    tasks: dict[str, tuple[Callable[[], Any], float]] = {
        "level known": (trimmed(contamination=0.2), KNOWN),
        "level known, variance-reduced": (trimmed(contamination=0.2, gradient="variance-reduced"), REDUCED),
        "level unknown": (trimmed(), AUTO),
    }
    finished(lambda: _plain_loop(x, y, 1, batch, device))
    rows, targets = [], []
    for what, (task, limit) in tasks.items():
        pairs = [
            (clock(partial(finished, lambda: _plain_loop(x, y, epochs, batch, device))), clock(partial(finished, task)))
            for _ in range(plan.repeats)
        ]
        ratio = min(mine for _, mine in pairs) / min(theirs for theirs, _ in pairs)
        rows.append([what, min(theirs for theirs, _ in pairs), min(mine for _, mine in pairs), ratio])
        targets.append(Target(f"seconds of trim / plain epochs: {what}", ratio, limit))
    title = f"{name}, {epochs} epochs of the CNN, 20 % wrong, {machine}; least of {plan.repeats}"
    return Part([Table(title, ["trim", "seconds of a plain loop", "seconds", "ratio"], rows)], targets)


def _plain_loop(x: Any, y: Any, epochs: int, batch: int, device: Any) -> None:
    """What people write themselves."""
    import torch
    from torch import nn

    module, loss = _cnn(x.shape[-1]).to(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(epochs):
        for rows in torch.randperm(len(x), device=device).split(batch):
            optimizer.zero_grad()
            loss(module(x[rows]), y[rows]).backward()
            optimizer.step()


def _loss(plan: Plan, data: Path | None) -> Part:
    """A pass of TorchLoss."""
    return torch_loss.measure(digits(data, plan.quick), 3 * plan.repeats)


Measure = Callable[[Plan, Path | None], Part]
PARTS: dict[str, Measure] = {"digits": _digits, "tables": _tables, "seconds": _seconds, "loss": _loss}


def run(plan: Plan = FULL, data: Path | None = None, parts: Sequence[str] = tuple(PARTS)) -> Result:
    """The parts asked for, one after the other."""
    settings = {**asdict(plan), "device": _device()[1]}
    return gather("torch", {name: partial(PARTS[name], plan, data) for name in parts}, settings)
