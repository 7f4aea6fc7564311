"""CPU time and memory of all processes of a server, read from the kernel."""

from __future__ import annotations

import os
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

from loadtests.errors import ServerFailure
from loadtests.measure.repeatedly import Repeatedly

LISTENING = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""

TICKS: int = os.sysconf("SC_CLK_TCK")
"""Parts of a second in which /proc/PID/stat counts CPU time."""

T = TypeVar("T")


class Living(NamedTuple):
    """A process of the machine, its parent and its session."""

    process: int
    parent: int
    session: int


def stat(process: int | str) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if it has ended."""
    with suppress(OSError), open(f"/proc/{process}/stat", "rb", 0) as it:
        # The command stands in parentheses and may hold anything, parentheses included.
        return it.read().rpartition(b")")[2].decode("ascii").split()
    return []


def living() -> Iterator[Living]:
    """All processes of the machine that have not ended."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        if (fields := stat(name)) and fields[0] not in "ZX":
            yield Living(int(name), int(fields[1]), int(fields[3]))


def session_processes(session: int) -> list[int]:
    """The processes of a session, so also those whose parent has gone. Zombies are left out."""
    return sorted(found.process for found in living() if found.session == session)


def cpu_seconds(processes: Iterable[int]) -> float:
    """User and system time of all threads of these processes (clock_getcpuclockid(3)).

    Exactly what /proc/PID/stat rounds to ticks of 10 ms, threads that have ended included. Raises
    ServerFailure if a process has ended, because its time would be missing.
    """
    try:
        return sum(time.clock_gettime((~process << 3) | 2) for process in processes)
    except OSError:
        raise ServerFailure("one of its processes ended while it was measured") from None


def reaped_seconds(processes: Iterable[int]) -> float:
    """User and system time of those that these processes have seen end, to 10 ms for each.

    One that has ended itself counts for nothing.
    """
    return ticked(processes, 13, 14)


def ticked(processes: Iterable[int], *places: int) -> float:
    """Seconds that these fields of /proc/PID/stat have together, of all that have not ended."""
    found = [fields for process in processes if (fields := stat(process))]
    return sum(int(fields[place]) for fields in found for place in places) / TICKS


def ended_seconds() -> float:
    """User and system time of all processes that the lab has started and seen end.

    With what they have started and seen end themselves. Differences of it are exact, unlike the
    times of ended children in /proc/PID/stat, which are cut to ticks for each process.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Memory(NamedTuple):
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
    return {name: int(size) * 1024 for name, size in re.findall(r"(\w+): +(\d+) kB", text)}


def memory(processes: Iterable[int]) -> Memory:
    """The memory of these processes together, without those that have ended in the meantime.

    Raises ServerFailure if none is left, or one cannot be read.
    """
    found = _of_those_left(processes, smaps_rollup, "its memory cannot be read")
    whole = sum(map(Counter, found), Counter())
    private = whole["Private_Clean"] + whole["Private_Dirty"]
    return Memory(whole["Pss"], private, whole["Rss"], len(found))


def smaps_rollup(process: int) -> dict[str, int]:
    """The memory of a process, in bytes. Raises OSError if it has ended or cannot be read."""
    return parse_smaps_rollup(Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8"))


def _of_those_left(processes: Iterable[int], read: Callable[[int], T], failure: str) -> list[T]:
    """Results of `read` for each process that has not ended in the meantime.

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


class Watch(Repeatedly[Memory]):
    """Looks at the memory of these processes until the block ends."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        super().__init__(lambda: memory(processes()), 0.1)

    @property
    def highest(self) -> Memory:
        """The highest values that it has seen."""
        return Memory(*map(max, zip(*self.looks, strict=True)))


def descriptors(processes: Iterable[int]) -> int:
    """Open files of these processes together, without those that have ended in the meantime.

    Raises ServerFailure if none is left, or one cannot be read.
    """
    return _entries(processes, "fd", "its files cannot be counted")


def threads(processes: Iterable[int]) -> int:
    """The same of their threads."""
    return _entries(processes, "task", "its threads cannot be counted")


def _entries(processes: Iterable[int], folder: str, failure: str) -> int:
    lists = _of_those_left(processes, lambda one: os.listdir(f"/proc/{one}/{folder}"), failure)
    return sum(map(len, lists))


def socket_memory() -> int:
    """Bytes that the kernel holds for all TCP sockets of the machine: no process is charged."""
    text = Path("/proc/net/sockstat").read_text(encoding="ascii")
    [pages] = re.findall(r"^TCP: .* mem (\d+)", text, re.MULTILINE)
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def machine_busy_seconds() -> float:
    """Seconds that all cores together were busy since boot, stolen ones included."""
    now = psutil.cpu_times()
    busy: float = now.user + now.nice + now.system + now.irq + now.softirq + now.steal
    return busy
