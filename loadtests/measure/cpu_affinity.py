"""CPU affinity: the cores that a process runs on."""

from __future__ import annotations

import os

from poorhttp.config.cpus import usable_cpus

USABLE = sorted(os.sched_getaffinity(0))
"""The cores that the lab was started with: later it keeps to the client's, as would children."""

CPUS = usable_cpus()
"""How many of them the lab may keep busy: a quota of a cgroup may allow fewer."""


def cores() -> tuple[int, int]:
    """The server's core and the client's: the first and the last that the lab may use."""
    return USABLE[0], USABLE[-1]


def pinned(core: int | None) -> list[str]:
    """The beginning of a command that runs on one core, or on all for None."""
    return ["taskset", "-c", ",".join(map(str, USABLE)) if core is None else str(core)]
