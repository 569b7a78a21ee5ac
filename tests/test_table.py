"""What is said about each example: kinds, p-values, contributing features, and the table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from trimlearn.inference import table
from trimlearn.inference.families import FAMILIES, family
from trimlearn.inference.table import (
    Findings,
    TopFeatures,
    classifier_p_values,
    distance_parts,
    label_kinds,
    leverage_kinds,
    logit_parts,
    make_table,
    plain_kinds,
    prediction_parts,
    reconstruction_parts,
    render,
    suggest_labels,
    top_features,
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
    P = np.array([[0.9, 0.1, 0.0], [0.4, 0.4, 0.2], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.1, 0.9, 0.0], [0.9, 0.1, 0.0]])
    given = np.array([1, 2, 1, 1, 1, 0])
    off = np.array([True, True, True, False, False, True])
    far = np.array([False, False, True, False, True, False])
    expected = ["suspected mislabel", "atypical", "atypical", "regular", "atypical", "atypical"]
    kinds = label_kinds(P, given, off, far)
    assert kinds.tolist() == expected
    assert label_kinds(P, given, off).tolist()[2] == "suspected mislabel"
    suggested, confidence = suggest_labels(P, given, kinds)
    np.testing.assert_array_equal(suggested, [0, 2, 1, 1, 1, 0])
    np.testing.assert_array_equal(confidence, [0.9, 0.2, 0.1, 0.9, 0.9, 0.9])


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

    coef = RNG.normal(size=5)
    np.testing.assert_allclose(prediction_parts(X, coef, CENTER).sum(axis=1), X @ coef - CENTER @ coef, rtol=1e-9)

    U = np.linalg.qr(RNG.normal(size=(5, 2)))[0].T
    rest = Z - Z @ U.T @ U
    np.testing.assert_allclose(reconstruction_parts(X, CENTER, U).sum(axis=1), np.sum(rest**2, axis=1), rtol=1e-10)


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
    top = top_features(C, lambda A, rows: A, k=2)
    np.testing.assert_array_equal(top.features, [[1, 2], [0, 1], [0, 1]])
    np.testing.assert_allclose(top.shares, [[-0.6, 0.3], [0, 0], [0.4, 0.4]])
    monkeypatch.setattr(table, "BLOCK", 4)  # one row at a time
    for other in (C, sparse.csr_array(C)):
        again = top_features(other, lambda A, rows: C[rows], k=2)
        np.testing.assert_array_equal(again.features, top.features)
        np.testing.assert_array_equal(again.shares, top.shares)
    assert top_features(C, lambda A, rows: A, k=9).features.shape == (3, 3)


# -- the table --------------------------------------------------------------------------------------------------------


def findings() -> Findings:
    return Findings(
        score=np.array([0.5, 30.0, 0.1, 4.0]),
        p_value=np.array([0.6, 1e-9, 0.9, 0.001]),
        kind=np.array(["regular", "suspected mislabel", "regular", "atypical"]),
        given=np.array(["cat", "cat", "dog", "dog"]),
        suggested=np.array(["cat", "dog", "dog", "dog"]),
        confidence=np.array([0.9, 0.99, 0.8, 0.3]),
        top=TopFeatures(np.array([[0, 1]] * 4), np.array([[0.7, -0.2], [0.55, 0.45], [1.0, 0.0], [0.0, 0.0]])),
    )


WEIGHTS = np.array([1.0, 0.0, 1.0, 0.0])
COLUMNS = [
    *("row", "name", "weight", "outlier", "score", "p_value", "p_adjusted", "kind"),
    *("given", "suggested", "confidence", "features"),
]


def test_a_frame_worst_first() -> None:
    pandas = pytest.importorskip("pandas")
    frame = make_table(findings(), WEIGHTS, ["age", "income"], index=["a", "b", "c", "d"])
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == COLUMNS
    assert frame["row"].tolist() == [1, 3, 0, 2] and frame["name"].tolist() == ["b", "d", "a", "c"]
    assert frame["outlier"].tolist() == [True, True, False, False] and frame["outlier"].dtype == bool
    assert frame["features"].tolist() == ["age 55%, income 45%", "", "age 70%, income -20%", "age 100%"]
    assert frame["suggested"].tolist()[0] == "dog"


def test_the_same_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    frame = make_table(findings(), WEIGHTS, ["age", "income"], index=["a", "b", "c", "d"])
    monkeypatch.setattr(table, "find_pandas", lambda: None)
    array = make_table(findings(), WEIGHTS, ["age", "income"], index=["a", "b", "c", "d"])
    assert isinstance(array, np.ndarray) and list(array.dtype.names or ()) == COLUMNS
    for name in COLUMNS:
        assert array[name].tolist() == frame[name].tolist()
    assert render(array) == render(frame)


def test_p_values_are_adjusted_among_all_examples() -> None:
    p = np.array([0.01, 0.02, 0.03, 0.5])
    by_hand = [0.04, 0.04, 0.04, 0.5]  # 4·0.01, 4·0.02/2, 4·0.03/3, 4·0.5/4, then the least of those further on
    found = Findings(-p, p, plain_kinds(p < 0.1))
    np.testing.assert_allclose(make_table(found, np.ones(4))["p_adjusted"], by_hand)
    some = make_table(found, np.ones(4), rows=np.array([3, 1]))
    assert some["row"].tolist() == [1, 3]
    np.testing.assert_allclose(some["p_adjusted"], [0.04, 0.5])


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


def test_tables_as_text_are_short() -> None:
    found = Findings(np.arange(30.0), np.linspace(1, 0, 30), np.full(30, "regular"))
    lines = render(make_table(found, np.ones(30)), rows=5).splitlines()
    assert len(lines) == 7 and lines[-1] == "(25 more)" and lines[1].split()[0] == "29"
    marks = render(make_table(findings(), WEIGHTS), rows=2, style="markdown").splitlines()
    assert marks[0].startswith("| row | weight | outlier |") and marks[1] == "|" + "---|" * 11
    assert marks[2].startswith("| 1 | 0 | True | 30 | 1e-09 |") and len(marks) == 5
    with pytest.raises(ValueError, match="style"):
        render(make_table(found, np.ones(30)), style="latex")


def test_findings_in_one_line() -> None:
    assert str(findings()) == "4 examples: 2 regular, 1 suspected mislabel, 1 atypical"
