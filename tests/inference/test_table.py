"""What is said about each example: kinds, p-values, contributing features, and the table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from trimlearn.inference import design
from trimlearn.inference.families import FAMILIES, family
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.table import (
    ColumnOrigins,
    Findings,
    TopFeatures,
    classifier_p_values,
    distance_parts,
    label_kinds,
    leverage_kinds,
    logit_parts,
    make_table,
    plain_kinds,
)
from trimlearn.robust.scale import Chi, p_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
CENTER = RNG.normal(size=5)


# -- kinds ------------------------------------------------------------------------------------------------------------


def test_kinds_of_pca_and_covariance() -> None:
    off, far = np.array([True, True, False, False]), np.array([False, True, True, False])
    kinds = leverage_kinds(off, far, "orthogonal outlier")
    assert kinds.tolist() == ["orthogonal outlier", "bad leverage", "good leverage", "regular"]
    assert plain_kinds(off).tolist() == ["outlier", "outlier", "regular", "regular"]


def test_kinds_of_labels() -> None:
    off, moved = np.array([True, True, False, True]), np.array([True, False, False, True])
    wild = np.array([False, False, True, True])
    expected = ["suspected mislabel", "atypical", "wild features", "wild features"]
    assert label_kinds(off, moved, wild).tolist() == expected
    assert label_kinds(off, moved).tolist() == ["suspected mislabel", "atypical", "regular", "suspected mislabel"]


# -- p-values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3, 10])
def test_p_values_of_labels_are_valid(K: int) -> None:
    """Under the model P(p ≤ α) ≤ α, for every row: exactly, by summing over the labels."""
    P = RNG.dirichlet(np.full(K, 0.5), size=200)
    p = np.column_stack([classifier_p_values(P, np.full(200, k)) for k in range(K)])
    for alpha in (0.001, 0.05, 0.3, 0.9):
        assert np.all(np.sum(P * (p <= alpha), axis=1) <= alpha + 1e-12)
    np.testing.assert_allclose(p.max(axis=1), 1.0)
    np.testing.assert_allclose(p.min(axis=1), P.min(axis=1), atol=1e-15)


def test_ties_of_labels_count_on_both_sides() -> None:
    np.testing.assert_allclose(classifier_p_values(np.array([[0.25, 0.25, 0.5]]), np.array([0])), 0.5)


def test_p_values_of_families_are_scipys() -> None:
    mu, counts = np.array([0.3, 3.0, 30.0, 3.0, 0.3]), np.array([0.0, 3.0, 10.0, 400.0, 7.0])
    law = stats.poisson(mu)
    low, high = law.cdf(counts - 1) + law.pmf(counts) / 2, law.sf(counts) + law.pmf(counts) / 2
    expected = np.minimum(1, 2 * np.minimum(low, high))
    np.testing.assert_allclose(family("poisson").p_values(counts, mu), expected, rtol=1e-10)
    assert 0 <= expected[3] < 1e-100  # far out in the tail nothing is lost to cancellation
    y, phi = np.array([1e-3, 3.0, 100.0, 3.1, 0.2]), 0.25
    gamma = stats.gamma(1 / phi, scale=mu * phi)
    expected = 2 * np.minimum(gamma.cdf(y), gamma.sf(y))
    np.testing.assert_allclose(family("gamma").p_values(y, mu, scale=phi**0.5), expected, rtol=1e-10)
    expected = 2 * stats.norm.sf(np.abs(y - mu) / 3)
    np.testing.assert_allclose(family("normal").p_values(y, mu, scale=3.0), expected, rtol=1e-10)
    np.testing.assert_allclose(p_values(np.abs(y - mu) / 3, Chi()), expected, rtol=1e-10)
    labels, prob = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.9, 0.01, 0.01])
    law = stats.bernoulli(prob)
    low, high = law.cdf(labels - 1) + law.pmf(labels) / 2, law.sf(labels) + law.pmf(labels) / 2
    expected = np.minimum(1, 2 * np.minimum(low, high))
    np.testing.assert_allclose(family("binomial").p_values(labels, prob), expected, rtol=1e-10)


def test_targets_between_the_counts_lie_between() -> None:
    p = family("poisson").p_values(np.array([7.0, 7.5, 8.0]), np.full(3, 3.0))
    assert p[0] > p[1] > p[2] > 0
    assert p[1] == pytest.approx(2 * stats.poisson(3).sf(7))
    q = family("binomial").p_values(np.array([0.5]), np.array([0.2]))
    assert q == pytest.approx(0.4)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_p_values_of_families_are_valid(name: str) -> None:
    rng, mu, n = np.random.default_rng(1), 0.3, 20_000
    y = {
        "normal": rng.normal(mu, 2, n),
        "poisson": rng.poisson(mu, n),
        "gamma": rng.gamma(4, mu / 4, n),
        "binomial": rng.random(n) < mu,
    }[name]
    scale = {"normal": 2.0, "gamma": 0.5}.get(name, 1.0)
    p = family(name).p_values(np.asarray(y, dtype=float), np.full(n, mu), scale)
    for alpha in (0.01, 0.05, 0.2):  # a mid-p-value may exceed its level a little, here by less than half
        assert np.mean(p <= alpha) <= 1.5 * alpha
    if name in ("normal", "gamma"):
        assert stats.kstest(p, "uniform").pvalue > 0.01


# -- parts of the features --------------------------------------------------------------------------------------------


def test_parts_add_up() -> None:
    S = np.cov(RNG.normal(size=(5, 50)))
    Z = X - CENTER
    d2 = np.einsum("ij,jk,ik->i", Z, np.linalg.inv(S), Z)
    np.testing.assert_allclose(distance_parts(X, CENTER, np.linalg.inv(S)).sum(axis=1), d2, rtol=1e-10)


def test_parts_of_a_logit_difference() -> None:
    B, given, suggested = RNG.normal(size=(3, 5)), np.arange(40) % 3, (np.arange(40) + 1) % 3
    i = np.arange(40)
    difference = (X - CENTER) @ B.T
    parts = logit_parts(X, B, CENTER, given, suggested)
    np.testing.assert_allclose(parts.sum(axis=1), difference[i, suggested] - difference[i, given], rtol=1e-9)

    means = RNG.normal(size=(3, 5))
    parts = logit_parts(X, B, means, given, suggested)
    np.testing.assert_allclose(parts[4], (X[4] - means[1]) * (B[2] - B[1]), rtol=1e-12)


def test_parts_of_a_binary_logit_follow_scikit_learn() -> None:
    coef = RNG.normal(size=(1, 5))
    parts = logit_parts(X, coef, CENTER, np.repeat([0, 1], 20), np.repeat([1, 0], 20))
    np.testing.assert_allclose(parts, np.repeat([1.0, -1.0], 20)[:, None] * (X - CENTER) * coef)


def test_top_features_are_the_largest_in_size_with_their_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    C = np.array([[1.0, -6.0, 3.0], [0.0, 0.0, 0.0], [2.0, 2.0, -1.0]])
    features, shares = TopFeatures(C, lambda A, rows: A).largest(k=2)
    np.testing.assert_array_equal(features, [[1, 2], [0, 1], [0, 1]])
    np.testing.assert_allclose(shares, [[-0.6, 0.3], [0, 0], [0.4, 0.4]])
    monkeypatch.setattr(design, "BLOCK", 4)  # one row at a time
    for other in (C, sparse.csr_array(C)):
        again = TopFeatures(other, lambda A, rows: C[rows]).largest(k=2)
        np.testing.assert_array_equal(again[0], features)
        np.testing.assert_array_equal(again[1], shares)
    assert TopFeatures(C, lambda A, rows: A).largest(k=9)[0].shape == (3, 3)


def test_parts_of_one_origin_are_summed_before_they_compete() -> None:
    C = np.array([[2.0, 2.0, 3.0], [5.0, -5.0, 1.0]])
    origins = ColumnOrigins(("colour", "age"), np.array([0, 0, 1]))
    features, shares = TopFeatures(C, lambda A, rows: A).largest(k=2, origins=origins)
    np.testing.assert_array_equal(features, [[0, 1], [1, 0]])
    np.testing.assert_allclose(shares, [[4 / 7, 3 / 7], [1, 0]])


# -- the table --------------------------------------------------------------------------------------------------------


def findings() -> Findings:
    return Findings(
        score=np.array([0.5, 30.0, 0.1, 4.0]),
        p_value=np.array([0.6, 1e-9, 0.9, 0.001]),
        kind=np.array(["regular", "suspected mislabel", "regular", "atypical"]),
        given=np.array(["cat", "cat", "dog", "dog"]),
        suggested=np.array(["cat", "dog", "dog", "dog"]),
        confidence=np.array([0.9, 0.99, 0.8, 0.3]),
        top=TopFeatures(np.array([[7.0, -3.0], [0.55, 0.45], [1.0, 0.0], [0.0, 0.0]]), lambda A, rows: A),
    )


WEIGHTS = np.array([1.0, 0.0, 1.0, 0.0])
COLUMNS = [
    *("row", "name", "weight", "outlier", "score", "p_value", "p_adjusted", "kind"),
    *("given", "suggested", "confidence", "features"),
]


def test_a_table_worst_first() -> None:
    found = make_table(findings(), WEIGHTS, ["age", "income"], index=["a", "b", "c", "d"])
    assert isinstance(found, OutlierTable) and list(found.columns) == COLUMNS
    assert found["row"].tolist() == [1, 3, 0, 2] and found["name"].tolist() == ["b", "d", "a", "c"]
    assert found["outlier"].tolist() == [True, True, False, False] and found["outlier"].dtype == bool
    assert found["features"].tolist() == ["age 55%, income 45%", "", "age 70%, income -30%", "age 100%"]
    assert found["suggested"].tolist()[0] == "dog"


def test_p_values_are_adjusted_among_all_examples() -> None:
    p = np.array([0.01, 0.02, 0.03, 0.5])
    by_hand = [0.04, 0.04, 0.04, 0.5]  # 4·0.01, 4·0.02/2, 4·0.03/3, 4·0.5/4, then the least of those further on
    found = Findings(-p, p, plain_kinds(p < 0.1))
    np.testing.assert_allclose(make_table(found, np.ones(4))["p_adjusted"], by_hand)


def test_rows_of_equal_score_keep_their_order_and_infinite_ones_come_first() -> None:
    found = Findings(np.array([1.0, np.inf, 1.0]), np.ones(3), plain_kinds(np.zeros(3, dtype=bool)))
    assert make_table(found, np.ones(3))["row"].tolist() == [1, 0, 2]


def test_an_empty_table() -> None:
    nothing = Findings(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.str_))
    assert len(make_table(nothing, np.zeros(0))) == 0


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="weight has 3 entries, the scores have 4"):
        make_table(findings(), np.ones(3))
    with pytest.raises(ValueError, match="name has 2 entries"):
        make_table(findings(), WEIGHTS, index=["a", "b"])


def test_findings_in_one_line() -> None:
    assert str(findings()) == "4 examples: 2 regular, 1 suspected mislabel, 1 atypical"
