"""Blocks of rows, drawn with replacement: a pure function of (seed, k), every row as likely as any other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from trimlearn import Problem, solve
from trimlearn._utils.blocks import block_starts
from trimlearn.losses import LeastSquares
from trimlearn.smart import svrg
from trimlearn.smart.row_laws import Blocks, Recipe
from trimlearn.weights import CappedSimplex


@pytest.mark.parametrize(("n", "b", "blocks"), [(103, 30, 10), (7, 4, 3), (60, 12, 5), (5, 5, 5), (9, 2, 1)])
def test_every_row_has_the_same_chance(n: int, b: int, blocks: int) -> None:
    law = Blocks(b, blocks).bind(n)
    size = n // blocks
    hits = np.zeros(n)
    starts = block_starts(n, blocks)
    for k in range(4000):
        rows = np.asarray(Recipe(law, seed=3, k=k).rows(n))
        assert len(rows) == law.b
        assert np.all(np.diff(rows.reshape(-1, size), axis=1) > 0)
        whole = np.searchsorted(starts, rows, side="right").reshape(-1, size)
        assert np.all(whole == whole[:, :1])  # each stretch lies in one block
        hits += np.bincount(rows, minlength=n)
    # Of blocks drawn independently: counts of one row from each are multinomial where all have one size.
    assert hits.sum() == 4000 * law.b
    first = hits[starts[:-1]]
    assert chisquare(first, np.full(blocks, first.mean())).pvalue > 1e-3 if blocks > 1 else True
    assert np.abs(hits / hits.mean() - 1).max() < 0.2


def test_blocks_are_a_pure_function_of_seed_and_k() -> None:
    law = Blocks().bind(10_000)
    again = [Recipe(law, seed=1, k=k, skip=1).rows(10_000) for k in (5, 6, 5)]
    np.testing.assert_array_equal(again[0], again[2])
    assert not np.array_equal(again[0], again[1])
    assert 0.9 < law.rho(10_000, law.b or 0) / (1 - (1 - 1 / 10_000) ** (law.b or 0)) < 1.1


def test_the_gradient_estimate_is_unbiased_where_blocks_differ() -> None:
    """Mean over all ways to hit a row: exactly the mean of all rows, for blocks of two sizes and values in order."""
    n, blocks = 11, 3
    law, values = Blocks(3, blocks).bind(n), np.arange(n, dtype=np.float64) ** 2
    starts, size = block_starts(n, blocks), n // blocks
    means = []
    for row in range(n):
        block = np.searchsorted(starts, row, side="right") - 1
        rows = starts[block] + np.arange(size)
        if starts[block + 1] - starts[block] > size:
            rows = rows + (rows >= row)
        means.append(values[rows].mean())
    assert np.mean(means) == pytest.approx(values.mean(), rel=1e-12)
    drawn = [values[Recipe(law, seed=0, k=k).rows(n)].mean() for k in range(20_000)]
    assert np.mean(drawn) == pytest.approx(values.mean(), rel=0.02)


def test_what_blocks_do_not_go_with() -> None:
    V, t = np.random.default_rng(0).standard_normal((2000, 3)), np.ones(2000)
    weighted = Problem(LeastSquares(V, t), CappedSimplex(1500), sample_weight=np.full(2000, 2.0))
    with pytest.raises(ValueError, match="takes no sample weights"):
        solve(weighted, svrg(sampling="blocks"))
    problem = Problem(LeastSquares(V, t), CappedSimplex(1500))
    with pytest.raises(ValueError, match="Theorem 1 is not about blocks"):
        solve(problem, svrg(sampling="blocks", step="theory"))
    with pytest.raises(ValueError, match="sampling must be one of"):
        svrg(sampling="columns")
    with pytest.raises(ValueError, match="blocks must be an integer from 1 to n = 2000"):
        Blocks(10, 3000).bind(2000)
