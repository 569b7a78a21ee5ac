"""Targets that follow from other columns exactly: what is said, who is accused, and what is left to the models."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn.checks.findings import TargetFindings
from trimlearn.checks.target_rules import Rule, find_rule, follow_rule, say_copies

N = 120


@pytest.fixture
def numbers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "qty": rng.integers(1, 20, N).astype(float),
        "price": rng.uniform(1, 90, N).round(2),
        "tax": rng.uniform(1, 9, N).round(2),
    }


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("qty × price", lambda c: c["qty"] * c["price"]),
        ("price + tax", lambda c: c["price"] + c["tax"]),
        ("price − tax", lambda c: c["price"] - c["tax"]),
        ("price / qty", lambda c: c["price"] / c["qty"]),
        ("the sum of all other numbers", lambda c: c["qty"] + c["price"] + c["tax"]),
        ("price", lambda c: c["price"]),
    ],
)
def test_a_rule_is_found_and_who_breaks_it(numbers, words, make) -> None:
    y = make(numbers).round(2)
    y[[3, 50]] *= 10
    rule = find_rule(y, numbers)
    assert rule is not None
    assert rule.words == words
    assert np.flatnonzero(rule.broken).tolist() == [3, 50]
    assert rule.accuses is (words != "price")


def test_gaps_are_neither_kept_nor_broken(numbers) -> None:
    y = (numbers["qty"] * numbers["price"]).round(2)
    y[5], numbers["qty"][9] = np.nan, np.nan
    rule = find_rule(y, numbers)
    assert rule is not None
    assert not rule.known[[5, 9]].any()
    assert rule.holds.sum() == N - 2


def test_what_is_no_rule(numbers) -> None:
    rng = np.random.default_rng(1)
    near = numbers["price"] + rng.normal(0, 0.5, N)
    assert find_rule(near.round(2), numbers) is None
    often = np.where(rng.random(N) < 0.7, numbers["price"], near.round(2))
    assert find_rule(often, numbers) is None
    stars = rng.integers(1, 6, N).astype(float)
    assert find_rule(stars, {"other stars": stars.copy()}) is None  # coarse numbers are often the same
    zeros = np.where(rng.random(N) < 0.95, 0.0, 7.0)
    assert find_rule(zeros, {"more": np.zeros(N)}) is None


def test_where_many_break_it_the_models_judge(numbers) -> None:
    """A tenth of the lines have a discount: they are no errors, and the others are right."""
    y = (numbers["qty"] * numbers["price"]).round(2)
    y[:12] = (0.8 * y[:12]).round(2)
    rule = find_rule(y, numbers)
    assert rule is not None
    assert not rule.accuses
    found = follow_rule(findings(np.full(N, 0.7)), y, rule, np.zeros(N, dtype=bool))
    assert found.flagged.tolist() == [True] * 12 + [False] * (N - 12)
    assert "taken for right" in found.caveats[0]


def findings(probability: np.ndarray) -> TargetFindings:
    flags = probability > 0.5
    return TargetFindings("amount", "regression", (), probability, flags, np.ones(N), np.zeros(N), flags, flags, 0.1)


def test_few_that_break_it_are_wrong_unless_a_person_says_otherwise(numbers) -> None:
    y = (numbers["qty"] * numbers["price"]).round(2)
    y[[1, 2, 3]] += 100
    rule = find_rule(y, numbers)
    assert rule is not None
    settled = np.arange(N) == 2
    found = follow_rule(findings(np.full(N, 0.2)), y, rule, settled)
    assert np.flatnonzero(found.flagged).tolist() == [1, 3]
    assert found.probability[2] == 0.2
    assert found.probability[0] == 0.0
    assert found.suggested[1] == pytest.approx(y[1] - 100, abs=0.01)
    assert found.caveats[0] == "amount is qty × price in 117 of 120 rows: where it is not, it is taken for wrong."


def test_a_copy_in_all_rows_is_told() -> None:
    rule = Rule("net", np.arange(50.0), np.ones(50, dtype=bool), copy=True)
    assert rule.told("gross").startswith(
        "gross is net in all 50 rows, which are taken for right. If that was made from "
    )


def test_columns_from_which_labels_can_be_read_off_are_told() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    code = np.array(["r", "g", "b"], dtype=object)[labels]
    code[:5] = None
    some = np.where(rng.random(90) < 0.2, "r", code).astype(object)
    every = np.arange(90).astype(object)
    assert say_copies(labels, {"some": some, "row": every}, "colour") == []
    (said,) = say_copies(labels, {"code": code, "number": labels.astype(float).astype(object)}, "colour")
    assert said.startswith("code and number tell colour in nearly all rows: if they are copies of it")


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("2 × qty + price", lambda c: 2 * c["qty"] + c["price"]),
        ("1.8 × price + 32", lambda c: 1.8 * c["price"] + 32),
        ("0.5 × qty + 1.19 × price − tax", lambda c: 0.5 * c["qty"] + 1.19 * c["price"] - c["tax"]),
        ("−qty + 3 × tax", lambda c: 3 * c["tax"] - c["qty"]),
    ],
)
def test_a_sum_of_multiples_is_found_and_who_breaks_it(numbers, words, make) -> None:
    y = make(numbers).round(2)
    y[[3, 50]] += 17.0
    rule = find_rule(y, numbers)
    assert rule is not None and rule.accuses
    assert (rule.words, np.flatnonzero(rule.broken).tolist()) == (words, [3, 50])


def test_a_sum_of_multiples_with_gaps_and_wild_cells(numbers) -> None:
    y = 2 * numbers["qty"] + numbers["tax"]
    numbers["tax"][:5] = np.nan
    numbers["qty"][10:14] *= 100
    rule = find_rule(y.round(2), numbers)
    assert rule is not None and np.flatnonzero(rule.broken).tolist() == [10, 11, 12, 13]
    assert not rule.known[:5].any()


@pytest.mark.parametrize("noise", [0.02, 1.0])
def test_what_is_nearly_a_sum_is_none(numbers, noise: float) -> None:
    y = 2 * numbers["qty"] + numbers["price"] + noise * np.random.default_rng(1).normal(size=N)
    assert find_rule(y.round(2), numbers) is None


def test_few_rows_with_many_columns_make_no_rule() -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{j}": rng.integers(0, 9, 30).astype(float) for j in range(12)}
    assert find_rule(rng.integers(0, 99, 30).astype(float), columns) is None
