"""CPU time and memory of all processes of a server, read from the kernel."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from loadtests.errors import ServerFailure
from loadtests.measure.repeatedly import Repeatedly

LISTENING = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""

T = TypeVar("T")


class Living(NamedTuple):
    """A process of the machine, its parent and its session."""

    process: int
    parent: int
    session: int


def living() -> Iterator[Living]:
    """All processes of the machine that have not ended."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # The command stands in parentheses and may hold anything, parentheses included.
                state, parent, _, session, *_ = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if state not in "ZX":
            yield Living(int(name), int(parent), int(session))


def session_processes(session: int) -> list[int]:
    """The processes of a session, so also those whose parent has gone. Zombies are left out."""
    return sorted(found.process for found in living() if found.session == session)


def cpu_seconds(processes: Iterable[int]) -> float:
    """User and system time of all threads of these processes, in nanosecond resolution.

    The processes' own CPU clocks (clock_getcpuclockid(3)) count exactly what /proc/PID/stat rounds
    to ticks of 10 ms, threads that have ended included.
    Raises ServerFailure if a process has ended, because its time would be missing.
    """
    total = 0.0
    for process in processes:
        try:
            total += time.clock_gettime((~process << 3) | 2)
        except OSError:
            raise ServerFailure("one of its processes ended while it was measured") from None
    return total


def reaped_seconds(processes: Iterable[int]) -> float:
    """User and system time of those that these processes have seen end, to 10 ms for each.

    One that has ended itself counts for nothing.
    """
    ticks = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[13]) + int(fields[14])
    return ticks / os.sysconf("SC_CLK_TCK")


def ended_seconds() -> float:
    """User and system time of all processes that the lab has started and seen end.

    With what they have started and seen end themselves. Differences of it are exact, unlike the
    times of ended children in /proc/PID/stat, which are cut to ticks for each process.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Memory:
    """Bytes over all processes of a server.

    `pss` divides a shared page among those who map it, other Pythons of the machine included;
    `uss` counts only pages that nobody shares; `rss` counts a shared page once per process.
    """

    pss: int
    uss: int
    rss: int
    processes: int


def parse_smaps_rollup(text: str) -> dict[str, int]:
    """The fields of /proc/PID/smaps_rollup, in bytes."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            fields[name] = int(value[:-3]) * 1024
    return fields


def memory(processes: Iterable[int]) -> Memory:
    """The memory of these processes together, without those that have ended in the meantime.

    Raises ServerFailure if none is left, or one cannot be read.
    """
    pss = uss = rss = 0
    found = _of_those_left(processes, _smaps_rollup, "its memory cannot be read")
    for fields in found:
        pss += fields["Pss"]
        uss += fields["Private_Clean"] + fields["Private_Dirty"]
        rss += fields["Rss"]
    return Memory(pss, uss, rss, len(found))


def _smaps_rollup(process: int) -> dict[str, int]:
    with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
        return parse_smaps_rollup(file.read())


def _of_those_left(processes: Iterable[int], read: Callable[[int], T], failure: str) -> list[T]:
    """What is read of each process that has not ended in the meantime.

    Raises ServerFailure if none is left, or one cannot be read.
    """
    found = []
    for process in processes:
        try:
            found.append(read(process))
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError as error:
            raise ServerFailure(f"{failure}: {error.strerror}") from None
    if not found:
        raise ServerFailure(f"{failure}: all its processes have ended")
    return found


class Watch(Repeatedly):
    """Looks at the memory of these processes until the block ends, and keeps the highest values."""

    SECONDS = 0.1

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        super().__init__(self._look, self.SECONDS)
        self.highest = Memory(0, 0, 0, 0)
        self._processes = processes

    def _look(self) -> None:
        now, highest = memory(self._processes()), self.highest
        self.highest = Memory(
            max(now.pss, highest.pss),
            max(now.uss, highest.uss),
            max(now.rss, highest.rss),
            max(now.processes, highest.processes),
        )


def descriptors(processes: Iterable[int]) -> int:
    """Open files of these processes together, without those that have ended in the meantime.

    Raises ServerFailure if none is left, or one cannot be read.
    """
    return sum(
        _of_those_left(
            processes,
            lambda process: len(os.listdir(f"/proc/{process}/fd")),
            "its files cannot be counted",
        )
    )


def socket_memory() -> int:
    """Bytes that the kernel holds for all TCP sockets of the machine: no process is charged."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "TCP:":
                return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def machine_busy_seconds() -> float:
    """Seconds that all cores together were busy since boot, stolen ones included."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, file.readline().split()[1:9]
        )
    ticks: int = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / ticks
