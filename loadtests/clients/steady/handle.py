"""A process of steady clients, seen from the lab, with the workers its connections reach."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from loadtests.clients.client_process import ClientProcess

STEADY = {"thinking": 8, "busy": 2, "once": 3, "posting": 4, "patient": 2, "pipelining": 2}
"""Numbers of clients by kind of the usual steady load."""


@dataclass(frozen=True)
class Seen:
    """Number of sightings, with the first and the last time by the monotonic clock."""

    count: int
    first: float
    last: float


@dataclass(frozen=True)
class Fault:
    """A fault of `line.KINDS`, as `what` it showed, and what it has cost.

    `sent` is the client, `asked` its request; `port` was its end of a connection `opened` at that
    time, on which `process` had made the last of so many `answers`; the request `began` then, or
    never (0).
    """

    kind: str
    what: str
    sent: str
    asked: str
    requests: int
    at: float
    opened: float
    port: int
    process: int
    answers: int
    began: float = 0.0


@dataclass(frozen=True)
class State:
    """Counts so far; latencies are of quick requests, in seconds.

    `hung` counts what became of requests that hang, `unlucky` what a client saw that cost it
    nothing, `connections` by the process that has made the first answer; `gap` is the longest time
    in which nobody had an answer.
    """

    requests: int
    failed: int
    kinds: dict[str, int]
    hung: dict[str, int]
    unlucky: dict[str, int]
    p50: float | None
    p99: float | None
    longest: float | None
    gap: float
    connections: dict[int, int]
    processes: dict[int, Seen]
    versions: dict[str, Seen]
    faults: list[Fault]


class SteadyClients(ClientProcess):
    """Clients of `loadtests.clients.steady.clients`, at work until the block ends.

    They are run by `launcher`, and ask a port of `host`. Raises ServerFailure if they come to
    nothing.
    """

    def __init__(
        self,
        port: int,
        clients: Mapping[str, int] = STEADY,
        *,
        every: int = 1_000,
        core: int | None = None,
        host: str = "127.0.0.1",
        launcher: Sequence[str] = (),
    ) -> None:
        arguments = [
            str(port),
            "--host",
            host,
            *(f"{kind}={count}" for kind, count in clients.items()),
        ]
        arguments += ["--every", str(every)]
        super().__init__("clients", "loadtests.clients.steady.clients", arguments, core, launcher)
        self.began = time.monotonic()

    def state(self) -> State:
        """Counts so far, without single faults."""
        return _state(json.loads(self.ask("state")))

    def stopping(self) -> None:
        """From now on the server may refuse connections; who is refused comes no more."""
        self.ask("stopping")

    def end(self) -> State:
        """Let all finish what they have begun; what has happened, with all faults."""
        return _state(json.loads(self.ask("end")))


def _state(told: dict[str, Any]) -> State:
    """Numbers as keys become words in JSON."""
    told["connections"] = {int(process): n for process, n in told["connections"].items()}
    told["processes"] = {int(process): Seen(*seen) for process, seen in told["processes"].items()}
    told["versions"] = {version: Seen(*seen) for version, seen in told["versions"].items()}
    told["faults"] = [Fault(**fault) for fault in told["faults"]]
    return State(**told)


def held(process: int, port: int) -> set[int]:
    """The clients' ports of those connections to a port of 127.0.0.1 that a process holds."""
    return {
        one.raddr.port
        for one in psutil.Process(process).net_connections("tcp4")
        if one.raddr and one.laddr.port == port
    }


@dataclass(frozen=True)
class Death:
    """A process that was killed, when, and the clients' ports of the connections it held."""

    process: int
    at: float
    ports: frozenset[int]

    def explains(self, fault: Fault) -> bool:
        """Whether the connection of a fault has died with the process."""
        return fault.port in self.ports and fault.opened <= self.at <= fault.at


def unexplained(faults: Iterable[Fault], deaths: Iterable[Death]) -> list[Fault]:
    """The faults of connections that no process took with it."""
    known = list(deaths)
    return [fault for fault in faults if not any(death.explains(fault) for death in known)]
