"""Log lines that tell when all threads of a worker are busy while requests wait.

A worker whose threads are all busy cannot say so. It tells the main process when the last thread
gets a request, once, and from then on the main process checks every second, until a check finds
that nothing has happened since the one before. So an idle server wakes nobody. That no thread has
become free meanwhile is known because none has answered a question
(`poorhttp/process/control_channel.py`).
"""

from __future__ import annotations

from poorhttp import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from poorhttp._core import WorkerStatus
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool

#: Seconds for which all threads must have been busy.
LONG = 1.0

#: Seconds between two checks, while something happens and at most.
SHORTEST, LONGEST = 1.0, 8.0

#: Seconds between two lines about the same worker.
AGAIN = 60.0


class Check:
    """What is known of a worker that is checked.

    Attributes:
        next: when it is checked next.
        since: when all of its threads were found busy.
        begun: what `since` was when a line was written first.
        seen: when each request in hand was first seen.
        requests: how many it had begun at the last check.
        pause: between two checks.
        logged: when a line was last written; 0: never.
        told: of the present state a line was written.
    """

    def __init__(self) -> None:
        self.next = float("inf")
        self.since = self.begun = 0.0
        self.seen: dict[int, float] = {}
        self.requests = 0
        self.pause = SHORTEST
        self.logged = 0.0
        self.told = False

    def is_due(self, worker: WorkerHandle, now: float) -> bool:
        """Whether to check now: it is time, or what was logged has just ended."""
        return self.next <= now or (self.told and not worker.asked)


class Saturation:
    """Checks the workers that have asked for it; idle if none has."""

    def __init__(self) -> None:
        self._checks: dict[WorkerHandle, Check] = {}

    def due(self) -> float:
        """Return when to check next."""
        return min((check.next for check in self._checks.values()), default=float("inf"))

    def look(self, pools: Sequence[WorkerPool], now: float) -> None:
        """Begin to check workers that have asked for it, and check those whose time has come."""
        alive: dict[WorkerHandle, WorkerPool] = {}
        for pool in pools:
            alive.update((each, pool) for each in pool.workers.values() if not each.retired)
        for worker in [worker for worker in self._checks if worker not in alive]:
            del self._checks[worker]
        for worker, pool in alive.items():
            status = pool.scoreboard.statuses.of(worker.slot)
            if status is None:
                continue
            if worker.full:
                worker.full = False
                check = self._checks.setdefault(worker, Check())
                check.since, check.seen = now, dict.fromkeys(dict(status.in_flight()), now)
                check.next, check.pause = now + SHORTEST, SHORTEST
                check.requests = status.counts()[0]
            elif (known := self._checks.get(worker)) is not None and known.is_due(worker, now):
                self._check(pool, worker, status, now)

    def _check(
        self, pool: WorkerPool, worker: WorkerHandle, status: WorkerStatus, now: float
    ) -> None:
        check = self._checks[worker]
        requests = status.counts()[0]
        is_idle = requests == check.requests
        check.requests = requests
        check.seen = {number: check.seen.get(number, now) for number, _ in status.in_flight()}
        check.since = max(check.since, worker.answered)
        is_full = status.is_full()
        if is_full and worker.asked and now - worker.asked >= LONG:
            if not check.logged or now - check.logged >= AGAIN:
                is_idle &= not self._tell(pool, worker, status, now)
        elif check.told and not worker.asked:
            lasted = worker.answered - check.begun
            logs.write(
                "info",
                f"{pool.name}worker {worker.pid}: a thread is free again after {lasted:.1f} s",
            )
            check.told = False
        elif is_idle and not is_full and not worker.asked:
            # From now on it tells by itself; it may have been full in this very moment.
            status.set_watched(False)
            if not status.is_full():
                check.next = float("inf")
                return
            status.set_watched(True)
        if is_full and not worker.asked:
            worker.ask(now)
        check.pause = min(2 * check.pause, LONGEST) if is_idle else SHORTEST
        check.next = now + check.pause

    def _tell(
        self, pool: WorkerPool, worker: WorkerHandle, status: WorkerStatus, now: float
    ) -> bool:
        """Log that all threads are busy, if requests wait; whether they do."""
        # Only now: the main process is light.
        from poorhttp.net.sock_diag import waiting

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
        if not check.told:
            check.begun = check.since
        check.told, check.logged = True, now
        threads = pool.settings.threads if pool.settings.mode == "threading" else 1
        who = f"all {threads} threads have" if threads > 1 else "the thread that runs requests has"
        text = f"{who} been busy for {now - check.begun:.1f} s, and {queue}"
        if in_hand := status.in_flight():
            number, line = in_hand[-1]
            age = now - check.seen.get(number, now)
            text += f"; the oldest in hand is request {number} {line}, for {age:.1f} s at least"
        logs.write("warning", f"{pool.name}worker {worker.pid}: {text}")
        return True
