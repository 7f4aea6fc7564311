"""CPU affinity: the cores that a process runs on."""

from __future__ import annotations

import os
from pathlib import Path

USABLE = sorted(os.sched_getaffinity(0))
"""The cores that the lab was started with: later it keeps to the client's, as would children."""

CGROUPS = Path("/sys/fs/cgroup")


def usable_cpus(cgroups: Path = CGROUPS, cgroup: Path = Path("/proc/self/cgroup")) -> int:
    """How many CPUs the lab may keep busy: its affinity, and the quotas of its cgroups.

    A part of a CPU counts as a whole one. The quota is that of the process's cgroup and of each
    above it (cgroups(7)), in version 2 and in version 1.
    """
    count = len(os.sched_getaffinity(0))
    try:
        lines = cgroup.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        lines = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        version_2 = number == "0"
        if not version_2 and "cpu" not in controllers.split(","):
            continue
        top = cgroups if version_2 else cgroups / "cpu"
        below = top / path.lstrip("/")
        for folder in (below, *below.parents):
            if not folder.is_relative_to(top):
                break
            count = min(count, _quota(folder, version_2=version_2) or count)
    return max(count, 1)


def _quota(folder: Path, *, version_2: bool) -> int:
    """The CPUs that a cgroup allows, rounded up; 0 if it has no limit or does not exist."""
    names = ["cpu.max"] if version_2 else ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
    try:
        words = " ".join((folder / name).read_text(encoding="ascii") for name in names).split()
        quota, period = map(int, words)
    except (OSError, ValueError):
        return 0
    return -(-quota // period) if quota > 0 and period > 0 else 0


CPUS = usable_cpus()
"""How many of them the lab may keep busy: a quota of a cgroup may allow fewer."""


def cores() -> tuple[int, int]:
    """The server's core and the client's: the first and the last that the lab may use."""
    return USABLE[0], USABLE[-1]


def pinned(core: int | None) -> list[str]:
    """The beginning of a command that runs on one core, or on all for None."""
    return ["taskset", "-c", ",".join(map(str, USABLE)) if core is None else str(core)]
