"""A process that has loaded the application, and is forked for each worker (`preload`).

The main process loads no application, so that a reload can load another one, and so that a fault of
an application never hits the main process. If workers are recycled regularly, the preloader stays;
otherwise it ends when the last worker serves, because its own copies of the pages to which all
workers have written would be the largest part of a small server. A worker is forked twice: the
first child ends at once, and the main process becomes the parent of the second. That process
reports itself, so that the kernel tells its process ID: nothing that the preloader sends is
trusted, as code of the application runs in it.

A refork (`refork_after`) replaces the workers by forks of one that has served for a while, so that
they share also what requests have loaded and changed. That worker finishes its requests and becomes
the preloader itself.
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
from poorhttp.process import fork, signals
from poorhttp.process.c_socket import socket
from poorhttp.process.control_channel import (
    PROMOTE,
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
from poorhttp.supervisor.spawner import Spawner
from poorhttp.supervisor.worker_handle import STOPPED, WorkerHandle
from poorhttp.worker import start
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import GRACE
from poorhttp.worker.worker import log_not_reforked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.start import Process

#: Seconds in which threads must have ended before a fork: a thread that was joined exists for some
#: moments still, and the server's own threads end when they have been idle for some time.
THREADS_TIMEOUT = 0.5
OWN_THREADS_TIMEOUT = 10.0

#: Why workers are replaced after one was promoted.
REFORKED = "it is forked anew from a worker that has served"

#: Ends each message to the process: an order, `STOP` or `REOPEN_LOGS`.
LINE_END = b"\n"


class Preloader(Spawner):
    """The preloader, as the main process sees it: it forks the workers of a pool.

    Attributes:
        pid: process ID.
        loaded: it has loaded the application.
        retired: it has been told to end, because there are no more workers to fork.
        kill_at: when it is killed, because it was told to end or is stopped (SIGSTOP); 0: never.
    """

    orders = True

    def __init__(
        self, service: Service, scoreboard: Scoreboard, promoted: WorkerHandle | None = None
    ) -> None:
        """Fork a process that loads the application, unless a worker was `promoted`.

        Its workers get slots of `scoreboard`.
        """
        super().__init__(service, scoreboard)
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

    def order(self, context: WorkerContext) -> bool:
        muted = int(self.service.start_errors_muted)
        shared = int(context.siblings is not None)
        numbers = context.index, context.slot, shared, context.recycle_after, context.refork_after
        message = " ".join(map(str, (*numbers, muted)))
        return self.channel.send_fd(f"{message}\n".encode(), context.channel)


class Refork:
    """The reforks of a worker pool: promote a worker, and replace the others by forks of it."""

    count = 0  # how many there were, also those that have failed
    worker: WorkerHandle | None = None  # finishes its requests to become the preloader
    _untried: Preloader | None = None  # was promoted, until the first of its forks serves
    _before: int | None = None  # bytes of all workers before the refork under way

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    @property
    def after(self) -> int:
        """Requests after which a worker that is forked now may be promoted; 0: it is not."""
        numbers = self._pool.settings.refork_after
        return numbers[self.count] if self.count < len(numbers) else 0

    def tick(self, now: float) -> None:
        """Begin a refork that is due, or go on with the one under way."""
        pool = self._pool
        if self.worker is None:
            self._replace()
            if (worker := self._due()) is not None:
                self._begin(worker, now + pool.stop_timeout)
        elif self.worker.promoted:
            if pool.retiring:
                self.worker.channel.close()
            elif pool.preloader is None:
                self._promote(self.worker)
            elif not pool.preloader.retired:
                pool.preloader.retire(now + pool.stop_timeout)
                self.worker.kill_at = pool.preloader.kill_at + 2 * GRACE

    def on_worker_exit(self, worker: WorkerHandle) -> None:
        """Give the refork up if the worker was to be promoted, or is the first fork of that one."""
        pool = self._pool
        if worker is self.worker:
            self.worker = None
            self.count += 1
        elif (
            self._untried is not None
            and self._untried is pool.preloader
            and worker.generation == self.count
            and not worker.serves
        ):
            # The next one is forked from a process that has only loaded the application.
            self._untried.retire(time.monotonic() + pool.stop_timeout)
            self._untried = None
        else:
            return
        self._before = None
        if not pool.retiring:
            logs.write("warning", f"not reforked, because worker {worker.pid} has ended")

    def on_preloader_exit(self) -> None:
        """Keep the workers that were to be replaced by forks of it."""
        self._untried = self._before = None
        for worker in self._pool.workers.values():
            if worker.recycle_reason == REFORKED and worker.successor is None:
                worker.recycle_reason = ""

    def _due(self) -> WorkerHandle | None:
        pool = self._pool
        workers = pool.workers.values()
        if (
            pool.retiring
            or pool.draining
            or pool.ordered is not None
            or pool.count < 2
            or pool.serving != len(workers)
            or pool.serving < pool.count
            or pool.backoff.count
            or any(each.recycle_reason for each in workers)
        ):
            return None
        due = (each for each in workers if each.refork_due and each.generation == self.count)
        return next(due, None)

    def _begin(self, worker: WorkerHandle, kill_at: float) -> None:
        pool = self._pool
        self.worker = worker
        self._before = sum(each.pss() for each in pool.workers.values())
        pool.scoreboard.stop_accepting(worker.slot)
        worker.retire(kill_at, PROMOTE)
        requests = pool.scoreboard.begun(worker.slot)
        logs.write(
            "info",
            f"{pool.name}worker {worker.pid} has begun {requests} requests, and finishes: workers "
            f"are forked from it (refork {self.count + 1})",
        )

    def _promote(self, worker: WorkerHandle) -> None:
        pool = self._pool
        self.worker = None
        self.count += 1
        self._untried = Preloader(pool.service, pool.scoreboard, worker)
        for listener in pool.service.listeners:
            if not worker.channel.send_fd(b"listener\n", listener.fileno()):
                signals.send(worker.pid, signal.SIGKILL)
        pool.on_promoted(worker, self._untried)

    def _replace(self) -> None:
        """Have the other workers replaced once the first fork serves; log when all are."""
        workers = self._pool.workers.values()
        forks = [each for each in workers if each.generation == self.count]
        if self._untried is not None and any(each.serves for each in forks):
            self._untried = None
            for each in workers:
                if each not in forks:
                    each.recycle_reason = each.recycle_reason or REFORKED
        if self._before is not None and 0 < len(forks) == len(workers) == self._pool.serving:
            before, self._before = self._before, None
            self._pool.totals.count_refork()
            now = sum(each.pss() for each in workers)
            memory = f": {before >> 20} MiB (PSS) before, {now >> 20} MiB now" if before else ""
            logs.write("info", f"{self._pool.name}reforked {len(workers)} workers{memory}")


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


def _promote(service: Service, scoreboard: Scoreboard, context: WorkerContext) -> Process | None:
    """Be the preloader in a worker that has finished its requests; return in the workers.

    Returns `None` in this process if no worker can be forked from it, or is to be.
    """
    try:
        if service.settings.before_refork:
            from poorhttp.worker.hooks import functions  # needed only here

            functions.call(service.settings, "before_refork")
    except ApplicationError as failure:
        logs.write("error", f"not reforked: {failure}")
        return None
    # What was frozen before may be garbage now.
    gc.unfreeze()
    gc.collect()
    begun = time.monotonic()
    while threads := fork.other_threads().values():
        timeout = OWN_THREADS_TIMEOUT if all(map(fork.is_own, threads)) else THREADS_TIMEOUT
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
            context = WorkerContext(index, slot, fd, siblings, status, recycle_after, refork_after)
            try:
                if fork.fork_orphan():
                    forget_fd(channel.fileno())
                    channel.close()
                    promote = partial(_promote, service, scoreboard, context)
                    return start.worker(service, context, promote)
            except OSError as error:
                logs.write("error", f"a worker cannot be forked: {error}")
            # This tells the main process if no process has it.
            os.close(fd)
