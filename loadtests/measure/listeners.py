"""Processes that listen at a port: found from the port, pinned to a core, watched, not ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from loadtests.errors import ServerFailure
from loadtests.measure.resources import LISTENING, living

if TYPE_CHECKING:
    from typing_extensions import Self


def listening(port: int) -> list[int]:
    """The processes that have a listening TCP socket of this port; only root sees all of them."""
    return _holders({inode for inode, at in _sockets().items() if at == port})


def ports(processes: Iterable[int]) -> list[int]:
    """The TCP ports at which these processes listen."""
    known = _sockets()
    return sorted({known[one] for process in processes for one in _held(process) if one in known})


def _sockets() -> dict[str, int]:
    """The port of each listening socket of this network, by the inode."""
    found = {}
    for file in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{file}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING:
                    found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _held(process: int) -> Iterator[str]:
    """The inodes of the sockets that a process has open."""
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                name = os.readlink(file)
                if name.startswith("socket:["):
                    yield name[8:-1]


def _holders(inodes: set[str]) -> list[int]:
    # psutil tells one process of a socket that several share.
    return sorted(
        one.process for one in living() if inodes and not inodes.isdisjoint(_held(one.process))
    )


class Listeners:
    """The processes that listen at a port and those below them, as a context manager.

    While it is open they run on one core (None: as they do); somebody else starts and ends them.
    """

    def __init__(self, port: int, core: int | None) -> None:
        self._port, self._core = port, core
        self._roots: list[int] = []
        self._cores: dict[int, set[int]] = {}

    def __enter__(self) -> Self:
        self._roots = listening(self._port)
        if not self._roots:
            raise ServerFailure(
                f"no process that this user may look at listens at port {self._port}"
            )
        if self._core is not None:
            for thread in self._threads():
                with contextlib.suppress(OSError):
                    self._cores[thread] = os.sched_getaffinity(thread)
                    os.sched_setaffinity(thread, {self._core})
        return self

    @property
    def main(self) -> int:
        """The process that began first."""
        return self._roots[0]

    def code(self) -> int | None:
        """None: the exit code of a process of somebody else is not known."""
        return None

    def processes(self) -> list[int]:
        """Those that have not ended."""
        alive = list(living())
        found = {one.process for one in alive if one.process in self._roots}
        while below := {one.process for one in alive if one.parent in found} - found:
            found |= below
        return sorted(found)

    def _threads(self) -> Iterator[int]:
        for process in self.processes():
            with contextlib.suppress(OSError):
                yield from map(int, os.listdir(Path(f"/proc/{process}/task")))

    def stop(self, seconds: float = 0) -> None:
        """Lets them run on the cores on which they ran before."""
        usual = next(iter(self._cores.values()), set())
        for thread in self._threads() if usual else ():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, self._cores.get(thread, usual))
        self._cores.clear()
