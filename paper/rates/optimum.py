"""F* of a trimmed problem, as the paper takes it: the lowest F of several long runs. Kept in a file.

The file holds the model x that gave F*, not just the number: F is evaluated at x again when the file is read, so that
a damaged file, or one of another problem, is noticed and F* is always a value that is attained.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from math import isclose
from pathlib import Path

import numpy as np

from paper.outcome import Say, quiet
from paper.side_by_side import side_by_side
from trimlearn import Problem, Solution, solve
from trimlearn._utils.arrays import Array, asarray_like, to_numpy
from trimlearn._utils.files import replacing
from trimlearn.smart import alternating, saga, svrg
from trimlearn.smart.method import Method
from trimlearn.starts import Continuation, Given, Start

__all__ = ["FINISH", "LONG", "Optimum", "best_weights_objective", "lowest"]

Runs = dict[str, tuple[Method, Start]]

LONG: Runs = {
    "SMART-SVRG, a continuation": (svrg(finish=False), Continuation()),
    "SMART-SVRG, a slow continuation": (svrg(finish=False), Continuation(60.0)),
    "SMART-SVRG with an L-BFGS metric, a continuation": (svrg(metric="lbfgs", finish=False), Continuation()),
    "SMART-SAGA, a continuation": (saga(finish=False), Continuation()),
}
FINISH: dict[str, Method] = {
    "SMART-SVRG with an L-BFGS metric, from the best": svrg(metric="lbfgs", finish=False),
    "alternating minimisation, from the best": alternating(50, "lbfgs"),
}
SHARE = 1 / 3  # passes of the latter: they begin where the former ended
AGREES = 1e-4  # float32 losses, summed in another order, differ by less


@dataclass(frozen=True)
class Optimum:
    """F*, the model that attains it, what each long run ended at, and whether all this was read from the file."""

    objective: float
    x: Array
    runs: dict[str, float]
    cached: bool = False


def lowest(problem: Problem, passes: float, folder: Path | None = None, *, say: Say = quiet) -> Optimum:
    """The lowest F of the runs in `LONG`, ``passes`` passes each, and of those in `FINISH`, which go on from the best.
    ``folder``: where the answer is kept; None: nowhere.

    >>> from paper.rates.runs import trimmed_softmax
    >>> V, t = np.eye(4).repeat(10, axis=0), np.arange(4).repeat(10)
    >>> optimum = lowest(trimmed_softmax(V, t, wrong=0.0), passes=20)
    >>> optimum.objective == min(optimum.runs.values())
    True
    """
    path = None if folder is None else folder / f"{_key(problem, passes)}.npz"
    found = None if path is None or not path.exists() else _recall(path, problem, say)
    if found is None:
        found = _search(problem, passes, say)
        if path is not None:
            _keep(path, found, say)
    return found


def best_weights_objective(problem: Problem, x: Array) -> float:
    """min over w of F(w, x).

    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> problem = Problem(LeastSquares(np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 99.0])), CappedSimplex(3))
    >>> best_weights_objective(problem, np.array([2.0]))  # (½ + 0 + ½)/4
    0.25
    """
    f = problem.loss.values(x)
    return problem.weighted_mean(problem.r1.minimise(f, problem.s), f) + problem.r2.value(x)


def _search(problem: Problem, passes: float, say: Say) -> Optimum:
    found = _run_all(problem, passes, LONG, say)
    onward: Runs = {name: (method, Given(x0=_best(found).x)) for name, method in FINISH.items()}
    found |= _run_all(problem, max(SHARE * passes, 4), onward, say)
    best = _best(found)
    return Optimum(best.objective, best.x, {name: solution.objective for name, solution in found.items()})


def _run_all(problem: Problem, passes: float, runs: Runs, say: Say) -> dict[str, Solution]:
    def run(how: tuple[Method, Start]) -> Solution:
        return solve(problem, how[0], start=how[1], max_passes=passes, tol=0)

    found = {}
    for name, solution in zip(runs, side_by_side(run, list(runs.values())), strict=True):
        found[name] = solution
        say(f"rates: F* for {problem.r1!r} sought by {name}: F = {solution.objective:.6g}, {solution.seconds:.0f} s")
    return found


def _best(found: dict[str, Solution]) -> Solution:
    return min(found.values(), key=lambda solution: solution.objective)


# -- the file ---------------------------------------------------------------------------------------------------------


def _key(problem: Problem, passes: float) -> str:
    settings = f"{problem!r} {problem.fingerprint()} {passes:g} {LONG} {FINISH} {SHARE:g}"
    return sha256(settings.encode()).hexdigest()[:20]


def _recall(path: Path, problem: Problem, say: Say) -> Optimum | None:
    """What the file says, if it is true."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            x, told = asarray_like(file["x"], problem.loss.like), float(file["objective"])
            runs = {str(name): float(objective) for name, objective in json.loads(str(file["runs"])).items()}
        objective = best_weights_objective(problem, x)
    except Exception as error:  # whatever is wrong with the file, F* can be sought again
        say(f"rates: {path} is damaged ({error!r}); F* is sought again")
        return None
    if not isclose(objective, told, rel_tol=AGREES):
        say(f"rates: {path} is of another problem (F = {objective:.6g}, it says {told:.6g}); F* is sought again")
        return None
    return Optimum(objective, x, runs, cached=True)


def _keep(path: Path, found: Optimum, say: Say) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, x=to_numpy(found.x), objective=found.objective, runs=json.dumps(found.runs))
    except OSError as error:
        say(f"rates: F* could not be kept for the next time ({error})")
