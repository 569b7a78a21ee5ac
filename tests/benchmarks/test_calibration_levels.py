"""How sure a check is of wrong labels agrees with what was measured."""

from __future__ import annotations

import numpy as np

from benchmarks.calibration import stored
from benchmarks.calibration.levels import TRIED, cases, judged
from trimlearn.checks import target_labels


def test_probabilities_promise_no_more_than_they_hold() -> None:
    """On tables with clear classes and no wild cells they promise less: of labels given 0.70, 0.93 are wrong."""
    known = {name: [row for row in stored("levels")[name] if _as_it_is(row[name], name)] for name in TRIED}
    assert all(len(rows) == 1 for rows in known.values())
    for part, text in known["CLEAN"][0].items():
        if " to " in part:
            mean, wrong, count = (float(word) for word in text.replace("→", "of").split("of"))
            assert count > 50 and -0.1 < wrong - mean < 0.25, part


def _as_it_is(value: object, name: str) -> bool:
    mine = getattr(target_labels, name)
    return value == (list(mine) if isinstance(mine, tuple) else mine)


def test_where_all_labels_are_right_few_are_flagged() -> None:
    clean = stored("levels")["summary"][0]
    assert clean["level"] == 0 and clean["flagged"] < 1 and clean["error"] < 10


def test_a_cheap_part_of_it_again() -> None:
    iris = next(case for name, level, case in cases((0.1,)) if name == "iris")
    p, wrong = judged([iris], {})
    assert np.mean(p[wrong] > 0.5) > 0.7 and np.mean(p[~wrong] > 0.5) < 0.03
