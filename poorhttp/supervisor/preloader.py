"""A process that has loaded the application, and is forked for each worker (`preload`).

The main process loads no application, so that a reload can load another one, and so that a fault of
an application never hits the main process. If workers are recycled regularly, the preloader stays;
otherwise it ends when the last worker serves, because its own copies of the pages to which all
workers have written would be the largest part of a small server. A worker is forked twice: the
first child ends at once, and the main process becomes the parent of the second.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time

from poorhttp import logs
from poorhttp.process import fork, signals
from poorhttp.process.c_socket import socket
from poorhttp.process.control_channel import SERVING, ControlChannel
from poorhttp.process.fd_passing import receive
from poorhttp.process.signals import signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.supervisor.worker_handle import STOPPED
from poorhttp.worker import start
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import GRACE

#: Seconds for forking a worker.
FORK_TIMEOUT = 10.0


class Preloader:
    """The preloader, as the main process sees it.

    Attributes:
        pid: process ID.
        ready: it has loaded the application.
        retired: it has been told to end, because there are no more workers to fork.
        kill_at: when it is killed, because it was told to end or is stopped (SIGSTOP); 0: never.
    """

    def __init__(self, service: Service, scoreboard: Scoreboard) -> None:
        """Fork the preloader; its workers get slots of `scoreboard`."""
        self.channel = ControlChannel()
        self.ready = False
        self.retired = False
        self.kill_at = 0.0
        self._service = service
        self._ends = self._stopped = False
        parent, child_fd = os.getpid(), self.channel.child_fd
        try:
            self.pid = fork.fork(
                lambda: start.run_child(
                    lambda signals: _run(service, scoreboard, child_fd, parent),
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
        """Whether `fork` can be called."""
        return self.ready and not (self.retired or self._stopped)

    def tick(self, now: float) -> None:
        """Receive whether the application is loaded; kill the process if `kill_at` is over."""
        if SERVING in self.channel.receive():
            self.ready = True
        if 0 < self.kill_at <= now:
            why = (
                "is still stopped (SIGSTOP)"
                if self._stopped
                else "did not end (an atexit handler or a thread of the application holds it up)"
            )
            name = self._service.settings.service
            of = f" of service {name}" if name else ""
            logs.write("error", f"the process that has loaded the application{of} {why}; killed")
            signals.send(self.pid, signal.SIGKILL)
            self.kill_at = now + GRACE

    def stop(self, number: int, kill_at: float) -> None:
        """End the process by a signal; it is killed at `kill_at`."""
        self._ends = True
        self.kill_at = min(self.kill_at or kill_at, kill_at)
        signals.send(self.pid, number)

    def on_stopped(self, number: int) -> None:
        """Handle that a signal has stopped the process, or that it was continued (0)."""
        self._stopped = bool(number)
        if not self._ends:
            self.kill_at = time.monotonic() + STOPPED if number else 0.0

    def retire(self, kill_at: float) -> None:
        """End the process, because there are no more workers to fork."""
        self.retired = self._ends = True
        self.kill_at = kill_at
        self.channel.close()

    def fork(self, context: WorkerContext) -> int:
        """Have a worker forked; return its process ID, or 0 if that fails."""
        muted = int(self._service.start_errors_muted)
        shared = int(context.siblings is not None)
        message = f"{context.index} {context.slot} {shared} {context.recycle_after} {muted}"
        if not self.channel.send_fd(message, context.channel):
            return 0
        answer = b""
        poller = select.poll()
        poller.register(self.channel.fileno(), select.POLLIN)
        while not answer.endswith(b"\n"):
            if not (poller.poll(FORK_TIMEOUT * 1000) and (received := self.channel.receive())):
                return 0
            answer += received
        return int(answer)


def _run(service: Service, scoreboard: Scoreboard, channel_fd: int, parent: int) -> None:
    """Load the application, then fork a worker for each message; end with the main process.

    A signal ends the process by Python's whole shutdown, like a worker. If it is retired, exit
    handlers do not run: they might remove what the application still needs in the workers.
    """
    service.load()
    # Keep the garbage collector from writing to pages that are shared with the workers. It is not
    # run before: in the holes that it leaves, workers would write to shared pages.
    gc.freeze()
    channel = socket.socket(fileno=channel_fd)
    channel.setblocking(True)
    channel.send(SERVING)
    while True:
        message, fds = receive(channel, 64)
        if not message:
            logs.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        index, slot, shared, recycle_after, muted = map(int, message.split())
        service.start_errors_muted = bool(muted)
        status = scoreboard.open(slot)
        context = WorkerContext(
            index, slot, fds[0], scoreboard.memory if shared else None, status, recycle_after
        )
        channel.send(f"{_fork(service, context, channel, parent)}\n".encode())
        os.close(fds[0])


def _fork(service: Service, context: WorkerContext, channel: socket.socket, parent: int) -> int:
    """Fork a worker; return its process ID, or 0 if that fails."""

    def run() -> None:
        channel.close()
        start.run_worker(service, context, parent)

    try:
        return fork.fork_twice(run)
    except OSError as error:
        logs.write("error", f"a worker cannot be forked: {error}")
        return 0
