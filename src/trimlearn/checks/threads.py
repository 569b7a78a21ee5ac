"""How many threads the models of a target use."""

from __future__ import annotations

import os
from pathlib import Path

TOGETHER = 500_000  # entries, times classes: two cores take 0.75 of the time of one from here on, 0.9 at 60,000
BUSY = 0.5  # of the cores: where others use more, threads wait for a core (some five times as long, on two)


def threads_for(work: int) -> int | None:
    """How many boosting may use; None: as many as it likes.

    Its threads meet after every split, and spin until the last one has come. Where that is soon they gain nothing, and
    on a busy machine they wait for each other much longer than the work takes.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = min(load, running_now())  # those of the last minute may have ended
    return 1 if work < TOGETHER or busy > BUSY * (os.cpu_count() or 1) else None


def running_now() -> float:
    """How many threads beside this one have a core or wait for one; infinite where the system does not tell."""
    try:
        return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0]) - 1.0
    except (OSError, ValueError, IndexError):  # not Linux
        return float("inf")
