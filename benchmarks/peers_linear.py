"""peers, linear regression: the classics, breakdown, the price on clean data, and the speed beside ltsReg."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import NOTHING, Part, Table, Target, say
from benchmarks.peers_rivals import LMROB, LTS_REG, OURS, Line, Rival, least_squares, lmrob, ours, rivals
from trimlearn.datasets import load_classic

__all__ = ["breakdown", "classics", "clean", "dirty", "speed", "trimmed_sum"]

OBJECTIVE, CLASSIC_SECONDS = 1e-6, 1.0  # relative; of the slowest set
ERROR, CLEAN, FASTER = 3.0, 1.1, 1 / 3  # times least squares on the clean rows, on clean rows; of ltsReg's seconds
SHIFT = 50.0  # of bad rows, in σ
SHARES = {"vertical": 0.45, "leverage": 0.4, "cluster": 0.2}
TITLES = {
    "vertical": "(a) 45 % vertical outliers at +50 σ",
    "leverage": "(b) 40 % bad leverage points at distance 5, shifted 50 σ",
    "cluster": "(c) 20 % clustered leverage at distance 50, shifted 50 σ",
}


def trimmed_sum(theta: np.ndarray, X: np.ndarray, y: np.ndarray, h: int) -> float:
    """The sum of the h smallest squared residuals."""
    return float(np.partition(_residuals(theta, X, y) ** 2, h - 1)[:h].sum())


def _residuals(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(y - X @ theta[:-1] - theta[-1])


def _half(n: int, p: int) -> int:
    """h of the highest breakdown, for p features and an intercept; ltsReg's at alpha = 0.5 as well."""
    return (n + p + 2) // 2


# -- the classics ---------------------------------------------------------------------------------------------------

EXPLAINED = ("also_flagged", "partly_affected_rows", "ltsReg_flags")  # rows that may be flagged or not


def classics(folder: Path, names: Sequence[str] | None = None) -> Part:
    """The optimum, and the rows known to be bad, on the sets of lts_reference.json in ``folder``."""
    reference = json.loads((folder / "lts_reference.json").read_text())
    known = json.loads((folder / "known_outliers.json").read_text())
    lts_reg = rivals().get(LTS_REG)
    ours(*dirty("vertical", 50, 2, 0).data)  # the first fit pays for imports
    tables = {name: Table(f"the classics, {title}", CLASSIC_COLUMNS) for name, title in CLASSIC_TITLES.items()}
    agreed = 0  # known outliers that "auto" misses and lmrob, the other of robustbase's two, flags
    for name in names or list(reference):
        say(f"peers: classics, {name}")
        X, y = _classic(name, reference[name], folder.parent)
        n, h = len(y), int(reference[name]["h"])
        best = reference[name]["best_lts_objective_sum_of_h_smallest_sq_resid"]
        fits = {"h": ours(X, y, contamination=n - h), "auto": ours(X, y)}
        fits |= {LTS_REG: lts_reg(X, y), LMROB: lmrob(X, y)} if lts_reg else {}
        if LMROB in fits:
            agreed += len(set(known[name]["rows"]) & _rows(fits[LMROB]) - _rows(fits["auto"]))
        for key, fit in fits.items():
            excess = trimmed_sum(_raw(fit), X, y, h) / best - 1
            missed, extra = _against(fit, known[name])
            tables[key].rows.append([name, n, X.shape[1], h, excess, missed, extra, fit.seconds])
    targets = _classic_targets(tables)
    if tables[LMROB].rows:
        targets.append(Target('classics: known outliers missed, "auto", that lmrob flags', agreed, 0))
    return Part([table for table in tables.values() if table.rows], targets)


CLASSIC_COLUMNS = ["set", "n", "p", "h", "objective above the reference, relative", "missed", "extra", "seconds"]
CLASSIC_TITLES = {
    "h": f"{OURS}, contamination = n − h rows",
    "auto": f'{OURS}, contamination="auto"',
    LTS_REG: "ltsReg, alpha = 0.5",
    LMROB: "lmrob, the objective that of its start",
}


def _classic(name: str, about: dict[str, Any], home: Path) -> tuple[np.ndarray, np.ndarray]:
    table = load_classic(name, home)
    columns = dict(zip(table.feature_names, table.data.T, strict=True))
    return np.column_stack([columns[key] for key in about["predictors"]]), columns[about["response"]]


def _raw(fit: Line) -> np.ndarray:
    return fit.theta if fit.raw is None else fit.raw


def _against(fit: Line, known: dict[str, Any]) -> tuple[int, int]:
    """How many of the rows known to be bad were not flagged, and how many were that nobody has named."""
    flagged = _rows(fit)
    named = {row for key in EXPLAINED for row in known.get(key, [])}
    return len(set(known["rows"]) - flagged), len(flagged - set(known["rows"]) - named)


def _rows(fit: Line) -> set[int]:
    """The numbers of the rows flagged, from 1 on."""
    return set() if fit.flagged is None else set((1 + np.flatnonzero(fit.flagged)).tolist())


def _classic_targets(tables: dict[str, Table]) -> list[Target]:
    rows = {key: tables[key].rows for key in ("h", "auto")}
    both = rows["h"] + rows["auto"]
    return [
        Target("classics: objective above the reference, worst", max(row[4] for row in both), OBJECTIVE),
        Target("classics: known outliers missed, at the reference h", sum(row[5] for row in rows["h"]), 0),
        Target('classics: known outliers missed, "auto"', sum(row[5] for row in rows["auto"]), 0),
        Target("classics: seconds of the slowest set", max(row[7] for row in both), CLASSIC_SECONDS),
    ]


# -- breakdown ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Rows of which some are bad, and the truth; errors are normal, σ = 1."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    bad: np.ndarray
    truth: np.ndarray

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X, self.y

    @property
    def h(self) -> int:
        return _half(*self.X.shape)

    @cached_property
    def oracle(self) -> np.ndarray:
        """Least squares on the clean rows."""
        return least_squares(self.X[~self.bad], self.y[~self.bad]).theta

    def error(self, theta: np.ndarray) -> float:
        """The coefficients' error."""
        return float(np.linalg.norm(theta - self.truth))

    def ratio(self, theta: np.ndarray) -> float:
        """That error beside least squares' on the clean rows."""
        return self.error(theta) / self.error(self.oracle)

    @cached_property
    def clean_basin(self) -> np.ndarray:
        """Where concentration steps lead from the clean fit."""
        return self.concentrated(self.oracle)

    def concentrated(self, theta: np.ndarray) -> np.ndarray:
        """Fit to the h rows that fit best, until the objective stays."""
        before = np.inf
        while (now := trimmed_sum(theta, self.X, self.y, self.h)) < before * (1 - 1e-12):
            before, rows = now, self.kept(theta)
            theta = least_squares(self.X[rows], self.y[rows]).theta
        return theta

    def kept(self, theta: np.ndarray) -> np.ndarray:
        """The h rows that fit best."""
        return np.argpartition(np.abs(_residuals(theta, self.X, self.y)), self.h - 1)[: self.h]

    def other_basin(self, raw: np.ndarray) -> bool:
        """Whether a trimmed fit has a lower objective than the clean fit because it keeps more bad rows."""
        lower = trimmed_sum(raw, *self.data, self.h) < trimmed_sum(self.clean_basin, *self.data, self.h) * (1 - 1e-9)
        return lower and bool(self.bad[self.kept(raw)].sum() > self.bad[self.kept(self.clean_basin)].sum())

    def excess(self, raw: np.ndarray) -> float:
        """The objective above the clean basin's, relative."""
        return trimmed_sum(raw, *self.data, self.h) / trimmed_sum(self.clean_basin, *self.data, self.h) - 1


def dirty(kind: str, n: int, p: int, seed: int, share: float | None = None) -> Case:
    """One of the three kinds of contamination, or "clean"."""
    rng = np.random.default_rng(seed)
    X, truth, towards = rng.standard_normal((n, p)), rng.standard_normal(p + 1), rng.standard_normal(p)
    towards /= np.linalg.norm(towards)
    bad = np.arange(n) < int((SHARES.get(kind, 0.0) if share is None else share) * n)
    if kind == "leverage":
        X[bad] += 5 * towards
    elif kind == "cluster":
        X[bad] = 50 * towards + 0.1 * X[bad]
    y = X @ truth[:-1] + truth[-1] + rng.standard_normal(n) + SHIFT * bad
    return Case(kind, X, y, bad, truth)


@dataclass(frozen=True)
class Trial:
    """One fit to one case."""

    case: Case
    method: str
    fit: Line

    @property
    def ratio(self) -> float:
        return self.case.ratio(self.fit.theta)

    @property
    def exempt(self) -> bool:
        """Whether not the error but the objective is to be judged, which then is the lower one."""
        return self.fit.raw is not None and self.case.other_basin(self.fit.raw)


def breakdown(sizes: Sequence[int], features: Sequence[int], seeds: Sequence[int]) -> Part:
    """Coefficient error with nearly half of the rows bad, in units of least squares on the clean rows."""
    trials: dict[str, dict[tuple[int, int], list[Trial]]] = {kind: {} for kind in TITLES}
    for kind in TITLES:
        for n in sizes:
            for p in features:
                say(f"peers: breakdown, {kind}, n = {n:,}, p = {p}")
                trials[kind][n, p] = list(_trials(kind, n, p, seeds))
    every = [trial for cells in trials.values() for trial in _flat(cells.values())]
    tables = [_breakdown_table(kind, cells) for kind, cells in trials.items()]
    targets = [_breakdown_target(kind, _flat(cells.values())) for kind, cells in trials.items()]
    return Part([*tables, _summary(every), _seconds(every)], targets)


def _trials(kind: str, n: int, p: int, seeds: Sequence[int]) -> Iterator[Trial]:
    for seed in seeds:
        case = dirty(kind, n, p, seed)
        for name, method in _methods().items():
            yield Trial(case, name, method(*case.data))


def _methods() -> dict[str, Rival]:
    return {OURS: ours} | rivals()


def _flat(cells: Any) -> list[Trial]:
    return [trial for cell in cells for trial in cell]


def _of(trials: list[Trial], method: str) -> list[Trial]:
    return [trial for trial in trials if trial.method == method]


def _judged(trials: list[Trial]) -> list[float]:
    return [trial.ratio for trial in trials if not trial.exempt]


def _breakdown_target(kind: str, trials: list[Trial]) -> Target:
    """An empty list of judged trials says nothing, and is not met."""
    worst = max(_judged(_of(trials, OURS)), default=float("nan"))
    return Target(f"breakdown {TITLES[kind]}: worst error / clean least squares", worst, ERROR)


def _breakdown_table(kind: str, cells: dict[tuple[int, int], list[Trial]]) -> Table:
    others = list(rivals())
    head = ["n", "p", "trimlearn, median", "worst", "other basin", "objective / clean fit's − 1, worst"]
    title = f"{TITLES[kind]}: error / least squares on the clean rows; of the rivals the median over the seeds"
    table = Table(title, [*head, *others])
    for (n, p), trials in cells.items():
        own = _of(trials, OURS)
        ratios = _judged(own)
        row: list[Any] = [n, p, median(ratios) if ratios else NOTHING, max(ratios, default=NOTHING)]
        row += [sum(trial.exempt for trial in own), max(trial.case.excess(_raw(trial.fit)) for trial in own)]
        table.rows.append(row + [median(trial.ratio for trial in _of(trials, name)) for name in others])
    return table


def _summary(trials: list[Trial]) -> Table:
    columns = ["method", "fits", "within 3 ×", "median", "worst", "bad rows flagged, %", "clean rows flagged, %"]
    table = Table("breakdown, all of it: error / least squares on the clean rows, and who was flagged", columns)
    for name in _methods():
        own = _of(trials, name)
        ratios = [trial.ratio for trial in own]
        row = [name, len(own), sum(ratio <= ERROR for ratio in ratios), median(ratios), max(ratios)]
        table.rows.append([*row, _flagged(own, True), _flagged(own, False)])
    return table


def _flagged(trials: list[Trial], bad: bool) -> Any:
    """Per cent of the bad, or of the clean, rows that were flagged; mean over the trials."""
    shares = [trial.fit.flagged[trial.case.bad == bad].mean() for trial in trials if trial.fit.flagged is not None]
    return 100 * float(np.mean(shares)) if shares else NOTHING


def _seconds(trials: list[Trial]) -> Table:
    sizes = sorted({trial.case.X.shape for trial in trials})
    table = Table("breakdown: seconds of a fit, median", ["n", "p", *_methods()])
    for n, p in sizes:
        own = [trial for trial in trials if trial.case.X.shape == (n, p)]
        table.rows.append([n, p, *[median(trial.fit.seconds for trial in _of(own, name)) for name in _methods()]])
    return table


# -- clean data -----------------------------------------------------------------------------------------------------


def clean(seeds: dict[int, int], p: int = 5) -> Part:
    """Error on clean data beside least squares', root mean square over ``seeds[n]`` samples of n rows."""
    methods = _methods()
    table = Table(f"clean data, p = {p}: error / least squares' error, r.m.s.", ["n", "samples", *methods])
    for n, count in seeds.items():
        say(f"peers: clean data, n = {n:,}")
        cases = [dirty("clean", n, p, seed) for seed in range(count)]
        base = _rms([case.error(case.oracle) for case in cases])
        errors = {name: _rms([c.error(f(*c.data).theta) for c in cases]) / base for name, f in methods.items()}
        table.rows.append([n, count, *errors.values()])
    worst = max(row[2] for row in table.rows)
    return Part([table], [Target("clean data: error / least squares' error, worst n", worst, CLEAN)])


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


# -- speed ----------------------------------------------------------------------------------------------------------

RAW, DEFAULT, ONE_THREAD = "the trimmed fit alone", "everything at default", "the trimmed fit alone, one thread"


def speed(n: int, p: int, seeds: Sequence[int], share: float = 0.3) -> Part:
    """Seconds of least trimmed squares at ltsReg's own h, turn by turn with ltsReg."""
    tables, targets = [], []
    for kind in ("vertical", "leverage"):
        runs = [_race(dirty(kind, n, p, seed, share)) for seed in seeds]
        table = Table(f"least trimmed squares, n = {n:,}, p = {p}, {share:.0%} {kind}: medians", SPEED_COLUMNS)
        for name in runs[0]:
            table.rows.append([name, *[median(column) for column in zip(*[run[name] for run in runs], strict=True)]])
        tables.append(table)
        targets += _speed_targets(kind, runs)
    return Part(tables, targets)


SPEED_COLUMNS = ["method", "seconds", "objective / clean fit's − 1", "error / clean least squares"]


def _race(case: Case) -> dict[str, list[float]]:
    """seconds, objective, error of every method."""
    n = len(case.y)
    say(f"peers: least trimmed squares, {case.kind}, n = {n:,}")
    raw = partial(ours, contamination=n - case.h, reweight=False)
    tasks: dict[str, Callable[..., Line]] = {RAW: raw, DEFAULT: ours, ONE_THREAD: partial(_one_thread, raw)}
    lts_reg = rivals().get(LTS_REG)
    fits = {name: task(*case.data) for name, task in (tasks | ({LTS_REG: lts_reg} if lts_reg else {})).items()}
    return {name: [fit.seconds, case.excess(_raw(fit)), case.ratio(fit.theta)] for name, fit in fits.items()}


def _one_thread(method: Rival, X: np.ndarray, y: np.ndarray) -> Line:
    with threadpool_limits(1, user_api="blas"):
        return method(X, y)


def _speed_targets(kind: str, runs: list[dict[str, list[float]]]) -> list[Target]:
    """The ratios of one run, then their median; nothing to compare with, no target."""
    if LTS_REG not in runs[0]:
        return []
    found = []
    for name in (RAW, DEFAULT):
        ratio = median(run[name][0] / run[LTS_REG][0] for run in runs)
        found.append(Target(f"least trimmed squares, {kind}: seconds / ltsReg's, {name}", ratio, FASTER))
    excess = max((1 + run[RAW][1]) / (1 + run[LTS_REG][1]) - 1 for run in runs)
    return [*found, Target(f"least trimmed squares, {kind}: objective above ltsReg's, relative", excess, OBJECTIVE)]
