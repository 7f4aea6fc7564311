"""Processes as /proc has them: alive or not, children, open files."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.testkit.server import Server, wait_for


def children(pid: int) -> list[int]:
    """The processes below `pid`, but for those that other threads than its main one have started.

    psutil reads all processes for that: 4 ms with 200 of them, instead of 0.02 ms.
    """
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def resident(pid: int) -> int:
    """Bytes of its memory that are in RAM, without those of files."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) << 10


def workers(pid: int) -> list[int]:
    """The processes below `pid` but for the one that answers at `admin`."""
    return [child for child in children(pid) if not answers_at_admin(child)]


def opened(pid: int) -> list[str]:
    """What a process has open, as the kernel names it; psutil knows existing files only."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # It may be closed while we look.
        with suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return found


def answers_at_admin(pid: int) -> bool:
    """Whether a process is the one that answers at `admin`: it shares memory with the main one."""
    with suppress(OSError):
        return any("memfd:poorhttp-admin" in link for link in opened(pid))
    return False


def descriptors(*pids: int) -> int:
    """How many descriptors the processes have open."""
    return sum(psutil.Process(pid).num_fds() for pid in pids)


def files_of_workers(server: Server) -> list[str]:
    """The paths of what the workers of a server have open; of an unlinked file, `... (deleted)`."""
    return [name for pid in children(server.process.pid) for name in opened(pid)]


def lives(pid: int) -> bool:
    """Whether there is such a process that has not ended, waited for or not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def is_stopped(pid: int) -> bool:
    """Whether a signal holds up every thread of a process; psutil tells of its first one only."""
    states = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end before the signal arrives.
        with suppress(OSError):
            states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states == {"T"}


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process by SIGSTOP, and continue it behind: what is done within happens at once."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: is_stopped(pid), f"process {pid} is stopped")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """Let this process and what it starts have `most` of `resource.RLIMIT_...`, if they may."""
    before = resource.getrlimit(kind)
    hard = before[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def fdinfo(pid: int) -> str:
    """What the kernel says about everything that a process has open."""
    texts = []
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        # It may be closed while we look.
        with suppress(FileNotFoundError, ProcessLookupError):
            texts.append(file.read_text())
    return "".join(texts)


def watches(pid: int) -> int:
    """How many folders a process watches by inotify."""
    return sum(line.startswith("inotify wd:") for line in fdinfo(pid).splitlines())


def wait_for_end(pid: int) -> None:
    """Wait until there is no such process, not even one that nobody has waited for."""
    wait_for(lambda: not psutil.pid_exists(pid), f"the end of process {pid}")
