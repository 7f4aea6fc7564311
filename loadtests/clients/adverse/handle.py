"""Starts and controls a process of adverse clients, in the lab's process."""

from __future__ import annotations

from dataclasses import dataclass

from loadtests.clients.client_process import ClientProcess


@dataclass(frozen=True)
class State:
    """States of adverse clients.

    `open` are connected now, and for `unread` of them something has arrived. `never` counts first
    connections that the server has not ended. `first`, `median` and `last` are the seconds that
    connections lasted, None if none has ended. `told` counts what they were told in the end, by
    status code.
    """

    count: int
    open: int
    unread: int
    never: int
    first: float | None
    median: float | None
    last: float | None
    told: dict[str, int]


class AdverseClients(ClientProcess):
    """`count` clients of a kind of `loadtests.clients.adverse.clients`, connected until the end.

    Raises ServerFailure if the server does not let them all in.
    """

    def __init__(
        self, kind: str, port: int, count: int, *, renew: bool = False, core: int | None = None
    ) -> None:
        arguments = [kind, str(port), str(count), *(["--renew"] if renew else [])]
        super().__init__(f"{count:,} clients", "loadtests.clients.adverse.clients", arguments, core)
        self.count = count

    def state(self) -> State:
        return State(**self.ask("state"))
