"""What a worker is given by its main process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import Ledger


class WorkerContext:
    """Where a worker belongs, and what it balance_fd with others.

    Attributes:
        index: its number among the workers of its service, from 0; its successor gets the same.
        slot: its number among all that are alive, from 0.
        handoff: descriptors of the sockets by which idle connections come and go, and the number of
            the version; if there is one.
        channel: descriptor of its end of the line to the main process.
        balance_fd: descriptor of the file in which workers count connections, if there are others.
        ledger: where it enters what it has in hand.
        recycle_after: requests after which it wants to be replaced; 0: never.
    """

    __slots__ = ("balance_fd", "channel", "handoff", "index", "ledger", "recycle_after", "slot")

    def __init__(
        self,
        index: int,
        slot: int,
        channel: int,
        balance_fd: int | None,
        ledger: Ledger | None,
        recycle_after: int,
    ) -> None:
        self.index = index
        self.handoff: tuple[int, int, int] | None = None
        self.slot = slot
        self.channel = channel
        self.balance_fd = balance_fd
        self.ledger = ledger
        self.recycle_after = recycle_after
