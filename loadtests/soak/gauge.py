"""Resources of a server: memory, descriptors, threads, temporary files and connections."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loadtests.measure.resources import LISTENING, session_processes, smaps_rollup

#: What memory may grow by when all is quiet: free memory that lies between what is in use stays.
QUIET = (1.05, 2 << 20)
#: And under load, where the bodies that are in hand just then are a part of it.
LOADED = (1.10, 4 << 20)


@dataclass
class Reading:
    """One look at all processes of a server, `at` seconds from the beginning.

    `anonymous` is memory that is not a file's; unlike PSS it does not change with the number of
    processes that share it. By process it stands in `each`, with the number of descriptors.
    """

    at: float
    quiet: bool
    pss: int = 0
    uss: int = 0
    rss: int = 0
    anonymous: int = 0
    descriptors: int = 0
    temporary: int = 0
    threads: int = 0
    connections: int = 0
    each: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len(self.each)

    def record(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)


def connections(port: int) -> int:
    """TCP connections to a port of 127.0.0.1 that a process still holds open on this side."""
    count = 0
    with open("/proc/net/tcp", encoding="ascii") as file:
        next(file)
        for line in file:
            fields = line.split()
            local, state, inode = fields[1], fields[3], fields[9]
            if local == f"0100007F:{port:04X}" and state != LISTENING and inode != "0":
                count += 1
    return count


def read(session: int, port: int, at: float, *, quiet: bool = False) -> Reading:
    """Look at the processes of a session. One that ends meanwhile is left out."""
    reading = Reading(at, quiet, connections=connections(port))
    for process in session_processes(session):
        try:
            memory = smaps_rollup(process)
            links = {name: _link(process, name) for name in os.listdir(f"/proc/{process}/fd")}
            threads = sum(not _is_passing(process, task) for task in _tasks(process))
        except OSError:
            continue
        held = {name: link for name, link in links.items() if link}
        reading.pss += memory["Pss"]
        reading.uss += memory["Private_Clean"] + memory["Private_Dirty"]
        reading.rss += memory["Rss"]
        reading.anonymous += memory["Anonymous"]
        reading.descriptors += len(held)
        reading.temporary += sum(
            link.endswith(" (deleted)") and not link.startswith("/memfd:")
            for name, link in held.items()
            # What it was started with is not its own.
            if int(name) > 2
        )
        reading.threads += threads
        reading.each[str(process)] = (memory["Anonymous"], len(held))
    return reading


#: Threads of the core that end when they have had nothing to write for some seconds.
PASSING = ("poorhttp-bodies", "poorhttp-log", "poorhttp-tidy")


def _tasks(process: int) -> list[str]:
    return os.listdir(f"/proc/{process}/task")


def _is_passing(process: int, task: str) -> bool:
    try:
        with open(f"/proc/{process}/task/{task}/comm", encoding="utf-8") as file:
            return file.read().strip() in PASSING
    except OSError:
        # It has ended.
        return True


def _link(process: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{process}/fd/{name}")
    except OSError:
        return ""


def growth(readings: Sequence[Reading], *, settled: bool = True) -> list[str]:
    """Sentences about resources that have grown; none if all is well.

    The rule. At quiet moments no client has a connection, and every process has given the memory
    that nobody holds back to the kernel (`tidies` in `loadtests/apps/mixed.py`). Then descriptors,
    threads, temporary files and processes must be exactly as many as at the first such moment,
    which comes after the warm-up, and the anonymous memory of the processes that lived all the time
    may at the last one have grown by 5 % and 2 MiB. Between quiet moments load is stationary: the
    median memory of those processes in the last quarter of the readings may be above that of the
    second by 10 % and 4 MiB, that of all descriptors by 10 % and 5. In mode forking the processes
    that live all the time are the supervisor and the worker that is spared by whoever kills the
    others.

    `settled` tells that the run was long enough to speak of memory: in the first minute each thread
    still meets the largest body of its life.
    """
    found = []
    quiet = [reading for reading in readings if reading.quiet]
    if len(quiet) < 2:
        return ["there were not two quiet moments to compare"]
    first, *others = quiet
    for reading in others:
        for name in ("processes", "descriptors", "threads", "temporary"):
            before, after = getattr(first, name), getattr(reading, name)
            if before != after:
                found.append(f"{name}: {before} at first, {after} after {reading.at:.0f} s, quiet")
    if not settled:
        return found
    lasting = set.intersection(*[set(reading.each) for reading in quiet])
    if not lasting:
        return [*found, "no process lived all the time"]

    def memory(reading: Reading) -> float:
        return sum(reading.each[process][0] for process in lasting if process in reading.each)

    def compare(
        what: str,
        before: float,
        after: float,
        allowed: tuple[float, float],
        scale: float,
        unit: str,
    ) -> None:
        ratio, slack = allowed
        if after > before * ratio + slack:
            found.append(f"{what}: from {before / scale:,.1f} to {after / scale:,.1f}{unit}")

    compare("memory when quiet", memory(first), memory(others[-1]), QUIET, 2**20, " MiB")
    loaded = [r for r in readings if not r.quiet and first.at <= r.at <= others[-1].at]
    quarter = len(loaded) // 4
    if quarter:
        second, last = loaded[quarter : 2 * quarter], loaded[-quarter:]
        before, after = (statistics.median(map(memory, part)) for part in (second, last))
        compare("memory under load", before, after, LOADED, 2**20, " MiB")
        before, after = (statistics.median(r.descriptors for r in part) for part in (second, last))
        compare("descriptors under load", before, after, (1.10, 5), 1, "")
    return found
