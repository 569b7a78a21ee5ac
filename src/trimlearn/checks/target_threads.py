"""How many threads the models of a target use."""

from __future__ import annotations

import os

__all__ = ["threads_for"]

TOGETHER = 500_000  # entries, times classes: two cores take 0.75 of the time of one from here on, 0.9 at 60,000
BUSY = 0.5  # of the cores: where others use more, threads wait for a core (some five times as long, on two)


def threads_for(work: int) -> int | None:
    """How many boosting may use; None: as many as it likes.

    Its threads meet after every split, and spin until the last one has come. Where that is soon they gain nothing, and
    on a busy machine they wait for each other much longer than the work takes.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return 1 if work < TOGETHER or load > BUSY * (os.cpu_count() or 1) else None
