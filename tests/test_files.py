"""trimlearn.files: a file is whole or not there."""

from __future__ import annotations

import pytest

from trimlearn.files import replacing


def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "results.json"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert target.read_text() == "old"


def test_the_old_file_stays_until_the_block_ends(tmp_path):
    target = tmp_path / "results.json"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert target.read_text() == "new"
