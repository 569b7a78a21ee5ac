"""Images: labels are judged by the pixels, and suspects have pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trimlearn import check, cli
from trimlearn.checks.findings import TargetFindings

WRONG = {11, 13, 31, 33}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Bright and dark squares; some bright ones are called dark."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: pip install trimlearn[vision]")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("photos").mkdir()
    lines = ["file,label"]
    for i in range(60):
        image = rng.integers(0, 60, (8, 8)).astype(np.uint8) + np.uint8(150 * (i % 2))
        cv2.imwrite(f"photos/{i}.png", image)
        lines.append(f"{i}.png,{'bright' if i % 2 and i not in WRONG else 'dark'}")
    Path("labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def by_the_first_component(table, mended, target, **options):
    """Labels judged in no time; how well models do it is for tests of targets to say."""
    bright = (table.frame["component 1"] > 0) == (table.frame["component 1"].iat[1] > 0)
    suggested = np.where(bright, "bright", "dark").astype(object)
    wrong = suggested != table.frame[target].to_numpy()
    return TargetFindings(
        target,
        "classification",
        ("bright", "dark"),
        0.9 * wrong,
        wrong,
        5.0 * wrong,
        suggested,
        wrong,
        wrong,
        wrong.mean(),
    )


def test_a_wrong_label_is_shown_with_its_picture(folder, capsys, monkeypatch):
    monkeypatch.setattr("trimlearn.checks.parts.judge_target", by_the_first_component)
    assert cli.main(["check", "photos", "--labels", "labels.csv"]) == 0
    assert "images like it are bright" in capsys.readouterr().out
    results = json.loads(Path("photos-check/results.json").read_text(encoding="utf-8"))
    suspects = [suspect for suspect in results["suspects"] if suspect["target"]]
    assert (
        suspects and {suspect["row"] for suspect in suspects} <= WRONG
    )  # how many are found is for test_target to say
    suspect = suspects[0]
    assert suspect["image"].startswith("data:image/png;base64,")
    assert suspect["values"] == [f"{suspect['row']}.png", "dark"] and len(suspect["neighbours"]) == 3
    assert not Path("photos-check/model.json").exists()
    assert "labels=" in Path("photos-check/repeat.py").read_text(encoding="utf-8")


def test_features_take_the_place_of_pixels(folder):
    np.save("features.npy", np.random.default_rng(1).normal(size=(60, 3)) + 9 * (np.arange(60) % 2)[:, None])
    found = check("photos", labels="labels.csv", features="features.npy")
    assert len(found.table) and set(found.table["row"].tolist()) <= WRONG and found.model is None
    np.save("features.npy", np.full((60, 3), np.nan))
    with pytest.raises(ValueError, match="features: row 0 holds a value that is no number"):
        check("photos", labels="labels.csv", features="features.npy")
