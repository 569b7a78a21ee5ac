"""What ``trimlearn demo`` does: a dirty table of penguins checked, wrong labels found among digits, outlying judges
found among judges."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimlearn._utils.files import replacing
from trimlearn._version import __version__
from trimlearn.datasets import load_penguins_dirty
from trimlearn.demo.digits import DigitsResult, bundled_digits, find_wrong_labels, mnist_digits
from trimlearn.demo.judges import JudgesResult, find_outlying_judges

if TYPE_CHECKING:
    from trimlearn.checks.found import Check

__all__ = ["DemoResult", "run"]


@dataclass(frozen=True)
class DemoResult:
    """All experiments, and the files they were written to. Without pandas there is no check of a table."""

    digits: DigitsResult
    judges: JudgesResult
    files: tuple[Path, ...]
    penguins: Check | None
    report: Path | None


def run(out: Path, data_home: str | os.PathLike[str] | None = None, *, progress: bool = False) -> DemoResult:
    """Run all experiments; write results.json, weights.csv and, where matplotlib is, demo.png into ``out``, and the
    files of the check, its report.html among them, into a folder ``penguins`` there.

    The digits are scikit-learn's, which come with it; with ``data_home`` they are MNIST's.
    """
    out.mkdir(parents=True, exist_ok=True)
    data = bundled_digits() if data_home is None else mnist_digits(data_home)
    digits = find_wrong_labels(data, progress=progress)
    judges = find_outlying_judges()
    files = [_write_results(out / "results.json", digits, judges), _write_weights(out / "weights.csv", digits, judges)]
    if importlib.util.find_spec("matplotlib"):
        from trimlearn.demo.picture import draw_demo

        files.append(draw_demo(out / "demo.png", digits, judges))
    if not importlib.util.find_spec("pandas"):
        return DemoResult(digits, judges, tuple(files), None, None)
    from trimlearn.checks.check import check

    dirty = load_penguins_dirty()  # nothing is told but which column holds the labels
    say = (lambda sentence: print(sentence, file=sys.stderr)) if progress else None
    penguins = check(dirty.path, dirty.target, progress=say)
    written = penguins.write(out / "penguins")
    return DemoResult(digits, judges, (*files, *written.values()), penguins, written["report.html"])


def _write_results(path: Path, digits: DigitsResult, judges: JudgesResult) -> Path:
    """What was found, in numbers and names, as JSON."""
    results: dict[str, Any] = {
        "trimlearn": __version__,
        "digits": {
            "data": digits.data.name,
            "rows": len(digits.data.y),
            "wrong_labels": int(digits.data.is_wrong.sum()),
            "contamination": float(digits.contamination),
            "flagged": int(digits.table["outlier"].sum()),
            "plain": asdict(digits.plain),
            "trimmed": asdict(digits.trimmed),
        },
        "judges": {
            "source": judges.data.source,
            "contamination": float(judges.model.contamination_),
            "threshold": float(judges.model.threshold_),
            "outlying": list(judges.outlying),
        },
    }
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return path


def _write_weights(path: Path, digits: DigitsResult, judges: JudgesResult) -> Path:
    """One line per example, worst first: name (of a digit its label), label suggested, weight, score and kind."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "row", "name", "suggestion", "weight", "score", "kind"])
        for row in digits.table:
            about = row["given"], row["suggested"], row["weight"], row["score"], row["kind"]
            writer.writerow(["digits", row["row"], *about])
        for row in judges.table:
            about = judges.data.names[row["row"]], "", row["weight"], row["score"], row["kind"]
            writer.writerow(["judges", row["row"], *about])
    return path
