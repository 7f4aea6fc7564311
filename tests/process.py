"""Processes as the kernel has them: whether one lives, what is below it, what it has open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.server import wait_for


def children(pid: int) -> list[int]:
    """The processes below `pid`."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def descriptors(*pids: int) -> int:
    """How many descriptors the processes have open."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)


def lives(pid: int) -> bool:
    """Whether there is such a process that has not ended, waited for or not."""
    fields = _stat(pid)
    return bool(fields) and fields[0] != "Z"


def of_group(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    return _living(lambda fields: int(fields[2]) == group)


def of_session(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    return _living(lambda fields: int(fields[3]) == session)


def wait_for_end(pid: int) -> None:
    """Wait until there is no such process, not even one that nobody has waited for.

    But when the machine's process 1 waits for orphans is none of our business.
    """

    def is_over() -> bool:
        fields = _stat(pid)
        return not fields or (fields[0] == "Z" and fields[1] == "1")

    wait_for(is_over, f"the end of process {pid}")


def _living(wanted: Callable[[list[str]], bool]) -> list[int]:
    found = {int(name): _stat(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    return [pid for pid, fields in found.items() if fields and fields[0] != "Z" and wanted(fields)]


def _stat(pid: int) -> list[str]:
    """State, parent, group, session and so on (proc(5)); nothing if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return stat.rpartition(")")[2].split()
