"""A program with all processes that it starts: started on its core, watched, ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loadtests.measure.cpu_affinity import pinned
from loadtests.measure.resources import living

if TYPE_CHECKING:
    from typing_extensions import Self


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
        self._command = [*pinned(core), *command]
        self._options = options
        self._sessions: set[int] = set()

    def __enter__(self) -> Self:
        try:
            with _uninterrupted():
                self.popen: subprocess.Popen[bytes] = subprocess.Popen(
                    self._command, start_new_session=True, **self._options
                )
                self._sessions.add(self.popen.pid)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def main(self) -> int:
        return self.popen.pid

    def code(self) -> int | None:
        """The exit code of the process that was started; None while it runs."""
        return self.popen.poll()

    def processes(self) -> list[int]:
        alive = list(living())
        found = {one.process for one in alive if one.session in self._sessions}
        while below := [one for one in alive if one.parent in found and one.process not in found]:
            self._sessions |= {one.session for one in below}
            found |= {one.process for one in below}
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
        # Waits for its end, and closes its pipes.
        self.popen.__exit__(None, None, None)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A SIGINT or SIGTERM that comes within the block takes effect at its end.

    A process that is started there is known afterwards, so that it can be stopped. It does not
    inherit this, as it would a mask of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: came.append(got))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for got in came[:1]:
            signal.raise_signal(signal.Signals(got))


def have_ended(processes: Iterable[int], seconds: float) -> bool:
    """Waits until these processes have ended, at most so many seconds; whether they have."""
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        pollers = []
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                file = os.pidfd_open(process)
                stack.callback(os.close, file)
                pollers.append(select.poll())
                pollers[-1].register(file, select.POLLIN)
        return all(one.poll(max(deadline - time.monotonic(), 0) * 1000) for one in pollers)
