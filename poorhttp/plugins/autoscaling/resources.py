"""Processors of the machine, and the memory that workers may use (proc(5))."""

from __future__ import annotations

import os
from contextlib import suppress

from poorhttp.config.resources import memory_limits

#: Ticks of a second in /proc.
TICKS = os.sysconf("SC_CLK_TCK")

#: The share of the memory that workers may have.
SHARE = 0.75


def delay_of(pid: int) -> float:
    """Return the seconds for which the main thread of a process has waited for a processor.

    Infinite: the kernel does not tell.
    """
    with suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/schedstat", "rb") as file:
        return int(file.read().split()[1]) / 1e9
    return float("inf")


def idle_time() -> float:
    """Return the seconds for which processors that this process may use were idle, of all."""
    cpus, idle = {b"cpu%d" % number for number in os.sched_getaffinity(0)}, 0
    with open("/proc/stat", "rb") as file:
        for line in file:
            name, *ticks = line.split()
            if not name.startswith(b"cpu"):
                break
            if name in cpus:
                # Without work, and waiting for a disk.
                idle += int(ticks[3]) + int(ticks[4])
    return idle / TICKS


def memory_limit() -> int:
    """Return the bytes that workers may have: a share of the least limit, or of the machine."""
    limits = [limit for _, limit in memory_limits()]
    return int(min([_of_meminfo(b"MemTotal:"), *limits]) * SHARE)


def memory_available() -> int:
    """Return the bytes that the machine can give to programs."""
    return _of_meminfo(b"MemAvailable:")


def _of_meminfo(name: bytes) -> int:
    with open("/proc/meminfo", "rb") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))
