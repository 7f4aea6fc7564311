"""The scoreboard: counters and requests in flight of each worker, in memory that workers share.

A worker that is killed can log nothing. So it records each request in its status before it calls
the application, and removes it afterwards (`core/python/src/worker_status.rs`). Workers also see
there how many connections each has, by which they balance accepts.
"""

from __future__ import annotations

from mmap import mmap

from poorhttp._core import WorkerStatus

#: Requests begun, requests in flight, connections, responses (1xx to 5xx), connections that
#: applications have got, and how many they have got so far.
Counts = tuple[int, int, int, list[int], int, int]

#: Requests in a log line, the newest first; of more only the number is given.
MOST_NAMED = 10

NO_COUNTS: Counts = (0, 0, 0, [0] * 5, 0, 0)


def added(one: Counts, other: Counts) -> Counts:
    """Return the sums."""
    responses = [first + second for first, second in zip(one[3], other[3], strict=True)]
    return (
        one[0] + other[0],
        one[1] + other[1],
        one[2] + other[2],
        responses,
        one[4] + other[4],
        one[5] + other[5],
    )


class Totals:
    """Counters of a service, over all its worker pools.

    Attributes:
        ended: counts of the workers that have ended.
        died: workers that were replaced because they died.
        recycled: workers that were replaced because of `max_requests` and the like.
        reforked: how often all workers were replaced by forks of one of them.
    """

    def __init__(self) -> None:
        self.ended = NO_COUNTS
        self.died = 0
        self.recycled = 0
        self.reforked = 0

    def add_ended(self, counts: Counts) -> None:
        """Add the counts of a worker that has just ended."""
        self.ended = added(self.ended, (counts[0], 0, 0, counts[3], 0, counts[5]))


class Scoreboard:
    """Numbered slots, each taken by one worker at a time.

    Attributes:
        memory: of all workers.
    """

    def __init__(self, slots: int) -> None:
        """Make it before workers are forked; workers in slots beyond `slots` have no status."""
        # Pages that are never written cost no memory.
        self.memory = memoryview(mmap(-1, slots * WorkerStatus.SIZE))
        self._statuses: dict[int, WorkerStatus] = {}
        self._taken: set[int] = set()

    def take(self) -> int:
        """Take the lowest free slot."""
        slot = min(set(range(len(self._taken) + 1)) - self._taken)
        self._taken.add(slot)
        return slot

    def stop_accepting(self, slot: int) -> None:
        """Show the other workers that the one in this slot does not accept."""
        if (status := self.status(slot)) is not None:
            status.stop_accepting()

    def free(self, slot: int) -> None:
        """Free the slot of a worker that has ended."""
        self.stop_accepting(slot)
        self._taken.discard(slot)

    def open(self, slot: int) -> WorkerStatus | None:
        """Return the status of a new worker, emptied; `None` if the slot has none."""
        if slot not in self._statuses:
            memory = self.memory[slot * WorkerStatus.SIZE : (slot + 1) * WorkerStatus.SIZE]
            if not memory:
                return None
            self._statuses[slot] = WorkerStatus(memory)
        self._statuses[slot].clear()
        return self._statuses[slot]

    def status(self, slot: int) -> WorkerStatus | None:
        """Return the status of the worker in this slot, if it has one."""
        return self._statuses.get(slot)

    def counts(self, slot: int) -> Counts:
        """Return the counts of the worker in this slot."""
        return status.counts() if (status := self.status(slot)) is not None else NO_COUNTS

    def in_flight(self, slot: int) -> str:
        """Describe the requests in flight of the worker in this slot; empty if there are none."""
        requests = status.in_flight() if (status := self.status(slot)) is not None else []
        named = [f"request {number} {line}" for number, line in requests[:MOST_NAMED]]
        if len(requests) > MOST_NAMED:
            named.append(f"and {len(requests) - MOST_NAMED} more")
        return ", ".join(named)
