"""Where workers stand beside each other: what each has in hand, and how many connections."""

from __future__ import annotations

import os

from poorhttp.supervisor.scoreboard import Ledgers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import Ledger

#: Octets in which a worker counts its connections, and what stands there for nobody
#: (`core/reactor/src/shares.rs`).
SHARE = 4
NOBODY = b"\xff" * SHARE


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
