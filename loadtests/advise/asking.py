"""The requests of a search: paths, recorded requests, or a Locust file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from loadtests.clients import locust
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request, Seen
from loadtests.errors import LabError
from loadtests.measure import histogram

SEED = 8
ROOT_PAGE = Request()


@dataclass(frozen=True)
class Requests:
    """Requests in their order, again from the first.

    `first` is sent to see whether a server answers; `at_a_rate`: whether they can be sent by the
    clock; `rate`: how many a second, 0 if nothing is known of that.
    """

    requests: Sequence[Request]
    words: str
    at_a_rate: bool = True
    rate: float = 0.0

    @property
    def first(self) -> Request:
        """The first whose answer can have a body."""
        return next((one for one in self.requests if one.method != "HEAD"), self.requests[0])

    def drive(self, port: int, warm: float, seconds: float, connections: int, rate: float) -> Seen:
        """Sends them; from any core, as the server may use all."""
        return replay.drive(
            port, seconds, connections, self.requests, rate=rate, seed=SEED, warm=warm
        )


@dataclass(frozen=True)
class LocustFile:
    """The user's own Locust file: as many users as there would be connections."""

    file: Path
    workers: int = 0
    at_a_rate: bool = False
    rate: float = 0.0
    first: Request = ROOT_PAGE
    requests: Sequence[Request] = ()

    @property
    def words(self) -> str:
        """As it is told."""
        return f"Locust with {self.file.name}"

    def drive(self, port: int, warm: float, seconds: float, connections: int, rate: float) -> Seen:
        """Has the users at it; Locust has no rate, and counts when all users are there."""
        if reason := locust.missing():
            raise LabError(reason)
        load = locust.own(
            self.file, f"http://127.0.0.1:{port}", connections, seconds, self.workers, None
        )
        return Seen(load, histogram.record([]), load.requests)


Asking: TypeAlias = Requests | LocustFile
