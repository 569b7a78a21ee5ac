"""Order statistics of weighted rows against the same rows written out as often as they count."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from trimlearn.robust.order import (
    hth_smallest,
    keep_smallest,
    medians,
    shortest_interval,
    weighted_medians,
    weighted_quantile,
)


@pytest.fixture(params=range(20))
def rows(request):
    """Values with ties, counts, and the values repeated so often."""
    rng = np.random.default_rng(request.param)
    values, counts = rng.integers(0, 6, 12).astype(float), rng.integers(1, 4, 12)
    return values, counts.astype(float), np.sort(np.repeat(values, counts))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75, 1.0])
def test_quantile(rows, share):
    values, s, written_out = rows
    k = int(np.ceil(share * len(written_out) - 1e-9)) - 1
    assert weighted_quantile(values, s, share) == written_out[k]


def test_medians(rows):
    values, s, written_out = rows
    assert weighted_medians(values[:, None], s)[0] == np.median(written_out)


@pytest.mark.parametrize("h", [1.0, 5.0, 8.5])
def test_smallest(rows, h):
    values, s, written_out = rows
    F = np.stack([values, -values])
    assert hth_smallest(F, s, h)[0, 0] == written_out[int(np.ceil(h)) - 1]
    kept = keep_smallest(F, s, h)
    assert_allclose(kept.sum(axis=1), h)
    assert np.all(kept <= s)
    least = written_out[: int(h)].sum() + (h - int(h)) * written_out[int(h)]
    assert_allclose(kept[0] @ values, least)
    for value in np.unique(values):  # ties share alike
        assert np.ptp((kept[0] / s)[values == value]) < 1e-12


def test_everything_is_kept(rows):
    values, s, _ = rows
    assert_array_equal(keep_smallest(values[None], s, float(s.sum()))[0], s)


@pytest.mark.parametrize("h", [1, 4, 9])
def test_shortest_interval(rows, h):
    values, s, written_out = rows
    low, high = shortest_interval(values, s, float(h))
    lengths = written_out[h - 1 :] - written_out[: len(written_out) - h + 1]
    assert high - low == lengths.min()
    assert s[(values >= low) & (values <= high)].sum() >= h


@pytest.mark.parametrize("weight", [0.5, 2.0, 3.0])
def test_weights_that_are_all_the_same_need_not_be_one(weight):
    """h is a weight, not a number of rows: two rows of weight 2 hold 4."""
    F, s = np.array([[3.0, 1.0, 2.0, 7.0]]), np.full(4, weight)
    assert_array_equal(hth_smallest(F, s, 2 * weight), [[2.0]])
    assert_array_equal(keep_smallest(F, s, 2 * weight), [[0.0, weight, weight, 0.0]])
    assert_allclose(keep_smallest(F, s, 2.5 * weight), [[0.5 * weight, weight, weight, 0.0]])


def test_sums_of_weights_are_compared_up_to_rounding():
    """0.1 + 0.2 is not 0.3 in floating point, and 0.07 · 100 more than 7: what holds a share exactly still holds it."""
    values = np.array([0.0, 5.0, 6.0, 20.0])
    for s in ([0.1, 0.2, 0.2, 0.1], [0.1, 0.5, 0.2, 0.4]):  # above one half, and below, by rounding alone
        assert weighted_medians(values[:, None], np.array(s))[0] == 5.5
    assert weighted_quantile(np.arange(100.0), np.ones(100), 0.07) == 6.0
    assert shortest_interval(values, np.array([0.1, 0.1, 0.7, 0.1]), 0.8) == (5.0, 6.0)
    for s, h in (([0.3, 0.2, 0.1, 0.4], 0.1 + 0.2 + 0.3), ([0.1] * 4, 0.1 + 0.1 + 0.1)):  # more than three of s
        assert hth_smallest(values[None], np.array(s), h)[0, 0] == 6.0
        assert_array_equal(keep_smallest(values[None], np.array(s), h)[0], [*s[:3], 0.0])
    s = np.array([0.3, 0.2, 0.1, 0.4])
    assert_array_equal(keep_smallest(values[None], s, float(np.nextafter(s.sum(), 0.0)))[0], s)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (10,), (1, 3), (8, 3), (9, 2)])
def test_medians_are_those_of_numpy(shape):
    Z = np.random.default_rng(0).standard_normal((20, *shape))
    for sample in (*Z, *Z.round(1)):  # to the bit; and with ties
        assert_array_equal(medians(sample), np.median(sample, axis=0))


def test_a_share_reached_up_to_rounding_is_reached() -> None:
    s = np.array([0.7, 0.7, 0.8, 0.2, 0.1, 0.8])
    assert 7 / 33 * np.cumsum(s)[-1] > s[0]  # by its last digit
    assert weighted_quantile(np.arange(6.0), s, 7 / 33) == 0.0
