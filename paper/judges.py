"""US Judges (section 4.2, Figure 3): trimmed PCA names outlying judges and, on the transpose, outlying ratings."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.outcome import BLUE, RED, Outcome, Picture, Say, Sheet, quiet
from trimlearn import Problem, Solution, solve
from trimlearn.datasets import load_judges
from trimlearn.losses import Subspace
from trimlearn.regularizers import Stiefel
from trimlearn.smart import alternating, svrg
from trimlearn.weights import CappedSimplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FULL", "QUICK", "Settings", "StationaryPoint", "Study", "fit_pca", "run", "study"]

UNINFORMATIVE = ("CONT", "INTG", "DMNR", "PHYS")  # the ratings the paper finds and removes: A becomes B
COMPONENTS = 2  # the paper's
TOL, MAX_PASSES = 1e-6, 2000  # tight and long, so that two starts that end at one point are seen to do so


@dataclass(frozen=True)
class Settings:
    """Shares kept of the judges and, on the transpose, of the ratings; random starts of SMART for each problem."""

    judges_kept: float = 0.8
    ratings_kept: float = 0.6
    starts: int = 40


FULL = Settings()
QUICK = FULL  # it takes three seconds


@dataclass(frozen=True)
class StationaryPoint:
    """Orthonormal columns ``U``, weights ``w``, F, who has weight 0, how many starts ended here."""

    U: NDArray[np.float64]
    w: NDArray[np.float64]
    objective: float
    trimmed: tuple[str, ...]
    reached: int = 0


@dataclass(frozen=True)
class Study:
    """Trimmed PCA of the rows of ``A``: the point SMART reaches most often, and the lowest one known."""

    title: str
    A: NDArray[np.float64]
    names: tuple[str, ...]
    h: float
    usual: StationaryPoint
    lowest: StationaryPoint
    points: int  # different stationary points among the starts


def run(
    settings: Settings = FULL, data_home: str | os.PathLike[str] | None = None, *, say: Say = quiet
) -> Outcome:
    """Figure 3 and the outlying ratings; the data are bundled, ``data_home`` is not needed."""
    table = load_judges()
    A = table.data - table.data.mean(axis=0)
    informative = [j for j, name in enumerate(table.feature_names) if name not in UNINFORMATIVE]
    h = settings.judges_kept * len(A)
    studies = {
        "A": study("A, all 12 ratings", A, table.names, h, settings.starts),
        "B": study("B, 8 ratings", A[:, informative], table.names, h, settings.starts),
        "transpose": study(
            "Aᵀ, the ratings", A.T, table.feature_names, settings.ratings_kept * A.shape[1], settings.starts
        ),
    }
    for name, found in studies.items():
        say(f"judges: {name}, F = {found.usual.objective:.6f}, trimmed {', '.join(found.usual.trimmed)}")
    return Outcome(
        name="judges",
        title="Trimmed PCA on US Judges (Figure 3)",
        notes=_notes(settings, studies),
        tables=[_sheet(studies, settings)],
        pictures=[Picture("figure3", _caption(settings), _draw(studies["A"], studies["B"]))],
        results={name: _numbers(found) for name, found in studies.items()} | {"source": table.source},
    )


def study(title: str, A: NDArray[np.float64], names: tuple[str, ...], h: float, starts: int) -> Study:
    """SMART from random orthonormal starts, and the lowest F of those and of a search.

    >>> ratings = load_judges()
    >>> A = ratings.data - ratings.data.mean(axis=0)
    >>> study("ratings", A.T, ratings.feature_names, 7.2, starts=5).usual.trimmed
    ('CONT', 'INTG', 'DMNR', 'PHYS')
    """
    problem = Problem(Subspace(A, COMPONENTS), CappedSimplex(h), Stiefel())
    found = [_fit(_from_random(problem, seed), names) for seed in range(starts)]
    reached = Counter(fit.trimmed for fit in found)
    # of points reached equally often the lower
    commonest = min(reached, key=lambda trimmed: (-reached[trimmed], min(_objectives(found, trimmed))))
    searched = _fit(solve(problem, alternating(), start="multistart", tol=TOL, seed=0), names)

    def best(fits: list[StationaryPoint]) -> StationaryPoint:
        fit = min(fits, key=lambda fit: fit.objective)
        return StationaryPoint(fit.U, fit.w, fit.objective, fit.trimmed, reached[fit.trimmed])

    usual = best([fit for fit in found if fit.trimmed == commonest])
    return Study(title, A, names, h, usual, best([*found, searched]), len(reached))


def _objectives(fits: list[StationaryPoint], trimmed: tuple[str, ...]) -> list[float]:
    return [fit.objective for fit in fits if fit.trimmed == trimmed]


def _from_random(problem: Problem, seed: int) -> Solution:
    U = np.linalg.qr(np.random.default_rng(seed).standard_normal(problem.loss.x_shape))[0]
    return solve(problem, svrg(finish=False), start=None, x0=U, tol=TOL, max_passes=MAX_PASSES, seed=seed)


def _fit(solution: Solution, names: tuple[str, ...]) -> StationaryPoint:
    trimmed = tuple(names[i] for i in np.flatnonzero(solution.w == 0))
    return StationaryPoint(solution.x, solution.w, solution.objective, trimmed)


def fit_pca(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Plain PCA: the leading right singular vectors, as columns.

    >>> fit_pca(np.diag([1.0, 3.0, 2.0])).round().tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    return _upright(np.linalg.svd(A, full_matrices=False)[2][:COMPONENTS].T)


def _upright(U: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest entry of each column positive: a picture does not depend on the signs an SVD happens to give."""
    largest = np.take_along_axis(U, np.argmax(np.abs(U), axis=0)[None], axis=0)
    return U * np.where(largest < 0, -1.0, 1.0)


# -- what is shown ----------------------------------------------------------------------------------------------------


def _notes(settings: Settings, studies: dict[str, Study]) -> list[str]:
    as_printed = set(studies["transpose"].usual.trimmed) == set(UNINFORMATIVE)
    beaten = [name for name, found in studies.items() if found.lowest.trimmed != found.usual.trimmed]
    return [
        "Ratings are centred by their plain mean; B lacks " + ", ".join(UNINFORMATIVE) + ", the ratings that the "
        f"paper removes, having found them by trimming the transpose (h = {settings.ratings_kept:g} · 12; it calls "
        "this 60 %-trimmed).",
        f"The problem has many stationary points. SMART is started from {settings.starts} random orthonormal U; the "
        f"figure shows the point reached most often, which on the transpose {'is' if as_printed else 'is not'} the "
        "paper's own answer. The lowest F is the best that those starts and a multi-start search know; it is another "
        f"point than the usual one for {' and '.join(beaten) or 'none of the problems'}.",
    ]


def _caption(settings: Settings) -> str:
    share = 1 - settings.judges_kept
    return (
        f"The 43 judges on two components: PCA (top) and {share:.0%}-trimmed PCA (bottom), on all 12 ratings (left) "
        "and on the 8 that remain (right). Red squares: weight exactly 0."
    )


def _sheet(studies: dict[str, Study], settings: Settings) -> Sheet:
    rows = []
    for found in studies.values():
        usual, lowest = found.usual, found.lowest
        share = f"{usual.reached} of {settings.starts}"
        swapped = sorted(set(lowest.trimmed) - set(usual.trimmed)), sorted(set(usual.trimmed) - set(lowest.trimmed))
        other = f"{', '.join(swapped[0])} for {', '.join(swapped[1])}" if any(swapped) else "the same"
        trimmed = ", ".join(usual.trimmed)
        rows.append([found.title, f"{usual.objective:.6f}", share, trimmed, f"{lowest.objective:.6f}", other])
    header = ["data", "F", "starts that end there", "weight 0", "lowest F", "which trims"]
    return Sheet("Trimmed PCA, two components", header, rows)


def _numbers(found: Study) -> dict[str, Any]:
    def point(fit: StationaryPoint) -> dict[str, Any]:
        weights = dict(zip(found.names, fit.w.tolist(), strict=True))
        return {"objective": fit.objective, "trimmed": fit.trimmed, "starts": fit.reached, "weights": weights}

    return {"h": found.h, **point(found.usual), "stationary_points": found.points, "lowest": point(found.lowest)}


def _draw(full: Study, reduced: Study) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(2, 2)
    for column, found in zip(panels.T, (full, reduced), strict=True):
        kept = np.ones(len(found.A), dtype=bool)
        _scatter(column[0], found, fit_pca(found.A), kept, f"PCA on {found.title}")
        share = 1 - found.h / len(found.A)
        _scatter(column[1], found, _ordered(found), found.usual.w > 0, f"{share:.0%}-trimmed PCA on {found.title}")
    return figure


def _ordered(found: Study) -> NDArray[np.float64]:
    """U turned so that its first column is the direction in which the kept rows spread most."""
    scores = found.A @ found.usual.U
    turn = np.linalg.svd(scores * np.sqrt(found.usual.w)[:, None], full_matrices=False)[2].T
    return _upright(found.usual.U @ turn)


def _scatter(axes: Any, found: Study, U: NDArray[np.float64], kept: NDArray[np.bool_], title: str) -> None:
    scores = found.A @ U
    axes.scatter(*scores[kept].T, c=BLUE, s=24)
    axes.scatter(*scores[~kept].T, c=RED, s=44, marker="s")
    for i in np.flatnonzero(np.isin(found.names, found.usual.trimmed)):
        surname = re.split("[,.]", found.names[i])[0]  # "BRACKEN,J.J.", but also "SADEN.G.A."
        colour = BLUE if kept[i] else RED
        axes.annotate(surname, scores[i], xytext=(5, 4), textcoords="offset points", fontsize=8, color=colour)
    axes.set(title=title, xlabel="first component", ylabel="second component")
    axes.margins(x=0.2, y=0.12)  # room for the names
