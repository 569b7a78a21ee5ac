"""OutlierTable, which needs no pandas, and outlier_table, which speaks of the table that went into a pipeline."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import trimlearn
from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
    outlier_table,
)
from trimlearn.estimators.origins import trace
from trimlearn.inference import outlier_table as frame_module
from trimlearn.inference.outlier_table import OutlierTable

pytestmark = pytest.mark.usefixtures("quick_fits")  # how well rows are judged is not asked here


def small(n: int = 3) -> OutlierTable:
    return OutlierTable({"row": np.arange(n), "score": 10.0 / (1 + np.arange(n)), "kind": np.full(n, "a<b")})


# -- the type ---------------------------------------------------------------------------------------------------------


def test_columns_rows_and_slices() -> None:
    table = small()
    assert len(table) == 3 and table.columns == ("row", "score", "kind") and "score" in table and "p" not in table
    assert table.score is table["score"] and table["row"].tolist() == [0, 1, 2]
    assert table[0] == {"row": 0, "score": 10.0, "kind": "a<b"} and table[-1]["row"] == 2
    assert [row["row"] for row in table] == [0, 1, 2]
    assert table[1:].row.tolist() == [1, 2] and table.head(2).row.tolist() == [0, 1]
    assert table[table.score > 4].row.tolist() == [0, 1] and table[[2, 0]].row.tolist() == [2, 0]
    assert table.to_dict()["row"] == [0, 1, 2] and type(table.to_dict()["score"][0]) is float
    assert "score" in dir(table)


def test_what_is_not_there_is_said() -> None:
    table = small()
    with pytest.raises(KeyError, match="no column 'p'; there are row, score, kind"):
        table["p"]
    with pytest.raises(AttributeError, match="neither a method nor a column 'p'"):
        table.p
    with pytest.raises(IndexError, match="row 3 of a table of 3 rows"):
        table[3]
    with pytest.raises(ValueError, match="lengths"):
        OutlierTable({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="one-dimensional"):
        OutlierTable({"a": np.zeros((2, 2))})


def test_nobody_writes_into_a_table() -> None:
    scores = np.array([2.0, 1.0])
    table = OutlierTable({"score": scores})
    with pytest.raises(ValueError, match="read-only"):
        table["score"][0] = 5
    scores[0] = 3  # the array it was made of is as it was
    assert scores.flags.writeable


def test_text_is_aligned_and_short() -> None:
    lines = str(small(30)).splitlines()
    assert len(lines) == 22 and lines[-1] == "(10 more)" and len({len(line) for line in lines[:21]}) == 1
    assert lines[4].split() == ["3", "2.5", "a<b"] and lines[3].split()[1] == "3.33"
    assert repr(small()) == str(small()) and str(OutlierTable({})) == "an empty table"
    assert str(small(0)) == "row  score  kind"


def test_html_is_escaped_and_short() -> None:
    html = small(30)._repr_html_()
    assert html.count("<tr>") == 21 and "a&lt;b" in html and "a<b" not in html and "(10 more)" in html
    assert small(3).to_markdown(2).splitlines()[-1] == "| 1 | 5 | a<b |"


def test_a_frame_where_there_is_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = small().to_pandas()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["row", "score", "kind"]
    frame.loc[0, "score"] = -1  # a copy, to do with as one likes
    assert small().score[0] == 10
    monkeypatch.setattr(frame_module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pandas"):
        small().to_pandas()


def test_tables_pickle() -> None:
    table = pickle.loads(pickle.dumps(small()))
    assert str(table) == str(small()) and not table.score.flags.writeable
    file = io.BytesIO()
    joblib.dump(small(), file)
    file.seek(0)
    assert str(joblib.load(file)) == str(small())


# -- of estimators ----------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
X[:5] += 12
SIGNAL = X @ [1.0, 2.0, -1.0]
NUMBERS = SIGNAL + RNG.normal(size=60)
NUMBERS[5:10] += 50
LABELS = np.where(SIGNAL > 0, "yes", "no")
LABELS[[7, 9]] = np.where(LABELS[[7, 9]] == "yes", "no", "yes")

CASES: list[tuple[Any, Any]] = [
    (TrimmedLinearRegression(), NUMBERS),
    (TrimmedGLM("huber"), NUMBERS),
    (TrimmedLogisticRegression(), LABELS),
    (TrimmedPCA(1, random_state=0), None),
    (TrimmedCovariance(random_state=0), None),
    (TrimmedGraphicalLasso(0.1, random_state=0), None),
    (TrimmedEstimator(Ridge(), random_state=0), NUMBERS),
]


def case_name(value: Any) -> str:
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize(("model", "y"), CASES, ids=case_name)
def test_every_estimator_keeps_the_names_of_rows_and_features(model: Any, y: Any) -> None:
    index = pd.MultiIndex.from_product([["a", "b"], range(30)], names=["site", "day"])
    frame = pd.DataFrame(X, columns=["age", "income", "height"], index=index)
    table = model.fit(frame, y).outlier_table()
    assert table["name"].tolist() == [index[row] for row in table["row"]]
    assert len(frame.loc[table["name"][:5].tolist()]) == 5  # names are what pandas looks up
    assert str(table).splitlines()[1].split()[1:4] == [table.name[0][0], "/", str(table.name[0][1])]
    if "features" in table:
        assert {words.split()[0] for words in table["features"] if words} <= {"age", "income", "height", "y"}


def test_a_model_that_is_not_fitted_says_so() -> None:
    for model in (TrimmedLinearRegression(), TrimmedLogisticRegression(), TrimmedGLM()):
        for ask in (model.outlier_table, model.summary, model.inference, model.conf_int):
            with pytest.raises(NotFittedError):
                ask()


def test_intervals_without_training_data_say_what_to_give() -> None:
    model = TrimmedLinearRegression(random_state=0).fit(X, NUMBERS)
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match=r"inference\(X=X, y=y\)\.conf_int\(\)"):
        again.conf_int()
    np.testing.assert_allclose(again.inference(X=X, y=NUMBERS).conf_int(), model.conf_int())


@pytest.mark.parametrize(("model", "y"), CASES, ids=case_name)
def test_a_pickled_model_keeps_the_table_it_was_asked_for(model: Any, y: Any) -> None:
    model.fit(X, y)
    with pytest.raises(ValueError, match="before it is pickled"):
        pickle.loads(pickle.dumps(model)).outlier_table()
    table = model.outlier_table()
    assert str(pickle.loads(pickle.dumps(model)).outlier_table()) == str(table)
    model.rethreshold(0.3)
    assert model.outlier_table() is not table  # another fit, another table
    model.fit(X[:50], None if y is None else y[:50])
    assert len(model.outlier_table()) == 50


@pytest.mark.parametrize(("model", "y"), CASES, ids=case_name)
def test_the_training_data_get_the_verdicts_of_the_fit(model: Any, y: Any) -> None:
    model.fit(X, y)
    again = model.outlier_table(X.copy(), y)
    assert str(again) == str(model.outlier_table())
    assert np.array_equal(again["weight"], model.weights_[again["row"]])
    other = model.outlier_table(X[:50], None if y is None else y[:50])
    assert len(other) == 50


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS == "yes",
        pd.Series(LABELS).astype("category"),
        pd.Series(LABELS, dtype="string"),
        LABELS.astype(object),
        (LABELS == "yes").astype(np.int8),
    ],
    ids=["text", "bool", "categorical", "string", "object", "int8"],
)
@pytest.mark.parametrize("make", [np.asarray, np.float32, sp.csr_array, sp.csr_matrix], ids=lambda make: make.__name__)
def test_kinds_of_labels_and_of_data(labels: Any, make: Callable[[Any], Any]) -> None:
    table = TrimmedLogisticRegression(0.1).fit(make(X), labels).outlier_table()
    assert set(table["given"]) == set(np.asarray(labels)) and len(str(table).splitlines()) == 22


@pytest.mark.parametrize("model", [TrimmedLinearRegression(), TrimmedCovariance(), TrimmedPCA(1)], ids=case_name)
def test_three_rows(model: Any) -> None:
    A = np.array([[0.0], [1.0], [5.0]])
    y = None if isinstance(model, (TrimmedCovariance, TrimmedPCA)) else A[:, 0]
    assert len(model.fit(np.hstack([A, A**2]) if y is None else A, y).outlier_table()) == 3


# -- through pipelines ------------------------------------------------------------------------------------------------


def people(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """A table as people have it, with names, categories and holes; row "p17" has a wild income."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "age_group": rng.choice(["young", "old"], n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "income": rng.normal(3000, 500, n),
        },
        index=[f"p{i}" for i in range(n)],
    )
    y = 0.1 * frame["age"].to_numpy() + 5.0 * (frame["city"] == "Oslo") + rng.normal(0, 0.3, n)
    frame.loc["p3", "age"] = np.nan
    frame.loc["p17", "income"] = 90_000
    return frame, np.array(y)


def columns() -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return ColumnTransformer(
        [
            ("words", OneHotEncoder(drop="first", sparse_output=False), ["city", "age_group"]),
            ("numbers", numbers, make_column_selector(dtype_include="number")),
        ],
        sparse_threshold=0,
    )


def test_a_pipeline_speaks_of_the_table_that_went_in() -> None:
    frame, y = people()
    y[33] += 60
    pipe = make_pipeline(columns(), TrimmedLinearRegression()).fit(frame, y)
    table = outlier_table(pipe, frame, y)
    assert table[0]["name"] == "p33" and table[0]["outlier"] and table["score"][0] == pipe[-1].outlier_scores_[33]
    assert table[0]["features"] == f"y is {table[0]['score']:.3g} sigma too high"
    told = table["features"][~table["outlier"]]
    named = {word.rsplit(" ", 1)[0] for words in told for word in words.split(", ")}
    assert named == {"age", "income"}  # a row has a distance in them, and none in a category
    assert "name" not in outlier_table(pipe) and table["row"].tolist() == outlier_table(pipe)["row"].tolist()
    assert outlier_table(pipe)["features"].tolist() == table["features"].tolist()
    some = outlier_table(pipe, frame[30:40], y[30:40])
    assert some[0]["name"] == "p33" and len(some) == 10


def test_dummies_are_summed_back() -> None:
    frame, y = people()
    y = y > np.median(y)
    pipe = make_pipeline(columns(), TrimmedLogisticRegression(random_state=0)).fit(frame, y)
    table = outlier_table(pipe, frame, y)
    inner = pipe[:-1].transform(frame)
    parts = (inner - inner.mean(axis=0)) * pipe[-1].coef_[0]
    city = np.abs(parts[:, :2].sum(axis=1))
    rest = np.abs(parts[:, 2:]).sum(axis=1)
    for row in table.head(20):
        told = dict(word.rsplit(" ", 1) for word in row["features"].split(", "))
        share = abs(float(told.get("city", "0%").rstrip("%"))) / 100
        assert share == pytest.approx(city[row["row"]] / (city + rest)[row["row"]], abs=0.006)


DUMMIES = OneHotEncoder(sparse_output=False)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (columns(), ["city", "city", "age_group", "age", "income"]),
        (make_pipeline(columns(), StandardScaler()), ["city", "city", "age_group", "age", "income"]),
        (make_pipeline(columns(), PCA(2)), ["pca0", "pca1"]),
        (ColumnTransformer([("flat", PCA(1), ["income"])], remainder="drop"), ["flat__pca0"]),
        (ColumnTransformer([("c", DUMMIES, [2])], remainder="drop"), ["city"] * 3),
        (ColumnTransformer([("c", DUMMIES, slice("age_group", "city"))]), ["age_group"] * 2 + ["city"] * 3),
        (ColumnTransformer([("m", "passthrough", [False, False, False, True])]), ["income"]),
        (ColumnTransformer([("c", DUMMIES, ["city"]), ("d", "drop", ["age_group"])], remainder="passthrough"),
         ["city"] * 3 + ["age", "income"]),
        (ColumnTransformer([("n", SimpleImputer(add_indicator=True), ["age", "income"])]), ["age", "income", "age"]),
        (ColumnTransformer([("text", TfidfVectorizer(), "city")]), ["text__lima", "text__oslo", "text__rome"]),
        (ColumnTransformer([("n", make_union(SimpleImputer(), PCA(1)), ["income"])]), ["income", "n__pca__pca0"]),
        (ColumnTransformer([("f", FunctionTransformer(np.log), ["income"])]), ["x0"]),
    ],
    ids=lambda value: "",
)  # fmt: skip
def test_every_column_is_traced_to_where_it_comes_from(step: Any, expected: list[str]) -> None:
    frame, _ = people()
    for output in ("default", "pandas"):
        if "text__lima" not in expected:  # a vectorizer gives sparse data, whatever is asked for
            step.set_output(transform=output)
        made = step.fit_transform(frame)
        found = trace(step, list(frame.columns), made.shape[1])
        assert [found.names[j] for j in found.column] == expected


def test_categories_that_look_like_other_columns() -> None:
    frame = pd.DataFrame({"a": ["b_c", "d"], "a_b": ["c", "e"]})
    found = trace(OneHotEncoder().fit(frame), list(frame.columns), 4)
    assert [found.names[j] for j in found.column] == ["a", "a", "a_b", "a_b"]


def test_arrays_sparse_data_text_and_searches() -> None:
    pipe = make_pipeline(StandardScaler(), TrimmedPCA(1, random_state=0)).fit(X)
    assert len(outlier_table(pipe, X)) == 60 and "x1" in str(outlier_table(pipe, X)["features"].tolist())
    sparse = make_pipeline(StandardScaler(with_mean=False), TrimmedLogisticRegression(0.1)).fit(sp.csr_array(X), LABELS)
    assert set(outlier_table(sparse, sp.csr_array(X), LABELS)["given"]) == {"yes", "no"}
    words = ["good film", "bad film", "good actor", "bad actor"] * 15
    text = make_pipeline(TfidfVectorizer(), TrimmedLogisticRegression(0.1))
    table = outlier_table(text.fit(words, ["yes", "no"] * 30), words, ["yes", "no"] * 30)
    assert "good" in table[0]["features"]
    grid = GridSearchCV(make_pipeline(StandardScaler(), TrimmedLinearRegression(penalty="l2")), {
        "trimmedlinearregression__alpha": [0.1, 1.0]}, cv=2).fit(X, NUMBERS)  # fmt: skip
    assert set(outlier_table(grid, X, NUMBERS)["row"][:5]) == set(range(5, 10))
    alone = TrimmedCovariance(random_state=0).fit(X)
    assert str(outlier_table(alone)) == str(alone.outlier_table()) == str(outlier_table(Pipeline([("m", alone)]), X))


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match="Pipeline that ends in one, got Ridge"):
        outlier_table(make_pipeline(StandardScaler(), Ridge()).fit(X, NUMBERS), X)
    with pytest.raises(TypeError, match="got dict"):
        outlier_table({}, X)


def test_it_is_at_the_top_of_the_package() -> None:
    assert "outlier_table" in trimlearn.__all__ and trimlearn.outlier_table is outlier_table


def test_what_speaks_against_a_label_is_said_of_those_kept_too() -> None:
    """Also where the model would have given another one, and does not insist."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(200, 2))
    y = np.where(A[:, 0] + rng.normal(size=200) > 0, "yes", "no")
    table = TrimmedLogisticRegression().fit(A, y).outlier_table()
    assert all(table["features"])
