"""Starts and controls a process of steady clients; counts the workers that they reach."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from loadtests.clients.client_process import ClientProcess
from loadtests.clients.steady.connection import Fault
from loadtests.clients.steady.tally import Seen, State

STEADY = {"thinking": 8, "busy": 2, "once": 3, "posting": 4, "patient": 2, "pipelining": 2}
"""Numbers of clients by kind of the usual steady load."""


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
        protocol: str = "http/1.1",
        launcher: Sequence[str] = (),
    ) -> None:
        arguments = [host, str(port), str(every), json.dumps(dict(clients)), protocol]
        super().__init__("clients", "loadtests.clients.steady.clients", arguments, core, launcher)
        self.began = time.monotonic()

    def state(self) -> State:
        """Counts so far, without single faults."""
        return self._state("state")

    def stopping(self) -> None:
        """From now on the server may refuse connections; who is refused comes no more."""
        self.ask("stopping")

    def end(self) -> State:
        """Let all finish what they have begun; what has happened, with all faults."""
        return self._state("end")

    def _state(self, word: str) -> State:
        told = self.ask(word)
        # Numbers as keys become words in JSON.
        told["connections"] = {int(process): n for process, n in told["connections"].items()}
        told["processes"] = {int(process): Seen(**n) for process, n in told["processes"].items()}
        told["versions"] = {version: Seen(**n) for version, n in told["versions"].items()}
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


def unexplained(faults: Iterable[Fault], deaths: Sequence[Death]) -> list[Fault]:
    """The faults of connections that no process took with it."""
    return [fault for fault in faults if not any(death.explains(fault) for death in deaths)]
