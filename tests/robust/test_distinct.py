"""Distinct rows, their hashes, and folds that depend on what rows hold alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn.robust.distinct import content_folds, distinct_rows, row_hashes

A = np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 1.0], [1.0, 4.0], [9.0, 9.0]])


def test_rows_of_weight_zero_have_no_place() -> None:
    rows, weights, where = distinct_rows(A, np.array([1.0, 2.0, 3.0, 4.0, 0.0]))
    np.testing.assert_array_equal(A[rows], [[1, 4], [1, 5], [2, 1]])
    np.testing.assert_array_equal(weights, [4, 2, 4])
    np.testing.assert_array_equal(where, [2, 1, 2, 0, -1])


def test_every_row_is_the_one_at_its_place() -> None:
    rows, weights, where = distinct_rows(A)
    np.testing.assert_array_equal(A[rows][where], A)
    assert weights.sum() == len(A)


def test_sparse_rows_and_both_zeros_have_the_same_hash() -> None:
    V = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(row_hashes(V), row_hashes(sp.csr_array(V)))
    np.testing.assert_array_equal(row_hashes(np.where(V == 0, -0.0, V)), row_hashes(V))
    assert len(set(row_hashes(V))) == 3


@pytest.mark.parametrize("even", [False, True])
def test_folds_are_even_in_every_group_and_equal_rows_share_one(even: bool) -> None:
    rng = np.random.default_rng(0)
    V = np.repeat(rng.normal(size=(40, 2)), 2, axis=0)
    groups = np.repeat([0, 1], [50, 30])
    fold = content_folds(row_hashes(V), groups, np.ones(80), 5, even=even)
    np.testing.assert_array_equal(fold[::2], fold[1::2])
    for group, size in ((0, 10), (1, 6)):
        np.testing.assert_array_equal(np.bincount(fold[groups == group], minlength=5), [size] * 5)
    order = rng.permutation(80)
    again = content_folds(row_hashes(V[order]), groups[order], np.ones(80), 5, even=even)
    np.testing.assert_array_equal(again, fold[order])


def test_even_folds_leave_out_what_cannot_be_spread() -> None:
    V, groups = np.arange(9.0)[:, None], np.array([0, 0, 0, 0, 0, 0, 1, 1, 0])
    s = np.append(np.ones(8), 0.0)
    fold = content_folds(row_hashes(V), groups, s, 3, even=True)
    np.testing.assert_array_equal(fold[6:], [-1, -1, -1])  # a group of two rows for three folds; a row of weight 0
    np.testing.assert_array_equal(np.bincount(fold[:6]), [2, 2, 2])
