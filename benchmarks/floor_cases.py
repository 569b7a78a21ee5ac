"""floor's other data: a sparse matrix, and a million rows of which most time goes into reading them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from benchmarks.common import Table, Timing, clock, interleave
from benchmarks.floor_bench import Bench
from trimlearn import Problem, solve
from trimlearn.losses import Logistic, Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart import alternating, svrg
from trimlearn.smart.method import Record
from trimlearn.weights import CappedSimplex

__all__ = ["CSR_DATA", "binary", "csr"]

CSR_DATA = "20,000 × 10,000, 95 % zeros"
CONTAMINATION = 0.1


def csr(repetitions: int, small: bool) -> dict[str, Timing]:
    """One pass of x-steps against SciPy's V·X and Vᵀ·R, for one number per prediction and for ten."""
    rng = np.random.default_rng(0)
    n, p = (400, 100) if small else (20_000, 10_000)
    V = sp.random_array((n, p), density=0.05, format="csr", rng=rng)
    across = V.T
    found: dict[str, Timing] = {}
    for K in (1, 10):
        t = rng.integers(0, max(K, 2), n)
        loss = Softmax(V, t) if K > 1 else Logistic(V, t.astype(float))
        X, R = rng.standard_normal((p, K)), rng.standard_normal((n, K))
        bench = Bench(Problem(loss, CappedSimplex(n), Ridge(1 / n)), svrg(finish=False))

        def products(X: np.ndarray = X, R: np.ndarray = R) -> None:
            V @ X
            across @ R

        name = f"K = {K}"
        found |= interleave(products, {name: (bench.state, bench.x_steps)}, repetitions)
    return found


@final
@dataclass(frozen=True)
class Fits:
    """Seconds of scikit-learn's fit, of alternating, and of the default until it is where alternating ended."""

    plain: float
    alternating: float
    default: float
    passes: float

    @property
    def ratio(self) -> float:
        """The default's seconds in units of the plain fit's."""
        return self.default / self.plain

    @property
    def table(self) -> Table:
        """All of it."""
        rows: list[list[object]] = [
            ["scikit-learn's LogisticRegression, all rows", self.plain, 1.0],
            ["alternating, to its end", self.alternating, self.alternating / self.plain],
            [f"solve, to the same F ({self.passes:.0f} passes)", self.default, self.ratio],
        ]
        return Table("binary logistic, 10⁶ × 50, 10 % trimmed", ["what", "seconds", "× plain"], rows)


def binary(small: bool) -> Fits:
    """Trimmed logistic regression against the plain one, seconds until F is where alternating ends."""
    rng = np.random.default_rng(0)
    n, p = (2_000, 5) if small else (1_000_000, 50)
    X = rng.standard_normal((n, p))
    t = (rng.random(n) < 1 / (1 + np.exp(-X @ rng.standard_normal(p) / 3))).astype(int)
    wrong = rng.choice(n, n // 10, replace=False)
    t[wrong] = 1 - t[wrong]
    r1 = CappedSimplex((1 - CONTAMINATION) * n)
    problem = Problem(Logistic(X, t.astype(float), intercept=True), r1, Ridge(1.0 / n))
    plain = clock(lambda: LogisticRegression().fit(X, t))
    ends: list[float] = []
    slow = clock(lambda: ends.append(solve(problem, alternating(), seed=0).objective))
    passes: list[float] = []

    def there(record: Record) -> bool:
        passes.append(record.passes)
        return record.h <= r1.h and record.objective <= ends[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(problem, seed=0, max_passes=5)  # the compiler is not what is timed
        fast = clock(lambda: solve(problem, seed=0, callback=there))
    return Fits(plain, slow, fast, passes[-1])
