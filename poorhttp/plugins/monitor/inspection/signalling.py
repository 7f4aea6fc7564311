"""Signals workers to inspect themselves, and waits for their answers."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress

from poorhttp.plugins.monitor.inspection.worker.area import area
from poorhttp.plugins.monitor.inspection.worker.handler import ASK_SIGNAL
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds between two looks whether there is an answer.
POLL = 0.005


class Target:
    """A worker that is looked into.

    Attributes:
        pid: process ID.
        name: its number, from 1, and its service.
    """

    def __init__(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        self.pid = worker.pid
        self._index = worker.index
        self._service = pool.settings.service
        self._status = pool.scoreboard.status(worker.slot)
        self._handle = worker
        self.name = f"{worker.index + 1}" + (f" [{self._service}]" if self._service else "")

    def names(self) -> dict[str, Any]:
        """Return what identifies it in a result."""
        return {"pid": self.pid, "service": self._service, "index": self._index}

    def requests(self) -> list[dict[str, Any]]:
        """Return its requests in flight, which it records in shared memory."""
        return [{**each} for each in self._status.requests()] if self._status is not None else []

    def pss(self) -> int:
        """Return its proportional memory in bytes; 0: unknown."""
        return self._handle.pss()

    def rss(self) -> int:
        """Return its resident memory in bytes; 0: unknown."""
        return self._handle.usage()[1]

    def state(self, thread: int = 0) -> str:
        """Return the state of the process or of one of its threads (proc(5)); empty: unknown."""
        path = f"/proc/{self.pid}/task/{thread or self.pid}/stat"
        with suppress(OSError, IndexError), open(path, "rb") as file:
            # The name before it may contain anything.
            return chr(file.read().rpartition(b")")[2].split()[0][0])
        return ""

    def handles(self, number: int) -> bool:
        """Whether it has a handler for a signal, which has no effect or would end it otherwise.

        Not if it has ended, and another process has got its ID.
        """
        with suppress(OSError, ValueError), open(f"/proc/{self.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
            caught = int(fields["SigCgt"], 16) >> (number - 1) & 1
            # The main process is the parent of all workers, and of this process.
            return bool(caught) and int(fields["PPid"]) == os.getppid()
        return False

    def send(self, number: int) -> bool:
        """Send a signal, if it has a handler for it; return whether it has."""
        try:
            # This stays the same process, also if it ends and another gets its ID.
            process = os.pidfd_open(self.pid)
        except OSError as error:
            # Linux has it since 5.3, and older container engines forbid it.
            if error.errno not in (errno.ENOSYS, errno.EPERM) or not self.handles(number):
                return False
            with suppress(OSError):
                os.kill(self.pid, number)
                return True
            return False
        try:
            if not self.handles(number):
                return False
            signal.pidfd_send_signal(process, number)
            return True
        except OSError:
            return False
        finally:
            os.close(process)


def ask(kind: str, workers: Iterable[Target], **arguments: Any) -> dict[str, Any]:
    """Ask workers; return the question."""
    asked = list(workers)
    question = {
        "number": time.monotonic_ns(),
        "kind": kind,
        "places": {str(worker.pid): place for place, worker in enumerate(asked)},
        **arguments,
    }
    area.ask(question)
    for worker in asked:
        worker.send(ASK_SIGNAL)
    return question


def wait(
    question: dict[str, Any],
    workers: Iterable[Target],
    seconds: float,
    longest: float = 0.0,
    *,
    begins: bool = False,
) -> dict[int, dict[str, Any]]:
    """Return the answers by PID that come in time.

    Args:
        seconds: for an answer.
        longest: for one that has begun by then.
        begins: return as soon as answers have begun; those are empty.
    """
    answers: dict[int, dict[str, Any]] = {}
    missing = {worker.pid for worker in workers}
    begin = time.monotonic()
    while missing:
        now = time.monotonic()
        has_begun = False
        for pid in list(missing):
            text = area.answer(question["number"], question["places"][str(pid)])
            if text:
                # Code of the application may have written anything.
                with suppress(ValueError, RecursionError):
                    found = json.loads(text)
                    if isinstance(found, dict):
                        answers[pid] = found
            if text or (text is not None and begins):
                answers.setdefault(pid, {})
                missing.discard(pid)
            has_begun |= text is not None
        if not missing or now >= begin + (max(longest, seconds) if has_begun else seconds):
            break
        time.sleep(POLL)
    return answers


def is_stopped(worker: Target) -> bool:
    """Whether a signal or a debugger has stopped it."""
    return worker.state() in ("T", "t")
