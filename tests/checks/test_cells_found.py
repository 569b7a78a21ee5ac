"""Wrong cells of tables: who is found, how sure it is, what it was, and who is left alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from benchmarks.peers_cells import dirty
from tables_made_up import as_table, related
from trimlearn.checks.cells import find_cells
from trimlearn.checks.errors import RULES, Writing, origins
from trimlearn.checks.missing_codes import missing_codes
from trimlearn.checks.spelling import misspelt, usual_spellings
from trimlearn.tables.read import read_table


def judged(frame: pd.DataFrame, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a table made dirty: the probabilities, which cells are wrong, and which of those by 3 robust σ."""
    X = frame.to_numpy(dtype=float)
    Y = dirty(X, seed)
    sigma = 1.4826 * np.nanmedian(np.abs(X - np.nanmedian(X, axis=0)), axis=0)
    wrong = np.isfinite(X) & (Y != X)
    p = np.zeros(X.shape)
    for cell in find_cells(as_table(pd.DataFrame(Y, columns=frame.columns))).cells:
        p[cell.row, list(frame.columns).index(cell.column)] = cell.probability
    return p, wrong, wrong & (np.abs(X - Y) > 3 * sigma)


@pytest.mark.parametrize(
    "frame",
    [related(), load_wine(as_frame=True).data, load_iris(as_frame=True).data, load_breast_cancer(as_frame=True).data],
    ids=["sizes", "wine", "iris", "breast cancer"],
)
def test_dirty_tables(frame: pd.DataFrame) -> None:
    p, wrong, big = judged(frame, seed=3)
    assert np.mean(p[big] > 0) > 0.95
    assert np.mean(p[~wrong] > 0) < 0.005
    assert abs(p[p > 0].mean() - wrong[p > 0].mean()) < 0.05  # calibrated as a whole


def test_clean_tables_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    n = 400
    tables = {
        "sizes": related(),
        "wine": load_wine(as_frame=True).data,
        "iris": load_iris(as_frame=True).data,
        "Cauchy": rng.standard_cauchy((n, 4)),
        "lognormal": np.exp(2 * rng.normal(size=(n, 5))).round(2),
        "counts": rng.poisson([0.5, 2, 10, 100], (n, 4)),
        "bounded": rng.beta([0.3, 2, 5], [0.3, 5, 1], (n, 3)).round(3),
        "two modes": np.where(rng.random((n, 4)) < 0.1, 50, 0) + rng.normal(size=(n, 4)),
        "many zeros": np.where(rng.random((n, 4)) < 0.4, 0, np.exp(1.5 * rng.normal(size=(n, 4)) + 5)).round(),
    }
    for name, values in tables.items():
        frame = pd.DataFrame(values).astype(float)
        frame.columns = [f"c{j}" for j in range(frame.shape[1])]
        assert len(find_cells(as_table(frame)).cells) <= 0.005 * frame.size, name


def test_errors_are_named_and_undone() -> None:
    frame = related()
    right = frame.copy()
    frame.loc[5, "price"] *= 100
    frame.loc[[6, 9], "price"] *= 10
    frame.loc[11, "weight"] *= 0.1
    frame.loc[12, "power"] *= -1
    frame.loc[20, "weight"] = float(str(int(right.loc[20, "weight"]))[::-1])
    found = find_cells(as_table(frame))
    errors = {(cell.row, cell.column): cell for cell in found.cells}
    expected = {
        (5, "price"): "100 times too large",
        (6, "price"): "10 times too large",
        (9, "price"): "10 times too large",
        (11, "weight"): "10 times too small",
        (12, "power"): "sign",
    }
    for (row, column), error in expected.items():
        assert errors[row, column].error == error
        assert errors[row, column].expected == pytest.approx(right.loc[row, column], rel=1e-12)
        assert np.isnan(found.mended.loc[row, column])
    assert found.typical["price"] == "10 times too large"
    assert not set(errors) - set(expected) - {(20, "weight")}
    kept = find_cells(as_table(frame), keep=[(5, "price")], exclude=["power"])
    assert not {(cell.row, cell.column) for cell in kept.cells} & {(5, "price"), (12, "power")}
    assert kept.mended.loc[5, "price"] == frame.loc[5, "price"]


def test_swapped_digits_and_exchanged_columns() -> None:
    frame = related().assign(length=lambda t: (t["weight"] * 1.5 + 700).round())
    right = frame.copy()
    frame.loc[3, "length"] = float(f"{int(right.loc[3, 'length'])}"[1::-1] + f"{int(right.loc[3, 'length'])}"[2:])
    frame.loc[8, ["width", "time"]] = right.loc[8, ["time", "width"]].to_numpy()
    cells = {(cell.row, cell.column): cell for cell in find_cells(as_table(frame)).cells}
    assert (cells[3, "length"].error, cells[3, "length"].expected) == ("digits swapped", right.loc[3, "length"])
    assert cells[8, "width"].error == "in the place of time"
    assert cells[8, "time"].expected == right.loc[8, "time"]


def test_columns_exchanged_in_several_rows_are_no_group_of_their_own() -> None:
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({"lat": rng.normal(47, 0.5, n).round(4), "lon": rng.normal(8, 0.8, n).round(4)})
    frame["height"] = rng.normal(500, 90, n).round()
    frame.loc[[5, 80, 200], ["lat", "lon"]] = frame.loc[[5, 80, 200], ["lon", "lat"]].to_numpy()
    cells = find_cells(as_table(frame)).cells
    assert {(cell.row, cell.column) for cell in cells} == {(i, c) for i in (5, 80, 200) for c in ("lat", "lon")}
    assert {cell.error for cell in cells} == {"in the place of lon", "in the place of lat"}


def test_beside_a_wrong_cell_right_ones_of_the_same_sum_are_left_alone() -> None:
    found = false = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(100, 15, (60, 2)).round(1), columns=["a", "b"])
        frame["sum"] = frame["a"] + frame["b"]
        assert len(find_cells(as_table(frame)).cells) <= 1
        frame.loc[[4, 30, 50], "b"] *= [10, 0.1, 1.5]
        told = {(cell.row, cell.column) for cell in find_cells(as_table(frame)).cells}
        found += len(told & {(4, "b"), (30, "b"), (50, "b")})
        false += len(told - {(4, "b"), (30, "b"), (50, "b")})
    assert found >= 8
    assert false <= 2


def test_of_two_copies_that_differ_the_one_is_wrong_that_a_slip_explains() -> None:
    found = 0
    for k, column in enumerate(["net", "gross"] * 4):
        rng = np.random.default_rng(k)
        net = rng.uniform(100, 900, 80).round(2)
        frame = pd.DataFrame({"net": net, "gross": (1.19 * net).round(2), "noise": rng.normal(size=80).round(2)})
        digits = f"{frame.loc[7, column]:.2f}"
        frame.loc[7, column] = float(digits[1::-1] + digits[2:])
        told = [(cell.row, cell.column) for cell in find_cells(as_table(frame)).cells]
        assert len(told) <= 1
        found += told == [(7, column)]
    assert found >= 6


def test_a_lone_minus_is_wrong_where_no_other_value_is_negative() -> None:
    rng = np.random.default_rng(0)
    age = rng.integers(5, 90, 300) * 1.0
    frame = pd.DataFrame({"age": age, "size": rng.normal(170, 9, 300).round(), "pulse": rng.normal(70, 9, 300).round()})
    row = int(np.flatnonzero(age == 34)[0])
    frame.loc[row, "age"] = -34.0
    assert [(c.row, c.column, c.expected) for c in find_cells(as_table(frame)).cells] == [(row, "age", 34.0)]


def test_cells_that_break_a_sum_or_a_product_are_found() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.gamma(3, 100, (200, 3)).round(2), columns=["jan", "feb", "mar"])
    frame["quarter"] = frame.sum(axis=1).round(2)
    frame["items"] = rng.integers(1, 30, 200).astype(float)
    frame["price"] = rng.gamma(4, 5, 200).round(2)
    frame["amount"] = (frame["items"] * frame["price"]).round(2)
    assert find_cells(as_table(frame)).cells == ()
    frame.loc[[5, 70], "quarter"] += [20.0, -31.5]
    frame.loc[9, "amount"] -= 4.0
    frame.loc[120, "amount"] += 0.01  # rounding
    told = {(cell.row, cell.column): (cell.error, cell.expected) for cell in find_cells(as_table(frame)).cells}
    assert set(told) == {(5, "quarter"), (70, "quarter"), (9, "amount")}
    assert told[9, "amount"] == ("in other rows it is items × price", frame.loc[9, "amount"] + 4)


def test_a_few_cells_far_off_by_the_same_are_told_where_they_are_not_called_wrong() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"start": rng.integers(0, 900, 300).astype(float), "days": rng.integers(1, 30, 300) * 1.0})
    frame["end"] = frame["start"] + frame["days"]
    frame["start"] += rng.integers(0, 2, 300)  # a day more or less, so that there is no rule
    assert find_cells(as_table(frame)).caveats == ()
    frame.loc[[7, 20, 150], "end"] -= 365
    found = find_cells(as_table(frame))
    told = " ".join(found.caveats)
    for row in (7, 20, 150):
        assert f"row {row}" in told or row in {cell.row for cell in found.cells}


def test_nothing_is_told_of_cells_far_off_that_are_known_to_be_right_or_told_as_rows() -> None:
    rng = np.random.default_rng(3)
    values = 100 + 10 * (rng.normal(size=(300, 1)) + 0.2 * rng.normal(size=(300, 5)))
    rows = pd.DataFrame(values.round(2), columns=list("abcde"))
    group = rows.copy()
    group.loc[5:9, "a"] = [500.1, 500.2, 500.1, 500.3, 500.2]
    assert "a is far from what" in " ".join(find_cells(as_table(group)).caveats)
    assert find_cells(as_table(group), keep=[(row, "a") for row in range(5, 10)]).caveats == ()
    rows.loc[5:7, list("abcd")] = np.add([5000.0, 7000.0, 900.0, 8000.0], rng.normal(size=(3, 4)))
    (told,) = find_cells(as_table(rows)).caveats
    assert "3 rows deviate in most of their numbers" in told


def test_two_pairs_of_exchanged_dates_do_not_speak_for_each_other_in_silence() -> None:
    rng = np.random.default_rng(101)
    start = pd.to_datetime("2022-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), unit="D")
    end = start + pd.to_timedelta(np.rint(12 + rng.normal(size=400)).astype(int), unit="D")
    frame = pd.DataFrame({"start": start, "end": end, "x": rng.normal(size=400)})
    frame.loc[[80, 112], ["start", "end"]] = frame.loc[[80, 112], ["end", "start"]].to_numpy()
    found = find_cells(read_table(frame))
    told = " ".join(found.caveats)
    for row in (80, 112):
        assert f"row {row}" in told or row in {cell.row for cell in found.cells}


def test_codes_for_missing_values() -> None:
    frame = related()
    frame.loc[[3, 50], "price"] = -999.0
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(300), unit="D")
    frame.loc[7, "day"] = pd.Timestamp("1900-01-01")
    frame.loc[:99, "time"] = 9999.0
    found = find_cells(as_table(frame))
    told = {(cell.row, cell.column): cell.value for cell in found.cells if cell.error == "stands for missing"}
    assert told == {(3, "price"): -999.0, (50, "price"): -999.0, (7, "day"): "1900-01-01"}
    assert found.mended["time"].isna().sum() == 100
    assert any('100 cells of "time" hold 9999' in caveat for caveat in found.caveats)
    assert missing_codes(np.arange(-50.0, 50.0)) == []
    assert missing_codes(np.append(np.linspace(60, 90, 99), [0, 0])) == [0.0]
    assert missing_codes(np.append(np.exp(np.random.default_rng(0).normal(size=99)), [0, 0])) == []


def test_days_and_months() -> None:
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(0, 700, 200))
    frame = pd.DataFrame({"km": 40.0 * day + rng.normal(size=200).round(1)})
    frame["day"] = pd.Timestamp("2021-01-01") + pd.to_timedelta(day, unit="D")
    row = int(np.flatnonzero(frame["day"].dt.strftime("%d").astype(int) == 9)[0])
    was = frame.loc[row, "day"]
    frame.loc[row, "day"] = pd.Timestamp(was.year, was.day, was.month)
    cells = [cell for cell in find_cells(as_table(frame)).cells if cell.column == "day"]
    assert [(cell.row, cell.error, cell.expected) for cell in cells] == [
        (row, "day and month swapped", was.strftime("%Y-%m-%d"))
    ]


def test_a_row_that_deviates_as_a_whole_is_not_listed_cell_by_cell() -> None:
    frame = related()
    frame.loc[4] *= [1, 30, 0.02, 50, 0.03]
    found = find_cells(as_table(frame))
    assert not [cell for cell in found.cells if cell.row == 4]
    assert any("1 row deviates" in caveat for caveat in found.caveats)


def test_tables_that_tell_little() -> None:
    empty = pd.DataFrame({"a": np.zeros(0)})
    for frame in (
        empty,
        pd.DataFrame({"a": [1.0, 2.0, 900.0]}),
        pd.DataFrame({"a": np.full(50, np.nan), "b": np.ones(50)}),
        pd.DataFrame({"c": ["x", "y"] * 20}),
        pd.DataFrame({"a": np.arange(50.0)}),
    ):
        found = find_cells(as_table(frame))
        assert found.cells == ()
        assert found.mended.equals(frame)
    alone = pd.DataFrame({"a": np.append(np.random.default_rng(0).normal(50, 1, 200), [500.0, 5.0])})
    told = [(cell.value, cell.expected, cell.error) for cell in find_cells(as_table(alone)).cells]
    assert sorted(told) == [(5.0, 50.0, "10 times too small"), (500.0, 50.0, "10 times too large")]
    huge = related(50)
    huge.loc[3, "price"] = 1e300
    assert [(c.row, c.column, c.probability) for c in find_cells(as_table(huge)).cells] == [(3, "price", 1.0)]
    infinite = related(50)
    infinite.loc[3, "price"] = np.inf
    assert [(c.row, c.column, c.probability) for c in find_cells(as_table(infinite)).cells] == [(3, "price", 1.0)]


def test_frames_and_rows_beyond_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from trimlearn.robust.cells import table

    monkeypatch.setattr(table, "ROWS", 200)
    monkeypatch.setattr(table, "LEAST", 100)
    monkeypatch.setattr(table, "BLOCK", 1000)
    frame = related(2000)
    frame.loc[1500, "price"] *= 10
    found = find_cells(as_table(frame))
    assert (1500, "price") in {(cell.row, cell.column) for cell in found.cells}
    assert any("learnt from 200 rows" in caveat for caveat in found.caveats)


def test_spelling() -> None:
    frame = pd.DataFrame({"fuel": ["Petrol"] * 60 + ["Diesel"] * 40 + ["Petorl", "diesel ", "Electric"], "x": 1.0})
    found = find_cells(as_table(frame))
    assert {(c.row, c.value, c.expected) for c in found.cells} == {
        (100, "Petorl", "Petrol"),
        (101, "diesel ", "Diesel"),
    }
    assert found.mended["fuel"].tolist()[100:] == ["Petrol", "Diesel", "Electric"]
    assert misspelt(as_table(frame), exclude=["fuel"]) == []
    others = {"Gambia": 50, "Zambia": 1, "Iran": 40, "Iraq": 1, "A4 2.0": 60, "A4 3.0": 1, "Mazda3": 30, "Mazda6": 1}
    assert usual_spellings(others) == {}


def test_what_a_value_may_have_been() -> None:
    whole = Writing.of(np.arange(1.0, 500.0))
    assert whole.step == 1.0
    assert Writing.of(np.arange(50.0, 5000.0, 50.0)).step == 50.0
    found = origins(np.array([25.1]), whole, np.array([250.0]), np.array([9.0]))
    told = {RULES[rule]: float(t) for rule, t in zip(found.rules, found.truths[:, 0], strict=True) if rule < 7}
    assert told["10 times too small"] == pytest.approx(251.0)
    assert whole.reveals(np.array([25.1, 25.0])).tolist() == [True, False]
    shares = np.repeat([0.37, 0.5], 300) + np.append(np.zeros(300), np.random.default_rng(0).normal(size=300))
    assert Writing.of(shares).reveals(np.array([3.7, 0.51]))[0]


def test_a_column_of_two_units_is_one_caveat_and_no_wrong_cells():
    frame = related(120)
    frame.loc[::5, "price"] *= 1000
    frame.loc[1::5, "price"] *= 1000
    found = find_cells(as_table(frame))
    assert not [cell for cell in found.cells if cell.column == "price"]
    few = related(120)
    few.loc[::10, "price"] *= 1000
    assert len([cell for cell in find_cells(as_table(few)).cells if cell.column == "price"]) == 12


def test_numbers_beyond_counting_are_ordinary_where_all_are():
    frame = related(50).assign(big=lambda frame: frame["price"] * 1e298)
    assert not find_cells(as_table(frame)).cells


def test_no_doubt_is_raised_where_nothing_is_wrong():
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)).round(3), columns=["u", "v"])
    assert find_cells(as_table(frame)).caveats == ()


def test_nobody_adds_a_minus_and_swaps_digits_too() -> None:
    x = np.array([-927498.0, 927498.0, -150.0])
    writing = Writing.of(np.concatenate([x, np.arange(-50.0, 50.0)]))
    found = origins(x, writing, np.array([3e5, -3e5, 100.0]), np.ones(3))
    changed = (np.sign(found.truths) != np.sign(x)) & (found.weights > 0)
    swaps = np.array(found.rules) == RULES.index("digits swapped")
    assert not changed[swaps][:, [0, 2]].any() and changed[swaps][:, 1].any()
