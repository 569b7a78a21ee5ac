"""What columns hold: numbers, dates and words in the many ways people write them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trimlearn.tables import Column, read_table
from trimlearn.tables.dates import read_dates
from trimlearn.tables.numbers import read_many, read_numbers

NAN = math.nan


def column(cells: list[str], heading: str = "c", **options: Any) -> tuple[Column, list[Any], tuple[str, ...]]:
    """What a column of such cells is read as, its values, and the notes on the table."""
    spare = [f"{i}.5" for i in range(len(cells))]
    table = read_table(pd.DataFrame({heading: cells, "spare": spare}), **options)
    return table.columns[0], table.frame[heading].tolist(), table.notes


NUMBERS = {
    "currency": (["£21,995", "£ 1,000", "-£300", "£-300", "(£300)", "n/a"], [21995, 1000, -300, -300, -300, NAN]),
    "euros behind": (["1.234,50 €", "12,00 €", "3,5 €", "7 €"], [1234.5, 12, 3.5, 7]),
    "francs": (["CHF 1'234.50", "CHF 12.00", "CHF 1'000'000"], [1234.5, 12, 1e6]),
    "reals": (["R$ 1.234,56", "R$ 12,00"], [1234.56, 12]),
    "three decimals of a dollar": (["$3.459", "$3.599"], [3.459, 3.599]),
    "percent": (["12%", "13.5 %", "-3%"], [12, 13.5, -3]),
    "a unit": (["12 km", "13km", "1,200 km", "7"], [12, 13, 1200, 7]),
    "a unit and its plural": (["1 year", "2 years", "5 years"], [1, 2, 5]),
    "another unit": (["12 km", "13 km", "9 km", "8 km", "7 mi"], [12, 13, 9, 8, NAN]),
    "k and M": (["1.5k", "2M", "500", "3.2bn"], [1500, 2e6, 500, 3.2e9]),
    "thousands or decimals": (["1,234", "2,345", "12,345"], [1234, 2345, 12345]),
    "three decimals": (["1.234", "2.345", "12.345"], [1.234, 2.345, 12.345]),
    "German": (["1.234,5", "12,5", "1.234"], [1234.5, 12.5, 1234]),
    "one comma for a point": (["12.5", "13.5", "12,5"], [12.5, 13.5, 12.5]),
    "points between thousands": (["1.234.567", "2.345.678"], [1234567, 2345678]),
    "scientific": (["1e5", "2.5E-3", "-1e+2", "3"], [1e5, 2.5e-3, -100, 3]),
    "signs": (["+5", "−5", "12-", "- 3"], [5, -5, -12, -3]),
    "accounts": (["1,234", "(1,234)", "(5)"], [1234, -1234, -5]),
    "limits": (["<0.5", "0.7", "0.9", "3"], [0.5, 0.7, 0.9, 3]),
    "rubbish": (["1", "2", "3", "4", "5", "6", "7", "oops"], [1, 2, 3, 4, 5, 6, 7, NAN]),
    "spaces between thousands": (["1 234", "12\u00a0345\u00a0678", "5"], [1234, 12345678, 5]),
    "lakhs": (["12,34,567", "1,234", "5"], [1234567, 1234, 5]),
    "spaces around": ([" 5 ", "6 ", "\t7"], [5, 6, 7]),
    "infinite": (["1", "2", "inf", "1e400", "5", "6", "7", "-Infinity"], [1, 2, NAN, NAN, 5, 6, 7, NAN]),
    "words for nothing": (["NA", "N/A", "null", "-", "?", ".", "None", "5", "6"], [NAN] * 7 + [5, 6]),
    "years": (["1999", "2000", "2001"], [1999, 2000, 2001]),
    "times": (["12:30", "13:45:00", "1:30 pm"], [12.5, 13.75, 13.5]),
    "ratings": (["1", "2", "3", "4", "5"] * 4, [1, 2, 3, 4, 5] * 4),
    "telephone-like but of one length": (["10001", "90210", "30301"], [10001, 90210, 30301]),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(case: str) -> None:
    cells, values = NUMBERS[case]
    found, read, _ = column(cells)
    assert found.kind == "number"
    np.testing.assert_allclose(read, values, rtol=1e-12)
    assert found.missing == sum(math.isnan(value) for value in values)


@pytest.mark.parametrize(
    ("cells", "how"),
    [
        (["£21,995", "£1,000"], "whole numbers with £ and thousands commas"),
        (["12,5", "1.234,5"], "numbers with decimal commas and thousands points"),
        (["12%", "13.5%"], "numbers in percent"),
        (["12 km", "13 km"], "whole numbers, in km"),
        (["1.5", "2"], "numbers"),
        (["1", "2", "5"], "whole numbers from 1 to 5"),
    ],
)
def test_how_numbers_were_read_is_said(cells: list[str], how: str) -> None:
    assert column(cells)[0].how == how


def test_rubbish_is_counted_and_shown() -> None:
    found, _, notes = column(["1", "2", "3", "4", "5", "6", "7", "oops"])
    assert found.unreadable == (7,) and found.missing == 1
    assert notes == ('c: 1 cell is no number and counts as missing: "oops".',)


def test_a_doubt_is_told_unless_another_column_settles_it(tmp_path: Path) -> None:
    def read(text: str) -> tuple[list[float], tuple[str, ...]]:
        path = tmp_path / "t.csv"
        path.write_text(text)
        table = read_table(path)
        return table.frame["a"].tolist(), table.notes

    values, notes = read('a,b\n"1,234",x\n"2,345",y\n')
    assert values == [1234, 2345] and "could be 1.234" in notes[0]
    assert read('a,b\n"1,234",0.5\n"2,345",7\n') == ([1234, 2345], ())
    values, notes = read("a;b\n1,234;0,5\n2,345;7\n")
    assert values == [1.234, 2.345] and not any("could be" in note for note in notes)
    values, notes = read("a;b\n1,234;x\n2,345;y\n")
    assert values == [1.234, 2.345] and any("could be 1234" in note for note in notes)
    values, notes = read("a;b\n1.234;0,5\n2.345;7\n")
    assert values == [1234, 2345] and any("thousands" in note for note in notes)
    assert read("a;b\n1.234;0.5\n2.345;7\n")[0] == [1.234, 2.345]
    values, notes = read("a;b\n1.000;x\n2.500;y\n500;y\n")
    assert values == [1000, 2500, 500] and any("could be 1.234" in note for note in notes)
    assert read("a;b\n1.000;x\n2.500;y\n0.500;y\n")[0] == [1, 2.5, 0.5]
    assert read("a,b\n1.000,x\n2.500,y\n500,y\n")[0] == [1, 2.5, 500]


DATES = {
    "ISO": (["2015-01-31", "2015-02-01"], ["2015-01-31", "2015-02-01"], "dates"),
    "ISO with times": (
        ["2015-01-31T12:30:00Z", "2015-02-01T00:00:00+02:00"],
        ["2015-01-31T12:30", "2015-01-31T22:00"],
        "dates and times",
    ),
    "day first": (["31/12/2015", "01/02/2015"], ["2015-12-31", "2015-02-01"], "dates, day first"),
    "month first": (["12/31/2015", "01/02/2015"], ["2015-12-31", "2015-01-02"], "dates, month first"),
    "points": (["01.02.2015", "03.04.2015"], ["2015-02-01", "2015-04-03"], "dates, day first"),
    "firsts of months": (
        ["01/01/2015", "01/02/2015", "01/03/2015"],
        ["2015-01-01", "2015-02-01", "2015-03-01"],
        "dates, day first",
    ),
    "in order": (
        ["05/01/2015", "06/01/2015", "02/02/2015"],
        ["2015-01-05", "2015-01-06", "2015-02-02"],
        "dates, day first",
    ),
    "names of months": (
        ["12 Mar 2015", "1 April 2016", "3-May-17"],
        ["2015-03-12", "2016-04-01", "2017-05-03"],
        "dates",
    ),
    "American names": (["March 12, 2015", "Apr 1, 2016"], ["2015-03-12", "2016-04-01"], "dates"),
    "German names": (["12. März 2015", "1. Mai 2016"], ["2015-03-12", "2016-05-01"], "dates"),
    "months": (["2015-01", "2015-02"], ["2015-01-01", "2015-02-01"], "dates"),
    "two digits": (["12/31/99", "1/2/05"], ["1999-12-31", "2005-01-02"], "dates, month first"),
    "twelve hours": (
        ["1/13/2015 1:05 PM", "1/14/2015 12:05 AM"],
        ["2015-01-13T13:05", "2015-01-14T00:05"],
        "dates and times, month first",
    ),
    "no separators": (
        ["20150131", "20150201", "20150301", "20160401", "20170501"],
        ["2015-01-31", "2015-02-01", "2015-03-01", "2016-04-01", "2017-05-01"],
        "dates",
    ),
}


@pytest.mark.parametrize("case", DATES)
def test_dates(case: str) -> None:
    cells, dates, how = DATES[case]
    found, read, _ = column(cells)
    assert (found.kind, found.how) == ("date", how)
    assert read == [pd.Timestamp(date) for date in dates]


def test_dates_that_are_none_are_unreadable() -> None:
    found, read, notes = column(["2015-02-30", *(f"2015-02-0{i}" for i in range(1, 5))])
    assert found.kind == "date" and found.unreadable == (0,) and pd.isna(read[0])
    assert "2015-02-30" in notes[0]


def test_day_or_month_first_is_told_where_nothing_tells() -> None:
    found, _, notes = column(["01/02/2015", "03/04/2015", "01/01/2016"])
    assert found.kind == "date" and "the other way round" in notes[0]
    assert read_dates(["01/02/2015", "03/04/2015", "01/01/2016"]).day_first is None


def test_day_or_month_first_is_learnt_from_another_column() -> None:
    frame = pd.DataFrame({"a": ["01/02/2015", "03/04/2015", "01/01/2016"], "b": ["31/12/2015", "1/2/2015", "5/2/2016"]})
    table = read_table(frame)
    assert table.frame["a"][0] == pd.Timestamp("2015-02-01") and table.notes == ()


WORDS = {
    "yes and no": (["yes", "no", "Yes", "no", "no"], "category", ["yes", "no", "yes", "no", "no"]),
    "0 and 1": (["0", "1"] * 10, "category", ["0", "1"] * 10),
    "0.0 and 1.0": (["0.0", "1.0"] * 10, "category", ["0", "1"] * 10),
    "plus and minus": (["+", "-"] * 5, "category", ["+", "-"] * 5),
    "a dash": (["a", "b", "-", "a", "b", "a"], "category", ["a", "b", None, "a", "b", "a"]),
    "None and another": (["None", "Smoker"] * 5, "category", ["None", "Smoker"] * 5),
    "none among others": (["none", "some", "full"] * 5, "category", ["none", "some", "full"] * 5),
    "all the same": (["x"] * 5, "constant", ["x"] * 5),
    "one number": (["3"] * 5, "constant", ["3"] * 5),
    "nothing": (["", "NA", "?"], "empty", [None] * 3),
    "codes": (["01234", "02345", "90210"], "id", ["01234", "02345", "90210"]),
    "versions": (["1.2.3", "1.2.4", "2.0.0"], "id", ["1.2.3", "1.2.4", "2.0.0"]),
    "grades": (["A+", "A", "A-", "B"] * 3, "category", ["A+", "A", "A-", "B"] * 3),
    "ranges": (["1-2", "3-4", "5-6"] * 3, "category", ["1-2", "3-4", "5-6"] * 3),
    "incomes": ([">50K", "<=50K"] * 5, "category", [">50K", "<=50K"] * 5),
    "places": (["5km N of X", "7km N of X"] * 3, "category", ["5km N of X", "7km N of X"] * 3),
    "wheels": (["2WD", "4WD"] * 5, "category", ["2WD", "4WD"] * 5),
    "strokes": (["..", "..", ".."], "empty", [None] * 3),
    "half numbers": (["1", "2", "a", "b"] * 3, "category", ["1", "2", "a", "b"] * 3),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    cells, kind, values = WORDS[case]
    found, read, _ = column(cells)
    assert found.kind == kind
    assert read == values


def test_many_categories_are_text() -> None:
    assert column([f"c{i}" for i in range(10_000)] * 2)[0].kind == "text"
    assert (
        column([f"a sentence, number {i}, that nobody would take for the name of a row" for i in range(9)])[0].kind
        == "text"
    )


@pytest.mark.parametrize(
    ("heading", "cells", "kind"),
    [
        ("Unnamed: 0", range(3), "id"),
        ("PassengerId", [7, 3, 9], "id"),
        ("customer_id", [1, 1, 2, 2] * 3, "category"),
        ("paid", [7, 3, 9], "number"),
        ("n", range(1, 31), "id"),
        ("day", range(1, 31), "number"),
        ("n", range(1950, 1980), "number"),
        ("n", range(1, 5), "number"),
        ("n", [*range(1, 14), 1.4, *range(15, 26), 2600, *range(27, 31)], "id"),
        ("car_id", [*range(100, 114), 1.4, *range(215, 226), 22600, *range(327, 331)], "id"),
    ],
)
def test_whole_numbers_that_name_rows(heading: str, cells: Any, kind: str) -> None:
    assert column([str(cell) for cell in cells], heading)[0].kind == kind


def test_one_column_names_the_rows_the_best() -> None:
    frame = pd.DataFrame(
        {"id": range(30), "car": [f"car {i}" for i in range(30)], "owner": [f"o{i % 29}" for i in range(30)]}
    )
    table = read_table(frame)
    assert [found.kind for found in table.columns] == ["text", "id", "text"]
    assert read_table(frame, id="id").of_kind("id") == ["id"]


def test_a_user_knows_better() -> None:
    frame = pd.DataFrame({"a": ["1", "2", "3"], "b": ["2015", "2016", "x"], "c": ["u", "v", "v"], "d": ["1", "x", "y"]})
    table = read_table(frame, categorical=["a"], date="b", id="c", number="d")
    assert [found.kind for found in table.columns] == ["category", "date", "id", "number"]
    assert table.frame["b"][0] == pd.Timestamp("2015-01-01")
    assert table.columns[1].missing == 1 and table.columns[3].unreadable == (2,)
    dropped = read_table(frame, drop=["a", "d"])
    assert list(dropped.frame) == list(dropped.written) == ["b", "c"]
    assert dropped.fingerprint == table.fingerprint


def test_times_are_numbers_where_a_user_says_so() -> None:
    """As a model's file does, of a column that was read as hours when the model was fitted."""
    frame = pd.DataFrame({"t": ["16:12", "23:30", "0:45"] * 4})
    guessed, told = read_table(frame), read_table(frame, number="t")
    assert told.columns == guessed.columns and told.frame.equals(guessed.frame)
    assert told.frame["t"].tolist()[:3] == pytest.approx([16.2, 23.5, 0.75])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": "Pirce"}, 'number: there is no column "Pirce"; did you mean "Price"?'),
        ({"categorical": ["price"]}, 'categorical: there is no column "price"; did you mean "Price"?'),
        ({"drop": "zzz"}, 'drop: there is no column "zzz"; the columns are "Price", "Fuel".'),
        ({"drop": ["Price", "Fuel"]}, "drop: no column would be left"),
        ({"id": "Fuel", "drop": "Fuel"}, 'drop: "Fuel" cannot be left out and be an id too; name it once.'),
        ({"number": "Price", "date": "Price"}, '"Price" cannot be both date and number'),
        ({"number": "Fuel"}, 'number: no cell of the column "Fuel" is a number: "a", "b".'),
    ],
)
def test_a_user_may_err(options: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"Price": [1, 2, 3], "Fuel": ["a", "b", "b"]})
    with pytest.raises(ValueError) as caught:
        read_table(frame, **options)
    assert message in str(caught.value)


def test_many_numbers_are_read_as_few_are() -> None:
    rng = np.random.default_rng(0)
    cells = [f"£{value:,.2f}" for value in rng.lognormal(8, 3, 3000)] + ["oops", "(£5)", "$3", "1e3", "£ 7", "12,5"]
    few, many = read_numbers(cells, [1] * len(cells)), read_many(cells, [1] * len(cells))
    np.testing.assert_array_equal(few.values, many.values)
    assert (few.how, few.proved) == (many.how, many.proved)
    german = [f"{i},5" for i in range(3000)] + ["1.234"]
    np.testing.assert_array_equal(read_many(german, [1] * 3001).values, read_numbers(german, [1] * 3001).values)


@pytest.mark.parametrize(("one", "other", "listed"), [("$", "€", "$ and €"), (" kg", " lb", "kg and lb")])
def test_numbers_in_two_units_are_no_id_and_it_is_said(one: str, other: str, listed: str) -> None:
    signs = [one, other] * 30
    cells = [f"{sign}{k}.5" if sign in "$€" else f"{k}.5{sign}" for k, sign in enumerate(signs, 11)]
    table = read_table(pd.DataFrame({"amount": cells, "x": np.arange(60.0) ** 2}))
    assert (table.columns[0].kind, table.columns[0].how) == ("text", f"numbers in {listed}")
    assert f"amount: numbers in {listed} are not judged together; give all in one unit." in table.notes
