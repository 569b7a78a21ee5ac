"""trust, cases: misfit that looks like noise, wild features, certificates that were false, any classifier, MNIST."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import NOTHING, Digits, Part, Table, Target, clock, say
from benchmarks.trust_data import CLEAN, FOLDS, Labelled, Noise, draw
from benchmarks.trust_labels import FDR, spread
from trimlearn import Problem, Solution, TrimmedEstimator, TrimmedLogisticRegression, solve
from trimlearn.losses import LeastSquares, Logistic, Poisson
from trimlearn.regularizers import Ridge
from trimlearn.smart import svrg
from trimlearn.weights import CappedSimplex

__all__ = ["certificates", "misfit", "speed", "wild", "wrapped"]


def _quietly(fit: Callable[[], Any]) -> tuple[Any, str]:
    """The model, and what it said: the first line of every warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit()
    return model, "; ".join(dict.fromkeys(str(warning.message).splitlines()[0] for warning in caught)) or NOTHING


# -- nothing is wrong, but no line parts the classes ----------------------------------------------------------------

CLASSES, TRAIN, TEST = [0.55, 0.2, 0.25], 1500, 20_000


def misfit(seeds: Sequence[int]) -> Part:
    """Three groups in a row of which the middle one is the class: a linear model must fail, all labels are right."""
    columns = ["seed", "estimate, %", "accuracy, %", "plain's, %", "accused by flag(fdr=0.1)", "said"]
    table = Table(f"the middle group of three, n = {TRAIN:,}: no label is wrong", columns)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        (X, y), (X_test, y_test) = _middle(TRAIN, rng), _middle(TEST, rng)
        model, said = _quietly(lambda X=X, y=y: TrimmedLogisticRegression(random_state=0).fit(X, y))
        plain = LogisticRegression().fit(X, y)
        accuracy = [100 * float(each.score(X_test, y_test)) for each in (model, plain)]
        table.rows.append([seed, 100 * model.contamination_, *accuracy, len(model.flag(FDR)), said])
    below = mean(row[3] - row[2] for row in table.rows)
    return Part(
        [table],
        [
            Target("misfit: estimate, %, worst seed", max(row[1] for row in table.rows), 1),
            Target("misfit: accuracy below plain's, points, mean", below, 0),
        ],
    )


def _middle(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    b = rng.choice(3, n, p=CLASSES)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 3 * b
    return X, b == 1


# -- wild features --------------------------------------------------------------------------------------------------

WILD, FLIPPED, FACTOR = 0.05, 0.1, 1000


def wild(shapes: Sequence[tuple[int, int]], seeds: Sequence[int]) -> Part:
    """Two Gaussian classes, a twentieth of all cells multiplied by a thousand, a tenth of the labels flipped."""
    columns = ["n", "p", "seed", "estimate, %", "accuracy, clean rows, %", "said"]
    table = Table("wild features: 5 % of the cells × 1,000, 10 % of the labels flipped", columns)
    for n, p in shapes:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            y = rng.integers(0, 2, n)
            clean = rng.normal(size=(n, p)) + np.where(y == 1, 2, -2)[:, None] * (np.arange(p) == 0)
            X = np.where(rng.random((n, p)) < WILD, FACTOR * clean, clean)
            given = np.where(rng.permutation(n) < FLIPPED * n, 1 - y, y)
            model, said = _quietly(lambda X=X, given=given: TrimmedLogisticRegression(random_state=0).fit(X, given))
            table.rows.append([n, p, seed, 100 * model.contamination_, 100 * float(model.score(clean, y)), said])
    worst = max(abs(row[3] - 100 * FLIPPED) for row in table.rows)
    return Part([table], [Target("wild features: estimate off by, points, worst", worst, 4)])


# -- certificates ---------------------------------------------------------------------------------------------------

TOL, ABOVE = 1e-4, 1.001  # the default of `solve`; F beside the least known
BUDGETS, OFFSETS, SEEDS = range(5, 60), (1e3, 1e5, 1e7), range(6)


def certificates() -> Part:
    """How often CONVERGED is said where it is not so."""
    table = Table("certificates", ["case", "solves", "said to have converged", "falsely", "F / least known, worst"])
    targets = []
    for name, solves in (("(a) budgets", _budgets()), ("(b) offsets", _offsets()), ("(c) steps", _steps())):
        converged = [(solution, least) for solution, least in solves if solution.status.converged]
        false = [not _true(solution, least) for solution, least in converged]
        ratio = max((solution.objective / least for solution, least in converged), default=1.0)
        table.rows.append([name, len(solves), len(converged), sum(false), ratio])
        targets.append(Target(f"certificates {name}: false", sum(false), 0))
    return Part([table], targets)


Solves = list[tuple[Solution, float]]  # and the least F known of each


def _true(solution: Solution, least: float) -> bool:
    small = solution.stationarity_x <= TOL and solution.stationarity_w <= TOL
    return bool(small and np.isfinite(solution.objective) and solution.objective <= ABOVE * least)


def _budgets() -> Solves:
    """A Newton solver that is stopped after few passes."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(400, 3))
    y = (X @ [1, 2, -1] + rng.normal(size=400) > 0).astype(int)
    y[:40] = 1 - y[:40]
    problem = Problem(Logistic(X, y, intercept=True), CappedSimplex(360))
    solutions = [solve(problem, max_passes=budget) for budget in BUDGETS]
    least = min(solution.objective for solution in [*solutions, solve(problem, max_passes=1000)])
    return [(solution, least) for solution in solutions]


def _offsets() -> Solves:
    """svrg far from the origin; the least F for its own w is that of weighted least squares on the table itself."""
    rng = np.random.default_rng(0)
    n, p = 2000, 8
    Z = rng.normal(size=(n, p))
    t = Z @ rng.normal(size=p) + 0.5 * rng.normal(size=n)
    t[: n // 5] += 15
    found = []
    for offset in OFFSETS:
        solution = solve(Problem(LeastSquares(Z + offset, t, intercept=True), CappedSimplex(0.75 * n)), svrg())
        root = np.sqrt(np.asarray(solution.w))
        A = root[:, None] * np.column_stack([Z, np.ones(n)])
        residual = root * t - A @ np.linalg.lstsq(A, root * t, rcond=None)[0]
        found.append((solution, 0.5 * float(residual @ residual) / n))
    return found


def _steps() -> Solves:
    """A step far too large: F = inf."""
    rng = np.random.default_rng(0)
    X = 3 * rng.standard_normal((500, 5))
    y = rng.poisson(np.exp(X @ np.ones(5) * 0.3))
    problem = Problem(Poisson(X, y, intercept=True), CappedSimplex(400.0), Ridge(1e-3))
    least = solve(problem, max_passes=1000).objective
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it overflows, which is the point
        return [(solve(problem, svrg(step=100.0), seed=seed, max_passes=20), least) for seed in SEEDS]


# -- TrimmedEstimator -----------------------------------------------------------------------------------------------

MODELS: dict[str, Any] = {
    "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "forest": RandomForestClassifier(100, random_state=0),
    "MLP": make_pipeline(StandardScaler(), MLPClassifier(max_iter=200, random_state=0)),
}
FIFTH = Noise("uniform", 0.2)


def wrapped(data: Sequence[Labelled], models: Sequence[str], rows: int, jobs: int) -> Part:
    """TrimmedEstimator around other classifiers beside these as they are: means over the folds of one seed."""
    columns = ["model", "table", "noise", "estimate, %", "accuracy, %", "untrimmed, %", "gain", "seconds", "untrimmed"]
    table = Table(f"TrimmedEstimator, {rows:,} rows at most", columns)
    cases = [(name, each, noise) for name in models for each in data for noise in (CLEAN, FIFTH)]
    tasks = [(*case, fold, rows) for case in cases for fold in range(FOLDS)]
    say(f"trust: {len(tasks)} fits of TrimmedEstimator")
    found = np.array(spread(_wrap, tasks, jobs)).reshape(len(cases), FOLDS, -1).mean(axis=1)
    for (name, each, noise), figures in zip(cases, found, strict=True):
        estimate, accuracy, untrimmed, seconds, alone = map(float, figures)
        gain = accuracy - untrimmed
        table.rows.append([name, each.name, str(noise), estimate, accuracy, untrimmed, gain, seconds, alone])
    return Part([table], list(_wrapped_targets(table.rows)))


def _wrap(name: str, table: Labelled, noise: Noise, fold: int, rows: int) -> list[float]:
    sample = draw(table, noise, 0, fold, rows)
    model, alone = TrimmedEstimator(clone(MODELS[name]), random_state=0), clone(MODELS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an MLP stops after max_iter
        seconds = [clock(lambda each=each: each.fit(sample.X, sample.given)) for each in (model, alone)]
    accuracy = [100 * float(each.score(sample.X_test, sample.y_test)) for each in (model, alone)]
    return [100 * model.contamination_, *accuracy, *seconds]


def _wrapped_targets(rows: list[list[Any]]) -> Iterator[Target]:
    def gains(noise: Noise) -> list[float]:
        return [row[6] for row in rows if row[2] == str(noise)]

    yield Target("TrimmedEstimator, none wrong: accuracy below the untrimmed model's, mean", -mean(gains(CLEAN)), 0.3)
    yield Target("TrimmedEstimator, 20 % wrong: accuracy below the untrimmed model's, mean", -mean(gains(FIFTH)), -1)


# -- the clock ------------------------------------------------------------------------------------------------------


def speed(data: Digits) -> Part:
    """Seconds of a fit at default, and of scikit-learn's LogisticRegression at its own."""
    table = Table(f"seconds, {data.name}: {len(data.t):,} rows", ["model", "seconds", "test accuracy, %", "said"])
    for model in (LogisticRegression(max_iter=100), TrimmedLogisticRegression(random_state=0)):
        seconds, said = _quietly(lambda model=model: clock(lambda: model.fit(data.V, data.t)))
        accuracy = 100 * float(model.score(data.V_test, data.t_test))
        table.rows.append([type(model).__name__, seconds, accuracy, said])
    ratio = table.rows[1][1] / table.rows[0][1]
    return Part([table], [Target(f"seconds on {data.name} / LogisticRegression(max_iter=100)", ratio, 2.5)])
