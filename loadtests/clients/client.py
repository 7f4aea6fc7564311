"""The base class of all clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.clients.load import Load


@dataclass(frozen=True)
class Job:
    """A closed load: on each of `connections` one request after the other, for `seconds`.

    Without `keep` each request has a connection of its own. `host` is an IPv4 address.
    """

    port: int
    seconds: float = 1.0
    connections: int = 1
    target: str = "/"
    keep: bool = True
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """The address of the requests."""
        return f"http://{self.host}:{self.port}{self.target}"


Drive = Callable[[Job, "int | None"], Load]


@dataclass(frozen=True)
class Client:
    """`missing` says why it cannot run, nothing if it can; `version` is what a report names.

    `drive` does a job on a core, or on all for None; it raises LabError if the client has no result
    or cannot do this. `note` is what a reader of its figures should know; one that `spins` takes
    all of its core however little it has to do.
    """

    name: str
    colour: str
    missing: Callable[[], str]
    version: Callable[[], str]
    drive: Drive
    note: str = ""
    spins: bool = False
