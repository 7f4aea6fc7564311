"""A new main process takes over from an old one, sockets and all (USR2).

It is the same command, started again: with another Python, say, or with another version of this
package. It gets the listening sockets, and tells the old one when everything accepts. Then the old
one finishes what it has in hand, and ends. If the new one fails the old one goes on.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress

from poorhttp import logs
from poorhttp.net import inherited
from poorhttp.process import fork
from poorhttp.process.signals import SIGNALS, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from poorhttp.net.listener import Listener

#: Tells a new main process what it takes over, and which descriptor to tell that it serves.
VARIABLE = "_POORHTTP_TAKES_OVER"


class Upgrade:
    """The new main process, as the old one sees it.

    Attributes:
        pid: its process.
        fd: readable when it serves.
    """

    def __init__(
        self, listeners: Sequence[Listener], folder: str, environ: Mapping[str, str]
    ) -> None:
        """Start it in `folder`, where this one was started, with further variables.

        OSError if that does not work.
        """
        self.fd, ready = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        taken = {VARIABLE: f"{ready} {inherited.listeners_to_json(listeners)}"}
        variables = {**os.environ, **environ, **taken}

        def live() -> None:
            try:
                os.chdir(folder)
                for fd in (ready, *(listener.fileno() for listener in listeners)):
                    os.set_inheritable(fd, True)
                # Handlers of ours would take a signal, and be gone before they have acted.
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                os.execve(sys.executable, sys.orig_argv, variables)
            except OSError as error:
                logs.write("error", f"the new main process cannot begin: {error}")

        try:
            self.pid = fork.fork(live)
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(ready)

    def serves(self) -> bool:
        """Whether it has said that it serves."""
        try:
            return os.read(self.fd, 1) == b"+"
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Forget it."""
        os.close(self.fd)


class Takeover:
    """What the new main process takes over.

    Attributes:
        listeners: sockets that are open already.
    """

    def __init__(self, ready: int, listeners: list[Listener]) -> None:
        self._ready = ready
        self.listeners = listeners

    def done(self) -> None:
        """Tell the old main process that everything accepts."""
        for listener in self.listeners:
            listener.owned = True
        # It may have been killed meanwhile; then nobody has to be told.
        with suppress(BrokenPipeError):
            os.write(self._ready, b"+")
        os.close(self._ready)


def takeover() -> Takeover | None:
    """Return what this process takes over; `None`: it was started by somebody else."""
    text = os.environ.pop(VARIABLE, "")
    if not text:
        return None
    ready, _, listeners = text.partition(" ")
    os.set_inheritable(int(ready), False)
    return Takeover(int(ready), inherited.listeners_from_json(listeners))


def accompany(successor: int, signals: list[int], wakeups: int) -> int:
    """Stay for as long as a successor lives: a container ends with its first process.

    Orphans are still reaped, and signals passed on. A successor may have successors; those become
    ours when it ends.

    Args:
        successor: its process.
        signals: those that have come.
        wakeups: readable when one has come, or a child has ended.

    Returns:
        The exit code of the last successor.
    """
    code = 0
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == successor:
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 1
            successor = next(_like_ourselves(), 0) if code == 0 else 0
        if pid:
            continue
        while signals and successor:
            os.kill(successor, signals.pop(0))
        poller = select.poll()
        poller.register(wakeups, select.POLLIN)
        poller.poll()
        os.read(wakeups, 4096)


def _like_ourselves() -> Iterator[int]:
    """Our children that run the same command."""
    with open("/proc/self/cmdline", "rb") as file:
        ours = file.read()
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        children = file.read().split()
    for child in children:
        with suppress(OSError), open(f"/proc/{child}/cmdline", "rb") as file:
            if file.read() == ours:
                yield int(child)
