"""The benchmark of the GPU, on the host's memory: its tables and targets, and what it says without a device."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from benchmarks import gpu
from benchmarks.common import digits

torch = pytest.importorskip("torch")


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.filterwarnings("ignore::UserWarning")  # labels of so few digits are hard to judge
def test_tables_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = "trimlearn.engines.cuda."
    for name in ("trimlearn._utils.residence", "trimlearn.solve", cuda + "engine"):
        monkeypatch.setattr(import_module(name), "lies_on_device", lambda a: isinstance(a, torch.Tensor))
    monkeypatch.setattr(import_module(cuda + "engine"), "open_device", lambda device: torch.device("cpu"))
    plan = replace(gpu.QUICK, device="cpu", passes=3, rows=4000, large_passes=3)
    data = digits(None, quick=True)
    found = gpu.run(replace(data, V=data.V[:200], t=data.t[:200]), plan)
    paper, auto, large = found.tables
    assert [row[0] for row in paper.rows] == ["CUDA tensors", "this process"]
    assert paper.rows[0][3:] == pytest.approx(paper.rows[1][3:], abs=0.5)  # quality is that of this process
    assert auto.rows[0][3:] == pytest.approx(auto.rows[1][3:], abs=0.5)
    assert large.rows[0][0] == 4000 and large.rows[0][4] == pytest.approx(large.rows[0][3] / large.rows[0][2])
    assert [target.limit for target in found.targets] == [0.15, 0.08, 1.5, 0.5, 2.0, 1.3]
    assert found.targets[0].measured == paper.rows[0][1]


def test_without_a_device_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="torch sees no CUDA device"):
        gpu.run(digits(None, quick=True))
