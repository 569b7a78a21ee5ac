"""`python -m benchmarks.calibration NAME`: run a calibration, print its summary, and write its table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from benchmarks.calibration import names, save

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the calibrations named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("name", nargs="+", choices=names(), metavar="NAME", help=f"of: {', '.join(names())}")
    for name in parser.parse_args(arguments).name:
        result = import_module(f"benchmarks.calibration.{name}").run()
        for row in result.get("summary", []):
            print(
                "  ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
                )
            )
        print("wrote", save(name, result).name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
