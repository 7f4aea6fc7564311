"""Logs when all threads of a worker are busy while requests wait.

A worker sends `FULL` when its last free thread gets a request. From then on, the main process
checks it every second, until it has begun no request since the last check; so an idle server has no
wakeups. All workers are checked at the same moments: a wakeup costs the main process time for each
worker, and with one for each worker that would be their number squared. A ping that no thread has
answered shows that none was free since.
"""

from __future__ import annotations

from poorhttp import logs
from poorhttp.supervisor.component import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import WorkerStatus
    from poorhttp.supervisor.component import Main
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds for which all threads must have been busy.
LONG = 1.0

#: Seconds between two checks: while requests begin, and at most.
SHORTEST, LONGEST = 1.0, 8.0

#: Seconds between the moments of checks.
MOMENT = 0.5

#: Seconds between two lines about the same worker.
AGAIN = 60.0


class Check:
    """The state of a worker that is checked.

    Attributes:
        next: when it is checked next.
        since: since when all of its threads are busy, as far as is known.
        begun: `since` at the first log line of the present saturation.
        seen: when each request in flight was first seen, by its number.
        requests: requests begun until the last check.
        pause: seconds until the next check.
        logged: time of the last log line; 0: none.
        reported: the present saturation has been logged.
    """

    def __init__(self) -> None:
        self.next = float("inf")
        self.since = self.begun = 0.0
        self.seen: dict[int, float] = {}
        self.requests = 0
        self.pause = SHORTEST
        self.logged = 0.0
        self.reported = False

    def is_due(self, worker: WorkerHandle, now: float) -> bool:
        """Whether to check now: it is time, or a saturation that was logged has just ended."""
        return self.next <= now or (self.reported and not worker.pinged)


class Saturation(Component):
    """Checks the workers that have sent `FULL`."""

    def __init__(self, main: Main) -> None:
        super().__init__(main)
        self._checks: dict[WorkerHandle, Check] = {}

    def due(self) -> float:
        """Return when `tick` has to be called."""
        return min((check.next for check in self._checks.values()), default=float("inf"))

    def tick(self, now: float) -> None:
        """Start to check workers that have sent `FULL`, and do the checks that are due."""
        alive: dict[WorkerHandle, WorkerPool] = {}
        for pool in self.main.generations.serving:
            alive.update((each, pool) for each in pool.workers.values() if not each.kill_at)
        for worker in [worker for worker in self._checks if worker not in alive]:
            del self._checks[worker]
        for worker, pool in alive.items():
            status = pool.scoreboard.status(worker.slot)
            if status is None:
                continue
            if worker.full:
                worker.full = False
                check = self._checks.setdefault(worker, Check())
                check.since, check.seen = now, dict.fromkeys(dict(status.in_flight(True)), now)
                check.next, check.pause = _moment(now + SHORTEST), SHORTEST
                check.requests = status.counts()[0]
            elif (known := self._checks.get(worker)) is not None and known.is_due(worker, now):
                self._check(pool, worker, status, now)

    def _check(
        self, pool: WorkerPool, worker: WorkerHandle, status: WorkerStatus, now: float
    ) -> None:
        check = self._checks[worker]
        requests = status.counts()[0]
        idle = requests == check.requests
        check.requests = requests
        check.seen = {number: check.seen.get(number, now) for number, _ in status.in_flight(True)}
        check.since = max(check.since, worker.last_answer)
        full = status.is_full()
        if full and worker.pinged and now - worker.pinged >= LONG:
            if not check.logged or now - check.logged >= AGAIN:
                idle &= not self._log(pool, worker, status, now)
        elif check.reported and not worker.pinged:
            lasted = worker.last_answer - check.begun
            logs.write(
                "info",
                f"{pool.name}worker {worker.pid}: a thread is free again after {lasted:.1f} s",
            )
            check.reported = False
        elif idle and not full and not worker.pinged:
            # From now on it sends `FULL` again, but not if it has become full just before.
            status.set_watched(False)
            if not status.is_full():
                check.next = float("inf")
                return
            status.set_watched(True)
        if full and not worker.pinged:
            worker.ping(now)
        check.pause = min(2 * check.pause, LONGEST) if idle else SHORTEST
        check.next = _moment(now + check.pause)

    def _log(
        self, pool: WorkerPool, worker: WorkerHandle, status: WorkerStatus, now: float
    ) -> bool:
        """Log that all threads are busy, if requests wait; return whether they do."""
        from poorhttp.plugins.monitor.unread import waiting

        try:
            count, longest = waiting(pool.service.listeners)
        except OSError as error:
            queue = f"how many requests wait cannot be known (AF_NETLINK: {error.strerror})"
        else:
            if count == 0:
                return False
            many = f"{count} requests wait" if count > 1 else "1 request waits"
            queue = f"{many}, the longest for {longest:.1f} s" if longest else many
        check = self._checks[worker]
        if not check.reported:
            check.begun = check.since
        check.reported, check.logged = True, now
        threads = status.figures()["threads"]
        who = f"all {threads} threads have" if threads > 1 else "the thread that runs requests has"
        text = f"{who} been busy for {now - check.begun:.1f} s, and {queue}"
        if in_flight := status.in_flight(True):
            number, line = in_flight[-1]
            age = now - check.seen.get(number, now)
            text += f"; the oldest in flight is request {number} {line}, for {age:.1f} s at least"
        logs.write("warning", f"{pool.name}worker {worker.pid}: {text}")
        return True


def _moment(at: float) -> float:
    """The first moment from `at` on at which workers are checked."""
    return -(-at // MOMENT) * MOMENT  # `math` is a library of its own, and takes memory
