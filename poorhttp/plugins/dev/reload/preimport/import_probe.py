"""Tries imports in a throw-away fork of the fork server.

The effects of an import cannot be undone: a module may raise half-way, end the process, hang, start
a thread or register itself elsewhere. So a fork imports first, and the fork server imports only the
modules that were good there. The fork ends at the first failure; a new one goes on after it.
"""

from __future__ import annotations

import os
import posix
import select
import time
from collections.abc import Callable, Sequence

from poorhttp._core import end_with_parent, fork_for_server
from poorhttp.process.signals import signal

#: Seconds that the import of one module may take before it counts as hanging.
IMPORT_TIMEOUT = 30

#: Signals by which users and the main process end a process: no fault of a module.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)


class ImportProbe:
    """The throw-away process, seen from the fork server.

    Attributes:
        failure: what is wrong with the first module that is not good; empty so far.
        finished: the process has ended.
    """

    def __init__(self, names: Sequence[str], attempt: Callable[[str], str]) -> None:
        """Fork the process.

        Args:
            names: modules to be tried, in this order.
            attempt: tries one, and returns what is wrong with it; empty if nothing is.

        Raises:
            OSError: it cannot be forked.
        """
        self.failure = ""
        self.finished = False
        self._count = len(names)
        self._received = b""
        self._reported = 0
        self._since = time.monotonic()
        self._parent = os.getpid()
        # `posix`, since gevent may have replaced `os.fork` and `os.close`: its own would watch the
        # child, or run its hub.
        self._pipe, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._pid = fork_for_server()
            if self._pid == 0:
                _run_probe(names, attempt, write, self._parent)
        except BaseException:
            posix.close(self._pipe)
            raise
        finally:
            posix.close(write)

    def receive(self, seconds: float) -> int:
        """Wait at most so long for results; return how many more of the names are good."""
        if self.finished:
            return 0
        left = self._since + IMPORT_TIMEOUT - time.monotonic()
        readable, _, _ = _select([self._pipe], [], [], max(0.0, min(seconds, left)))
        if readable:
            received = posix.read(self._pipe, 4096)
            self._received += received
            self._since = time.monotonic()
            if not received:
                self._reap()
        elif left <= 0:
            self.failure = f"is not imported within {IMPORT_TIMEOUT} s"
            self.end()
        good = self._good()
        more, self._reported = good - self._reported, good
        return more

    def end(self) -> None:
        """Kill the process; in a fork of the fork server, only close the inherited pipe."""
        if self.finished:
            return
        if os.getpid() == self._parent:
            try:
                os.kill(self._pid, signal.SIGKILL)
                posix.waitpid(self._pid, 0)
            except OSError:  # another waiter has reaped all children
                pass
        self._close()

    def _reap(self) -> None:
        try:
            status = posix.waitpid(self._pid, 0)[1]
        except ChildProcessError:
            status = 0
        self._close()
        last = self._received.rpartition(b"\n")[0].rpartition(b"\n")[2]
        if last.startswith(b"-"):
            self.failure = last[1:].decode(errors="replace")
        elif os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number not in _STOP_SIGNALS:
                self.failure = f"crashes (signal {number}) when it is imported"
        elif self._good() < self._count:
            self.failure = f"ends the process (exit code {os.WEXITSTATUS(status)})"

    def _good(self) -> int:
        return self._received.split(b"\n").count(b"+")

    def _close(self) -> None:
        self.finished = True
        posix.close(self._pipe)


def _run_probe(names: Sequence[str], attempt: Callable[[str], str], pipe: int, parent: int) -> None:
    """Try the names and report the results, in the forked process."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        end_with_parent()
        if os.getppid() != parent:
            return
        os.set_blocking(pipe, True)
        # Modules print when the fork server imports them.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for name in names:
            # In case the fork server does not end this process.
            signal.alarm(2 * IMPORT_TIMEOUT)
            why = attempt(name)
            if why:
                posix.write(pipe, f"-{' '.join(why.split())}\n".encode(errors="replace")[:4000])
                return
            posix.write(pipe, b"+\n")
    except BaseException as error:
        posix.write(pipe, f"-fails: {type(error).__name__}\n".encode())
    finally:
        os._exit(0)


# Bound before gevent may replace it by its own, which would start a hub.
_select = select.select
