"""Processes that are killed, as by kill -9 or for want of memory, when they say that they are ready for it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable

__all__ = ["kill_when_ready"]


def kill_when_ready(victims: Iterable[subprocess.Popen[str]]) -> None:
    """Wait until each of them prints "ready", and end it there and then."""
    for victim in victims:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        victim.send_signal(signal.SIGKILL)
        assert victim.wait() == -signal.SIGKILL
        victim.stdout.close()
