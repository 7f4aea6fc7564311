"""Processor time of workers and of the machine, and the memory that workers may use (proc(5))."""

from __future__ import annotations

import os
from contextlib import suppress

#: Ticks of a second in /proc.
TICKS = os.sysconf("SC_CLK_TCK")

#: The share of the memory that workers may have.
SHARE = 0.75

CGROUPS = "/sys/fs/cgroup"


def used_by(pid: int) -> float:
    """Return the seconds of processor time of a process; 0: it has ended."""
    with suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        # The name, in parentheses, may contain anything.
        user, system = file.read().rpartition(b")")[2].split()[11:13]
        return (int(user) + int(system)) / TICKS
    return 0.0


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
    """Return the bytes that workers may have: a share of the cgroup's limit, or of the machine."""
    limits = [_of_meminfo(b"MemTotal:")]
    with suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:
        groups = [line.strip()[3:] for line in file if line.startswith("0::/")]
        folder = f"{CGROUPS}{groups[0]}".rstrip("/") if groups else ""
        while folder.startswith(CGROUPS):
            # Without a limit it is `max`, and the topmost has no such file.
            with suppress(OSError, ValueError), open(f"{folder}/memory.max", "rb") as limit:
                limits.append(int(limit.read()))
            folder = os.path.dirname(folder)
    return int(min(limits) * SHARE)


def memory_available() -> int:
    """Return the bytes that the machine can give to programs."""
    return _of_meminfo(b"MemAvailable:")


def _of_meminfo(name: bytes) -> int:
    with open("/proc/meminfo", "rb") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))
