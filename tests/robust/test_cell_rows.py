"""Cells of rows, their parts, transforms and tails, beside naive twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimlearn.robust.cells.parts import distance_cells, reconstruction_cells
from trimlearn.robust.cells.rows import CUTOFF, JudgedCells, conditional, explain
from trimlearn.robust.cells.tails import Tail, adaptive_level, tails
from trimlearn.robust.cells.transform import ColumnTransform

RNG = np.random.default_rng(0)
B = RNG.normal(size=(5, 5))
SIGMA = B @ B.T + np.eye(5)


def deviating_cells(X: np.ndarray, center: np.ndarray, Sigma: np.ndarray, cutoff: float = CUTOFF) -> JudgedCells:
    """The cells that do not fit to the others in their row, if rows have this centre and covariance."""
    p = len(center)
    found = explain(X - center, Sigma, np.linalg.inv(Sigma), np.ones(p), np.full(p, cutoff))
    return replace(found, expected=center + found.expected)


def rows(n: int = 40) -> np.ndarray:
    return RNG.multivariate_normal(np.zeros(5), SIGMA, size=n)


def test_conditional_is_the_inverse_of_what_is_left() -> None:
    Z, aside = rows(), RNG.random((40, 5)) < 0.3
    G, diagonal = conditional(Z, aside, np.linalg.inv(SIGMA))
    for z, out, g, d in zip(Z, aside, G, diagonal, strict=True):
        inverse = np.linalg.inv(SIGMA[np.ix_(~out, ~out)])
        np.testing.assert_allclose(g[~out], inverse @ z[~out], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(d[~out], np.diag(inverse), rtol=1e-8)


def test_expected_values_and_scores_are_those_of_the_conditional_law() -> None:
    Z = rows()
    Z[0, 2] += 50.0
    Z[1, 3] = np.nan
    center = np.arange(5.0)
    cells = deviating_cells(Z + center, center, SIGMA)
    assert cells.mask[0].tolist() == [False, False, True, False, False]
    for row, j in ((0, 2), (1, 3), (0, 1)):
        rest = np.setdiff1d(np.flatnonzero(~cells.aside[row]), j)
        weights = np.linalg.solve(SIGMA[np.ix_(rest, rest)], SIGMA[rest, j])
        assert cells.expected[row, j] == pytest.approx(center[j] + weights @ Z[row, rest], rel=1e-6)
        variance = SIGMA[j, j] - weights @ SIGMA[rest, j]
        if (row, j) != (1, 3):
            assert cells.scores[row, j] == pytest.approx((Z[row, j] - weights @ Z[row, rest]) / variance**0.5, rel=1e-5)
    assert cells.scores[1, 3] == 0 and not cells.mask[1, 3]


def test_lost_covariance_is_that_of_the_cells_aside() -> None:
    Z = rows(3)
    Z[0, [1, 4]] = np.nan
    cells = deviating_cells(Z, np.zeros(5), SIGMA, cutoff=100.0)
    out, rest = [1, 4], [0, 2, 3]
    expected = np.zeros((5, 5))
    left = SIGMA[np.ix_(out, rest)] @ np.linalg.solve(SIGMA[np.ix_(rest, rest)], SIGMA[np.ix_(rest, out)])
    expected[np.ix_(out, out)] = SIGMA[np.ix_(out, out)] - left
    np.testing.assert_allclose(cells.lost, expected, atol=1e-6)


def test_two_wrong_neighbours_do_not_cost_the_cell_between_them() -> None:
    chain = 0.9 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    cells = deviating_cells(np.array([[0.1, 9.0, 0.2, 9.0, -0.1]]), np.zeros(5), chain)
    assert cells.mask[0].tolist() == [False, True, False, True, False]


def test_parts_of_a_distance_sum_to_it_and_name_the_cell() -> None:
    X, P = rows(), np.linalg.inv(SIGMA)
    X[:, 2] += 30.0
    parts = distance_cells(X, np.ones(5), P)
    np.testing.assert_allclose(parts.sum(axis=1), np.einsum("ij,jk,ik->i", X - 1, P, X - 1), rtol=1e-9)
    assert np.all(parts.argmax(axis=1) == 2)


def test_parts_of_a_reconstruction_sum_to_it_and_name_the_cell() -> None:
    X, U = rows(), np.linalg.qr(RNG.normal(size=(5, 2)))[0].T
    X[:, 1] += 100.0
    Z = X - 1.0
    parts = reconstruction_cells(X, np.ones(5), U)
    np.testing.assert_allclose(parts.sum(axis=1), np.sum((Z - Z @ U.T @ U) ** 2, axis=1), rtol=1e-9)
    assert np.all(parts.argmax(axis=1) == 1)


def test_rows_on_the_subspace_have_no_parts() -> None:
    U = np.linalg.qr(RNG.normal(size=(4, 2)))[0].T
    X = RNG.normal(size=(10, 2)) @ U
    assert np.all(reconstruction_cells(X, np.zeros(4), U) < 1e-20)


@pytest.mark.parametrize("law", ["lognormal", "normal", "gamma", "mirrored", "offset"])
def test_transforms_go_there_and_back(law: str) -> None:
    x = RNG.normal(size=400)
    x = {"lognormal": np.exp(2 * x), "gamma": x**2 + 0.01, "mirrored": -np.exp(x), "offset": 1e6 + x}.get(law, x)
    column = ColumnTransform.of(x)
    wide = np.append(x, [-5.0, 0.0, 30.0])
    z = column.into(wide)
    np.testing.assert_allclose(column.back(z), wide, rtol=1e-6, atol=1e-6)
    order = np.argsort(wide, kind="stable")
    assert np.all(np.diff(z[order]) >= 0)


def test_the_power_is_that_of_the_bulk() -> None:
    x = RNG.normal(size=400)
    dirty = np.where(np.arange(400) % 10 == 0, -np.exp(x) * 100, np.exp(2 * x))
    assert ColumnTransform.of(np.exp(2 * x)).power == 0.0
    assert ColumnTransform.of(dirty).power < 0.3
    assert ColumnTransform.of(100 + x).power == 1.0
    assert ColumnTransform.of(np.where(np.arange(400) % 5 == 0, 10 * np.sign(x), x)).power == 1.0  # wild, not skewed


def test_a_sign_error_is_far_out_whatever_the_power() -> None:
    for power in (0.5, 1.0, 2.0):
        x = (10 + RNG.normal(size=500)) ** (1 / power)
        assert ColumnTransform.of(x).into(np.array([-np.median(x)]))[0] < -10


def test_tails_are_told_from_wild_cells() -> None:
    normal = RNG.normal(size=2000)
    assert tails([normal])[0].freedom == np.inf
    assert tails([np.where(np.arange(2000) % 10 == 0, 6.0, normal)])[0].freedom >= 10
    assert tails([RNG.standard_t(3, size=2000) / 1.2])[0].freedom <= 5


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([2.0, 4.0, 10.0, np.inf]), st.floats(0.5, 2.0), st.floats(1e-6, 0.5))
def test_a_tail_inverts_itself(freedom: float, scale: float, level: float) -> None:
    law = Tail(freedom, scale)
    assert law.p_value(np.array([law.upper(level)]))[0] == pytest.approx(level, rel=1e-6)


def test_nothing_is_flagged_beyond_what_the_law_explains() -> None:
    p = (np.arange(1000) + 0.5) / 1000
    assert np.count_nonzero(p < adaptive_level(p)) == 0
    p[:50] = 1e-9
    assert np.count_nonzero(p <= adaptive_level(p)) == 50
