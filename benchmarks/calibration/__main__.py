"""`python -m benchmarks.calibration NAME ...`: run what measures a family of constants and store its table."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

if __name__ == "__main__":
    for name in sys.argv[1:]:
        table = import_module(f"benchmarks.calibration.{name}").run()
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
        print(json.dumps(table, indent=1, ensure_ascii=False))
