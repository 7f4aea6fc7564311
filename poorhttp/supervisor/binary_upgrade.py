"""Starts a new main process that takes over the listening sockets (USR2).

It runs the same command, perhaps with another Python or another version of this package. It
inherits the listening sockets, and reports to the old main process when all its workers serve. Then
the old one finishes its requests and ends. If the new one fails, the old one goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from poorhttp import logs
from poorhttp.config import loader
from poorhttp.errors import visible
from poorhttp.net import inherited
from poorhttp.net.listener import Listener
from poorhttp.process import fork, orphans, signals
from poorhttp.process.privileges import user_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Memory that main processes leave to their successors: what it has, the name of the service,
    #: the main process that has made it, and the descriptor.
    Memory: TypeAlias = tuple[str, str, int, int]

#: Environment variable with the inherited listeners, and the descriptor for the report.
VARIABLE = "_POORHTTP_TAKES_OVER"

#: The report that the new main process serves; anything else is why it does not.
SERVES = b"+"

#: Bytes of a reason, at most.
LONGEST_REASON = 2000

#: Environment variable with `Takeover.born` and the inherited memory.
KEPT = "_POORHTTP_KEPT"


class Upgrade:
    """The new main process, as the old one sees it; `fd` is readable when it serves or failed."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        memory: Sequence[Memory],
        folder: str,
        environ: Mapping[str, str],
        born: float,
    ) -> None:
        """Start it in `folder`, with `environ` added to the environment.

        `born` is when the first main process began, in seconds since 1970.

        Raises:
            OSError: it cannot be forked.
        """
        self._reason = b""
        self.fd, ready = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        import json  # takes memory

        taken = {
            VARIABLE: f"{ready} {inherited.listeners_to_json(listeners)}",
            KEPT: json.dumps([born, *memory]),
        }
        variables = {**os.environ, **environ, **taken}

        def run() -> None:
            try:
                loader.enter(folder)
                shared = [fd for _, _, _, fd in memory]
                for fd in (ready, *(listener.fileno() for listener in listeners), *shared):
                    os.set_inheritable(fd, True)
                # The handlers of this process would only note a signal, which exec(2) forgets.
                signals.restore_for_exec()
                os.execve(sys.executable, sys.orig_argv, variables)
            except OSError as error:
                logs.write("error", f"the new main process cannot begin: {error}")

        try:
            self.pid = fork.fork(run)
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(ready)
        # Workers could read the report.
        fork.keep_from_children(self.fd)

    def close(self) -> None:
        fork.close_own(self.fd)

    def serves(self) -> bool:
        try:
            report = os.read(self.fd, LONGEST_REASON)
        except BlockingIOError:
            return False
        if report == SERVES:
            return True
        self._reason = (self._reason + report)[:LONGEST_REASON]
        return False

    @property
    def reason(self) -> str:
        """Why it has failed, on one line; empty if it has not said so."""
        return visible(" ".join(self._reason.decode("utf-8", "replace").split()))


class Takeover:
    """The old main process, as the new one sees it.

    Attributes:
        listeners: the inherited listening sockets.
        memory: what it and those before it have left; the descriptors are closed in `done`.
        born: when the first main process began, in seconds since 1970; 0: that is not known.
    """

    def __init__(
        self, ready: int, listeners: list[Listener], memory: list[Memory], born: float
    ) -> None:
        self._ready = ready
        self.born = born
        self.listeners = listeners
        self.memory = memory
        #: An application that had them could report for this process.
        self._fds = [ready, *(fd for _, _, _, fd in memory)]
        for fd in self._fds:
            os.set_inheritable(fd, False)
            fork.keep_from_children(fd)

    def done(self) -> None:
        """Report to the old main process that all workers serve."""
        for listener in self.listeners:
            listener.owned = True
        # The old main process may have been killed.
        with suppress(BrokenPipeError):
            os.write(self._ready, SERVES)
        while self._fds:
            fork.close_own(self._fds.pop())

    def fail(self, why: str) -> None:
        """Report to the old main process why this one ends."""
        if self._fds:
            _report(self._ready, why)


def report_failure(why: str) -> None:
    """Report to the old main process, if there is one, why this one ends before it takes over."""
    ready = os.environ.get(VARIABLE, "").partition(" ")[0]
    if ready.isdecimal():
        _report(int(ready), why)


def _report(ready: int, why: str) -> None:
    # The old main process may have been killed.
    with suppress(OSError):
        os.write(ready, why.encode("utf-8", "replace")[:LONGEST_REASON])


def takeover() -> Takeover | None:
    """Return what this process takes over; `None`: it was not started by an upgrade."""
    text = os.environ.pop(VARIABLE, "")
    if not text:
        return None
    import json

    ready, _, listeners = text.partition(" ")
    # An older version leaves nothing else.
    born, *rows = json.loads(os.environ.pop(KEPT, "[0]"))
    memory: list[Memory] = [(kind, service, pid, fd) for kind, service, pid, fd in rows]
    return Takeover(int(ready), inherited.listeners_from_json(listeners), memory, born)


def wait_for_successor(successor: int, pending: list[int]) -> int:
    """Wait for the end of the new main process, because a container ends with its first process.

    If the new main process was upgraded as well, its successor has become a child of this process
    when it ends. Signals, and those that are `pending`, are passed on. Returns the exit code of the
    last successor.
    """
    signals.signal.pthread_sigmask(signals.signal.SIG_BLOCK, orphans.WAITED)
    code = 0
    with suppress(ChildProcessError):
        while True:
            while pending:
                signals.send(successor, pending.pop(0))
            ended = orphans.wait_for(successor)
            code = ended if ended >= 0 else 1
            # No process has the ID -1: then the last children are waited for, such as workers whose
            # main process was killed.
            successor = next(_children_of_same_command(), -1) if code == 0 else -1
    return code


def _children_of_same_command() -> Iterator[int]:
    """Yield the children of this process that run the same command, with the same rights.

    Orphans of the application are its children too, and can have any command line.
    """
    with open("/proc/self/cmdline", "rb") as file:
        ours = _command(file.read())
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        children = file.read().split()
    for child in children:
        if user_ids(int(child)) != {os.geteuid()}:
            continue
        with suppress(OSError), open(f"/proc/{child}/cmdline", "rb") as file:
            if _command(file.read()) == ours:
                yield int(child)


def _command(line: bytes) -> bytes:
    """Return a command line without the name of its title, which an upgrade may change."""
    return line.partition(b": ")[2] or line
