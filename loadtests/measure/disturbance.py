"""What else the machine does during a measurement: other programs, stolen time, clock rate."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import psutil

from loadtests.measure.resources import TICKS, stat

BUSY = 0.10
"""The share of the machine that others may use; beyond it times and rates are theirs, too."""
STOLEN = 0.02
"""Likewise of what the hypervisor gives to other machines."""
_PR_SET_CHILD_SUBREAPER = 36


class Reading(NamedTuple):
    """Seconds since boot or start: of all programs, of the lab with what it has started, stolen.

    Interrupts belong to nobody: those of the load are many.
    """

    at: float
    programs: float
    lab: float
    stolen: float
    mhz: float


@dataclass(frozen=True)
class Disturbance:
    """Shares of the machine that others took, and the clock rate before and afterwards, in MHz.

    The rate is 0 where the kernel does not tell.
    """

    others: float
    stolen: float
    mhz: tuple[float, float]

    @property
    def disturbs(self) -> bool:
        """Whether that is too much for a comparison."""
        return self.others > BUSY or self.stolen > STOLEN

    def record(self) -> dict[str, Any]:
        return asdict(self)


def adopt() -> None:
    """Makes this process the parent of those below it whose own parent ends: it gets their time."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _adopted_seconds() -> float:
    """The time of processes below this one that have ended and whose exit code nobody has read."""
    ended = (stat(name) for name in filter(str.isdigit, os.listdir("/proc")))
    own = (one for one in ended if one and one[0] == "Z" and int(one[1]) == os.getpid())
    return sum(int(one[place]) for one in own for place in (11, 12, 13, 14)) / TICKS


def read() -> Reading:
    """Reads them. Processes that have not ended count as programs of others."""
    now, own = psutil.cpu_times(), resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    frequency = psutil.cpu_freq()
    return Reading(
        time.monotonic(),
        now.user + now.nice + now.system,
        own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime + _adopted_seconds(),
        now.steal,
        round(frequency.current, 1) if frequency else 0.0,
    )


def since(before: Reading, besides: float = 0.0) -> Disturbance:
    """What others took since a reading; `besides` is the time of servers that still run."""
    after = read()
    machine = max(after.at - before.at, 1e-3) * (os.cpu_count() or 1)
    others = after.programs - before.programs - (after.lab - before.lab) - besides
    stolen = after.stolen - before.stolen
    return Disturbance(
        round(max(others / machine, 0.0), 4),
        round(max(stolen / machine, 0.0), 4),
        (before.mhz, after.mhz),
    )


def programs() -> dict[tuple[int, str], float]:
    """CPU seconds of each program that runs, by process and name."""
    found = psutil.process_iter(["pid", "name", "cpu_times"])
    return {
        (one.info["pid"], one.info["name"]): sum(one.info["cpu_times"][:2])
        for one in found
        if one.info["cpu_times"]
    }


def busiest(before: Mapping[tuple[int, str], float], lab: Iterable[int], most: int = 3) -> str:
    """A sentence on the other programs that have used most since; empty if none stands out."""
    own = {os.getpid(), *lab}
    used = {
        which: seconds - before.get(which, 0.0)
        for which, seconds in programs().items()
        if which[0] not in own
    }
    first = sorted(used.items(), key=lambda one: -one[1])[:most]
    words = [f"{name} (PID {pid}, {took:.0f} s)" for (pid, name), took in first if took > 1]
    return f"Most CPU time was used by {', '.join(words)}." if words else ""


def warning(records: Iterable[Mapping[str, Any]]) -> str:
    """A sentence on the machine while these were measured; empty if it was quiet, or not known."""
    found = [Disturbance(**one["machine"]) for one in records if "machine" in one]
    if 2 * sum(one.disturbs for one in found) <= len(found):
        return ""
    words = told(found)
    return f"{words[0].upper()}{words[1:]}, so these figures are not the server's alone. "


def told(found: Iterable[Disturbance]) -> str:
    """The share that others took in the median, in words, with what was stolen."""
    known = list(found)
    others = statistics.median(one.others for one in known)
    stolen = statistics.median(one.stolen for one in known)
    words = f"other programs used {others * 100:.0f} % of the machine"
    return words + (f", the hypervisor took {stolen * 100:.0f} %" if stolen > STOLEN else "")
