"""A process that has loaded the application, and is forked whenever a worker is needed.

That is `preload`. The main process itself never loads an application, so that it can load another
one when it is told to reload, and so that no fault of an application is a fault of the supervisor.
Where workers are replaced all the time it stays, otherwise it ends when the last has begun: its own
copies of what all of them have written to would be the largest part of a small server. A worker is
forked twice: the first child ends at once, and the main process adopts the second.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from contextlib import suppress

from poorhttp import logs
from poorhttp.process import fork
from poorhttp.process.c_socket import socket
from poorhttp.process.control_channel import SERVING, ControlChannel
from poorhttp.process.fd_passing import receive
from poorhttp.process.signals import signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.worker_handle import STOPPED
from poorhttp.worker import start
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.scoreboard import Scoreboard
    from poorhttp.worker.service import Service

#: Seconds that it may take to fork a worker.
PATIENCE = 10.0


class Preloader:
    """The process, as the main process sees it.

    Attributes:
        pid: its process.
        ready: it has loaded the application.
        dismissed: nobody needs it for the time being, and it has been told to end.
        until: when it is killed, told to end, or stopped; 0: neither.
    """

    def __init__(self, service: Service, scoreboard: Scoreboard) -> None:
        """Fork it; `scoreboard` is that of the workers to come."""
        self.channel = ControlChannel()
        self.ready = False
        self.dismissed = False
        self.until = 0.0
        self._service = service
        self._ends = self._stopped = False
        parent, theirs = os.getpid(), self.channel.child_fd
        try:
            self.pid = fork.fork(
                lambda: start.run_child(
                    lambda signals: _live(service, scoreboard, theirs, parent),
                    parent,
                    "preloader",
                    service,
                )
            )
        except OSError:
            self.channel.close()
            raise
        finally:
            self.channel.close_child_end()

    @property
    def can_fork(self) -> bool:
        """Whether workers can be ordered."""
        return self.ready and not (self.dismissed or self._stopped)

    def tick(self, now: float) -> None:
        """Hear whether the application is loaded by now, and kill what does not end."""
        if SERVING in self.channel.receive():
            self.ready = True
        if 0 < self.until <= now:
            why = (
                "is still stopped (SIGSTOP)"
                if self._stopped
                else "did not end (an atexit handler or a thread of the application holds it up)"
            )
            name = self._service.settings.service
            of = f" of service {name}" if name else ""
            logs.write("error", f"the process that has loaded the application{of} {why}; killed")
            self._signal(signal.SIGKILL)
            self.until = now + GRACE

    def end(self, number: int, until: float) -> None:
        """Tell it to end; it is killed if it has not by then."""
        self._ends = True
        self.until = min(self.until or until, until)
        self._signal(number)

    def on_stopped(self, number: int) -> None:
        """Note that it was stopped by a signal, or continued (0)."""
        self._stopped = bool(number)
        if not self._ends:
            self.until = time.monotonic() + STOPPED if number else 0.0

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def dismiss(self, until: float) -> None:
        """End it, because nobody needs it for the time being."""
        self.dismissed = self._ends = True
        self.until = until
        self.channel.close()

    def fork(self, context: WorkerContext) -> int:
        """Have a worker forked; return its process, or 0 if that does not work."""
        muted = int(self._service.start_errors_muted)
        shared = int(context.balance_fd is not None)
        words = f"{context.index} {context.slot} {shared} {context.recycle_after} {muted}"
        if not self.channel.send_fd(words, context.channel):
            return 0
        answer = b""
        poller = select.poll()
        poller.register(self.channel.fileno(), select.POLLIN)
        while not answer.endswith(b"\n"):
            if not poller.poll(PATIENCE * 1000):
                return 0
            heard = self.channel.receive()
            if not heard:
                return 0
            answer += heard
        return int(answer)


def _live(service: Service, scoreboard: Scoreboard, channel: int, parent: int) -> None:
    """Load the application, then fork workers as they are ordered; end with the main process.

    Told by a signal it ends by Python's whole shutdown, as a worker does. Dismissed it ends
    without: the application goes on in the workers, and needs what its exit handlers remove.
    """
    service.load()
    # What exists by now is shared with the workers; the collector shall not write to it. It is not
    # run before either: in the holes that it leaves, workers would write to what is shared.
    gc.freeze()
    line = socket.socket(fileno=channel)
    line.setblocking(True)
    line.send(SERVING)
    while True:
        words, fds = receive(line, 64)
        if not words:
            logs.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        index, slot, shared, recycle_after, muted = map(int, words.split())
        service.start_errors_muted = bool(muted)
        status = scoreboard.open(slot)
        context = WorkerContext(
            index, slot, fds[0], scoreboard.balance_fd if shared else None, status, recycle_after
        )
        line.send(f"{_fork(service, context, line, parent)}\n".encode())
        os.close(fds[0])


def _fork(service: Service, context: WorkerContext, line: socket.socket, parent: int) -> int:
    """Fork a worker; return its process, or 0 if that does not work."""

    def live() -> None:
        line.close()
        start.run_worker(service, context, parent)

    try:
        return fork.fork_twice(live)
    except OSError as error:
        logs.write("error", f"a worker cannot be forked: {error}")
        return 0
