"""What the constants of robust/scatter and estimators/covariance decide: `python -m benchmarks.calibration scatter`.

Excess: by what the least log det (or J) found with a value lies above the least found with any value of the table, the
mean over the repetitions. 0: the value is large enough. Bad rows form a cluster; figures are for random_state given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from trimlearn import TrimmedCovariance, TrimmedGraphicalLasso
from trimlearn.estimators.covariance import covariance, graphical_lasso, trimming
from trimlearn.robust.scatter import mcd
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.steps import Moments, Shrinkage
from trimlearn.robust.scatter.units import RobustUnits
from trimlearn.robust.verdict import readmit

__all__ = ["cluster", "doubting", "excess", "rounds_taken", "run", "steps_taken", "told"]

REPETITIONS = 10
ENDLESS = 30  # rounds, after which a fit is taken to go round for ever


def cluster(n: int, p: int, share: float, seed: int) -> np.ndarray:
    """Standard normal rows, the first of which are moved by 2√p standard deviations together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[: int(share * n)] += 2.0
    return X


def excess(values: Sequence[Any], found: Callable[[Any, int], float], seeds: range) -> dict[str, float]:
    """For each value by what its objective exceeds the least of all values, on average over the seeds."""
    table = np.array([[found(value, seed) for value in values] for seed in seeds])
    means = np.mean(table - table.min(axis=1, keepdims=True), axis=0)
    return {str(value): round(float(mean), 6) for value, mean in zip(values, means, strict=True)}


def least_determinant(name: str, n: int, p: int) -> Callable[[Any, int], float]:
    """log det of the minimum covariance determinant with another value of a constant of mcd.py."""

    def found(value: Any, seed: int) -> float:
        with patch.object(mcd, name, value):
            A = cluster(n, p, 0.3, seed)
            return mcd.mcd(A, np.ones(n), mcd.default_h(n, p), seed=seed).log_det

    return found


def least_likelihood(name: str) -> Callable[[Any, int], float]:
    """J of TrimmedGraphicalLasso with another value of one of its constants."""

    def found(value: Any, seed: int) -> float:
        with patch.object(graphical_lasso, name, value):
            model = TrimmedGraphicalLasso(0.1, contamination=0.4, reweight=False, random_state=seed)
            return float(model.fit(cluster(80, 6, 0.3, seed)).objective_)

    return found


def steps_taken(n: int, p: int, starts: int, seed: int = 0) -> int:
    """The most concentration steps from random subsets of p + 1 rows."""
    A, rng = cluster(n, p, 0.3, seed), np.random.default_rng(seed)
    units, s = RobustUnits.of(A, np.ones(n), False), np.ones(n)
    most = 0
    for _ in range(starts):
        w = np.zeros(n)
        w[rng.choice(n, p + 1, replace=False)] = 1.0
        start = ScatterFit(units, Shrinkage(), w, Moments.of(units.into(A), w[None]))
        most = max(most, len(mcd.concentrated_scatter(start, A, s, mcd.default_h(n, p)).history))
    return most


def rounds_taken(module: Any, fits: Iterable[Callable[[], Any]]) -> dict[str, float]:
    """How many rounds of judging and fitting again some fits take, `readmit` being called by ``module``."""
    rounds: list[int] = []

    def counted(first: Any, verdict: Any, refit: Any, judged: Any, _: int) -> Any:
        def counting(rows: Any, last: Any) -> Any:
            rounds[-1] += 1
            return refit(rows, last)

        rounds.append(0)
        return readmit(first, verdict, counting, judged, ENDLESS)

    with patch.object(module, "readmit", counted):
        for fit in fits:
            fit()
    settled = [count for count in rounds if count < ENDLESS]
    return {
        "median": float(np.median(rounds)),
        "most": max(settled),
        "endless": round(1 - len(settled) / len(rounds), 3),
    }


def moved(n: int, p: int, share: float, together: bool, seed: int) -> np.ndarray:
    """Standard normal rows, the first of which are moved by 5 standard deviations, together or each elsewhere."""
    rng = np.random.default_rng([n, p, seed])
    X, bad = rng.standard_normal((n, p)), int(share * n)
    towards = rng.standard_normal((1 if together else bad, p))
    X[:bad] += 5.0 * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    return X


def told(n: int, p: int, share: float, together: bool, doubted: float, samples: int = 40) -> dict[str, float]:
    """What is found of the bad rows, and flagged of the others, with another value of DOUBTED."""
    bad, found = int(share * n), []
    with patch.object(trimming, "DOUBTED", doubted):
        for seed in range(samples):
            model = TrimmedCovariance(n_starts=100, random_state=0).fit(moved(n, p, share, together, seed))
            found.append((np.mean(~model.inlier_mask_[:bad]), np.mean(~model.inlier_mask_[bad:])))
    return dict(zip(("found", "flagged"), np.mean(found, axis=0).round(3).tolist(), strict=True))


def doubting(n: int, p: int, share: float, slack: float, samples: int) -> float:
    """The share of tables in which bad rows count as proven, so that others are doubted, with another SLACK."""
    asked = patch.object(trimming, "_with_expected", wraps=trimming._with_expected)
    with patch.object(covariance, "SLACK", slack), asked as proven:
        for seed in range(samples):
            TrimmedCovariance(n_starts=50, random_state=0).fit(moved(n, p, share, True, seed))
    return round(proven.call_count / samples, 3)


def covariances(n: int, p: int) -> list[Callable[[], Any]]:
    """Fits to clean rows and to rows of which 20 % or 40 % are bad."""
    models = [TrimmedCovariance(n_starts=100, random_state=seed) for seed in range(3 * REPETITIONS)]
    shares = (0.0, 0.2, 0.4)
    return [partial(model.fit, cluster(n, p, share, seed)) for seed, model in enumerate(models) for share in shares]


def run() -> dict[str, Any]:
    """The tables behind STEPS, PER_FEATURE, LAST, WALK, ROUNDS, DOUBTED and SLACK."""
    seeds = range(REPETITIONS)
    return {
        "most concentration steps (STEPS)": {
            f"n={n}, p={p}": steps_taken(n, p, 100) for n, p in ((100, 2), (100, 5), (400, 10), (2000, 5))
        },
        "excess by rows per feature in a group (PER_FEATURE), n=2000, p=40": excess(
            (8, 10, 20), least_determinant("PER_FEATURE", 2000, 40), range(3)
        ),
        "excess by starts tried on all rows (LAST), n=2000, p=5": excess(
            (1, 3, 10), least_determinant("LAST", 2000, 5), seeds
        ),
        "excess by steps of the walk (WALK)": excess((1, 8, 16), least_likelihood("WALK"), range(20)),
        "excess by starts of the determinant (graphical_lasso.STARTS)": excess(
            (20, 100, 500), least_likelihood("STARTS"), range(3)
        ),
        "rounds of readmission (ROUNDS), and the share of fits that go round for ever": {
            f"n={n}, p={p}": rounds_taken(trimming, covariances(n, p)) for n, p in ((60, 3), (500, 8))
        },
        "found of bad rows at 5 σ, and flagged of others, by DOUBTED": {
            f"n={n}, p=5, {share:.0%} {'together' if together else 'scattered'}": {
                str(doubted): told(n, 5, share, together, doubted) for doubted in (0.05, 0.1, 0.2)
            }
            for n, share, together in ((50, 0.2, True), (50, 0.1, False), (100, 0.2, True), (500, 0.2, True))
        },
        "tables in which bad rows are proven, of clean ones and of those with 20 % at 5 σ together, by SLACK": {
            f"n={n}, p={p}": {
                f"{slack:g}": [doubting(n, p, 0.0, slack, 100), doubting(n, p, 0.2, slack, 40)]
                for slack in (75.0, 125.0, 200.0)
            }
            for n, p in ((30, 5), (50, 5), (100, 5), (100, 10))
        },
    }
