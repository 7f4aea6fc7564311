"""Resources of a server: memory, descriptors, threads, temporary files and connections."""

from __future__ import annotations

import math
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
#: What may not be more than at the first quiet moment.
SAME = "processes", "descriptors", "threads", "temporary"
#: What a process begins when it is first needed, in a short soak perhaps after the first quiet
#: moment: descriptors.
LATE = 6
#: The share of a growth that comes in its second half: of a leak half, of a warm-up little.
GOES_ON = 0.25
#: Threads of the core that end when they have had nothing to do for some seconds.
PASSING = (
    *("poorhttp-bodies", "poorhttp-log", "poorhttp-pieces", "poorhttp-tidy"),
    "poorhttp-stream",  # all that Linux keeps of poorhttp-streams
)


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


def growth(
    readings: Sequence[Reading], *, settled: bool = True, calm: Sequence[float] = (0,)
) -> list[str]:
    """Sentences about resources that have grown; none if all is well.

    At quiet moments no client has a connection, and every process has given the memory that nobody
    holds back to the kernel (`tidies` in `loadtests/apps/mixed.py`). Then no number may be above
    that of the first such moment after the last time of `calm`, and the anonymous memory of
    processes that lived since one of the times of `calm` may have grown by QUIET: the main process,
    and the workers that are spared. Between quiet moments after the last of these times load is
    stationary: the median memory in the last quarter of the readings may be above that of the
    second by LOADED, that of all descriptors by 10 % and 5.

    What is added in a warm-up, less and less, is no leak: so memory may grow by more if less than
    GOES_ON of that comes in the second half.

    `settled` tells that the run was long enough to speak of memory and threads: in the first minute
    each thread still meets the largest body of its life.
    """
    quiet = [reading for reading in readings if reading.quiet]
    if len(quiet) < 2:
        return ["there were not two quiet moments to compare"]
    first, *others = [reading for reading in quiet if reading.at >= calm[-1]]
    # With `threads = auto` their number changes.
    more: dict[str, float] = {"threads": 2 * first.processes}
    if not settled:
        more = {"threads": math.inf, "descriptors": LATE * first.processes}
    found = [
        f"{name}: {before} at first, {after} after {reading.at:.0f} s, quiet"
        for reading in others
        for name in SAME
        if (before := getattr(first, name)) + more.get(name, 0) < (after := getattr(reading, name))
    ]
    for since in calm if settled else ():
        found += _grown([one for one in readings if one.at >= since], loaded=since == calm[-1])
    return found


def _grown(readings: Sequence[Reading], *, loaded: bool) -> list[str]:
    """What is said of memory in these readings, and of what is used under load."""
    quiet = [reading for reading in readings if reading.quiet]
    if len(quiet) < 2:
        return ["there were not two quiet moments to compare"]
    lasting = lasting_processes(quiet)
    if not lasting:
        return ["no process lived all the time"]
    first, *others = quiet
    found = [
        f"descriptors of process {one}: from {first.each[one][1]} to {others[-1].each[one][1]}"
        for one in lasting
        if first.each[one][1] < others[-1].each[one][1]
    ]

    def memory(reading: Reading) -> float:
        return sum(reading.each[one][0] for one in lasting if one in reading.each) / 2**20

    def descriptors(reading: Reading) -> float:
        return reading.descriptors

    under = [r for r in readings if not r.quiet and first.at <= r.at <= others[-1].at]
    loads = [under[len(under) * part // 4 : len(under) * (part + 1) // 4] for part in (1, 2, 3)]
    third = max(1, len(quiet) // 3)
    rests = [quiet[:third], quiet[third:-third], quiet[-third:]]
    for what, unit, number, parts, (ratio, slack) in (
        ("memory when quiet", " MiB", memory, rests, QUIET),
        ("memory under load", " MiB", memory, loads, LOADED),
        ("descriptors under load", "", descriptors, loads, (1.10, 5.0)),
    )[: 3 if loaded else 1]:
        before, between, after = (
            statistics.median(map(number, part)) if part else None for part in parts
        )
        if before is None or after is None or after <= before * ratio + slack:
            continue
        if between is None or after - between >= GOES_ON * (after - before):
            found.append(f"{what}: from {before:,.1f} to {after:,.1f}{unit}")
    return found


def lasting_processes(quiet: Sequence[Reading]) -> set[str]:
    """The processes that lived at all of these moments."""
    return set.intersection(*[set(reading.each) for reading in quiet])
