"""What workers have in hand, kept where their supervisor can read it when they are dead.

A worker that is killed says nothing any more. So it keeps a ledger in memory that it shares with
its supervisor: each request is entered before the application is called, and struck out when the
application is done with it (`core/python/src/ledger.rs`).
"""

from __future__ import annotations

from mmap import mmap

from poorhttp._core import Ledger
from poorhttp.supervisor.totals import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.supervisor.totals import Counts

#: Requests that are named, the newest first; of more it is said how many they are.
MOST_NAMED = 10


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
