"""Tables for the benchmark of dirty tables: what was made wrong is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.dirty_tables import CELLS, TABLES, spoil


@pytest.mark.parametrize("name", ["iris", "people, 60"])
def test_what_was_made_wrong_is_known(name: str) -> None:
    source = TABLES[name](None)
    assert source is not None and source.label is not None and source.number is not None
    spoilt, again = spoil(source, 1), spoil(source, 1)
    assert spoilt.frame.equals(again.frame)
    given, made = source.frame[source.label].to_numpy(), spoilt.frame[source.label].to_numpy()
    assert np.flatnonzero(given != made).tolist() == spoilt.labels.tolist()
    moved = source.frame[source.number].to_numpy() != spoilt.frame[source.number].to_numpy()
    assert np.flatnonzero(moved).tolist() == spoilt.numbers.tolist()
    assert 0 < len(spoilt.labels) <= 0.11 * len(given)


def test_targets_may_stay_right() -> None:
    source = TABLES["iris"](None)
    assert source is not None and source.label is not None
    spoilt = spoil(source, 0, targets=False)
    assert spoilt.frame[source.label].equals(source.frame[source.label]) and len(spoilt.labels) == 0
    changed = spoilt.frame["sepal width (cm)"] != source.frame["sepal width (cm)"]
    assert changed.sum() == pytest.approx(CELLS * len(changed), abs=2)
