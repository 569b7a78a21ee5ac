"""Readers: the same rows from every kind of file, and errors that name file, row group, row and column."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimlearn import open_dataset
from trimlearn.streams import Dataset
from trimlearn.streams.deal import Deal, deal_for

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

N, P = 1000, 3
NAMES = [f"x{j}" for j in range(P)]


def rows(dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)).astype(dtype)
    return X, (X @ np.arange(1, P + 1) + 1).astype(dtype)


def table(X: np.ndarray, t: np.ndarray, **more: Any) -> Any:
    return pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": t, **more})


def parts() -> list[slice]:
    return [slice(0, 300), slice(300, 301), slice(301, N)]


def write(kind: str, folder: Path) -> tuple[Any, Any]:
    """The rows in three files of a kind; and what the target is called there."""
    X, t = rows()
    for k, at in enumerate(parts()):
        file = folder / f"part-{k}{kind}"
        if kind == ".parquet":
            pq.write_table(table(X[at], t[at]), file, row_group_size=128)
        elif kind == ".arrow":
            with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, table(X[at], t[at]).schema) as writer:
                writer.write_table(table(X[at], t[at]), max_chunksize=100)
        elif kind == ".csv":
            csv.write_csv(table(X[at].astype(np.float64), t[at].astype(np.float64)), file)
        elif kind == ".npy":
            np.save(file, np.column_stack([X[at], t[at]]))
        else:
            np.savez_compressed(file, X=X[at], y=t[at])
    return folder, {".npy": -1, ".npz": None}.get(kind, "y")


@pytest.mark.parametrize("kind", [".parquet", ".arrow", ".csv", ".npy", ".npz"])
def test_every_kind_of_file_gives_the_same_rows(kind: str, tmp_path: Path) -> None:
    X, t = rows()
    source, target = write(kind, tmp_path)
    data = open_dataset(source, target, dtype="float32")
    assert data.shape == (N, P)
    A, a = data.load()
    np.testing.assert_array_equal(A, X)
    np.testing.assert_array_equal(a, t)
    assert A.dtype == np.float32
    # each piece alone, as a worker reads it
    pieces = [data.read(piece) for piece in data.pieces]
    np.testing.assert_array_equal(np.concatenate([X for X, _ in pieces]), X)
    assert [len(X) for X, _ in pieces] == [piece.rows for piece in data.pieces]
    np.testing.assert_array_equal(np.concatenate([X for X, _ in data.blocks(rows=7)]), X)


def test_arrays_memory_maps_patterns_lists_and_arrow_datasets(tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    X, t = rows()
    write(".parquet", tmp_path)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    files = sorted(str(file) for file in tmp_path.glob("*.parquet"))
    sources: list[Any] = [str(tmp_path / "part-*.parquet"), files, ds.dataset(files)]
    found = [open_dataset(source, "y") for source in sources] + [open_dataset(mapped, t), open_dataset(X, target=t)]
    found.append(open_dataset(np.column_stack([t, X]), target=0))
    for data in found:
        np.testing.assert_array_equal(data.load()[0], X)
        np.testing.assert_array_equal(data.load()[1], t)
    assert open_dataset(found[0]) is found[0]
    assert open_dataset(files, "y", columns=["x2", "x0"]).feature_names == ["x2", "x0"]
    assert found[0].feature_names == NAMES


def test_text_and_dictionaries_become_a_column_for_each_category(tmp_path: Path) -> None:
    X, t = rows()
    town = np.where(np.arange(N) % 3 == 0, "Rome", np.where(np.arange(N) % 3 == 1, "Oslo", "Bern"))
    kind = pa.array(town.tolist()).dictionary_encode()
    first = table(X, t, town=town.tolist(), kind=kind)
    pq.write_table(first, tmp_path / "a.parquet", row_group_size=100)
    pq.write_table(first.slice(0, 1), tmp_path / "b.parquet")  # its dictionary lacks two of the three
    data = open_dataset(tmp_path, "y")
    assert data.feature_names == [*NAMES, *(f"{c}_{v}" for c in ("town", "kind") for v in ("Bern", "Oslo", "Rome"))]
    A = data.load()[0]
    np.testing.assert_array_equal(A[:N, 3:6], town[:, None] == np.array(["Bern", "Oslo", "Rome"]))
    np.testing.assert_array_equal(A[:, 3:6], A[:, 6:])
    # new rows in the same columns, of which some categories do not occur
    pq.write_table(first.slice(0, 2).drop_columns(["y"]), tmp_path / "new.parquet")
    new = open_dataset(tmp_path / "new.parquet", like=data)
    assert new.feature_names == data.feature_names
    assert not new.has_target
    np.testing.assert_array_equal(new.load()[0], A[:2])
    labels = open_dataset(tmp_path / "a.parquet", "town")
    assert labels.layout.classes == ("Bern", "Oslo", "Rome")


def test_types_decide_the_precision(tmp_path: Path) -> None:
    X, t = rows("float64")
    pq.write_table(table(X, t), tmp_path / "double.parquet")
    pq.write_table(table((X * 10).astype(np.int8), t), tmp_path / "short.parquet")
    assert open_dataset(tmp_path / "double.parquet", "y").layout.dtype == np.float64
    assert open_dataset(tmp_path / "short.parquet", "y").layout.dtype == np.float32
    assert open_dataset(tmp_path / "double.parquet", "y", dtype="float32").load()[0].dtype == np.float32


# ---- what is wrong, and where ----


def test_nan_in_the_17th_file_is_named(tmp_path: Path) -> None:
    X, t = rows()
    for k in range(20):
        A = X[:50].copy()
        if k == 17:
            A[30, 1] = np.nan
        pq.write_table(table(A, t[:50]), tmp_path / f"part-{k:02d}.parquet", row_group_size=20)
    data = open_dataset(tmp_path, "y")
    with pytest.raises(ValueError, match=r"part-17\.parquet, row group 1, row 10, column 'x1' holds nan"):
        data.load()
    with pytest.raises(ValueError, match=r"part-17\.parquet, row group 1, row 10"):
        data.shuffled()


def test_a_missing_entry_and_an_infinite_target_are_named(tmp_path: Path) -> None:
    X, t = rows()
    values = X[:, 1].tolist()
    values[7] = None
    holed = table(X, t).set_column(1, "x1", pa.array(values, pa.float32()))
    pq.write_table(holed, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet, row group 0, row 7, column 'x1' is missing"):
        open_dataset(tmp_path, "y").load()
    t[5] = np.inf
    np.savez(tmp_path / "b.npz", X=X, y=t)
    with pytest.raises(ValueError, match=r"b\.npz, row 5, column 'the target' holds inf"):
        open_dataset(tmp_path / "b.npz").load()


@pytest.mark.parametrize("kind", [".parquet", ".arrow", ".npy", ".npz"])
def test_a_file_cut_short_is_named(kind: str, tmp_path: Path) -> None:
    source, target = write(kind, tmp_path)
    file = tmp_path / f"part-2{kind}"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"part-2") as raised:
        open_dataset(source, target).load()
    assert "\n" not in str(raised.value)


def test_a_page_that_is_damaged_is_named(tmp_path: Path) -> None:
    source, target = write(".parquet", tmp_path)
    data = open_dataset(source, target)
    file = tmp_path / "part-2.parquet"
    bytes_ = bytearray(file.read_bytes())
    bytes_[4:2000] = os.urandom(1996)
    file.write_bytes(bytes(bytes_))
    with pytest.raises(ValueError, match=r"part-2\.parquet, row group 0"):
        data.load()


def test_shards_of_other_width_or_type_are_named(tmp_path: Path) -> None:
    X, t = rows()
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :2])
    with pytest.raises(ValueError, match=r"b\.npy has 2 columns of float32, and .*a\.npy has 3"):
        open_dataset(tmp_path, 0)
    np.save(tmp_path / "b.npy", X.astype(np.float64))
    with pytest.raises(ValueError, match=r"b\.npy has 3 columns of float64"):
        open_dataset(tmp_path, 0)
    tables = tmp_path / "tables"
    tables.mkdir()
    pq.write_table(table(X, t), tables / "a.parquet")
    pq.write_table(table(X, t).drop_columns(["x1"]), tables / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x1'"):
        open_dataset(tables, "y")
    pq.write_table(table(X.astype(np.float64), t), tables / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet, column 'x0' holds double, and .* holds float"):
        open_dataset(tables, "y")
    pq.write_table(table(X, t, extra=t), tables / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has a column 'extra'"):
        open_dataset(tables, "y")
    assert open_dataset(tables, "y", columns=NAMES).n == 2 * N


def test_a_csv_whose_numbers_turn_into_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("x,y\n1.5,2\nfive,4\n")
    with pytest.raises(ValueError, match=r"b\.csv cannot be read: .*five"):
        open_dataset(tmp_path, "y").load()
    (tmp_path / "b.csv").write_text("z,y\n1.5,2\n")
    with pytest.raises(ValueError, match=r"b\.csv has the columns \['z', 'y'\]"):
        open_dataset(tmp_path, "y")


def test_columns_that_are_no_numbers(tmp_path: Path) -> None:
    X, t = rows()
    days = pa.array(np.arange(N).astype("datetime64[D]"))
    pq.write_table(table(X, t, day=days, id=[str(i) for i in range(N)] if N > 1000 else days), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet, column 'day' holds date32.* columns="):
        open_dataset(tmp_path, "y")
    many = [str(i) for i in range(2000)]
    pq.write_table(pa.table({"x": many, "y": np.zeros(2000)}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'x' has more than 1000 categories"):
        open_dataset(tmp_path, "y")


def test_a_text_among_numbers_is_named(tmp_path: Path) -> None:
    numbers = [str(0.5 * i) for i in range(2000)]
    cells = [*numbers[:1234], "n/k", *numbers[1234:]]
    (tmp_path / "numbers.csv").write_text("x,y\n" + "".join(f"{x},{i}\n" for i, x in enumerate(cells)))
    with pytest.raises(ValueError, match=r"numbers\.csv, row 1234, column 'x' holds 'n/k'.* numbers"):
        open_dataset(tmp_path / "numbers.csv", "y")
    pq.write_table(pa.table({"x": ["?", *numbers[:9]], "y": np.zeros(10)}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"x": numbers, "y": np.zeros(2000)}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"0\.parquet, row group 0, row 0, column 'x' holds '\?'"):
        open_dataset([tmp_path / "0.parquet", tmp_path / "1.parquet"], "y")
    (tmp_path / "names.csv").write_text("x,y\n" + "".join(f"a{i},{i}\n" for i in range(2000)))
    with pytest.raises(ValueError, match=r"column 'x' has more than 1000 categories"):
        open_dataset(tmp_path / "names.csv", "y")


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    X, t = rows()
    write(".parquet", tmp_path)
    for source, target, options, words in [
        (tmp_path, "price", {}, "has no column 'price'; it has x0"),
        (tmp_path, "y", {"columns": ["x9"]}, "has no column 'x9'"),
        (tmp_path, "y", {"columns": ["y", "x0"]}, "columns names the target"),
        (tmp_path, 3, {}, "target must be the name of a column"),
        (X, 7, {}, "target must be the number of a column"),
        (X, t[:5], {}, "target must have one entry for each of the 1000 rows"),
        (X, t, {"dtype": "int8"}, "dtype must be"),
        ([], None, {}, "empty list"),
        (tmp_path / "a.txt", None, {}, "no such file"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            open_dataset(source, target, **options)
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="files of several kinds"):
        open_dataset(tmp_path, "y")
    keyed = tmp_path / "keyed" / "year=2020"
    keyed.mkdir(parents=True)
    pq.write_table(table(X, t), keyed / "a.parquet")
    with pytest.raises(ValueError, match="stands for a column"):
        open_dataset(tmp_path / "keyed", "y")


# ---- the shuffled copy ----


def test_every_row_is_dealt_to_one_place() -> None:
    for n, blocks, deck in [(1, 1, 10), (10, 3, 4), (1000, 7, 1000), (1003, 10, 100)]:
        deal = Deal(n, blocks, 5, deck)
        places = np.concatenate([places for _, _, places in deal.decks()])
        np.testing.assert_array_equal(np.sort(places), np.arange(n))
        np.testing.assert_array_equal(deal.restored(deal.dealt(np.arange(n))), np.arange(n))


def test_blocks_look_like_all_rows() -> None:
    """Rows in order: the mean of every block of a copy is that of all, up to what chance allows."""
    n = 100_000
    deal = deal_for(n, 8, seed=1)
    dealt = deal.dealt(np.arange(n, dtype=np.float64))
    size = n // deal.blocks
    means = dealt[: size * deal.blocks].reshape(deal.blocks, size).mean(axis=1)
    z = (means - n / 2) / (n / np.sqrt(12 * size))
    assert 0.8 < z.std() < 1.2
    assert np.abs(z).max() < 5


def test_the_copy_holds_every_row_and_is_the_same_for_every_source(tmp_path: Path) -> None:
    X, t = rows()
    source, target = write(".parquet", tmp_path)
    first = open_dataset(source, target).shuffled(3)
    second = open_dataset(X, t).shuffled(3)
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.restored(np.array(first.t)), t)
    np.testing.assert_array_equal(first.restored(np.array(first.X[:, 1])), X[:, 1])
    assert not np.array_equal(first.X, open_dataset(X, t).shuffled(4).X)


def test_a_kept_copy_is_found_again_and_not_by_others(tmp_path: Path) -> None:
    source, target = write(".parquet", tmp_path / "data" if (tmp_path / "data").mkdir() is None else tmp_path)
    cache = tmp_path / "cache"
    first = open_dataset(source, target, cache=cache).shuffled(0)
    made = sorted(cache.iterdir())
    again = open_dataset(source, target, cache=cache).shuffled(0)
    assert len(made) == 1
    assert sorted(cache.iterdir()) == made
    np.testing.assert_array_equal(first.X, again.X)
    open_dataset(source, target, columns=["x0"], cache=cache).shuffled(0)
    open_dataset(source, target, cache=cache).shuffled(1)
    os.utime(Path(source) / "part-0.parquet", (1, 1))
    open_dataset(source, target, cache=cache).shuffled(0)
    assert len(sorted(cache.iterdir())) == 4


def test_nothing_is_left_of_a_temporary_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    copy = open_dataset(*rows()).shuffled()
    assert copy.X.shape == (N, P)
    assert list(folder.iterdir()) == []


def test_a_full_disk_is_one_error_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    data = open_dataset(*rows(), cache=tmp_path / "cache")
    for name in ("posix_fallocate", "pwrite"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(OSError, match=r"the copy of the rows takes 0\.00 GB in .*cache, which has .*TMPDIR"):
                data.shuffled()
        assert list((tmp_path / "cache").iterdir()) == []
    assert isinstance(data, Dataset)
    assert data.shuffled().X.shape == (N, P)
