"""The main process: opens the sockets, then serves itself or has workers serve."""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from contextlib import suppress

from poorhttp import __version__, log, modes, sockets, targets
from poorhttp._core import end_with_parent
from poorhttp.errors import Failure, Stopped
from poorhttp.stopping import GRACE, STOP_SIGNALS, StopSignals
from poorhttp.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType

    from _typeshed.wsgi import WSGIApplication

    from poorhttp._core import Ledger
    from poorhttp.options import Settings
else:
    # Without its enumerations, which every process would pay for (docs/design.md).
    import _signal as signal

#: Seconds to wait before a worker that died young is replaced: crashes must not eat the machine.
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
    alone = settings.worker_count == 1 and settings.mode != "forking"
    try:
        with StopSignals(settings.graceful_timeout) as signals:
            service = Service(settings, application)
            try:
                with log.error_log.tracing_crashes():
                    if not alone:
                        return Supervisor(service).run()
                    service.serve(service.announce, signals)
            finally:
                service.close()
    except Stopped:
        pass
    return 0


class Service:
    """What is to be served, and where: everything that is settled before a worker is forked."""

    def __init__(self, settings: Settings, application: WSGIApplication | None) -> None:
        self.settings = settings
        self.application = application
        self.journal = log.error_log.open(settings)
        self.mode = modes.load(settings)
        self.listeners = sockets.open_listeners(settings.bind, settings.backlog)

    def serve(
        self,
        ready: Callable[[], None],
        signals: StopSignals,
        siblings: tuple[int, int] | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Load the application and serve it in this process."""
        modes.prepare(self.mode, self.settings)
        application = self.application or targets.load(self.settings.target)
        worker = Worker(
            application,
            self.settings,
            self.listeners,
            self.journal,
            siblings=siblings,
            ledger=ledger,
            ready=ready,
            signals=signals,
        )
        self.mode.run(worker)

    def announce(self) -> None:
        """Tell the world that every worker accepts."""
        workers = self.settings.worker_count
        where = ", ".join(listener.url for listener in self.listeners)
        how = f"{self.settings.mode}, {workers} {'worker' if workers == 1 else 'workers'}"
        print(f"poorhttp {__version__} listening on {where} ({how})", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the listening sockets."""
        for listener in self.listeners:
            listener.close()


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGKILL."""
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        # Most of the real-time signals have none.
        return f"signal {number}"


class WorkerProcess:
    """A worker, as its supervisor sees it.

    Attributes:
        pid: its process.
        place: its number among its siblings, from 0.
        started: when, on the monotonic clock.
        promise: a pipe from which a byte can be read when it serves; `None` afterwards.
        serves: whether it has said so.
    """

    def __init__(self, pid: int, place: int, promise: int) -> None:
        self.pid = pid
        self.place = place
        self.started = time.monotonic()
        self.promise: int | None = promise
        self.serves = False

    def listen(self) -> None:
        """Hear whether it serves by now."""
        if self.promise is not None:
            with suppress(BlockingIOError):
                self.serves = os.read(self.promise, 1) == b"+"
                self.forget()

    def forget(self) -> None:
        """Close the pipe."""
        if self.promise is not None:
            os.close(self.promise)
            self.promise = None


class Supervisor:
    """Forks workers over the same sockets, and replaces those that die."""

    def __init__(self, service: Service) -> None:
        # A process that serves alone needs none.
        from poorhttp.ledger import Ledgers

        self.service = service
        self.settings = service.settings
        self.pid = os.getpid()
        self.workers: dict[int, WorkerProcess] = {}
        #: Where workers count their connections (`core/reactor/src/shares.rs`).
        self.shares = os.memfd_create("poorhttp-shares")
        #: What each of them has in hand.
        self.ledgers = Ledgers(self.settings.worker_count)
        #: The ready line has been printed.
        self.announced = False
        #: The signal by which we were told to stop.
        self.stopping = 0
        #: What to end with.
        self.code = 0
        #: When workers that do not end are killed.
        self.patience = 0.0
        #: When to replace a worker that died young.
        self.not_before = 0.0

    def run(self) -> int:
        """Supervise until told to stop; return the exit code."""
        wakeups, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        wakeup_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        # By default nothing would be written for the end of a child.
        before = {signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda number, frame: None)}
        before |= {number: signal.signal(number, self.stop) for number in STOP_SIGNALS}
        # What exists by now is shared with the workers; the collector shall not write to it.
        gc.collect()
        gc.freeze()
        try:
            return self.supervise(wakeups)
        finally:
            signal.set_wakeup_fd(wakeup_fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            for fd in (wakeups, write, self.shares):
                os.close(fd)

    def supervise(self, wakeups: int) -> int:
        """Start, watch and replace workers until there are none; `wakeups` tells of signals."""
        while True:
            self.bury()
            if self.stopping and not self.workers:
                return self.code
            self.replenish()
            self.wait(wakeups)
            if self.stopping and self.patience <= time.monotonic() and self.workers:
                log.write("error", "workers still had requests in hand and were killed")
                self.code = self.code or 1
                self.signal_workers(signal.SIGKILL)
                self.patience = time.monotonic() + GRACE

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass the wish to stop on, with patience; the second time without."""
        self.patience = time.monotonic()
        if not self.stopping:
            self.patience += self.settings.graceful_timeout + 2 * GRACE
            for listener in self.service.listeners:
                listener.release()
        self.stopping = number
        self.signal_workers(number)

    def signal_workers(self, number: int) -> None:
        """Send a signal to every worker."""
        for pid in self.workers:
            # We may be interrupted where one has been waited for and is still on the list.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait(self, wakeups: int) -> None:
        """Wait for a signal, for a worker that begins to serve, or until something is due."""
        poller = select.poll()
        promises = [
            worker.promise for worker in self.workers.values() if worker.promise is not None
        ]
        for fd in (wakeups, *promises):
            poller.register(fd, select.POLLIN)
        due = self.patience if self.stopping else self.not_before
        missing = len(self.workers) < self.settings.worker_count and not promises
        milliseconds = max(0.0, due - time.monotonic()) * 1000 + 1
        for fd, _ in poller.poll(milliseconds if self.stopping or missing else None):
            if fd == wakeups:
                os.read(wakeups, 4096)
        for worker in self.workers.values():
            worker.listen()
        serving = sum(worker.serves for worker in self.workers.values())
        if serving == self.settings.worker_count and not self.announced and not self.stopping:
            self.announced = True
            self.service.announce()

    def replenish(self) -> None:
        """Start missing workers; at first one alone, to see whether the application loads."""
        while len(self.workers) < self.settings.worker_count and not self.stopping:
            first = next(iter(self.workers.values()), None)
            if self.not_before > time.monotonic() or (
                first and not first.serves and not self.announced
            ):
                return
            taken = {worker.place for worker in self.workers.values()}
            self.start_worker(min(set(range(self.settings.worker_count)) - taken))

    def start_worker(self, place: int) -> None:
        """Fork a worker."""
        self.absent(place)
        ledger = self.ledgers.open(place)
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A wish to stop must find the new worker on the list, not the supervisor's handler in it.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                os.close(read)
                self.be_worker(place, ledger, write)
            os.close(write)
            self.workers[pid] = WorkerProcess(pid, place, read)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def absent(self, place: int) -> None:
        """Tell the siblings that nobody accepts at this place."""
        os.pwrite(self.shares, b"\xff" * 4, 4 * place)

    def be_worker(self, place: int, ledger: Ledger, promise: int) -> None:
        """Serve in this process, which is a worker; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            end_with_parent()
            if os.getppid() != self.pid:
                os._exit(0)
            for worker in self.workers.values():
                worker.forget()

            def ready() -> None:
                os.write(promise, b"+")
                os.close(promise)

            alone = self.settings.worker_count == 1
            with StopSignals(supervised=True) as signals:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
                siblings = None if alone else (self.shares, place)
                self.service.serve(ready, signals, siblings, ledger)
            code = 0
        except Stopped:
            code = 0
        except Failure as failure:
            code = failure.exit_code
            print(f"poorhttp: {failure}", file=sys.stderr)
            if self.settings.log_level == "debug":
                sys.excepthook(type(failure), failure, failure.__traceback__)
        except BaseException as error:
            log.exception("a worker failed", error)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def bury(self) -> None:
        """See to workers that have died."""
        while self.workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            worker = self.workers.pop(pid, None)
            if worker is not None:
                worker.listen()
                worker.forget()
                self.absent(worker.place)
                self.mourn(worker, os.waitstatus_to_exitcode(status))

    def mourn(self, worker: WorkerProcess, code: int) -> None:
        """Say how a worker died and what it had in hand, and plan its replacement."""
        how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with {code}"
        in_hand = self.ledgers.in_hand(worker.place)
        if self.stopping:
            if in_hand:
                log.write("error", f"worker {worker.pid} {how}; it had in hand: {in_hand}")
            return
        if not self.announced and not worker.serves:
            # What cannot start at all will not start the next time. If it failed it has said why.
            if code <= 0:
                log.write("error", f"worker {worker.pid} {how} before it served; giving up")
            self.code = max(code, 1)
            self.stop(signal.SIGTERM, None)
            return
        in_hand = f"it had in hand: {in_hand}" if in_hand else "it had no request in hand"
        log.write("error", f"worker {worker.pid} {how} and is replaced; {in_hand}")
        if time.monotonic() - worker.started < PAUSE:
            self.not_before = time.monotonic() + PAUSE
