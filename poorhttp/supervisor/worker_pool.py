"""The worker processes of a service: spawned, recycled, retired, replaced when they crash."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from poorhttp import logs as log
from poorhttp.config.address import is_raw_tcp
from poorhttp.process import fork, signals
from poorhttp.process.control_channel import (
    DETACH,
    DRAIN,
    END_LONG_POLLS,
    QUICK_STOP,
    REOPEN_LOGS,
    STOP,
    UNDRAIN,
    ControlChannel,
)
from poorhttp.process.exit_status import CRASHES, end_of
from poorhttp.process.signals import signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.backoff import PAUSE, Backoff
from poorhttp.supervisor.scoreboard import Totals
from poorhttp.supervisor.spawner import MainSpawner, Spawner
from poorhttp.supervisor.tasks import attempt
from poorhttp.supervisor.worker_handle import ASKED, CANNOT_WAIT, WorkerHandle
from poorhttp.worker.service import Service
from poorhttp.worker.stop_signals import GRACE
from poorhttp.worker.worker import log_greenlets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import WorkerStatus
    from poorhttp.supervisor.hooks.queue import HookQueue
    from poorhttp.supervisor.spawner import SpawnerProcess

#: Seconds between two SIGTERMs to a worker that is still loading its application.
TERM_INTERVAL = 1.0

#: Seconds in which a worker has to report itself that another process was told to fork.
FORK_TIMEOUT = 30.0


class WorkerPool:
    """The workers of a service, for one configuration.

    Attributes:
        service: what they serve.
        totals: counters over all pools of this service.
        count: how many workers there should be.
        workers: those that are alive, by process ID, including those that are about to end.
        spawner: forks them; by default from the main process.
        report: called with the name of an event (`worker_started`, `worker_ended`) and its
            arguments, see `Component`.
    """

    noun = "worker"  # names its processes in the log
    complete = False  # all of its workers have served at some time
    failed = 0  # exit code of a worker that ended before that, and is not replaced; 0: none
    failure = ""  # how that worker ended, in words
    cause = ""  # why it could not begin, as it has said itself, or else how it ended
    failed_at = 0.0  # when it ended
    #: A worker that could not load the application has ended, and is replaced by another generation
    #: when older ones have ended.
    held = False
    draining = False  # its workers report that they are not ready, and go on
    retiring = False  # workers that end are not replaced any more
    stopping = False  # it was stopped by a signal
    end_reason = "stopped"  # why its workers end when it retires, one word for the hooks
    hooks: HookQueue | None = None  # gets the events of its workers, for functions of hooks
    #: The worker that another process was told to fork, until it has reported itself: its process
    #: ID is not known before.
    ordered: WorkerHandle | None = None
    _ordered_until = 0.0
    last_start = 0.0

    def __init__(
        self,
        service: Service,
        totals: Totals,
        spawner: Spawner | None = None,
        report: Callable[..., object] = lambda *event: None,
    ) -> None:
        self.service = service
        self.totals = totals
        self.spawner = spawner or MainSpawner(service)
        self.spawner.pool = self
        self.report = report
        self.settings = service.settings
        self.count = service.settings.worker_count
        self._shared_from = 2 - self.settings.is_enabled("workers=auto")
        self.workers: dict[int, WorkerHandle] = {}
        self.scoreboard = self.spawner.scoreboard
        self.backoff = Backoff()
        self.scaling: dict[str, float] = {}  # figures by which workers and threads follow the load

    # State

    @property
    def name(self) -> str:
        """Prefix of its log lines; empty without named services."""
        return f"service {self.settings.service}: " if self.settings.service else ""

    @property
    def stop_timeout(self) -> float:
        """Seconds that a worker may take to finish."""
        return self.settings.graceful_timeout + 2 * GRACE

    @property
    def serving(self) -> int:
        """How many workers serve and are not retiring."""
        return sum(worker.serves and not worker.kill_at for worker in self.workers.values())

    @property
    def ended(self) -> bool:
        return self.retiring and not (self.workers or self.spawner.process or self.ordered)

    @property
    def _present(self) -> Iterator[WorkerHandle]:
        return (worker for worker in self.workers.values() if not worker.kill_at)

    @property
    def _processes(self) -> Iterator[WorkerHandle | SpawnerProcess]:
        yield from self.workers.values()
        if self.spawner.process is not None:
            yield self.spawner.process

    def is_full(self, worker: WorkerHandle) -> bool:
        """Whether all threads of a worker have requests: it cannot answer a ping, and is not hung.

        Connections of raw TCP are not counted, and a process that is stopped does nothing.
        """
        if is_raw_tcp(self.settings.target) or worker.kill_stopped_at or not worker.serves:
            return False
        status = self.scoreboard.status(worker.slot)
        return status is not None and status.is_full()

    def statuses(self) -> list[WorkerStatus]:
        statuses = (self.scoreboard.status(worker.slot) for worker in self.workers.values())
        return [status for status in statuses if status is not None]

    def channels(self) -> Iterator[ControlChannel]:
        """Yield the control channels from which messages may come."""
        channels = [each.channel for each in self._processes]
        if self.ordered is not None:
            channels.append(self.ordered.channel)
        return (channel for channel in channels if channel.is_readable)

    # Actions

    def tick(self, now: float) -> None:
        """Receive messages; spawn, recycle and kill workers that are due."""
        self.admit(now)
        for worker in list(self.workers.values()):
            served = worker.serves
            worker.receive(now)
            if worker.serves and not served:
                self.report("worker_started", self, worker)
            if worker.is_late(now):
                in_flight = self.scoreboard.in_flight(worker.slot)
                worker.give_up(in_flight, self.noun, now, asked=self.stopping)
            elif worker.kill_at and not worker.serves and worker.next_term <= now:
                self._repeat_term(worker, now)
            if worker.greenlets not in (None, self.totals.greenlets) and not self.retiring:
                # Other workers, and those of a reload, report the same.
                self.totals.greenlets = worker.greenlets
                log_greenlets(worker.greenlets, self.name)
            if worker.timeout and self.hooks is not None:
                self.hooks.worker_timeout(self, worker)
        self.spawner.tick(now)
        if self.retiring:
            return
        self._spawn_missing(now)
        if self.serving >= self.count:
            if not self.complete and all(each.greenlets is None for each in self.workers.values()):
                self.totals.greenlets = None
            self.complete = True
        self._check_recovery(now)
        for worker in self._present:
            if worker.limits_due(self.settings) <= now:
                worker.check_limits(self.settings, self.scoreboard.status(worker.slot), now)
        self._recycle(now)

    def due(self) -> float:
        """Return when `tick` has to be called, even if no message arrives."""
        times = [each.kill_at for each in self._processes]
        if self.ordered is not None:
            times.append(self._ordered_until)
        for worker in self.workers.values():
            times += [worker.kill_stopped_at, 0.0 if worker.serves else worker.next_term]
        times = [at for at in times if at]
        if not self.retiring:
            if self.backoff.pause:
                times.append(self.backoff.until)
            elif self.backoff.count and self.serving >= self.count:
                times.append(self.last_start + PAUSE)
            times.append(self.spawner.due())
            times += [worker.limits_due(self.settings) for worker in self._present]
        return min(times, default=float("inf"))

    def ping(self) -> None:
        now = time.monotonic()
        for worker in self._present:
            worker.ping(now)

    def drain(self, *, on: bool) -> None:
        """Have all workers, and those spawned later, report that they are not ready; or not."""
        self.draining = on
        for worker in (*self.workers.values(), self.ordered):
            if worker is not None:
                worker.channel.send(DRAIN if on else UNDRAIN)

    def resize(self, count: int) -> None:
        self.count = max(1, count)
        for worker in list(self._present):
            self._fit(worker)

    def _fit(self, worker: WorkerHandle) -> None:
        """Retire or recycle a worker that does not fit the number of workers."""
        if worker.index >= self.count:
            self._retire(worker)
        elif self.count >= self._shared_from and not worker.balances:
            worker.recycle_reason = "it has to share from now on"

    def retire(self) -> None:
        """Have all workers finish their requests, and end."""
        self.retiring = True
        for worker in list(self._present):
            self._retire(worker)
        self.spawner.stop(signal.SIGTERM, time.monotonic() + self.stop_timeout)

    def detach(self, reason: str) -> None:
        """Retire, and leave idle connections to other workers; kill those that do not serve yet.

        `reason`: see `end_reason`.
        """
        self.end_reason, self.retiring = reason, True
        for worker in list(self._present):
            self._detach(worker)

    def _detach(self, worker: WorkerHandle) -> None:
        if worker.has_served():
            # It may have accepted connections, also if it has reported itself only now.
            self.scoreboard.stop_accepting(worker.slot)
            worker.retire(time.monotonic() + self.stop_timeout, DETACH)
        else:
            self._kill(worker)

    def end_long_polls(self) -> None:
        """Complete the long polls of all workers, each with its final chunk."""
        for worker in self._present:
            worker.channel.send(END_LONG_POLLS)

    def stop(self, number: int, until: float) -> None:
        """Pass the signal to stop on to all workers, which are killed at `until`."""
        self.retiring = self.stopping = True
        self._ordered_until = min(self._ordered_until, until)
        for worker in self.workers.values():
            worker.kill_at = min(worker.kill_at or until, until)
            worker.stop(number)
            worker.channel.send(STOP if number == signal.SIGTERM else QUICK_STOP)
            if self.spawner.kills_unready and not worker.has_served():
                self._kill(worker)
        self.spawner.stop(number, until)

    def reopen_logs(self) -> None:
        """Have all processes reopen their logs: by a signal, and by a message if that is lost."""
        for worker in self.workers.values():
            # faulthandler's handler dumps tracebacks, which can crash busy threads.
            if not worker.own_usr1:
                signals.send_if_handled(worker.pid, signal.SIGUSR1)
            worker.channel.send(REOPEN_LOGS)
        if self.spawner.process is not None:
            signals.send_if_handled(self.spawner.process.pid, signal.SIGUSR1)
        self.spawner.reopen_logs()

    def on_stopped(self, pid: int, number: int) -> None:
        """Handle that a signal has stopped a process, or that it was continued (0)."""
        if self._is_of_spawner(pid):
            self.spawner.on_stopped(number)
        elif worker := self.workers.get(pid):
            worker.on_stopped(number, kill=self.service.kills_stopped)

    def reap(self, pid: int, code: int) -> bool:
        """Handle the end of a child; return `False` if it is not of this pool."""
        if self._is_of_spawner(pid):
            self.spawner.on_exit(code)
            return True
        worker = self.workers.pop(pid, None)
        if worker is None:
            return False
        worker.receive(time.monotonic())
        worker.channel.close()
        self.totals.add_ended(self.scoreboard.status(worker.slot))
        if self.hooks is not None and (worker.serves or self.complete):
            # A start or reload that fails is told by its own message.
            attempt("a hook", self.hooks.worker_exit, self, worker, code)
        self.report("worker_ended", self, worker, code)
        self._on_worker_exit(worker, code)
        self.scoreboard.free(worker.slot)
        return True

    def _is_of_spawner(self, pid: int) -> bool:
        return self.spawner.process is not None and self.spawner.process.pid == pid

    def admit(self, now: float) -> None:
        """Handle that the worker that was ordered has reported itself, or cannot any more.

        The process ID is from the kernel, and counts only if the process is a child of this one
        that is nothing else yet, and has the rights of a worker. So code of the application, which
        runs in the process that forks, cannot name another process.
        """
        worker = self.ordered
        if worker is None:
            return
        sender = worker.channel.sender()
        if sender is None and now < self._ordered_until:
            return
        self.ordered = None
        pid, uid = sender or (0, 0)
        wanted = self.service.privileges.uid
        if pid == 0 or (wanted is not None and uid != wanted) or not fork.adopt(pid):
            why = "has ended before it could report itself"
            if pid:
                why = f"was reported by process {pid} of user {uid}, which cannot be one"
            elif sender is None:
                why = f"has not reported itself within {FORK_TIMEOUT:.0f} s"
            self._on_not_forked(worker, why)
            return
        worker.pid = pid
        self.workers[pid] = worker
        if self.retiring:
            if self.spawner.kills_unready:
                self._detach(worker)
            else:
                self._retire(worker)
        else:
            self._fit(worker)

    def _on_not_forked(self, worker: WorkerHandle, why: str) -> None:
        worker.channel.close()
        self.scoreboard.free(worker.slot)
        self._forget_successor(worker)
        if self.retiring:
            return
        if self.spawner.process is not None:
            signals.send(self.spawner.process.pid, signal.SIGKILL)
        if self.backoff.fail():
            log.write("error", f"{self.name}a worker {why}{self.backoff.text()}")

    def _forget_successor(self, worker: WorkerHandle) -> None:
        for other in self.workers.values():
            if other.successor is worker:
                other.successor = None

    def on_promoted(self, worker: WorkerHandle) -> None:
        """Handle that a worker has become the process that forks the others."""
        del self.workers[worker.pid]
        if self.hooks is not None:
            self.hooks.worker_promoted(self, worker)
        self.totals.add_ended(self.scoreboard.status(worker.slot))
        self.scoreboard.free(worker.slot)

    def _retire(self, worker: WorkerHandle) -> None:
        self.scoreboard.stop_accepting(worker.slot)
        worker.retire(time.monotonic() + self.stop_timeout)
        if not worker.serves or is_raw_tcp(self.settings.target):
            # It does not read the channel: it is still loading, or its threads are in handlers.
            worker.stop(signal.SIGTERM)

    def _repeat_term(self, worker: WorkerHandle, now: float) -> None:
        """Send SIGTERM again and again to a worker that is still loading.

        The exception that its signal handler raises is lost in a callback such as `__del__`, and
        comes too late if the application has just begun to wait.
        """
        if worker.next_term:
            signals.send(worker.pid, signal.SIGTERM)
        worker.next_term = now + TERM_INTERVAL

    def _kill(self, worker: WorkerHandle) -> None:
        """Kill a worker that does not serve yet."""
        worker.kill_at = worker.kill_at or time.monotonic() + GRACE
        signals.send(worker.pid, signal.SIGKILL)

    def _spawn_missing(self, now: float) -> None:
        """Spawn missing workers; the first one alone, to see whether the application loads."""
        if self.failed or self.held:
            return
        taken = {worker.index for worker in self._present}
        if self.ordered is not None:
            taken.add(self.ordered.index)
        if self.spawner.promoting is not None:
            # The first fork of that worker takes its place.
            taken.add(self.spawner.promoting.index)
        for index in range(self.count):
            if index in taken:
                continue
            # After early exits, too, one alone is tried first.
            alone = not self.complete or self.backoff.count > 0
            starting = any(not worker.serves for worker in self._present) or self.ordered
            if self.backoff.until > now or (alone and starting):
                return
            if not self._spawn(index):
                return

    def _recycle(self, now: float) -> None:
        """Replace workers that are to be recycled, one at a time, once their successor serves."""
        for worker in list(self._present):
            if worker.successor is not None and worker.successor.serves:
                log.write("info", f"worker {worker.pid} is replaced: {worker.recycle_reason}")
                why = {CANNOT_WAIT: "timeout", ASKED: "asked"}.get(worker.recycle_reason, "worn")
                self.totals.count_restart(why)
                self._retire(worker)
        recycling = any(worker.successor for worker in self.workers.values())
        recycling |= self.spawner.promoting is not None
        for worker in list(self._present):
            if worker.recycle_reason and worker.successor is None and self.backoff.until <= now:
                if recycling and worker.recycle_reason != CANNOT_WAIT:
                    continue
                worker.successor = self._spawn(worker.index)
                recycling = True

    def _spawn(self, index: int) -> WorkerHandle | None:
        try:
            return self._fork(index)
        except OSError as error:
            logs = self.backoff.fail()
            if self.complete:
                then = f"the next attempt is made in {self.backoff.pause:.0f} s"
            else:
                then = "giving up"
                self.failed = 1
                self.cause = f"no worker can be forked: {error.strerror}"
            if logs:
                log.write("error", f"{self.name}no worker can be forked: {error.strerror}; {then}")
            return None

    def _fork(self, index: int) -> WorkerHandle | None:
        """Fork a worker; return `None` if the process that forks it is not ready or has failed."""
        if self.ordered is not None:
            return None
        self.service.start_errors_muted = not self.backoff.logs
        self.spawner.prepare()
        if not self.spawner.ready:
            return None
        channel = ControlChannel()
        slot = self.scoreboard.take()
        # With `reuse_port`, no other worker accepts from a worker's socket.
        shared = self.count >= self._shared_from and not self.settings.reuse_port
        siblings = self.scoreboard.memory if shared else None
        status = self.scoreboard.open(slot)
        recycle_after = self.settings.max_requests
        if recycle_after:
            # Not `random`, which takes much memory.
            number = int.from_bytes(os.urandom(8), "big")
            recycle_after += number % (self.settings.max_requests_jitter + 1)
        worker = WorkerHandle(index, slot, channel, balances=shared)
        context = WorkerContext(index, slot, channel.child_fd, siblings, status, recycle_after)
        is_ordered = False
        try:
            if self.spawner.orders:
                channel.expect_here()
                is_ordered = self.spawner.order(context)
            else:
                worker.pid = self.spawner.fork(context)
        except OSError:
            channel.close()
            self.scoreboard.free(slot)
            raise
        finally:
            channel.close_child_end()
        self.last_start = time.monotonic()
        if worker.pid:
            self.workers[worker.pid] = worker
        elif is_ordered:
            self.ordered = worker
            self._ordered_until = self.last_start + FORK_TIMEOUT
        else:
            self._on_not_forked(worker, "cannot be ordered")
            return None
        if self.draining:
            worker.channel.send(DRAIN)
        return worker

    def _on_worker_exit(self, worker: WorkerHandle, code: int) -> None:
        """Log how a worker ended and its requests in flight, and schedule its replacement."""
        how = end_of(code)
        in_flight = self.scoreboard.in_flight(worker.slot)
        self._forget_successor(worker)
        self.spawner.worker_ended(worker)
        if self.retiring or worker.kill_at:
            if in_flight:
                log.write("error", f"{self.noun} {worker.pid} {how}; it had in flight: {in_flight}")
            elif -code in CRASHES:
                log.write("error", f"{self.noun} {worker.pid} {how} while it ended")
            return
        if not self.complete and not worker.serves:
            self.failed_at = time.monotonic()
            if worker.again:
                self.held = True
                return
            # It would fail again. A worker that ends with a code above 0 has logged why.
            if code <= 0 and not self.spawner.kills_unready:
                log.write("error", f"{self.noun} {worker.pid} {how} before it served; giving up")
            self.failed = max(code, 1)
            self.failure = how
            self.cause = worker.channel.reason or f"a worker {how} before it served"
            return
        self.totals.count_restart("stopped" if worker.killed_stopped else "died")
        in_flight = f"it had in flight: {in_flight}" if in_flight else "it had no request in flight"
        if time.monotonic() - worker.started < PAUSE or not worker.serves:
            if not self.backoff.fail():
                return
        else:
            self.backoff.succeed()
        when = self.backoff.text()
        log.write("error", f"{self.noun} {worker.pid} {how} and is replaced{when}; {in_flight}")

    def _check_recovery(self, now: float) -> None:
        """Reset the backoff when all workers have served for a while."""
        if self.backoff.count and self.serving >= self.count and now - self.last_start >= PAUSE:
            if self.backoff.count > 1:
                count = self.backoff.count
                log.write("info", f"{self.name}all workers serve again; {count} had died early")
            self.backoff.succeed()
