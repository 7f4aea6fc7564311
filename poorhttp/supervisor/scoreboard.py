"""What workers have in hand and have counted, where their supervisor can read it.

A worker keeps its status in memory that it shares with its supervisor, because a worker that is
killed cannot report: each request is entered before the application is called, and removed when the
application is done with it (`core/python/src/worker_status.rs`). Workers share a file besides, in
which each counts its connections. The counts of workers that have ended are kept as totals.
"""

from __future__ import annotations

import os
from mmap import mmap

from poorhttp._core import WorkerStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Requests begun, requests in hand, connections, and answers (1xx to 5xx).
    Counts: TypeAlias = tuple[int, int, int, list[int]]

#: Requests that are named, the newest first; of more it is said how many they are.
MOST_NAMED = 10

#: Octets in which a worker counts its connections, and what stands there for nobody
#: (`core/reactor/src/connection/accept_balance.rs`).
SHARE = 4
NOBODY = b"\xff" * SHARE

#: What nobody has counted.
NOTHING: Counts = (0, 0, 0, [0] * 5)


def added(one: Counts, other: Counts) -> Counts:
    """Return both together."""
    answers = [first + second for first, second in zip(one[3], other[3], strict=True)]
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], answers


class Totals:
    """Of one service; they outlive its workers, and its pools.

    Attributes:
        ended: what workers had counted that have ended; of those nothing is in hand any more.
        died: workers that were replaced because they died.
        worn: workers that were replaced because they were worn (`max_requests` and the like).
    """

    __slots__ = ("died", "ended", "worn")

    def __init__(self) -> None:
        self.ended = NOTHING
        self.died = 0
        self.worn = 0

    def reap(self, counts: Counts) -> None:
        """Keep what a worker has counted that has just ended."""
        self.ended = added(self.ended, (counts[0], 0, 0, counts[3]))


class WorkerStatuses:
    """The statuses of all workers of a supervisor, which makes them before it forks."""

    def __init__(self, scoreboard: int) -> None:
        # Pages that nobody writes to cost nothing.
        self._memory = memoryview(mmap(-1, scoreboard * WorkerStatus.SIZE))
        self._statuses: dict[int, WorkerStatus] = {}

    def open(self, slot: int) -> WorkerStatus | None:
        """Return the status of a new worker at this slot, cleared, if it has one."""
        if slot not in self._statuses:
            memory = self._memory[slot * WorkerStatus.SIZE : (slot + 1) * WorkerStatus.SIZE]
            if not memory:
                return None
            self._statuses[slot] = WorkerStatus(memory)
        self._statuses[slot].clear()
        return self._statuses[slot]

    def of(self, slot: int) -> WorkerStatus | None:
        """Return that of the worker at this slot, if it has one."""
        return self._statuses.get(slot)

    def is_full(self, slot: int) -> bool:
        """Whether all threads of the worker at this slot have requests."""
        status = self._statuses.get(slot)
        return status is not None and status.is_full()

    def counts(self, slot: int) -> Counts:
        """Return what the worker at this slot has counted."""
        status = self._statuses.get(slot)
        return NOTHING if status is None else status.counts()

    def in_flight(self, slot: int) -> str:
        """Say what the worker at this slot has in hand; an empty string if it is nothing."""
        status = self._statuses.get(slot)
        requests = status.in_flight() if status is not None else []
        named = [f"request {number} {line}" for number, line in requests[:MOST_NAMED]]
        if len(requests) > MOST_NAMED:
            named.append(f"and {len(requests) - MOST_NAMED} more")
        return ", ".join(named)


class Scoreboard:
    """Numbered slots, each taken by one worker at a time.

    Attributes:
        balance_fd: descriptor of the file in which workers count their connections.
        statuses: what each of them has in hand.
    """

    def __init__(self, known: int) -> None:
        """Make them; beyond those that are `known`, workers have no status."""
        self.balance_fd = os.memfd_create("poorhttp-shares")
        self.statuses = WorkerStatuses(known)
        self._taken: set[int] = set()

    def take(self) -> int:
        """Return the lowest that is free; it is not any more."""
        slot = min(set(range(len(self._taken) + 1)) - self._taken)
        self._taken.add(slot)
        self.leave(slot)
        return slot

    def leave(self, slot: int) -> None:
        """Tell its siblings that whoever is there does not accept."""
        os.pwrite(self.balance_fd, NOBODY, SHARE * slot)

    def free(self, slot: int) -> None:
        """Give a slot back, whose worker has ended."""
        self.leave(slot)
        self._taken.discard(slot)

    def open(self, slot: int) -> WorkerStatus | None:
        """Return the status of a new worker, cleared, if it has one."""
        return self.statuses.open(slot)

    def close(self) -> None:
        """Give up what was made."""
        os.close(self.balance_fd)
