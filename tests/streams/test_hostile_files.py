"""Files as people have them: other delimiters, orders and names; each is read rightly, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn import (
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedLinearRegression,
    TrimmedLogisticRegressionCV,
    open_dataset,
)
from trimlearn._utils.blocks import rows_apart, slices_apart, taken
from trimlearn.streams import pieces

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

N = 60


def frame(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.standard_normal((N, 3)).round(6), columns=["a", "b", "y"])


def one_line(error: Any) -> bool:
    return "\n" not in str(error.value)


@pytest.mark.parametrize(
    "form", [{}, {"sep": ";"}, {"sep": "\t"}, {"sep": "|"}, {"sep": ";", "decimal": ","}, {"encoding": "utf-8-sig"}]
)
def test_a_csv_file_may_be_written_in_many_ways(form: dict[str, Any], tmp_path: Path) -> None:
    table = frame()
    table.to_csv(tmp_path / "table.csv", index=False, **form)
    data = open_dataset(tmp_path / "table.csv", "y")
    X, t = data.load()
    assert data.feature_names == ["a", "b"]
    np.testing.assert_allclose(X, table[["a", "b"]])
    np.testing.assert_allclose(t, table["y"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_are_found_by_name_and_an_index_is_none(kind: str, tmp_path: Path) -> None:
    """The second file has them in another order; both have the index that pandas writes, which nobody asked for."""
    tables = [frame(), frame(1)[["y", "b", "a"]]]
    for k, table in enumerate(tables):
        file = tmp_path / f"part {k} [x].{kind}"
        if kind == "csv":
            table.to_csv(file)
        else:
            table.set_index(np.random.default_rng(k).permutation(N)).to_parquet(file)
    data = open_dataset(tmp_path, "y")
    X, t = data.load()
    assert data.feature_names == ["a", "b"]
    np.testing.assert_allclose(X, pd.concat(tables)[["a", "b"]])
    np.testing.assert_allclose(t, pd.concat(tables)["y"])
    alone = open_dataset(tmp_path / f"part 0 [x].{kind}", "y")  # which is a name, not a pattern
    assert alone.n == N
    index = "" if kind == "csv" else "__index_level_0__"
    assert open_dataset(tmp_path, "y", columns=["a", index]).p == 2  # unless somebody does


def test_empty_files_among_others_are_nothing(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    for k, part in enumerate((table.slice(0, 0), table.slice(0, 20), table.slice(0, 0), table.slice(20))):
        pq.write_table(part, tmp_path / f"{k}.parquet")
    np.testing.assert_allclose(open_dataset(tmp_path, "y").load()[0], frame()[["a", "b"]])


def test_a_row_group_need_not_fit_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each of its columns a buffer is held, however long it is."""
    pq.write_table(pa.Table.from_pandas(frame(), preserve_index=False), tmp_path / "one.parquet")
    opened, asked = pq.ParquetFile, []

    def watched(*args: Any, **options: Any) -> Any:
        asked.append(options.get("buffer_size"))
        return opened(*args, **options)

    data = open_dataset(tmp_path, "y")
    monkeypatch.setattr(pq, "ParquetFile", watched)
    assert sum(len(X) for X, _ in data.blocks(7)) == N
    assert asked == [pieces.BUFFER]


def test_a_column_that_lies_in_the_names_of_folders_is_not_lost_in_silence(tmp_path: Path) -> None:
    from pyarrow import dataset

    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        frame().to_parquet(tmp_path / f"year={year}" / "part.parquet", index=False)
    with pytest.raises(ValueError, match="stands for a column"):
        open_dataset(tmp_path, "y")
    with pytest.raises(ValueError, match=r"the column 'year' of the dataset is not in .*part\.parquet but in the names"):
        open_dataset(dataset.dataset(tmp_path, partitioning="hive"), "y")
    assert open_dataset(dataset.dataset(tmp_path), "y").p == 2


@pytest.mark.parametrize(
    ("columns", "message"),
    [("ab", "columns must be a list"), (3, "columns must be a list"), (["a", "a"], "columns names 'a' twice")],
)
def test_columns_are_a_list_without_repetition(columns: Any, message: str, tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match=message):
        open_dataset(tmp_path, "y", columns=columns)


def test_what_is_not_streamed_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="source is a sparse matrix: give it to fit as X"):
        open_dataset(sp.csr_array(np.eye(3)), np.ones(3))
    frame().assign(y=np.where(np.arange(N) % 2, "yes", "no")).to_parquet(tmp_path / "part.parquet")
    data = open_dataset(tmp_path, "y", in_memory=False)
    for estimator in (TrimmedLinearRegression(), TrimmedGLM("huber")):
        with pytest.raises(ValueError, match=r"the target holds text \(no, yes\)") as error:
            estimator.fit(data)
        assert one_line(error)
    with pytest.raises(ValueError, match="fit it to a sample of the rows, and then TrimmedLogisticRegression with"):
        TrimmedLogisticRegressionCV().fit(data)


def test_dask_is_never_computed_in_silence_by_a_wrapper() -> None:
    da = pytest.importorskip("dask.array")
    from sklearn.linear_model import Ridge

    with pytest.raises(ValueError, match="TrimmedEstimator takes arrays in memory here"):
        TrimmedEstimator(Ridge()).fit(da.ones((9, 2)), da.ones(9))


def test_rows_that_lie_in_an_array_are_not_copied() -> None:
    X, t = frame()[["a", "b"]].to_numpy(np.float32, copy=True), np.arange(N, dtype=np.float32)
    X = np.ascontiguousarray(X)
    assert open_dataset(X, t).copied().X is X
    narrow = open_dataset(X, t, columns=[1]).copied()
    np.testing.assert_array_equal(narrow.X[:, 0], X[:, 1])
    np.testing.assert_array_equal(narrow.t, t)
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match="row 5, column '1' holds nan"):
        open_dataset(X, t).copied()


def test_some_rows_stand_for_all() -> None:
    assert np.array_equal(rows_apart(10**6, 50, 3), rows_apart(10**6, 50, 3))
    assert np.all(np.diff(rows_apart(10**6, 50, 3)) > 0)
    found = slices_apart(1000, 64, 8)
    assert found[0].start == 0 and found[-1].stop == 1000
    assert len(taken(np.arange(1000), found)) == 64
