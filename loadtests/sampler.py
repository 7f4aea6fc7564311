"""Looks at what a server uses, again and again while it is loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

_TICKS: int = os.sysconf("SC_CLK_TCK")


def spent(processes: Iterable[int]) -> float:
    """Seconds of CPU time of these processes and of those they have started and seen end.

    Exact for those that live, and to a tick for the others; who ends meanwhile is counted with
    whoever waits for him.
    """
    return sum(_clock(process) + _ended(process) for process in processes)


def _clock(process: int) -> float:
    try:
        # clock_getcpuclockid(3)
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def _ended(process: int) -> float:
    fields = stat(process)
    return (int(fields[13]) + int(fields[14])) / _TICKS if fields else 0.0


def stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            # The command stands in parentheses and may hold anything, parentheses included.
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
