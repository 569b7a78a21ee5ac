"""trimlearn._utils.files: a file is whole or not there."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from trimlearn._utils.files import lock, replacing


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


def dead_process():
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no question whether a process runs")
def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    target, host, dead = tmp_path / "run[1].npz", platform.node(), dead_process()
    stale = tmp_path / f".run[1].npz.{host}.{dead}.7.part"
    others = [
        f".run[1].npz.{host}.{os.getppid()}.7.part",  # of a process that runs
        f".run[1].npz.another{host}.{dead}.7.part",  # of another machine
        f".other.npz.{host}.{dead}.7.part",  # of another file
        f".run[1].npz.{host}.{dead}.7.old",
        f".run[1].npz.{host}.mine.part",
    ]
    for name in (stale.name, *others):
        (tmp_path / name).write_text("half")
    with replacing(target) as temporary:
        temporary.write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, target.name])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot rename a file that is open")
def test_a_lock_is_on_the_file_and_ends_with_its_descriptor(tmp_path):
    target = tmp_path / "run.npz"
    assert lock(target) is None
    target.write_text("old")
    held = lock(target)
    with pytest.raises(BlockingIOError):
        lock(target)
    with replacing(target) as temporary:
        temporary.write_text("new")
    other = lock(target)  # the name now stands for another file
    os.close(held)
    os.close(other)
    os.close(lock(target))
