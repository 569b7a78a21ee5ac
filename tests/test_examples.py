"""Every script of the gallery runs, without a warning, and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    if "import torch" in script.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)  # an example leaves no files behind
    try:
        runpy.run_path(str(script))
        assert pyplot.get_fignums()
        for number in pyplot.get_fignums():
            pyplot.figure(number).savefig(tmp_path / f"{number}.png", dpi=40)  # layout and labels can be drawn
    finally:
        pyplot.close("all")


def test_there_are_examples_and_each_says_what_it_shows() -> None:
    assert len(EXAMPLES) >= 10
    for script in EXAMPLES:
        lines = script.read_text(encoding="utf-8").splitlines()
        assert lines[0] == '"""' and set(lines[2]) == {"="}, f"{script.name} begins with no title"
