"""Columns as matrices: what each kind becomes, and that a file brings the same matrix back."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from trimlearn.checks.design import LEAST_MEMBERS, Design, linear_design, tree_design
from trimlearn.tables.table import Column, Table

N = 60


def make(**columns: tuple[str, list[object]]) -> Table:
    frame = pd.DataFrame({name: values for name, (_, values) in columns.items()})
    kinds = tuple(Column(name, kind) for name, (kind, _) in columns.items())  # type: ignore[arg-type]
    return Table(frame, frame.astype(str), kinds, "made up", 0, "")


@pytest.fixture
def people() -> Table:
    rng = np.random.default_rng(0)
    income: list[object] = list(np.exp(rng.normal(10, 1, N)))
    age: list[object] = list(rng.normal(40, 5, N))
    income[3], age[5:20] = None, [None] * 15
    region = ["north"] * 30 + ["south"] * 15 + ["east"] * 9 + ["west"] * 5 + [None]
    born = list(pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), unit="D"))
    return make(
        income=("number", income),
        age=("number", age),
        region=("category", region),
        born=("date", born),
        name=("id", [f"n{k}" for k in range(N)]),
        remark=("text", [f"text {k}" for k in range(N)]),
        street=("text", ["Long", "Short", "High"] * 20),
        nothing=("empty", [None] * N),
        same=("constant", ["x"] * N),
    )


def test_each_kind_of_column_becomes_what_a_linear_model_takes(people: Table) -> None:
    design = linear_design(people, people.frame)
    assert design.feature_names[:4] == ("log income", "age", "age is missing", "born")
    assert "region = south" in design.feature_names and "region = other" in design.feature_names  # east and west
    assert "region = north" not in design.feature_names  # what the others are compared with
    assert {"street = Long", "street = Short"} & set(design.feature_names)
    assert not {"name", "remark", "nothing", "same"} & set(design.columns)
    X = design.transform(people.frame)
    assert X.shape == (N, len(design.features)) and np.isfinite(X).all()
    assert X[3, 0] == 0 and np.all(X[5:20, 1] == 0) and X[:, 2].sum() == 15  # the median, standardised, and a flag


def test_trees_see_missing_values_and_codes(people: Table) -> None:
    design = tree_design(people, people.frame)
    X = design.transform(people.frame)
    region = X[:, design.feature_names.index("region")]
    assert np.isnan(X[3, 0]) and np.isnan(region[-1]) and set(region[:-1]) == {0.0, 1.0, 2.0, 3.0}
    assert [design.feature_names[k] for k, flag in enumerate(design.categorical) if flag] == ["region", "street"]


@pytest.mark.parametrize("make_design", [linear_design, tree_design])
def test_a_design_comes_back_from_json(people: Table, make_design: object) -> None:
    design: Design = make_design(people, people.frame, ["age"])  # type: ignore[operator]
    again = Design.from_json(json.loads(json.dumps(design.to_json())))
    assert again == design and "age" not in again.columns
    assert np.array_equal(again.transform(people.frame), design.transform(people.frame), equal_nan=True)


def test_values_never_seen_are_like_rare_ones_and_lacking_columns_are_named(people: Table) -> None:
    design = linear_design(people, people.frame)
    new = people.frame.iloc[:2].assign(region=["Atlantis", None], income=[np.inf, -1.0])
    X = design.transform(new)
    assert np.isfinite(X).all() and X[0, design.feature_names.index("region = other")] == 1
    with pytest.raises(ValueError, match="lacks columns that the model needs: income"):
        design.transform(new.drop(columns="income"))


def test_two_flags_that_are_the_same_are_one() -> None:
    gaps: list[object] = [None] * LEAST_MEMBERS + list(range(N - LEAST_MEMBERS))
    table = make(a=("number", gaps), b=("number", [None if g is None else -(float(g) ** 2) for g in gaps]))  # type: ignore[arg-type]
    assert [f.how for f in linear_design(table, table.frame).features].count("missing") == 1


def test_no_order_of_rows_matters(people: Table) -> None:
    mixed = people.frame.sample(frac=1, random_state=1)
    assert linear_design(people, mixed) == linear_design(people, people.frame)
