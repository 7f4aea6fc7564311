"""What a worker is given by its main process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import Ledger


class Post:
    """Where a worker belongs, and what it shares with others.

    Attributes:
        seat: its number among the workers of its service, from 0; its successor gets the same.
        place: its number among all that are alive, from 0.
        bequest: descriptors of the way on which idle connections come and go, and the number of
            the version; if there is one.
        channel: descriptor of its end of the line to the main process.
        shares: descriptor of the file in which workers count connections, if there are others.
        ledger: where it enters what it has in hand.
        recycle_after: requests after which it wants to be replaced; 0: never.
    """

    __slots__ = ("bequest", "channel", "ledger", "place", "recycle_after", "seat", "shares")

    def __init__(
        self,
        seat: int,
        place: int,
        channel: int,
        shares: int | None,
        ledger: Ledger | None,
        recycle_after: int,
    ) -> None:
        self.seat = seat
        self.bequest: tuple[int, int, int] | None = None
        self.place = place
        self.channel = channel
        self.shares = shares
        self.ledger = ledger
        self.recycle_after = recycle_after
