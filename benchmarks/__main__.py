"""`python -m benchmarks NAME`, NAME one of those below."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    battery,
    cores,
    dirty,
    floor,
    gpu,
    growth,
    large,
    peers,
    probability,
    rates,
    report,
    scale,
    small,
    torch,
    trust,
    walk,
)
from benchmarks.common import RESULTS, Result, digits, home, render, save

__all__ = ["main"]

Options = argparse.Namespace


def _floor(options: Options) -> Result:
    data = digits(options.data, options.quick)
    return floor.run(data, repetitions=2, passes=4) if options.quick else floor.run(data)


def _cores(options: Options) -> Result:
    data = digits(options.data, options.quick)
    return cores.run(data, repetitions=1) if options.quick else cores.run(data)


def _gpu(options: Options) -> Result:
    return gpu.run(digits(options.data, options.quick), gpu.QUICK if options.quick else gpu.FULL)


def _rates(options: Options) -> Result:
    data = digits(options.data, options.quick)
    return rates.run(data, rates.QUICK) if options.quick else rates.run(data)


def _growth(options: Options) -> Result:
    return growth.run(growth.QUICK) if options.quick else growth.run()


def _small(options: Options) -> Result:
    return small.run(repetitions=1) if options.quick else small.run()


def _peers(options: Options) -> Result:
    plan = peers.QUICK if options.quick else peers.FULL
    return peers.run(plan, options.data, options.parts or tuple(peers.PARTS))


def _large(options: Options) -> Result:
    return large.run(large.QUICK) if options.quick else large.run()


def _probability(options: Options) -> Result:
    return probability.run(probability.QUICK) if options.quick else probability.run()


def _battery(options: Options) -> Result:
    return battery.run(battery.QUICK) if options.quick else battery.run()


def _trust(options: Options) -> Result:
    plan = trust.QUICK if options.quick else trust.FULL
    return trust.run(plan, options.data, options.parts or tuple(trust.PARTS))


def _dirty(options: Options) -> Result:
    return dirty.run(dirty.QUICK if options.quick else dirty.FULL, home(options.data))


def _torch(options: Options) -> Result:
    plan = torch.QUICK if options.quick else torch.FULL
    return torch.run(plan, options.data, options.parts or tuple(torch.PARTS))


def _walk(options: Options) -> Result:
    return walk.run()


def _scale(options: Options) -> Result:
    return scale.run(scale.QUICK) if options.quick else scale.run()


BENCHMARKS: dict[str, Callable[[Options], Result]] = {
    "floor": _floor,
    "cores": _cores,
    "gpu": _gpu,
    "rates": _rates,
    "growth": _growth,
    "small": _small,
    "peers": _peers,
    "large": _large,
    "probability": _probability,
    "battery": _battery,
    "trust": _trust,
    "dirty": _dirty,
    "torch": _torch,
    "walk": _walk,
    "scale": _scale,
}
PARTS = {"peers": tuple(peers.PARTS), "trust": tuple(trust.PARTS), "torch": tuple(torch.PARTS)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark, print its tables and write its JSON; or write the report."""
    parser = _parser()
    options = parser.parse_args(arguments)
    known = PARTS.get(options.benchmark, ())
    if unknown := [part for part in options.parts or () if part not in known]:
        parser.error(f"--parts: {options.benchmark} has {', '.join(known) or 'no parts'}, not {', '.join(unknown)}")
    out = options.out or RESULTS
    if options.benchmark == "report":
        print(f"wrote {report.write(out).name}")
        return 0
    result = BENCHMARKS[options.benchmark](options)
    print(render(result.as_json()))
    partial = options.quick or options.parts
    if options.out is not None or not partial:  # a quick try must not replace what the report is made from
        print(f"\nwrote {save(result, out, merge=bool(options.parts)).name}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("benchmark", choices=[*BENCHMARKS, "report"], help="report: docs/performance.md from the JSON")
    parser.add_argument(
        "--data", type=Path, help="the folder with mnist/, tabular/ (default: $TRIMLEARN_DATA, ../shared/data)"
    )
    parser.add_argument(
        "--out", type=Path, help="where the JSON goes, --parts into the file there is (default: benchmarks/results)"
    )
    parts = "; ".join(f"of {name}: {', '.join(names)}" for name, names in PARTS.items())
    parser.add_argument("--parts", nargs="+", metavar="PART", help=f"these only; {parts}")
    parser.add_argument("--quick", action="store_true", help="small data, few repetitions: does it run, not how fast")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
