"""What a check is told is looked at before any work: a mistake is one line that says how to mend it."""

from __future__ import annotations

import pandas as pd
import pytest

from trimlearn import check
from trimlearn.checks.options import OptionError
from trimlearn.cli import main


@pytest.mark.parametrize("seed", [-1, "x", 2**32, 1.5, True])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    with pytest.raises(OptionError, match="seed must be a whole number from 0"):
        check(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), seed=seed)


def test_a_share_that_is_none_is_refused_in_words(capsys):
    with pytest.raises(SystemExit):
        main(["check", "t.csv", "--fail-above", "x"])
    assert "must be a share between 0 and 1, got x" in capsys.readouterr().err
