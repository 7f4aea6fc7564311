"""A process that has loaded the application, and is forked for each worker (`preload`).

The main process loads no application, so that a reload can load another one, and so that a fault of
an application never hits the main process. A worker is forked twice: the first child ends at once,
and the main process becomes the parent of the second. That process reports itself, so that the
kernel tells its process ID: nothing that the preloader sends is trusted, as code of the application
runs in it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from functools import partial

from poorhttp import logs
from poorhttp._core import forget_fd, trim_memory
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.plugins.preload.options import Preloading
from poorhttp.plugins.preload.threads import ThreadCheck, is_own, log_not_reforked, other_threads
from poorhttp.process import fork, signals
from poorhttp.process.c_socket import socket
from poorhttp.process.control_channel import (
    PROMOTED,
    REOPEN_LOGS,
    SERVING,
    STOP,
)
from poorhttp.process.fd_passing import receive
from poorhttp.process.signals import Disposition, signal
from poorhttp.process.unpatched import sleep
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.supervisor.worker_handle import STOPPED, WorkerHandle
from poorhttp.worker import start
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.start import Process
    from poorhttp.worker.stop_signals import StopSignals

#: Seconds in which threads must have ended before a fork: a thread that was joined exists for some
#: moments still, and the server's own threads end when they have been idle for some time.
THREADS_TIMEOUT = 2.0
OWN_THREADS_TIMEOUT = 10.0

#: Ends each message to the process: an order, `STOP` or `REOPEN_LOGS`.
LINE_END = b"\n"


class Preloader:
    """The preloader, as the main process sees it.

    Attributes:
        pid: process ID.
        channel: the control channel.
        loaded: it has loaded the application.
        retired: it has been told to end, because there are no more workers to fork.
        kill_at: when it is killed, because it was told to end or is stopped (SIGSTOP); 0: never.
    """

    def __init__(
        self, service: Service, scoreboard: Scoreboard, promoted: WorkerHandle | None = None
    ) -> None:
        """Fork a process that loads the application, unless a worker was `promoted`.

        Its workers get slots of `scoreboard`.
        """
        self.service = service
        self.loaded = promoted is not None
        self.retired = False
        self.kill_at = 0.0
        self._ends = self._stopped = False
        if promoted is not None:
            self.pid, self.channel = promoted.pid, promoted.channel
        else:
            run = lambda fd, signals: _load(service, scoreboard, fd)  # noqa: E731
            self.pid, self.channel = start.fork_child(run, "preloader", service)

    @property
    def ready(self) -> bool:
        """Whether it can fork a worker now."""
        return self.loaded and not (self.retired or self._stopped)

    def tick(self, now: float) -> None:
        """Receive whether the application is loaded; kill the process if `kill_at` is over."""
        if SERVING in self.channel.receive():
            self.loaded = True
        if 0 < self.kill_at <= now:
            why = "did not end (an atexit handler or a thread of the application holds it up)"
            if self._stopped:
                why = "is still stopped (SIGSTOP)"
            elif not self.loaded:
                why = "was still loading it, and SIGTERM has not ended that"
                if verb := Disposition(str(self.pid)).withheld(signal.SIGTERM):
                    why = f"was still loading it, and the application {verb} SIGTERM"
            name = self.service.settings.service
            of = f" of service {name}" if name else ""
            logs.write("error", f"the process that has loaded the application{of} {why}; killed")
            signals.send(self.pid, signal.SIGKILL)
            self.kill_at = now + GRACE

    def stop(self, number: int, kill_at: float) -> None:
        """End the process by a signal; it is killed at `kill_at`."""
        self._ends = True
        self.kill_at = min(self.kill_at or kill_at, kill_at)
        signals.send(self.pid, number)
        # The application may have replaced the handler.
        self.channel.send(STOP + LINE_END)

    def reopen_logs(self) -> None:
        """Have it reopen its logs, by a message."""
        self.channel.send(REOPEN_LOGS + LINE_END)

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

    def order(self, context: WorkerContext, refork_after: int) -> bool:
        """Have it fork a worker, which may be promoted after so many requests (0: never)."""
        muted = int(self.service.start_errors_muted)
        shared = int(context.siblings is not None)
        numbers = context.index, context.slot, shared, context.recycle_after, refork_after
        message = " ".join(map(str, (*numbers, muted)))
        return self.channel.send_fd(message.encode() + LINE_END, context.channel)


def _load(service: Service, scoreboard: Scoreboard, channel_fd: int) -> Process:
    """Load the application and be the preloader; return only in the workers."""
    with start.reported(channel_fd):
        service.load()
    # Keep the garbage collector from writing to pages that are shared with the workers. It is not
    # run before: in the holes that it leaves, workers would write to shared pages.
    gc.freeze()
    channel = socket.socket(fileno=channel_fd)
    channel.setblocking(True)
    channel.send(SERVING)
    return _fork_workers(service, scoreboard, channel)


def _promote(
    service: Service, scoreboard: Scoreboard, context: WorkerContext, signals: StopSignals
) -> Process | None:
    """Be the preloader in a worker that has finished its requests; return in the workers.

    Returns `None` in this process if no worker can be forked from it, or is to be.
    """
    try:
        if service.settings.of(Preloading).before_refork:
            from poorhttp.worker.hooks import functions  # needed only here

            functions.call(service.settings, "before_refork")
    except ApplicationError as failure:
        logs.write("error", f"not reforked: {failure}")
        return None
    # What was frozen before may be garbage now.
    gc.unfreeze()
    gc.collect()
    begun = time.monotonic()
    while threads := other_threads().values():
        timeout = OWN_THREADS_TIMEOUT if all(map(is_own, threads)) else THREADS_TIMEOUT
        if time.monotonic() - begun > timeout:
            log_not_reforked(threads)
            return None
        sleep(0.001)
    trim_memory()
    gc.freeze()
    channel = socket.socket(fileno=context.channel)
    channel.setblocking(True)
    channel.send(PROMOTED)
    # The reactor has closed them.
    fds: list[int] = []
    while len(fds) < len(service.listeners):
        message, received = receive(channel, 64)
        if not message:
            return None
        fds += received
    for listener, fd in zip(service.listeners, fds, strict=True):
        listener.reopen(fd)
    return _fork_workers(service, scoreboard, channel)


def _fork_workers(service: Service, scoreboard: Scoreboard, channel: socket.socket) -> Process:
    """Fork a worker for each message, and return in it; end with the main process.

    A signal ends the process by Python's whole shutdown, like a worker. If it is retired, exit
    handlers do not run: they might remove what the application still needs in the workers.
    """
    unfinished = b""
    #: Of the orders that are not carried out yet.
    fds: list[int] = []
    while True:
        received, more = receive(channel, 64)
        if not received:
            logs.close()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        fds += more
        *messages, unfinished = (unfinished + received).split(LINE_END)
        for message in messages:
            if message == STOP:
                raise Stopped
            if message == REOPEN_LOGS:
                logs.reopen(service.settings, None)
                continue
            index, slot, shared, recycle_after, refork_after, muted = map(int, message.split())
            service.start_errors_muted = bool(muted)
            siblings = scoreboard.memory if shared else None
            status = scoreboard.open(slot)
            fd = fds.pop(0)
            context = WorkerContext(index, slot, fd, siblings, status, recycle_after)
            if refork_after:
                check = ThreadCheck(service.settings, refork_after, fd)
                context.on_requests = (refork_after, check.run)
            try:
                if fork.fork_orphan():
                    forget_fd(channel.fileno())
                    channel.close()
                    promoted = partial(_promote, service, scoreboard, context)
                    return start.worker(service, context, ("preloader", promoted))
            except OSError as error:
                logs.write("error", f"a worker cannot be forked: {error}")
            # This tells the main process if no process has it.
            os.close(fd)
