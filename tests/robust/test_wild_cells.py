"""A number that stands for what is missing in a feature, and what the user is told of it."""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression.wild_cells import wild_values


def rows(n: int, slope: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 4))
    return X, slope * X.sum(axis=1) + rng.normal(size=n)


def told(X: object, y: np.ndarray, **options: object) -> tuple[TrimmedLinearRegression, list[str]]:
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        model = TrimmedLinearRegression(random_state=0, **options).fit(X, y)
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("code", [9999.0, -999.0])
@pytest.mark.parametrize("options", [{}, {"penalty": "l1", "alpha": 0.01}])
def test_a_code_that_hides_a_slope_is_named(code: float, options: dict[str, object]) -> None:
    for seed in range(3):
        X, y = rows(100, 0.3, seed)
        X[:5, 2] = code
        model, said = told(pd.DataFrame(X, columns=list("abcd")), y, **options)
        named = [message for message in said if f"Feature 'c' is {code:g} in 5.0% of the rows" in message]
        assert len(named) == 1 or not model.inlier_mask_[:5].any()


def test_a_code_in_rows_that_are_flagged_does_no_harm() -> None:
    X, y = rows(100, 5.0, 0)
    X[:5, 2] = 9999.0
    model, said = told(X, y)
    assert not model.inlier_mask_[:5].any() and said == []


def test_columns_without_names_are_numbered_and_few_are_named() -> None:
    X, y = rows(200, 0.0, 0)
    X[:5] = 9999.0 + np.arange(4)
    X[:5, 1] += np.arange(5)  # values that differ stand for nothing
    (message,) = (one for one in told(X, y)[1] if one.startswith("Feature"))
    assert message.startswith("Feature 0 is 9999 in 2.5% of the rows, feature 2 is 10001 in 2.5% of the rows, feat")


def test_ordinary_columns_hold_no_code() -> None:
    rng = np.random.default_rng(0)
    columns = [
        rng.normal(size=500),
        rng.normal(size=500).round(1),
        rng.poisson(0.3, size=500),
        rng.poisson(3.0, size=500),
        np.minimum(rng.lognormal(0.0, 1.5, size=500), 12.0),  # the largest are cut off
        rng.integers(0, 2, size=500),
        (rng.random(500) < 0.02) * 50.0,
        np.ones(500),
        rng.choice([0.0, 1.0, 10.0], size=500, p=[0.4, 0.4, 0.2]),
    ]
    assert wild_values(np.column_stack(columns)) == {}
    assert wild_values(csr_array(np.column_stack(columns))) == {}
