"""Delimited text as people have it: encodings, delimiters, titles, headings, and files that are no table."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from trimlearn.tables import Table, read_table


def table_of(folder: Path, raw: bytes | str, name: str = "t.csv") -> Table:
    path = folder / name
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return read_table(path)


def cells(table: Table) -> list[list[str]]:
    return [table.written[name].tolist() for name in table.written]


# What is written, the names it must give, the cells of the first row, and the line that row stands in.
READABLE = {
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n3,4\n", ["a", "b"], ["1", "2"], 2),
    "UTF-16": ("name,x\nä,1\nö,2\n".encode("utf-16"), ["name", "x"], ["ä", "1"], 2),
    "UTF-16 without a mark": ("name,x\nabc,1\ndef,2\n".encode("utf-16-le"), ["name", "x"], ["abc", "1"], 2),
    "Windows-1252": ("Größe;n\n12,5;€3\n13,5;€4\n".encode("cp1252"), ["Größe", "n"], ["12,5", "€3"], 2),
    "damaged UTF-8": ("näme,x\nÄÖ,1\n".encode() + b"a\xffb,2\n", ["näme", "x"], ["ÄÖ", "1"], 2),
    "semicolons": ("a;b\n1,5;2\n2,5;3\n", ["a", "b"], ["1,5", "2"], 2),
    "tabs in a .csv": ("a\tb\n1\t2\n3\t4\n", ["a", "b"], ["1", "2"], 2),
    "bars": ("a|b\n1|x, y\n3|4\n", ["a", "b"], ["1", "x, y"], 2),
    "semicolons in cells": ("name,tags\nx,a;b\ny,c;d\nz,e;f\n", ["name", "tags"], ["x", "a;b"], 2),
    "decimal commas, no names": (
        "1,5;2,5;3\n2,5;3,5;4\n",
        ["column 1", "column 2", "column 3"],
        ["1,5", "2,5", "3"],
        1,
    ),
    "spaces": (
        '18.0  8  "chevy m"\n15.0  8  "buick s"\n',
        ["column 1", "column 2", "column 3"],
        ["18.0", "8", "chevy m"],
        1,
    ),
    "quoted line ends": ('a,b\n"x\ny",1\n"z",2\n', ["a", "b"], ["x\ny", "1"], 2),
    "inches": ('a,b\n5" pipe,1\n6" pipe,2\n', ["a", "b"], ['5" pipe', "1"], 2),
    "spaces before quotation marks": ('a, b\n1, "x, y"\n2, "z"\n', ["a", "b"], ["1", "x, y"], 2),
    "escaped quotation marks": ('a,b\n1,"x \\"y\\", z"\n2,"w"\n', ["a", "b"], ["1", 'x "y", z'], 2),
    "carriage returns": ("a,b\r1,2\r3,4\r", ["a", "b"], ["1", "2"], 2),
    "line ends of all kinds": ("a,b\n1,2\r\n3,4\r5,6\n", ["a", "b"], ["1", "2"], 2),
    "Ctrl-Z": (b"a,b\n1,2\n3,4\n\x1a", ["a", "b"], ["1", "2"], 2),
    "a title": ("Report 2015\n\nname;price;n\na;1,5;2\nb;2,5;3\n", ["name", "price", "n"], ["a", "1,5", "2"], 4),
    "a title of two columns": ("Sales\nname,n\na,1\nb,2\n", ["name", "n"], ["a", "1"], 3),
    "a title with a comma": ("Sales, 2015\nname;n;m\na;1,5;2\nb;1,5;2\n", ["name", "n", "m"], ["a", "1,5", "2"], 3),
    "sep=": ("sep=;\na;b\n1;2\n3;4\n", ["a", "b"], ["1", "2"], 3),
    "comments": ("# by hand\n# 2015\na,b\n1,2\n# between\n3,4\n", ["a", "b"], ["1", "2"], 4),
    "names behind #": ("#id,name\n1,a\n2,b\n", ["id", "name"], ["1", "a"], 2),
    "numbers only": ("1,2,3\n4,5,6\n7,8,9\n", ["column 1", "column 2", "column 3"], ["1", "2", "3"], 1),
    "labels, no names": ("5.1,setosa\n4.9,setosa\n5,virginica\n", ["column 1", "column 2"], ["5.1", "setosa"], 1),
    "years as names": ("2001,2002,2003\n4,5,6\n7,8,9\n", ["2001", "2002", "2003"], ["4", "5", "6"], 2),
    "names that pandas counts": ("0,1\n4.5,5\n7,8\n", ["0", "1"], ["4.5", "5"], 2),
    "names of rows without a heading": (
        '"x","y"\n"Mazda",1,2\n"Fiat",3,4\n',
        ["Unnamed: 0", "x", "y"],
        ["Mazda", "1", "2"],
        2,
    ),
    "spare delimiters": ("a,b\n1,2,\n3,4,\n", ["a", "b"], ["1", "2"], 2),
    "spare delimiters, also above": ("a,b,\n1,2,\n3,4,\n", ["a", "b"], ["1", "2"], 2),
    "empty rows at the end": ("a,b\n1,2\n3,4\n,\n,\n", ["a", "b"], ["1", "2"], 2),
    "empty lines": ("a,b\n1,2\n\n\n3,4\n  \n", ["a", "b"], ["1", "2"], 2),
    "headings twice": ("a,a,a (2),b\n1,2,3,4\n5,6,7,8\n", ["a", "a (3)", "a (2)", "b"], ["1", "2", "3", "4"], 2),
    "one column": ("a\n1\n2\n", ["a"], ["1"], 2),
    "one column of decimal commas": ("x\n12,5\n13,5\n", ["x"], ["12,5"], 2),
    "one column and its rows' numbers": ("x\n1,5\n2,7\n3,9\n", ["Unnamed: 0", "x"], ["1", "5"], 2),
    "one column of sentences": ("text\nhello, world\nfoo\nbar, baz, qux\n", ["text"], ["hello, world"], 2),
    "a cell of a megabyte": ("a,b\n" + "x" * 1_500_000 + ",1\ny,2\n", ["a", "b"], ["x" * 1_500_000, "1"], 2),
    "markup": ("a,b\n<script>alert(1)</script>,1\n<b>x,2\n", ["a", "b"], ["<script>alert(1)</script>", "1"], 2),
}


@pytest.mark.parametrize("case", READABLE)
def test_text_is_read_as_its_writer_meant_it(case: str, tmp_path: Path) -> None:
    raw, names, first, line = READABLE[case]
    table = table_of(tmp_path, raw)
    assert list(table.frame) == list(table.written) == [column.name for column in table.columns] == names
    assert table.written.iloc[0].tolist() == first
    assert table.first_line == line
    assert table.frame.shape == table.written.shape


# What is wrong with a file, and what must be said.
HOPELESS = {
    "nothing": (b"", "empty"),
    "empty lines": (b"\n\n  \n", "empty"),
    "delimiters only": (b",,,\n,,,\n", "empty"),
    "names only": (b"a,b,c\n", "no rows"),
    "names only, no line end": (b"a,b,c", "no rows"),
    "one row": (b"a,b\n1,2\n", "1 row"),
    "a row too long": (b"a,b,c\n1,2,3\n4,5,6,7\n8,9,1\n", "line 3 has 4 fields where 3 were expected"),
    "a row too short": (b"a;b;c\n1;2;3\n4;5\n8;9;1\n", "line 3 has 2 fields where 3 were expected"),
    "a row too long after a comment": (b"# x\na,b\n1,2\n3,4,5\n", "line 4 has 3 fields where 2 were expected"),
    "a quotation mark left open": (b'a,b\n1,"x\n2,y\n3,z\n', "line 2 is never closed"),
    "a quotation mark left open above": (b'a,"b\n1,2\n3,4\n', "never closed"),
    "another encoding": ("名前,値\n東京,1\n大阪,2\n".encode("shift-jis"), "save it as UTF-8"),
    "half of UTF-16": ("name,x\nä,1\n".encode("utf-16") + b"\x01", "damaged"),
    "bytes": (bytes(range(256)) * 50, "is no text"),
    "a NUL": (b"a,b\n1,\x002\n3,4\n", "is no text"),
    "an image": (b"\x89PNG\r\n\x1a\n0000", "an image"),
    "a workbook": (b"PK\x03\x040000", ".xlsx"),
    "a web page": (b"<!DOCTYPE html><html><body>404</body></html>", "a web page"),
    "JSON": (b'[{"a": 1, "b": 2}, {"a": 3, "b": 4}]', "JSON"),
    "ARFF": (b"@relation x\n@attribute a numeric\n@data\n1\n2\n", "ARFF"),
    "a damaged archive": (b"\x1f\x8b\x08garbage", "gzip"),
}


@pytest.mark.parametrize("case", HOPELESS)
def test_what_is_no_table_is_said_in_one_line(case: str, tmp_path: Path) -> None:
    raw, message = HOPELESS[case]
    with pytest.raises(ValueError, match=message) as caught:
        table_of(tmp_path, raw)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 200 and "t.csv" in said


def test_one_row_is_enough_to_predict(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n")
    assert read_table(path, number="a", categorical="b", least_rows=1).frame.iloc[0].tolist() == [1.0, "x"]


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none.csv does not exist"):
        read_table(tmp_path / "none.csv")


def test_archives_of_one_table_are_unpacked(tmp_path: Path) -> None:
    assert cells(table_of(tmp_path, gzip.compress(b"a;b\n1;2\n3;4\n"), "t.csv.gz")) == [["1", "3"], ["2", "4"]]


def test_a_line_end_of_another_kind_far_below(tmp_path: Path) -> None:
    many = "1,2\n" * 100_000
    assert len(table_of(tmp_path, f"a,b\n{many}3,4\r5,6\n").frame) == 100_002
    with pytest.raises(ValueError, match="line 100003 has 3 fields"):
        table_of(tmp_path, f"a,b\n{many}3,4\r7,8,9\n")


def test_rows_passed_over_are_told(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b\n1,2\n\n3,4\n")
    assert any("1 empty or commented line was passed over" in note for note in table.notes)
    assert table_of(tmp_path, "a,b\n1,2\n3,4\n\n\n").notes == ()


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        ("Größe,n\n1,2\n3,4\n".encode("latin-1"), "Windows-1252"),
        ("a;b\n1;2\n3;4\n", "semicolons"),
        ("1.5,2\n3,4\n", "No line holds the names"),
        ("a,a\n1,2\n3,4\n", '"a (2)"'),
        (",x\n0,5\n1,6\n2,4\n", '"Unnamed: 0"'),
        ("a,b\nNA,2\n3,4\n5,6\n", '"NA" (1 cell)'),
        ("a\n1\n2\n3\n4\nn/k?\n", '"n/k?"'),
    ],
)
def test_what_was_assumed_is_noted(raw: bytes | str, note: str, tmp_path: Path) -> None:
    assert any(note in sentence for sentence in table_of(tmp_path, raw).notes)


SOUND = (
    b"a,b,c\n1,2,3\n4,5,6\n7,8,9\n",
    "näme;preis\nä;1,5\nö;2,5\n".encode(),
    b'"x","y"\n"a ""b""",1\n"c\nd",2\n',
    b"# c\na\tb\n1\t2015-01-01\n2\t31/12/2014\n",
    "name,x\nä,1\nö,2\n".encode("utf-16"),
    b"Title\n\na|b|c\n1|2|3\n4|5|6\n",
    b"1 2 3\n4 5 6\n7 8 9\n",
)
WORDS = 'NA 1e999 - % £ ( inf \ufeff 12:61 =1 1.2.3 ١ ² , ; | # " \\'
SPLINTERS = [*(word.encode() for word in WORDS.split()), b"\t", b"\n", b"\r", b" ", b"\0", b"\xff", b"may 5"]


@pytest.mark.parametrize("seed", range(100))
def test_whatever_happens_to_a_file_is_a_table_or_one_line(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    raw = bytearray(rng.choice(SOUND))
    for _ in range(rng.randint(1, 12)):
        at = rng.randint(0, len(raw))
        if rng.random() < 0.7:
            raw[at:at] = rng.choice(SPLINTERS)
        else:
            del raw[at : at + rng.randint(1, 4)]
    said, table = "", None
    try:
        table = table_of(tmp_path, bytes(raw))
    except ValueError as error:
        said = str(error)
    assert "\n" not in said and (table is not None or "t.csv" in said)
    for column in () if table is None else table.columns:
        gone = table.frame[column.name].isna()
        assert gone.sum() == column.missing and gone[list(column.unreadable)].all()


def test_an_ordinary_table_needs_no_note(tmp_path: Path) -> None:
    assert table_of(tmp_path, "name,x,y\nu,1,2.5\nv,2,\nw,3,4.5\n").notes == ()
