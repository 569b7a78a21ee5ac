"""Images with wrong labels and small networks: parts of `python -m benchmarks torch`, `trim` beside plain training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import NOTHING, Part, Table, Target, clock, digits
from benchmarks.trust_data import Noise
from trimlearn.datasets import shift_labels

__all__ = ["Images", "accuracy", "cross_entropy", "device", "noises", "seconds", "shifted"]

SHARES = (0.4, 0.2, 0.0)
# Targets by the share of wrong labels: accuracy and detected in per cent at least, points off the level at most.
DIGITS = {0.4: (97.0, 97.0, 2.0), 0.2: (98.7, 98.5, 1.5)}
HARM, FLAGGED = 0.2, 1.0  # with no wrong labels: points of accuracy lost at most, and per cent flagged
OFF = 2.0  # points that an estimate may be off on noise that no constant was chosen for
KNOWN, REDUCED, AUTO = 1.5, 3.0, 3.0  # seconds, in units of plain training
MISTAKEN = {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}  # digits that look alike, as Patrini et al. (2017) confuse them
COLUMNS = ["wrong", "seed", "level", "untrimmed", "accuracy", "detected", "right ones flagged", "estimate"]


def device() -> tuple[Any, str]:
    """Where networks are trained, and what it is called."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda"), torch.cuda.get_device_name()
    return torch.device("cpu"), f"CPU, {torch.get_num_threads()} threads"


def cross_entropy() -> Any:
    """One loss per example."""
    from torch import nn

    return nn.CrossEntropyLoss(reduction="none")


def accuracy(module: Any, x: Any, y: Any) -> float:
    """Per cent."""
    import torch

    module.eval()
    with torch.no_grad():
        right = [module(a).argmax(1) == b for a, b in zip(x.split(1_000), y.split(1_000), strict=True)]
    return 100 * float(torch.cat(right).float().mean())


@dataclass(frozen=True)
class Images:
    """Digits to learn from and to test on, all on the device, and how many epochs are made."""

    name: str
    x: Any
    t: np.ndarray
    x_test: Any
    t_test: Any
    epochs: int | str

    @classmethod
    def read(cls, data: Path | None, rows: int, epochs: int | str, quick: bool) -> Images:
        """MNIST, so many rows of it on a CPU and all on a GPU; scikit-learn's digits for a quick try."""
        import torch

        where, _ = device()
        found = digits(data, quick)
        n = rows if where.type == "cpu" else len(found.t)
        side = round(found.V.shape[1] ** 0.5)
        x, x_test = (torch.tensor(V, device=where).view(-1, 1, side, side) for V in (found.V[:n], found.V_test))
        t_test = torch.tensor(found.t_test, device=where)
        return cls(f"{found.name}, {len(x):,} rows", x, found.t[:n], x_test, t_test, epochs)

    def cnn(self, seed: int) -> Any:
        """Two convolutions and two dense layers."""
        import torch
        from torch import nn

        torch.manual_seed(seed)
        convolutions = (
            nn.Conv2d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        dense = nn.Linear(32 * (self.x.shape[-1] // 4) ** 2, 128), nn.ReLU(), nn.Linear(128, 10)
        return nn.Sequential(*convolutions, nn.Flatten(), *dense).to(self.x.device)

    def mlp(self, seed: int) -> Any:
        """Three dense layers."""
        import torch
        from torch import nn

        torch.manual_seed(seed)
        p = self.x.shape[-1] ** 2
        dense = nn.Linear(p, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
        return nn.Sequential(nn.Flatten(), *dense).to(self.x.device)

    def compare(self, make: Callable[[int], Any], given: np.ndarray, seed: int, known: bool) -> Iterator[list[Any]]:
        """Level, untrimmed, accuracy, detected, right ones flagged, estimate: "auto", then the level if ``known``."""
        import torch

        from trimlearn.torch import trim

        wrong = given != self.t
        dataset = self.x, torch.tensor(given, device=self.x.device)
        fit = partial(trim, loss_fn=cross_entropy(), dataset=dataset, epochs=self.epochs, seed=seed, progress=False)
        plain = accuracy(fit(make(seed), contamination=0.0).module, self.x_test, self.t_test)
        for level in ("auto", float(wrong.mean())) if known else ("auto",):
            result = fit(make(seed), contamination=level)
            off = ~result.inlier_mask_
            detected = 100 * float(off[wrong].mean()) if wrong.any() else NOTHING
            name = "unknown" if level == "auto" else "known"
            mine = accuracy(result.module, self.x_test, self.t_test)
            yield [name, plain, mine, detected, 100 * float(off[~wrong].mean()), 100 * result.contamination_]


def shifted(images: Images, seeds: tuple[int, ...]) -> Part:
    """A small CNN, labels shifted by one, everything at default; every seed draws labels, weights and batches anew."""
    rows, targets = [], []
    for share in SHARES:
        found = []
        for seed in seeds:
            given, _ = shift_labels(images.t, share, 10, seed=seed)
            lines = list(images.compare(images.cnn, given, seed, known=bool(share) and seed == seeds[0]))
            rows += [[f"{share:.0%}", seed, *line] for line in lines]
            found.append(lines[0])
        targets += _targets(share, found, len(seeds))
    title = f"{images.name}, labels shifted by one, small CNN, {device()[1]}; per cent"
    return Part([Table(title, COLUMNS, rows)], targets)


def _targets(share: float, found: list[list[Any]], count: int) -> list[Target]:
    """What the worst of the seeds must reach."""
    of = f"worst of {count} seeds"
    if not share:
        lost = max(plain - mine for _, plain, mine, *_ in found)
        flagged = max(line[4] for line in found)
        return [
            Target(f"CNN, 0 % wrong: points of accuracy below untrimmed, {of}", lost, HARM),
            Target(f"CNN, 0 % wrong: per cent flagged, {of}", flagged, FLAGGED),
        ]
    least, detected, off = DIGITS[share]
    where = f"CNN, {share:.0%} wrong"
    return [
        Target(f"{where}: per cent of errors on the test, {of}", max(100 - line[2] for line in found), 100 - least),
        Target(f"{where}: per cent of wrong labels missed, {of}", max(100 - line[3] for line in found), 100 - detected),
        Target(f"{where}: points the estimate is off, {of}", max(abs(line[5] - 100 * share) for line in found), off),
    ]


def noises(images: Images, seed: int) -> Part:
    """Noise and a network that no constant was chosen for."""
    rng, t = np.random.default_rng(seed), images.t
    alike = np.array([MISTAKEN.get(k, k) for k in range(10)])
    cases = [
        ("CNN, 30 % uniform", images.cnn, Noise("uniform", 0.3).apply(t, 10, rng)),
        ("CNN, 20 % of digits that look alike", images.cnn, np.where(rng.random(len(t)) < 0.2, alike[t], t)),
        ("CNN, 20 % of one class", images.cnn, Noise("one-way", 0.2).apply(t, 10, rng)),
        *[(f"MLP, {share:.0%} shifted", images.mlp, shift_labels(t, share, 10, seed)[0]) for share in SHARES],
    ]
    rows, targets = [], []
    for name, make, given in cases:
        (line,) = images.compare(make, given, seed, known=False)
        rows.append([name, seed, *line])
        wrong = 100 * float(np.mean(given != t))
        targets += [
            Target(f"{name}: points of accuracy below untrimmed", line[1] - line[2], HARM, goal=True),
            Target(f"{name}: points the estimate is off", abs(line[5] - wrong), OFF, goal=True),
        ]
    title = f"{images.name}, other noise and another network, {device()[1]}; per cent"
    return Part([Table(title, COLUMNS, rows)], targets)


def seconds(images: Images, epochs: int, batch: int, repeats: int) -> Part:
    """`trim` in units of a plain loop of as many epochs."""
    import torch

    from trimlearn.torch import trim

    where, machine = device()
    y = torch.tensor(shift_labels(images.t, 0.2, 10, seed=0)[0], device=where)

    def finished(task: Callable[[], Any]) -> None:
        task()
        if where.type == "cuda":
            torch.cuda.synchronize()

    def trimmed(**options: Any) -> Callable[[], Any]:
        same = {"epochs": epochs, "batch_size": batch, "progress": False}
        return lambda: trim(images.cnn(0), cross_entropy(), (images.x, y), **same, **options)

    tasks: dict[str, tuple[Callable[[], Any], float]] = {
        "level known": (trimmed(contamination=0.2), KNOWN),
        "level known, variance-reduced": (trimmed(contamination=0.2, gradient="variance-reduced"), REDUCED),
        "level unknown": (trimmed(), AUTO),
    }
    plain = partial(_plain_loop, images, y, epochs, batch)
    finished(partial(_plain_loop, images, y, 1, batch))
    rows, targets = [], []
    for what, (task, limit) in tasks.items():
        pairs = [(clock(partial(finished, plain)), clock(partial(finished, task))) for _ in range(repeats)]
        theirs, mine = np.min(pairs, axis=0)
        rows.append([what, theirs, mine, mine / theirs])
        targets.append(Target(f"seconds of trim / plain epochs: {what}", mine / theirs, limit))
    title = f"{images.name}, {epochs} epochs of the CNN, 20 % wrong, {machine}; least of {repeats}"
    return Part([Table(title, ["trim", "seconds of a plain loop", "seconds", "ratio"], rows)], targets)


def _plain_loop(images: Images, y: Any, epochs: int, batch: int) -> None:
    """What people write themselves."""
    import torch
    from torch import nn

    module, loss, x = images.cnn(0), nn.CrossEntropyLoss(), images.x
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(epochs):
        for rows in torch.randperm(len(x), device=x.device).split(batch):
            optimizer.zero_grad()
            loss(module(x[rows]), y[rows]).backward()
            optimizer.step()
