"""Files as people have them: other delimiters, orders and names; each is read rightly, or refused in one sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedLinearRegression,
    TrimmedLinearRegressionCV,
    TrimmedLogisticRegressionCV,
    TrimmedPCA,
    open_dataset,
)
from trimlearn._utils.blocks import rows_apart, slices_apart, taken
from trimlearn.estimators import streamed
from trimlearn.streams import copy, table_pieces

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
    assert asked == [table_pieces.BUFFER]


def test_a_column_that_lies_in_the_names_of_folders_is_not_lost_in_silence(tmp_path: Path) -> None:
    from pyarrow import dataset

    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        frame().to_parquet(tmp_path / f"year={year}" / "part.parquet", index=False)
    with pytest.raises(ValueError, match="stands for a column"):
        open_dataset(tmp_path, "y")
    with pytest.raises(ValueError, match=r"the column 'year' of the dataset is not in .*part\.parquet but in"):
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


def test_what_is_not_streamed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="source is a sparse matrix: give it to fit as X"):
        open_dataset(sp.csr_array(np.eye(3)), np.ones(3))
    frame().assign(y=np.where(np.arange(N) % 2, "yes", "no")).to_parquet(tmp_path / "part.parquet")
    data = open_dataset(tmp_path, "y", in_memory=False)
    for estimator in (TrimmedLinearRegression(), TrimmedGLM("huber")):
        with pytest.raises(ValueError, match=r"the target holds text \(no, yes\)") as error:
            estimator.fit(data)
        assert one_line(error)
    monkeypatch.setattr(streamed, "WHOLE", 0)
    for choosing in (TrimmedLogisticRegressionCV, TrimmedLinearRegressionCV):
        plain = choosing.__name__.removesuffix("CV")
        with pytest.raises(ValueError, match=f"fit it to a sample of the rows, and then {plain} with") as error:
            choosing().fit(data)
        assert one_line(error)


@pytest.mark.parametrize("estimator", [TrimmedPCA(), TrimmedCovariance(), StandardScaler()])
def test_who_cannot_stream_says_who_can(estimator: Any, tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "part.parquet")
    with pytest.raises(ValueError, match=r"X is a Dataset, which only .* stream: give X and y from data\.load\(\)"):
        estimator.fit(open_dataset(tmp_path, "y"))


@pytest.mark.parametrize("kind", ["csv.gz", "csv.bz2", "csv.zst", "tsv", "pq"])
def test_files_may_be_compressed_or_have_other_names(kind: str, tmp_path: Path) -> None:
    for k in range(2):
        file, table = tmp_path / f"part-{k}.{kind}", pa.Table.from_pandas(frame(k), preserve_index=False)
        if kind == "pq":
            pq.write_table(table, file)
        elif kind == "tsv":
            frame(k).to_csv(file, sep="\t", index=False)
        else:
            with pa.CompressedOutputStream(str(file), {"gz": "gzip", "zst": "zstd"}.get(kind[4:], kind[4:])) as out:
                out.write(frame(k).to_csv(index=False).encode())
    both = pd.concat([frame(), frame(1)])
    for source in (tmp_path, str(tmp_path / "part-*"), sorted(tmp_path.iterdir())):
        np.testing.assert_allclose(open_dataset(source, "y").load()[0], both[["a", "b"]])
    if kind == "csv.gz":
        whole = (tmp_path / "part-0.csv.gz").read_bytes()
        (tmp_path / "part-0.csv.gz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"part-0\.csv\.gz cannot be read: Truncated") as error:
            open_dataset(tmp_path, "y")
        assert one_line(error)


class Frame:
    """A data frame of another library, which speaks Arrow's protocol as polars does."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_tables_in_memory_are_datasets_too(tmp_path: Path) -> None:
    from pyarrow import dataset

    given = frame().set_index(np.random.default_rng(0).permutation(N))  # an index is no column
    table = pa.Table.from_pandas(given, preserve_index=False)
    known = TrimmedLinearRegression(random_state=0).fit(given[["a", "b"]], given["y"])
    for source in (given, table, table.to_batches()[0], dataset.dataset(table), Frame(table)):
        data = open_dataset(source, "y")
        assert data.feature_names == ["a", "b"]
        np.testing.assert_allclose(data.load()[0], given[["a", "b"]])
        np.testing.assert_array_equal(TrimmedLinearRegression(random_state=0).fit(source, "y").coef_, known.coef_)
    given.to_csv(tmp_path / "a.csv", index=False)
    assert open_dataset(given[["a", "b"]], given["y"]).shape == (N, 2)  # a target beside it, as before
    np.testing.assert_allclose(
        TrimmedLinearRegression(random_state=0).fit([tmp_path / "a.csv"], "y").coef_, known.coef_
    )
    table.slice(0, 40).to_pandas().to_parquet(tmp_path / "b.parquet")
    files = dataset.dataset(tmp_path / "b.parquet")
    assert TrimmedLinearRegression(random_state=0).fit(files, "y").n_features_in_ == 2
    with pytest.raises(ValueError, match="source is a filtered dataset"):
        open_dataset(files.filter(dataset.field("a") > 0), "y")


@pytest.mark.parametrize("source", [None, {"a": [1.0]}, (x for x in "ab"), b"a.csv", {"a.csv"}, [1.0, 2.0]])
def test_what_is_no_source_is_refused_in_one_line(source: Any) -> None:
    with pytest.raises(ValueError, match=r"source (must be|is a list)") as error:
        open_dataset(source, "y")
    assert one_line(error)


def test_addresses_and_dask_are_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="is an address: only files of this machine are read"):
        open_dataset("s3://bucket/part.parquet", "y")
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="source is a Dask collection"):
        open_dataset(da.ones((5, 2)), 0)


def test_what_is_no_data_is_left_out_of_folders_and_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "ünïcode 数据"
    folder.mkdir()
    frame().to_parquet(folder / "наме.parquet", index=False)
    for name in (".DS_Store", "_SUCCESS", "_metadata", "._0.parquet", "README.md"):
        (folder / name).write_bytes(b"x")
    for source in (folder, str(folder / "*"), str(folder / "**")):
        assert open_dataset(source, "y").n == N


@pytest.mark.parametrize("kind", ["csv", "npy", "npz", "parquet", "feather"])
@pytest.mark.parametrize("rows", [N - 10, N, N + 10])
def test_a_file_that_is_written_again_is_no_longer_the_same(kind: str, rows: int, tmp_path: Path) -> None:
    file = tmp_path / f"a.{kind}"

    def write(table: Any) -> None:
        if kind in ("npy", "npz"):
            X = table.to_numpy()
            np.save(file, X) if kind == "npy" else np.savez(file, X=X[:, :2], y=X[:, 2])
        else:
            getattr(table, f"to_{kind}")(file, **({} if kind == "feather" else {"index": False}))

    write(frame())
    data = open_dataset(file, {"npy": -1}.get(kind, "y"))
    write(pd.concat([frame(1), frame(2)])[:rows].reset_index(drop=True))
    os.utime(file, ns=(1, 1))
    words = "has been written again since the" if rows == N else "it has (more|50) rows now"
    with pytest.raises(ValueError, match=rf"a\.{kind}.* {words}"):
        data.load()


def test_csv_files_without_rows_names_or_utf8(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("a,b,y\n")
    frame().to_csv(tmp_path / "1.csv", index=False)
    assert open_dataset(tmp_path, "y").n == N
    for content, words in [
        (b"1.5,2,3\n4,5,6\n", "its first line holds numbers"),
        ("größe,y\n1,2\n".encode("latin-1"), "save it as UTF-8"),
        ("a,y\n1,2\n".encode("utf-16"), "it is written in UTF-16: save it as UTF-8"),
    ]:
        (tmp_path / "0.csv").write_bytes(content)
        with pytest.raises(ValueError, match=words) as error:
            open_dataset(tmp_path / "0.csv", "y")
        assert one_line(error)
    (tmp_path / "0.csv").write_bytes(b"0,1,2\n4,5,6\n")  # names that pandas gives
    assert open_dataset(tmp_path / "0.csv", "2").n == 1


def test_arrow_streams_and_foreign_byte_orders(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, 25)
    np.testing.assert_allclose(open_dataset(tmp_path / "s.arrow", "y").load()[0], frame()[["a", "b"]])
    np.save(tmp_path / "big.npy", frame().to_numpy(">f4"))
    data = open_dataset(tmp_path / "big.npy", -1, in_memory=False)
    assert data.layout.dtype == np.float32
    np.testing.assert_allclose(data.copied().X, frame()[["a", "b"]], rtol=1e-6)


def test_a_copy_leaves_nothing_behind_and_says_where_it_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame().to_parquet(tmp_path / "a.parquet", index=False)
    cache = tmp_path / "cache"
    data = open_dataset(tmp_path / "a.parquet", "y", cache=cache)
    with pytest.raises(OSError, match=r"the copy of the rows cannot be written in .*a\.parquet .*give cache=") as error:
        open_dataset(tmp_path / "a.parquet", "y", cache=tmp_path / "a.parquet").copied()
    assert one_line(error)
    put = copy._put

    def interrupted(*args: Any) -> None:
        put(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(copy, "_put", interrupted)
    for make in (data.copied, data.shuffled):
        with pytest.raises(KeyboardInterrupt):
            make()
        assert not list(cache.iterdir())
    monkeypatch.setattr(copy, "_put", put)
    known = data.copied().X.copy()
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    np.testing.assert_array_equal(data.copied().X, known)  # one that was cut short is made again


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
