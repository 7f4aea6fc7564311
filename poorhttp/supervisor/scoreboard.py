"""What workers have in hand and have counted, where their supervisor can read it.

A worker that is killed says nothing any more. So it keeps a ledger in memory that it shares with
its supervisor: each request is entered before the application is called, and struck out when the
application is done with it (`core/python/src/ledger.rs`). Workers share a file besides, in which
each counts its connections. What workers had counted that are gone is kept as totals.
"""

from __future__ import annotations

import os
from mmap import mmap

from poorhttp._core import Ledger

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
    """Of one service; they outlive its workers, and its teams.

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

    def bury(self, counts: Counts) -> None:
        """Keep what a worker has counted that has just ended."""
        self.ended = added(self.ended, (counts[0], 0, 0, counts[3]))


class Ledgers:
    """The ledgers of all workers of a supervisor, which makes them before it forks."""

    def __init__(self, places: int) -> None:
        # Pages that nobody writes to cost nothing.
        self._memory = memoryview(mmap(-1, places * Ledger.SIZE))
        self._ledgers: dict[int, Ledger] = {}

    def open(self, place: int) -> Ledger | None:
        """Return the ledger of a new worker at this place, with nothing in it, if it has one."""
        if place not in self._ledgers:
            memory = self._memory[place * Ledger.SIZE : (place + 1) * Ledger.SIZE]
            if not memory:
                return None
            self._ledgers[place] = Ledger(memory)
        self._ledgers[place].clear()
        return self._ledgers[place]

    def of(self, place: int) -> Ledger | None:
        """Return that of the worker at this place, if it has one."""
        return self._ledgers.get(place)

    def is_full(self, place: int) -> bool:
        """Whether all threads of the worker at this place have requests."""
        ledger = self._ledgers.get(place)
        return ledger is not None and ledger.is_full()

    def counts(self, place: int) -> Counts:
        """Return what the worker at this place has counted."""
        ledger = self._ledgers.get(place)
        return NOTHING if ledger is None else ledger.counts()

    def in_hand(self, place: int) -> str:
        """Say what the worker at this place has in hand; an empty string if it is nothing."""
        ledger = self._ledgers.get(place)
        requests = ledger.in_hand() if ledger is not None else []
        named = [f"request {number} {line}" for number, line in requests[:MOST_NAMED]]
        if len(requests) > MOST_NAMED:
            named.append(f"and {len(requests) - MOST_NAMED} more")
        return ", ".join(named)


class Places:
    """Numbered places, each taken by one worker at a time.

    Attributes:
        shares: descriptor of the file in which workers count their connections.
        ledgers: what each of them has in hand.
    """

    def __init__(self, known: int) -> None:
        """Make them; beyond those that are `known`, workers have no ledger."""
        self.shares = os.memfd_create("poorhttp-shares")
        self.ledgers = Ledgers(known)
        self._taken: set[int] = set()

    def take(self) -> int:
        """Return the lowest that is free; it is not any more."""
        place = min(set(range(len(self._taken) + 1)) - self._taken)
        self._taken.add(place)
        self.leave(place)
        return place

    def leave(self, place: int) -> None:
        """Tell its siblings that whoever is there does not accept."""
        os.pwrite(self.shares, NOBODY, SHARE * place)

    def free(self, place: int) -> None:
        """Give a place back, whose worker has ended."""
        self.leave(place)
        self._taken.discard(place)

    def open(self, place: int) -> Ledger | None:
        """Return the ledger of a new worker, with nothing in it, if it has one."""
        return self.ledgers.open(place)

    def close(self) -> None:
        """Give up what was made."""
        os.close(self.shares)
