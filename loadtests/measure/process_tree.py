"""A program with all processes that it starts: started on its core, watched, ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from loadtests.measure.cpu_affinity import pinned
from loadtests.measure.interruption import postponed
from loadtests.measure.resources import living

if TYPE_CHECKING:
    from typing_extensions import Self

FOREVER = float("inf")


class ProcessTree:
    """A program in a session of its own, as a context manager that kills what is left at its end.

    The tree has every process of the session, also one whose parent has gone. A process that has
    begun a session itself belongs to the tree as long as its parent does, and by its session from
    when it was seen there.

    Args:
        command: the program and its arguments.
        core: the core that it runs on; None is all of those that the lab may use.
        options: further arguments of `subprocess.Popen`.
    """

    def __init__(self, command: Sequence[str], core: int | None = None, **options: Any) -> None:
        self.popen: subprocess.Popen[bytes]
        self._command = [*pinned(core), *command]
        self._options = options
        self._sessions: set[int] = set()

    def __enter__(self) -> Self:
        try:
            with postponed():
                self.popen = subprocess.Popen(
                    self._command, start_new_session=True, **self._options
                )
                self._sessions.add(self.popen.pid)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def processes(self) -> list[int]:
        """The processes that have not ended."""
        found = set()
        children: dict[int, list[tuple[int, int]]] = {}
        for one in living():
            children.setdefault(one.parent, []).append((one.process, one.session))
            if one.session in self._sessions:
                found.add(one.process)
        below = list(found)
        while below:
            for process, session in children.get(below.pop(), ()):
                if process not in found:
                    self._sessions.add(session)
                    found.add(process)
                    below.append(process)
        return sorted(found)

    def signal(self, number: signal.Signals) -> list[int]:
        """Sends a signal to every process, and returns them."""
        found = self.processes()
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return found

    def stop(self, seconds: float) -> None:
        """Asks every process to end, kills those left after so many seconds, and waits for all."""
        deadline = time.monotonic() + seconds
        try:
            left = self.signal(signal.SIGTERM)
            while left and have_ended(left, deadline - time.monotonic()):
                left = self.processes()
        finally:
            self.kill()

    def kill(self) -> None:
        """Kills every process that is left, and waits for its end."""
        if not self._sessions:
            return
        while left := self.signal(signal.SIGKILL):
            have_ended(left, 1)
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                pipe.close()


def have_ended(processes: Collection[int], seconds: float = FOREVER) -> bool:
    """Waits until these processes have ended, at most so many seconds; whether they have."""
    poller, left = select.poll(), set()
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                file = os.pidfd_open(process)
                stack.callback(os.close, file)
                poller.register(file, select.POLLIN)
                left.add(file)
        while left:
            wait = max(deadline - time.monotonic(), 0)
            ended = [file for file, _ in poller.poll(None if wait == FOREVER else wait * 1000)]
            if not ended and wait == 0:
                return False
            for file in ended:
                poller.unregister(file)
                left.discard(file)
    return True
