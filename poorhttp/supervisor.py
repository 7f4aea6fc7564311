"""The main process: opens the sockets, then serves itself or has workers serve."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
import traceback

from poorhttp import __version__, log, modes, sockets, targets
from poorhttp.errors import Failure
from poorhttp.worker import GRACE, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from wsgiref.types import WSGIApplication

    from poorhttp.options import Settings
    from poorhttp.sockets import Listener

#: Seconds to wait before a worker that died young is replaced, so that a crash loop does not take the machine.
PAUSE = 1.0


def run(settings: Settings, application: WSGIApplication | None = None) -> int:
    """Serve until told to stop.

    Args:
        settings: of the service.
        application: if it is loaded already; by default the target is.

    Returns:
        The exit code: 0 if stopped as asked.

    Raises:
        poorhttp.errors.Failure: the application or an address cannot be used.
    """
    log.start(settings)
    listeners = sockets.open_listeners(settings.bind, settings.backlog)
    try:
        if settings.worker_count == 1 and settings.mode != "forking":
            serve(settings, listeners, application, lambda: announce(settings, listeners))
            return 0
        return Supervisor(settings, listeners, application).run()
    finally:
        for listener in listeners:
            listener.close()


def announce(settings: Settings, listeners: Sequence[Listener]) -> None:
    """Tell the world that every worker accepts."""
    workers = settings.worker_count
    where = ", ".join(listener.url for listener in listeners)
    how = f"{settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
    print(f"poorhttp {__version__} listening on {where} ({how})", file=sys.stderr, flush=True)


def serve(
    settings: Settings,
    listeners: Sequence[Listener],
    application: WSGIApplication | None,
    ready: Callable[[], None],
) -> None:
    """Load mode and application, and serve in this process."""
    mode = modes.load(settings)
    if application is None:
        application = targets.load(settings.target)
    siblings = settings.worker_count > 1
    journal = log.start(settings)
    mode.run(Worker(application, settings, listeners, journal, siblings=siblings, ready=ready))


class Supervisor:
    """Forks workers over the same sockets, and replaces those that die."""

    def __init__(
        self, settings: Settings, listeners: Sequence[Listener], application: WSGIApplication | None
    ) -> None:
        self.settings = settings
        self.listeners = listeners
        self.application = application
        #: When each worker was started, by process number.
        self.workers: dict[int, float] = {}
        #: Workers that have not said yet that they serve, and where they will.
        self.starting: dict[int, int] = {}
        self.stopping = 0
        #: When workers that do not end are killed.
        self.patience = 0.0
        #: When to start a worker in the place of one that died young.
        self.not_before = 0.0
        self.announced = False

    def run(self) -> int:
        """Supervise until told to stop."""
        signals = self.watch_signals()
        # What exists by now is shared with the workers; the collector shall not write to it.
        gc.collect()
        gc.freeze()
        while True:
            code = self.bury()
            if code is not None:
                return code
            self.replenish()
            self.wait(signals)
            if self.stopping and self.patience <= time.monotonic():
                log.write("error", "workers still had requests in hand and were killed")
                self.signal_workers(signal.SIGKILL)
                self.patience = time.monotonic() + GRACE

    def watch_signals(self) -> int:
        """Let signals be noticed; return a descriptor that is readable then."""
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self.stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return read

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass the wish to stop on; the first time with patience."""
        if not self.stopping:
            self.patience = time.monotonic() + self.settings.graceful_timeout + 2 * GRACE
        self.stopping = number
        self.signal_workers(number)

    def signal_workers(self, number: int) -> None:
        """Send a signal to every worker."""
        for pid in self.workers:
            os.kill(pid, number)

    def wait(self, signals: int) -> None:
        """Wait for a signal, for a worker that serves, or until something is due."""
        poller = select.poll()
        for fd in (signals, *self.starting.values()):
            poller.register(fd, select.POLLIN)
        due = [self.patience] if self.stopping else []
        if len(self.workers) < self.settings.worker_count and not self.stopping and not self.starting:
            due.append(self.not_before)
        timeout = max(0.0, min(due) - time.monotonic()) * 1000 + 1 if due else None
        for fd, _ in poller.poll(timeout):
            if fd == signals:
                os.read(signals, 4096)
        for pid, fd in list(self.starting.items()):
            if self.has_spoken(fd):
                self.forget_starting(pid)
        if not self.announced and not self.starting and len(self.workers) == self.settings.worker_count:
            self.announced = True
            announce(self.settings, self.listeners)

    @staticmethod
    def has_spoken(fd: int) -> bool:
        """Whether a worker has said that it serves."""
        try:
            return os.read(fd, 1) == b"+"
        except BlockingIOError:
            return False

    def forget_starting(self, pid: int) -> None:
        """Stop waiting for a worker to say that it serves."""
        os.close(self.starting.pop(pid))

    def replenish(self) -> None:
        """Start the workers that are missing: at first one alone, to see whether the application loads."""
        while len(self.workers) < self.settings.worker_count and not self.stopping:
            if self.not_before > time.monotonic() or (self.starting and not self.announced):
                return
            if self.workers and not self.announced and self.starting:
                return
            self.start_worker()

    def start_worker(self) -> None:
        """Fork a worker."""
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        pid = os.fork()
        if pid == 0:
            os.close(read)
            self.be_worker(write)
        os.close(write)
        self.workers[pid] = time.monotonic()
        self.starting[pid] = read

    def be_worker(self, tell: int) -> None:
        """Serve in this process, which is a worker; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in self.starting.values():
                os.close(fd)

            def ready() -> None:
                os.write(tell, b"+")
                os.close(tell)

            serve(self.settings, self.listeners, self.application, ready)
            code = 0
        except Failure as failure:
            code = failure.exit_code
            print(f"poorhttp: {failure}", file=sys.stderr)
            if self.settings.log_level == "debug":
                traceback.print_exc()
        except BaseException:
            log.write("error", f"a worker failed\n{traceback.format_exc()}")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def bury(self) -> int | None:
        """See to workers that have died. Returns an exit code when there is nothing left to do."""
        while self.workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            started = self.workers.pop(pid, None)
            if started is None:
                continue
            code = os.waitstatus_to_exitcode(status)
            if pid in self.starting:
                self.forget_starting(pid)
                if not self.announced and not self.stopping:
                    # It has said why. What cannot start once cannot be supervised.
                    self.stopping = signal.SIGTERM
                    self.patience = time.monotonic() + GRACE
                    self.signal_workers(signal.SIGTERM)
                    self.failure = code if code > 0 else 1
                    continue
            if not self.stopping:
                self.mourn(pid, code, time.monotonic() - started)
        if self.stopping and not self.workers:
            return getattr(self, "failure", 0)
        return None

    def mourn(self, pid: int, code: int, age: float) -> None:
        """Say how a worker died, and plan its replacement."""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        log.write("error", f"worker {pid} {how} and is replaced")
        if age < PAUSE:
            self.not_before = time.monotonic() + PAUSE
