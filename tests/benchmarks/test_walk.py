"""The walk counts calls as a reader would, and every place it names is in the source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import walk
from benchmarks.walk import WHERE, Place, follow, lost

ONE = """
from two import twice, numbers
def first(): return [second(k) for k in numbers()]
def second(k): return twice(k)
"""
TWO = """
def twice(k): return (lambda: 2 * k)()
def numbers():
    yield 1
    yield 2
def never(): return 0
"""


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of two files: one calls twice() of the other twice, and goes through a generator of it."""
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "two.py").write_text(TWO)
    monkeypatch.syspath_prepend(tmp_path)
    import one  # type: ignore[import-not-found]

    yield one
    del sys.modules["one"], sys.modules["two"]


def test_calls_are_counted_as_a_reader_would(one: ModuleType, tmp_path: Path) -> None:
    found = follow(one.first, tmp_path, tmp_path)
    assert {function.co_name for function in found.functions} == {"first", "second", "twice", "numbers", "<lambda>"}
    assert {Path(file).name for file in found.files} == {"one.py", "two.py"}
    assert found.depth == 4  # first, second, twice, the lambda: the comprehension is no function
    assert found.crossings == 3  # twice() twice, and the generator once, however often it goes on
    assert follow(one.first, tmp_path, tmp_path / "elsewhere").crossings == 0
    assert sys.getprofile() is None


def test_nothing_is_followed_after_a_crash(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        follow(lambda: 1 / 0, tmp_path, tmp_path)
    assert sys.getprofile() is None


def test_every_place_is_in_the_source() -> None:
    assert set(WHERE) == {"w-step", "stationarity", "reweighting", "penalties", "auto level"}
    assert [(idea, lost(places)) for idea, places in WHERE.items() if lost(places)] == []


def test_a_place_that_is_gone_is_noticed() -> None:
    gone = [
        Place("smart/nowhere.py", "step"),
        Place("smart/algorithm.py", "Algorithm1.nothing"),
        Place("smart/algorithm.py", "State"),
    ]
    assert lost([*gone, Place("smart/algorithm.py", "Algorithm1.w_step")]) == gone


def test_the_figures_are_those_of_the_walks() -> None:
    result = walk.run()
    measured = {target.what: target.measured for target in result.targets}
    (logistic, linear), places = (table.rows for table in result.tables)
    of_logistic = ("files that a logistic fit visits", "functions that it visits", "its deepest stack")
    assert logistic[1:4] == [measured[what] for what in of_logistic]
    assert linear[4] == measured["crossings between estimators' files in a linear fit"]
    assert 5 < logistic[1] < logistic[2]
    assert {f"files to open: {row[0]}": row[1] for row in places}.items() <= measured.items()
