"""Memory of a server's processes: as `ps` counts it, and with shared pages divided (PSS)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loadtests import programs
from loadtests.errors import LabError, ServerFailure
from loadtests.measure import resources
from loadtests.servers.running import Running

ATTEMPTS = 5
PS_SECONDS = 10.0


class Sizes(NamedTuple):
    """A process as `ps` shows it, in bytes.

    `size` is what would have to be written to swap if all writable memory had been used, `vsize`
    the whole address space.
    """

    size: int
    vsize: int


@dataclass(frozen=True)
class Usage:
    """Bytes. `size` and `vsize` are of the largest process, all else is of all processes together.

    `shared` are pages that more than one process maps, counted once for each.
    """

    size: int
    vsize: int
    sizes: int
    vsizes: int
    pss: int
    uss: int
    rss: int
    shared: int
    processes: int
    threads: int


def parse_ps(text: str) -> dict[int, Sizes]:
    """The processes in what `ps axo pid,size,vsize` says.

    Raises LabError if that is something else.
    """
    head, *lines = text.splitlines() or [""]
    if head.split() != ["PID", "SIZE", "VSZ"]:
        raise LabError(f"ps has other columns than pid, size and vsize: {head.strip()!r}")
    found = {}
    for line in lines:
        try:
            process, size, vsize = map(int, line.split())
        except ValueError:
            raise LabError(f"ps says a line that is not three numbers: {line.strip()!r}") from None
        found[process] = Sizes(size * 1024, vsize * 1024)
    return found


def ps() -> dict[int, Sizes]:
    """All processes of the machine. Raises LabError if `ps` of procps does not run."""
    try:
        done = subprocess.run(
            [programs.path("ps"), "axo", "pid,size,vsize"],
            capture_output=True,
            text=True,
            check=True,
            timeout=PS_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"ps failed: {error}") from None
    return parse_ps(done.stdout)


def total(processes: Sequence[int], sizes: Mapping[int, Sizes]) -> Usage:
    """These processes together. Raises ServerFailure if one of them has ended."""
    if gone := [process for process in processes if process not in sizes]:
        raise ServerFailure(f"{len(gone)} of its processes ended while they were measured")
    own = [sizes[process] for process in processes]
    used = resources.memory(processes)
    try:
        threads = sum(len(os.listdir(f"/proc/{process}/task")) for process in processes)
    except OSError as error:
        raise ServerFailure(f"its threads cannot be counted: {error.strerror}") from None
    return Usage(
        size=max(one.size for one in own),
        vsize=max(one.vsize for one in own),
        sizes=sum(one.size for one in own),
        vsizes=sum(one.vsize for one in own),
        pss=used.pss,
        uss=used.uss,
        rss=used.rss,
        shared=used.rss - used.uss,
        processes=used.processes,
        threads=threads,
    )


def look(running: Running) -> Usage:
    """What a server takes now; once more if a process of it ends meanwhile.

    Raises ServerFailure if it has died, or if its processes end again and again.
    """
    attempt = 1
    while True:
        try:
            return total(running.processes(), ps())
        except ServerFailure:
            if attempt == ATTEMPTS:
                raise
            attempt += 1
