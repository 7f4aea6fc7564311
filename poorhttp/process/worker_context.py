"""Descriptors and shared memory that the main process gives to a worker."""

from __future__ import annotations

from collections.abc import Callable

from poorhttp._core import SharedStatuses, WorkerStatus


class WorkerContext:
    """The numbers of a worker, and the memory and descriptors that it shares with other processes.

    Attributes:
        index: its number among the workers of its service, from 0; its successor gets the same.
        slot: its number in the scoreboard, among all workers that are alive, from 0.
        channel: descriptor of its end of the control channel.
        siblings: memory of the scoreboard, with the number of connections of each worker; `None` if
            accepts are not balanced.
        status: shared memory in which it records its requests in flight.
        recycle_after: requests after which it asks to be replaced; 0: never.
    """

    #: A number of requests, and what is called in the worker when it has begun them; that returns
    #: after how many more it is to be called again (0: never).
    on_requests: tuple[int, Callable[[], int]] | None = None

    #: Descriptors of the sockets over which it receives and passes on idle connections, and the
    #: number of its version; `None` if it does neither.
    handoff: tuple[int, int, int] | None = None

    def __init__(
        self,
        index: int,
        slot: int,
        channel: int,
        siblings: SharedStatuses | None,
        status: WorkerStatus | None,
        recycle_after: int,
    ) -> None:
        self.index = index
        self.slot = slot
        self.channel = channel
        self.siblings = siblings
        self.status = status
        self.recycle_after = recycle_after
