"""Processes as the kernel has them: whether one lives, what is below it, what it has open."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.server import Server, wait_for


def children(pid: int) -> list[int]:
    """The processes below `pid`."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def workers(pid: int) -> list[int]:
    """The processes below `pid` but for the one that answers at `admin`."""
    return [child for child in children(pid) if not answers_at_admin(child)]


def answers_at_admin(pid: int) -> bool:
    """Whether a process is the one that answers at `admin`: it shares memory with the main one."""
    with suppress(OSError):
        links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]
        return any("memfd:poorhttp-admin" in link for link in links)
    return False


def descriptors(*pids: int) -> int:
    """How many descriptors the processes have open."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)


def files_of_workers(server: Server) -> list[str]:
    """The paths of what the workers of a server have open; of an unlinked file, `... (deleted)`."""
    found = []
    for pid in children(server.process.pid):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(os.readlink(link))
    return found


def lives(pid: int) -> bool:
    """Whether there is such a process that has not ended, waited for or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_for_end(pid: int) -> None:
    """Wait until there is no such process, not even one that nobody has waited for."""
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), f"the end of process {pid}")
