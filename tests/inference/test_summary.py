"""What a summary says of the rows flagged, and that its R² and F are of one scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from trimlearn import TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import infer


def test_r2_and_f_are_of_one_scale() -> None:
    """R² = kF/(kF + df), also where the scale is not that of the rows kept."""
    rng = np.random.default_rng(0)
    for p in (1, 3):
        X = rng.normal(size=(80, p))
        y = X.sum(axis=1) + rng.normal(size=80)
        y[:20] += 30
        for model in (TrimmedLinearRegression(random_state=0), TrimmedLinearRegression(0.4, random_state=0)):
            found = model.fit(X, y).summary()
            F, k, df, _ = found.f_test
            assert found.r2 == pytest.approx(k * F / (k * F + df), rel=1e-12)
            assert found.adjusted == pytest.approx(1 - (1 - found.r2) * (k + df) / df, rel=1e-12)
    assert 0 < model.fit(X, rng.normal(size=80)).summary().r2 < 0.3


def test_f_is_the_square_of_t_where_there_is_one_feature() -> None:
    X = np.arange(12.0)[:, None]
    y = X[:, 0] + np.sin(5 * X[:, 0])
    slope, start = np.polyfit(X[:, 0], y, 1)
    for scale in (None, 0.5, 3.0):
        found = infer(Fitted("normal", X, y, np.array([slope]), start, np.ones(12), scale=scale)).summary()
        F, k, df, _ = found.f_test or pytest.fail("no F")
        assert F == pytest.approx(found.statistic[1] ** 2, rel=1e-9)
        assert found.r2 == pytest.approx(k * F / (k * F + df), rel=1e-12)
        if scale is None:  # least squares as everybody has it
            assert found.r2 == pytest.approx(np.corrcoef(X[:, 0], y)[0, 1] ** 2, rel=1e-9)


@pytest.mark.parametrize("s", [None, "weights"])
def test_the_flagged_share_and_the_contamination_are_both_told_where_they_differ(s: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=200)
    weight = None if s is None else np.full(200, 3.0)
    much = TrimmedLinearRegression(0.3, random_state=0).fit(X, y, sample_weight=weight).summary()
    share = much.n_flagged / 200
    assert much.flagged_share == pytest.approx(share) and share < 0.05
    lines = str(much).splitlines()
    assert lines[1].startswith(f"30.0% of the rows are taken for bad (contamination), {share:.1%} are flagged: ")
    assert lines[1].endswith(".") and lines[2] == ""
    y[:60] += 20
    agreeing = TrimmedLinearRegression(random_state=0).fit(X, y, sample_weight=weight).summary()
    assert abs(agreeing.flagged_share - agreeing.contamination) <= 0.05 and str(agreeing).splitlines()[1] == ""


def test_more_flagged_than_taken_for_bad_is_told() -> None:
    X = np.arange(10.0)[:, None]
    fit = Fitted("normal", X, X[:, 0] + np.sin(X[:, 0]), np.array([1.0]), 0.0, np.append(np.zeros(3), np.ones(7)))
    lines = str(infer(replace(fit, contamination=0.1)).summary()).splitlines()
    assert lines[1].startswith("30.0% of the rows are flagged, more than the 10.0% taken for bad (contamination): ")
    assert str(infer(replace(fit, contamination=0.26)).summary()).splitlines()[1] == ""
    assert str(infer(fit).summary()).splitlines()[1] == ""  # where no contamination is known
    heavy = replace(fit, contamination=0.1, sample_weight=np.append(np.full(3, 0.1), np.full(7, 3.0)))
    assert str(infer(heavy).summary()).splitlines()[1].startswith("10.0% of the rows are taken for bad")


@pytest.mark.parametrize("model", [TrimmedGLM("poisson", 0.3, random_state=0), TrimmedLogisticRegression(0.3)])
def test_so_it_is_for_counts_and_labels(model: Any) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    counts = rng.poisson(np.exp(1.0 + X @ [0.5, 0.3]))
    labels = X @ [3.0, 1.0] + rng.logistic(size=300) > 0
    found = model.fit(X, counts if isinstance(model, TrimmedGLM) else labels).summary()
    told = "taken for bad" in str(found)
    assert told == (abs(found.flagged_share - 0.3) > 0.05)
    assert found.f_test is None and 0 < found.deviance_explained < 1


def test_counts_that_scatter_more_than_their_law_are_told_to_be() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    mean = np.exp(2 + X @ [0.3, -0.2])
    for y, scattered in ((rng.poisson(mean), False), (rng.poisson(mean * rng.gamma(3, 1 / 3, 150)), True)):
        model = TrimmedGLM("poisson", 0, reweight=False).fit(X, y)
        assert ("The counts scatter" in str(model.summary())) == scattered
        assert "The counts scatter" not in str(model.summary(covariance="HC1"))
