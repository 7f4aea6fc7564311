"""The scoreboard: counters and requests in flight of each worker, in memory that workers share.

A worker that is killed can log nothing. So it records each request in its status before it calls
the application, and removes it afterwards (`core/reactor/src/status/`). Workers also see
there how many connections each has, by which they balance accepts.

What the workers of a service have counted outlives them: when one has ended, the main process moves
it to the totals of the service. A new main process (USR2) inherits the memory of the one before,
whose workers may still count, and adds it to its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from poorhttp._core import SharedStatuses, WorkerStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.binary_upgrade import Memory

#: Requests in a log line, the newest first; of more only the number is given.
MOST_NAMED = 10

#: Why workers were replaced, as `Service.restarts` of the status document explains it; each has a
#: number in the memory, in this order.
RESTARTS = ("died", "worn", "stopped", "timeout", "asked")

#: The number in the memory of how often all workers were replaced by forks of one of them.
REFORKS = 8

#: Seconds after which the memory of a main process before is read for the last time when that has
#: ended: its workers end with it, but not in the same moment.
SETTLED = 5.0

#: What a new main process inherits: the totals of a service, and the statuses of workers.
TOTALS, WORKERS = "totals", "workers"


class Scoreboard:
    """Numbered slots, each taken by one worker at a time.

    Attributes:
        memory: of all workers.
    """

    def __init__(self, slots: int) -> None:
        """Make it before workers are forked; workers in slots beyond `slots` have no status."""
        # Pages that are never written cost no memory.
        self.memory = SharedStatuses(slots)
        self._statuses: dict[int, WorkerStatus] = {}
        self._taken: set[int] = set()

    def take(self) -> int:
        slot = min(set(range(len(self._taken) + 1)) - self._taken)
        self._taken.add(slot)
        return slot

    def stop_accepting(self, slot: int) -> None:
        """Show the other workers that the one in this slot does not accept."""
        if (status := self.status(slot)) is not None:
            status.stop_accepting()

    def free(self, slot: int) -> None:
        self.stop_accepting(slot)
        self._taken.discard(slot)

    def open(self, slot: int) -> WorkerStatus | None:
        """Return the status of a new worker, emptied; `None` if the slot has none."""
        if slot not in self._statuses:
            if slot >= len(self.memory):
                return None
            self._statuses[slot] = WorkerStatus(self.memory, slot)
        self._statuses[slot].clear()
        return self._statuses[slot]

    def status(self, slot: int) -> WorkerStatus | None:
        return self._statuses.get(slot)

    def begun(self, slot: int) -> int:
        return status.counts()[0] if (status := self.status(slot)) is not None else 0

    def in_flight(self, slot: int) -> str:
        """Describe the requests in flight of the worker in this slot; empty if there are none."""
        requests = status.in_flight() if (status := self.status(slot)) is not None else []
        named = [f"request {number} {line}" for number, line in requests[:MOST_NAMED]]
        if len(requests) > MOST_NAMED:
            named.append(f"and {len(requests) - MOST_NAMED} more")
        return ", ".join(named)


class Totals:
    """What all workers of a service have counted, those of main processes before included.

    Attributes:
        ended: the sums of the workers that have ended, as a status.
        before: main processes before, as long as their workers may count.
        greenlets: the package for which it was logged that threads are greenlets; None: for none.
    """

    greenlets: str | None = None

    def __init__(self) -> None:
        self._memory = SharedStatuses(1)
        self.ended = WorkerStatus(self._memory, 0)
        self.before: list[Predecessor] = []

    def add_ended(self, status: WorkerStatus | None) -> None:
        if status is not None:
            self.ended.absorb(status)

    def count_restart(self, reason: str) -> None:
        self.ended.add_to_own_number(RESTARTS.index(reason))

    def count_refork(self) -> None:
        self.ended.add_to_own_number(REFORKS)

    @property
    def restarts(self) -> dict[str, int]:
        """How many workers were replaced, by reason."""
        ended = self.all_ended()
        return {name: sum(each.own_number(n) for each in ended) for n, name in enumerate(RESTARTS)}

    @property
    def reforks(self) -> int:
        """How often all workers were replaced by forks of one of them."""
        return sum(each.own_number(REFORKS) for each in self.all_ended())

    def all_ended(self) -> list[WorkerStatus]:
        """Return `ended`, and that of each main process before."""
        return [self.ended, *(each.ended for each in self.before)]

    def fold(self) -> None:
        """Move what main processes that have ended have left here, and free their memory."""
        now = time.monotonic()
        for each in [each for each in self.before if each.has_settled(now)]:
            for status in each.workers:
                self.ended.absorb(status)
            self.ended.absorb(each.ended)
            for which in (*range(len(RESTARTS)), REFORKS):
                self.ended.add_to_own_number(which, each.ended.own_number(which))
            self.before.remove(each)

    @property
    def statuses(self) -> list[WorkerStatus]:
        """Those of workers that have ended, and of workers of the main processes before."""
        return [*self.all_ended(), *(status for each in self.before for status in each.workers)]

    def memory(self, service: str, scoreboards: Iterable[Scoreboard]) -> Iterator[Memory]:
        """Yield what the next main process inherits: nothing that a limit of file sizes forbids."""
        shared = [(TOTALS, self._memory), *((WORKERS, each.memory) for each in scoreboards)]
        for kind, memory in shared:
            if memory.fileno() >= 0:
                yield kind, service, os.getpid(), memory.fileno()
        for each in self.before:
            yield from each.memory(service)

    def inherit(self, memory: Iterable[Memory]) -> None:
        """Add what the main processes before have left, of the service of these totals."""
        for kind, _, pid, fd in memory:
            # Another version of this package has other memory.
            with suppress(OSError, ValueError):
                if kind == TOTALS:
                    self.before.append(Predecessor(pid, SharedStatuses.inherited(fd)))
                elif kind == WORKERS and self.before and self.before[-1].pid == pid:
                    self.before[-1].add(SharedStatuses.inherited(fd))


class Predecessor:
    """A main process before this one: what the workers of a service had counted there, and count.

    Attributes:
        pid: its process ID.
        ended: sums of its workers that have ended.
        workers: statuses of its workers. It moves what they have counted to `ended`.
    """

    def __init__(self, pid: int, totals: SharedStatuses) -> None:
        self.pid = pid
        self.ended = WorkerStatus(totals, 0)
        self.workers: list[WorkerStatus] = []
        #: Since when it is known to have ended.
        self._ended_at = float("inf")
        self._totals = totals
        self._scoreboards: list[SharedStatuses] = []

    def add(self, statuses: SharedStatuses) -> None:
        self._scoreboards.append(statuses)
        self.workers += [WorkerStatus(statuses, place) for place in range(len(statuses))]

    def is_alive(self) -> bool:
        """Whether it may have workers that still count."""
        try:
            os.kill(self.pid, 0)
            # Nobody may reap a process in a container.
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
        except ProcessLookupError:
            return False
        except (OSError, IndexError):
            return True

    def has_settled(self, now: float) -> bool:
        """Whether nobody counts there any more."""
        if self._ended_at == float("inf") and not self.is_alive():
            self._ended_at = now
        return now - self._ended_at >= SETTLED

    def memory(self, service: str) -> Iterator[Memory]:
        yield TOTALS, service, self.pid, self._totals.fileno()
        for statuses in self._scoreboards:
            yield WORKERS, service, self.pid, statuses.fileno()
