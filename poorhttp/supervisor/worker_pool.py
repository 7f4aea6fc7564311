"""The workers of a service: how many, who replaces whom, and when."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from poorhttp import logs as log
from poorhttp.config.address import is_raw_tcp
from poorhttp.process import fork
from poorhttp.process.control_channel import DETACH, DRAIN, LIVE, ControlChannel
from poorhttp.process.exit_status import CRASHES, end_of
from poorhttp.process.signals import signal
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.backoff import PAUSE, Backoff
from poorhttp.supervisor.scoreboard import NOTHING, Scoreboard, added
from poorhttp.supervisor.worker_handle import CANNOT_WAIT, WorkerHandle
from poorhttp.worker import start
from poorhttp.worker.stop_signals import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from poorhttp.dev.reload.spawner import Spawner
    from poorhttp.supervisor.preloader import Preloader
    from poorhttp.supervisor.scoreboard import Counts, Totals
    from poorhttp.worker.service import Service

#: Seconds after which a worker that is still loading is told again to end.
TERM_INTERVAL = 1.0

#: Seconds between two looks at what workers hold.
LOOK = 1.0

#: Seconds after which a preloader that has nobody to fork any more may go.
REST = 0.5


class WorkerPool:
    """The workers of a service, and of one reading of its configuration.

    Attributes:
        service: what they serve.
        totals: of all pools of this service.
        count: how many there shall be.
        workers: those that are alive, by process; those too that are about to end.
        complete: all of them have served at some time.
        spawner: where they come from, if they are of one version among several.
        failed: the exit code of one that could not begin before that; 0: none.
        end: how that one ended, in words.
        draining: its workers say that they are not ready, and go on.
        leaving: none is replaced any more.
        stopped: it was told to stop.
    """

    def __init__(self, service: Service, totals: Totals, spawner: Spawner | None = None) -> None:
        self.service = service
        self.totals = totals
        self.spawner = spawner
        self.settings = service.settings
        self.count = service.settings.worker_count
        self.workers: dict[int, WorkerHandle] = {}
        self.preloader: Preloader | None = None
        self.noun = "worker"
        self.complete = False
        self.failed = 0
        self.end = ""
        self.draining = False
        self.leaving = False
        self.stopped = False
        #: There may be others than the present ones before they end.
        self.scoreboard = (
            spawner.scoreboard if spawner is not None else Scoreboard(2 * self.count + 8)
        )
        self.backoff = Backoff()
        self.last_start = 0.0
        watched = self.settings.max_lifetime or self.settings.max_rss
        #: When it is seen next whether workers have lived too long or grown too large.
        self.next_look = time.monotonic() + LOOK if watched else float("inf")

    # What it is like

    @property
    def name(self) -> str:
        """What to put before what is said of it, if there are others."""
        return f"service {self.settings.service}: " if self.settings.service else ""

    @property
    def stop_timeout(self) -> float:
        """Seconds that a worker may take to finish."""
        return self.settings.graceful_timeout + 2 * GRACE

    @property
    def serving(self) -> int:
        """How many of the workers serve, and will go on."""
        return sum(worker.serves and not worker.retired for worker in self.workers.values())

    @property
    def broken(self) -> bool:
        """Whether a worker serves nothing but a page that says what is wrong."""
        return any(worker.broken for worker in self._present)

    @property
    def over(self) -> bool:
        """Whether it is leaving, and the last has left."""
        return self.leaving and not self.workers and self.preloader is None

    @property
    def _present(self) -> Iterator[WorkerHandle]:
        return (worker for worker in self.workers.values() if not worker.retired)

    @property
    def _is_starting(self) -> bool:
        return any(not worker.serves for worker in self._present)

    def answers(self, since: float) -> bool:
        """Whether at least one worker has answered since then, or is busy."""
        if is_raw_tcp(self.settings.target):
            # All who could answer may be in long talks with clients, and that is well.
            return any(worker.serves for worker in self._present)
        # One whose threads all have requests cannot answer, and is well too.
        busy, serving = (
            self.scoreboard.statuses.is_full,
            [each for each in self._present if each.serves],
        )
        return any(
            each.answered >= since or (busy(each.slot) and not each.stopped) for each in serving
        )

    def answering(self, now: float) -> int:
        """Return how many workers neither are stopped nor have left a question open for long."""
        workers = [worker for worker in self._present if worker.serves and not worker.stopped]
        if is_raw_tcp(self.settings.target):
            return len(workers)
        return sum(not worker.is_silent(now) for worker in workers)

    def counts(self) -> Counts:
        """Return what the workers have counted that are alive."""
        counts = NOTHING
        for worker in self.workers.values():
            counts = added(counts, self.scoreboard.statuses.counts(worker.slot))
        return counts

    def channels(self) -> Iterator[ControlChannel]:
        """The channels on which something may be said."""
        found = [worker.channel for worker in self.workers.values()]
        if self.preloader is not None:
            found.append(self.preloader.channel)
        return (channel for channel in found if channel.is_readable)

    # What it does

    def tick(self, now: float) -> None:
        """Do what is due: start, replace, retire and kill workers."""
        for worker in list(self.workers.values()):
            worker.hear(now)
            if worker.retired and worker.retired <= now:
                in_hand = self.scoreboard.statuses.in_flight(worker.slot)
                why = (
                    f"still had requests in hand and was killed: {in_hand}"
                    if in_hand
                    else "had answered everything, but did not end (an atexit handler or a thread "
                    "of the application holds it up) and was killed"
                )
                # Whoever tells the server to stop has said how long that may take.
                log.write("warning" if self.stopped else "error", f"worker {worker.pid} {why}")
                self._signal(worker.pid, signal.SIGKILL)
                worker.retired = now + GRACE
            elif 0 < worker.stopped <= now:
                log.write(
                    "error", f"{self.noun} {worker.pid} is still stopped (SIGSTOP), and is killed"
                )
                self._signal(worker.pid, signal.SIGKILL)
                worker.stopped = 0.0
            elif worker.retired and not worker.serves and worker.next_term <= now:
                self._repeat_term(worker, now)
        if self.preloader is not None:
            self.preloader.tick(now)
        if self.leaving:
            return
        if self.preloader is not None and self._preloader_idle_at() <= now:
            self.preloader.dismiss(now + self.stop_timeout)
        self._spawn_missing(now)
        if self.serving >= self.count:
            self.complete = True
        self._check_recovery(now)
        self._look(now)
        self._recycle(now)

    def due(self) -> float:
        """Return when there is something to do although nothing happens."""
        times = [worker.retired for worker in self.workers.values() if worker.retired]
        loading = [worker for worker in self.workers.values() if not worker.serves]
        times += [worker.next_term for worker in loading if worker.next_term]
        times += [worker.stopped for worker in self.workers.values() if worker.stopped]
        if self.preloader is not None and self.preloader.until:
            times.append(self.preloader.until)
        if not self.leaving:
            if self.backoff.pause:
                times.append(self.backoff.until)
            elif self.backoff.count and self.serving >= self.count:
                times.append(self.last_start + PAUSE)
            times += [self._preloader_idle_at(), self.next_look]
        return min(times, default=float("inf"))

    def ask(self) -> None:
        """Ask all workers whether they still answer."""
        now = time.monotonic()
        for worker in self._present:
            worker.ask(now)

    def drain(self) -> None:
        """Have all workers, and those still to come, say that nobody new should come."""
        self.draining = True
        for worker in self.workers.values():
            worker.channel.send(DRAIN)

    def resize(self, count: int) -> None:
        """Have so many workers from now on."""
        self.count = max(1, count)
        for worker in list(self._present):
            if worker.index >= self.count:
                self._retire(worker)
            elif self.count > 1 and not worker.balances:
                worker.worn = "it has to share from now on"

    def retire(self) -> None:
        """Have all workers finish what they have in hand, and end."""
        self.leaving = True
        for worker in list(self._present):
            self._retire(worker)
        if self.preloader is not None:
            self.preloader.end(signal.SIGTERM, time.monotonic() + self.stop_timeout)

    def detach(self) -> None:
        """Have others serve from now on: idle connections are theirs, and nobody begins."""
        self.leaving = True
        for worker in list(self._present):
            if worker.has_begun():
                self.scoreboard.leave(worker.slot)
                worker.retire(time.monotonic() + self.stop_timeout, DETACH)
            else:
                self._abandon(worker)

    def reload_browsers(self) -> None:
        """Have pages that are open in browsers reload themselves."""
        for worker in self._present:
            worker.channel.send(LIVE)

    def stop(self, number: int, until: float) -> None:
        """Tell all workers to stop, by the signal by which we were told."""
        self.leaving = self.stopped = True
        for worker in self.workers.values():
            worker.retired = min(worker.retired or until, until)
            self._signal(worker.pid, number)
            if self.spawner is not None and not worker.has_begun():
                self._abandon(worker)
        if self.preloader is not None:
            self.preloader.end(number, until)

    def signal(self, number: int) -> None:
        """Pass a signal on to all workers, and to those still to come."""
        for pid in self.workers:
            self._signal(pid, number)
        self._signal_preloader(number)

    def on_stopped(self, pid: int, number: int) -> None:
        """Note that a process was stopped by a signal, or continued (0)."""
        if self.preloader is not None and self.preloader.pid == pid:
            self.preloader.on_stopped(number)
        elif worker := self.workers.get(pid):
            worker.on_stopped(number, self.settings)

    def reap(self, pid: int, code: int) -> bool:
        """See to a child that has died; `False` if it was none of this pool."""
        if self.preloader is not None and self.preloader.pid == pid:
            self._on_preloader_exit(code)
            return True
        worker = self.workers.pop(pid, None)
        if worker is None:
            return False
        worker.hear(time.monotonic())
        worker.channel.close()
        self.totals.reap(self.scoreboard.statuses.counts(worker.slot))
        self._on_worker_exit(worker, code)
        self.scoreboard.free(worker.slot)
        return True

    def close(self) -> None:
        """Give up what only this pool has."""
        if self.spawner is None:
            self.scoreboard.close()

    # How

    def _signal(self, pid: int, number: int) -> None:
        # It may have ended, and not have been buried yet.
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def _retire(self, worker: WorkerHandle) -> None:
        self.scoreboard.leave(worker.slot)
        worker.retire(time.monotonic() + self.stop_timeout)
        if not worker.serves or is_raw_tcp(self.settings.target):
            # It has nothing to finish and does not hear the channel yet; or all that could hear it
            # may be in handlers that wait for clients as long as those like.
            self._signal(worker.pid, signal.SIGTERM)

    def _repeat_term(self, worker: WorkerHandle, now: float) -> None:
        """Tell one to end that is still loading, again and again.

        What its signal handler raises is lost where Python runs a callback of its own, and comes
        too late where the application begins to wait for something in the same moment.
        """
        if worker.next_term:
            self._signal(worker.pid, signal.SIGTERM)
        worker.next_term = now + TERM_INTERVAL

    def _abandon(self, worker: WorkerHandle) -> None:
        """End one that serves nobody yet, whatever its application does while it is imported."""
        worker.retired = worker.retired or time.monotonic() + GRACE
        self._signal(worker.pid, signal.SIGKILL)

    def _spawn_missing(self, now: float) -> None:
        """Fill the seats; at first one alone, to see whether the application loads."""
        if self.failed:
            return
        taken = {worker.index for worker in self._present}
        for index in range(self.count):
            if index in taken:
                continue
            # One alone is tried first, too, where others have died early.
            alone = not self.complete or self.backoff.count > 0
            if self.backoff.until > now or (alone and self._is_starting):
                return
            if not self._spawn(index):
                return

    def _look(self, now: float) -> None:
        if self.next_look <= now:
            self.next_look = now + LOOK
            for worker in self._present:
                worker.look(self.settings, now)

    def _recycle(self, now: float) -> None:
        """Replace workers that are worn, one at a time: the successor serves before they finish."""
        for worker in list(self._present):
            if worker.successor is not None and worker.successor.serves:
                log.write("info", f"worker {worker.pid} is replaced: {worker.worn}")
                self.totals.worn += 1
                self._retire(worker)
        relieved = any(worker.successor for worker in self.workers.values())
        for worker in list(self._present):
            if worker.worn and worker.successor is None and self.backoff.until <= now:
                if relieved and worker.worn != CANNOT_WAIT:
                    continue
                worker.successor = self._spawn(worker.index)
                relieved = True

    def _spawn(self, index: int) -> WorkerHandle | None:
        """Start a worker, if that can be done by now."""
        try:
            return self._fork(index)
        except OSError as error:
            logs = self.backoff.fail()
            if self.complete:
                then = f"the next attempt is made in {self.backoff.pause:.0f} s"
            else:
                then = "giving up"
                self.failed = 1
            if not logs:
                return None
            log.write("error", f"{self.name}no worker can be forked: {error.strerror}; {then}")
            return None

    def _fork(self, index: int) -> WorkerHandle | None:
        """Fork a worker, if its preloader is ready or none is needed."""
        if self.spawner is not None and not self.spawner.ready:
            return None
        self.service.start_errors_muted = not self.backoff.logs
        if self.settings.preload and self.service.application is None and self.spawner is None:
            if self.preloader is None:
                from poorhttp.supervisor.preloader import Preloader

                self.preloader = Preloader(self.service, self.scoreboard)
            if not self.preloader.can_fork:
                return None
        channel = ControlChannel()
        slot = self.scoreboard.take()
        # A worker with a socket of its own must not wait for others to accept from it.
        balance_fd = (
            self.scoreboard.balance_fd if self.count > 1 and not self.settings.reuse_port else None
        )
        status = self.scoreboard.open(slot)
        context = WorkerContext(
            index, slot, channel.child_fd, balance_fd, status, self._recycle_after()
        )
        parent = os.getpid()
        try:
            if self.spawner is not None:
                pid = self.spawner.fork(context)
            elif self.preloader is not None:
                pid = self.preloader.fork(context)
            else:
                pid = fork.fork(lambda: start.run_worker(self.service, context, parent))
        except OSError:
            channel.close()
            self.scoreboard.free(slot)
            raise
        finally:
            channel.close_child_end()
        if pid == 0:
            channel.close()
            self.scoreboard.free(slot)
            self._signal_preloader(signal.SIGKILL)
            self.backoff.fail()
            return None
        self.last_start = time.monotonic()
        worker = WorkerHandle(pid, index, slot, channel, balances=balance_fd is not None)
        self.workers[pid] = worker
        if self.draining:
            worker.channel.send(DRAIN)
        return worker

    def _recycle_after(self) -> int:
        settings = self.settings
        if not settings.max_requests:
            return 0
        # `random` would be large.
        luck = int.from_bytes(os.urandom(8), "big")
        return settings.max_requests + luck % (settings.max_requests_jitter + 1)

    def _on_worker_exit(self, worker: WorkerHandle, code: int) -> None:
        """Say how a worker died and what it had in hand, and plan its replacement."""
        how = end_of(code)
        in_hand = self.scoreboard.statuses.in_flight(worker.slot)
        for other in self.workers.values():
            if other.successor is worker:
                other.successor = None
        if self.leaving or worker.retired:
            if in_hand:
                log.write("error", f"{self.noun} {worker.pid} {how}; it had in hand: {in_hand}")
            elif -code in CRASHES:
                log.write("error", f"{self.noun} {worker.pid} {how} while it ended")
            return
        if not self.complete and not worker.serves:
            # What cannot start at all will not start the next time. If it failed it has said why.
            if code <= 0 and self.spawner is None:
                log.write("error", f"{self.noun} {worker.pid} {how} before it served; giving up")
            self.failed = max(code, 1)
            self.end = how
            return
        self.totals.died += 1
        in_hand = f"it had in hand: {in_hand}" if in_hand else "it had no request in hand"
        if time.monotonic() - worker.started < PAUSE or not worker.serves:
            if not self.backoff.fail():
                return
        else:
            self.backoff.succeed()
        when = self.backoff.text()
        log.write("error", f"{self.noun} {worker.pid} {how} and is replaced{when}; {in_hand}")

    def _check_recovery(self, now: float) -> None:
        """Forget early deaths when all workers have served for a moment."""
        if self.backoff.count and self.serving >= self.count and now - self.last_start >= PAUSE:
            if self.backoff.count > 1:
                count = self.backoff.count
                log.write("info", f"{self.name}all workers serve again; {count} had died young")
            self.backoff.succeed()

    def _signal_preloader(self, number: int) -> None:
        if self.preloader is not None:
            self._signal(self.preloader.pid, number)

    def _preloader_idle_at(self) -> float:
        """Return when the preloader may go, if ever: it has nobody to fork for the time being."""
        settings = self.settings
        if settings.max_requests or settings.max_rss or settings.max_lifetime:
            return float("inf")
        if self.preloader is None or self.preloader.dismissed or self.serving < self.count:
            return float("inf")
        if any(worker.worn and worker.successor is None for worker in self._present):
            return float("inf")
        return self.last_start + REST

    def _on_preloader_exit(self, code: int) -> None:
        assert self.preloader is not None
        preloader = self.preloader
        preloader.channel.close()
        self.preloader = None
        if self.leaving or preloader.dismissed:
            return
        how = end_of(code)
        if not self.complete and not preloader.ready:
            if code <= 0:
                log.write("error", f"the process that loads the application {how}; giving up")
            self.failed = max(code, 1)
            return
        if self.backoff.fail():
            then = f"is replaced{self.backoff.text()}"
            log.write("error", f"the process that has loaded the application {how} and {then}")
