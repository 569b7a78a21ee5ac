"""Runs the experiments by name, one after the other, and writes each one's files as soon as it is done."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path

from paper.outcome import Outcome, Say, quiet, write_outcome, write_page
from trimlearn.datasets import find_photos, load_mnist, load_oxford_pair

__all__ = ["EXPERIMENTS", "Experiment", "reproduce"]

DataHome = str | os.PathLike[str] | None
PACKAGES = {"matplotlib": "cli", "cv2": "vision"}  # and the extra that brings each


@dataclass(frozen=True)
class Experiment:
    """A module of this package with ``FULL``, ``QUICK`` and ``run``; the packages and the data it cannot do without."""

    module: str
    packages: tuple[str, ...] = ("matplotlib",)
    find_data: Callable[[DataHome], object] = lambda data_home: None


def _mnist(data_home: DataHome) -> None:
    for subset in ("test", "train"):
        load_mnist(subset, data_home)


def _pairs(data_home: DataHome) -> None:
    for name in ("river", "roofs"):
        find_photos("vlfeat", f"{name}*.jpg", data_home)
    for sequence, k in product(("graf", "boat"), range(2, 7)):
        load_oxford_pair(sequence, k, data_home)


def _panorama(data_home: DataHome) -> None:
    for pattern in ("*.jpg", "*.npz"):
        find_photos("panorama/autostitch_denny", pattern, data_home)


EXPERIMENTS = {
    "judges": Experiment("judges"),
    "homography": Experiment("homography", ("matplotlib", "cv2"), _pairs),
    "panorama": Experiment("panorama", ("matplotlib", "cv2"), _panorama),
    "mnist": Experiment("mnist", find_data=_mnist),
    "rates": Experiment("rates", find_data=_mnist),
}


def reproduce(
    names: Sequence[str],
    out: Path,
    data_home: DataHome = None,
    *,
    quick: bool = False,
    modulo: int = 10,
    say: Say = quiet,
) -> Iterator[tuple[Outcome, list[Path]]]:
    """Run the experiments ``names``, yield each with its files in ``out``; paper.md and results.json grow on the way.

    What is missing (a package, data) is said before the first one starts. ``quick``: a slice of the data, to see
    everything once. ``modulo``: how MNIST's labels wrap when they are shifted, 10 or 9.
    """
    for name in names:
        _check(EXPERIMENTS[name], data_home)
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        module = import_module(f"paper.{EXPERIMENTS[name].module}")
        settings = module.QUICK if quick else module.FULL
        if name == "mnist":
            settings = replace(settings, modulo=modulo)
        outcome: Outcome = module.run(settings, data_home, say=say)
        outcome.results.setdefault("settings", asdict(settings))
        outcome.results["quick"] = quick
        yield outcome, [*write_outcome(out, outcome), *write_page(out, outcome)]


def _check(experiment: Experiment, data_home: DataHome) -> None:
    for package in experiment.packages:
        if importlib.util.find_spec(package) is None:
            raise ImportError(f'{package} is not installed: pip install "trimlearn[{PACKAGES[package]}]"')
    experiment.find_data(data_home)
