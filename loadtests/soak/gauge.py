"""Resources of a server: memory, descriptors, threads, temporary files and connections."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.measure.resources import LISTENING, session_processes, smaps_rollup

#: What memory may grow by when all is quiet, as a factor and in MiB: free memory that lies between
#: what is in use stays.
QUIET = (1.05, 2.0)
#: And under load, where the bodies that are in flight just then are a part of it.
LOADED = (1.10, 4.0)
#: Threads of the core that end when they have had nothing to write for some seconds.
PASSING = ("poorhttp-bodies", "poorhttp-log", "poorhttp-pieces", "poorhttp-tidy")


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
    processes: int = 0
    each: dict[str, tuple[int, int]] = field(default_factory=dict)


def connections(port: int) -> int:
    """TCP connections to a port of 127.0.0.1 that a process still holds open on this side."""
    _, *lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
    here = f"0100007F:{port:04X}"
    of_each = [(fields[1], fields[3], fields[9]) for fields in map(str.split, lines)]
    return sum(at == here and state != LISTENING and i != "0" for at, state, i in of_each)


def read(session: int, port: int, at: float, *, quiet: bool = False) -> Reading:
    """Look at the processes of a session. One that ends meanwhile is left out."""
    reading = Reading(at, quiet, connections=connections(port))
    for process in session_processes(session):
        folder = Path(f"/proc/{process}")
        try:
            memory = smaps_rollup(process)
            links = _each(folder / "fd", os.readlink)
            threads = _each(folder / "task", lambda task: (task / "comm").read_text().strip())
        except OSError:
            continue
        reading.pss += memory["Pss"]
        reading.uss += memory["Private_Clean"] + memory["Private_Dirty"]
        reading.rss += memory["Rss"]
        reading.anonymous += memory["Anonymous"]
        reading.descriptors += len(links)
        reading.temporary += sum(
            link.endswith(" (deleted)") and not link.startswith("/memfd:")
            for name, link in links.items()
            # What it was started with is not its own.
            if int(name) > 2
        )
        reading.threads += sum(name not in PASSING for name in threads.values())
        reading.processes += 1
        reading.each[str(process)] = (memory["Anonymous"], len(links))
    return reading


def _each(folder: Path, read: Callable[[Path], str]) -> dict[str, str]:
    """What is read of each entry of a folder, without those that vanish meanwhile."""
    found = {}
    for entry in folder.iterdir():
        with suppress(OSError):
            found[entry.name] = read(entry)
    return found


def growth(readings: Sequence[Reading], *, settled: bool = True) -> list[str]:
    """Sentences about resources that have grown; none if all is well.

    At quiet moments no client has a connection, and every process has given the memory that nobody
    holds back to the kernel (`tidies` in `loadtests/apps/mixed.py`). Then all numbers must be those
    of the first such moment, which comes after the warm-up, and the anonymous memory of processes
    that lived all the time may have grown by QUIET: in mode forking these are the supervisor and
    the worker that is spared. Between quiet moments load is stationary: the median memory in the
    last quarter of the readings may be above that of the second by LOADED, that of all descriptors
    by 10 % and 5.

    `settled` tells that the run was long enough to speak of memory: in the first minute each thread
    still meets the largest body of its life.
    """
    quiet = [reading for reading in readings if reading.quiet]
    if len(quiet) < 2:
        return ["there were not two quiet moments to compare"]
    first, *others = quiet
    found = [
        f"{name}: {before} at first, {after} after {reading.at:.0f} s, quiet"
        for reading in others
        for name in ("processes", "descriptors", "threads", "temporary")
        if (before := getattr(first, name)) != (after := getattr(reading, name))
    ]
    if not settled:
        return found
    lasting = set.intersection(*[set(reading.each) for reading in quiet])
    if not lasting:
        return [*found, "no process lived all the time"]

    def memory(part: Sequence[Reading]) -> float:
        own = [[r.each[one][0] for one in lasting if one in r.each] for r in part]
        return statistics.median(map(sum, own)) / 2**20

    def descriptors(part: Sequence[Reading]) -> float:
        return statistics.median(reading.descriptors for reading in part)

    loaded = [r for r in readings if not r.quiet and first.at <= r.at <= others[-1].at]
    quarter = len(loaded) // 4
    second, last = loaded[quarter : 2 * quarter], loaded[len(loaded) - quarter :]
    for what, unit, median, before, after, (ratio, slack) in (
        ("memory when quiet", " MiB", memory, quiet[:1], quiet[-1:], QUIET),
        ("memory under load", " MiB", memory, second, last, LOADED),
        ("descriptors under load", "", descriptors, second, last, (1.10, 5.0)),
    ):
        if before and median(after) > median(before) * ratio + slack:
            found.append(f"{what}: from {median(before):,.1f} to {median(after):,.1f}{unit}")
    return found
