"""A health check like a load balancer's: requests a path repeatedly and keeps the answers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from tests.support.load import Clients
from tests.testkit.client import BadResponse, Closed, Connection
from tests.testkit.server import wait_for

#: Seconds between two questions.
PAUSE = 0.01

#: Host and port, or the path of a Unix socket.
Address = tuple[str, int] | str


def ask(address: Address, path: str = "/-/ready") -> tuple[int, str]:
    """Status and text of one answer, on a connection of its own."""
    with Connection(address) as connection:
        response = connection.request("GET", path, "Connection: close")
    return response.status, response.body.decode().strip()


def wait_status(address: Address, status: int, path: str = "/-/ready") -> str:
    """Wait for an answer with this status; its text."""
    found: list[tuple[int, str]] = []

    def came() -> bool:
        found[:] = [ask(address, path)]
        return found[0][0] == status

    wait_for(came, f"{status} from {path}")
    return found[0][1]


class Probe(Clients):
    """Asks in a thread, on a connection that it keeps and on new ones in turn.

    Attributes:
        told: how often each answer came, or what came instead.
    """

    def __init__(self, address: Address, path: str = "/-/ready") -> None:
        self._address = address
        self._path = path
        self.told: Counter[tuple[int, str] | str] = Counter()
        super().__init__(self._run)

    def wait_more(self, answers: int = 20) -> None:
        before = self.told.total()
        wait_for(lambda: self.told.total() >= before + answers, f"{answers} more answers")

    def _run(self) -> None:
        kept: Connection | None = None
        while not self._over.wait(PAUSE):
            try:
                self.told[ask(self._address, self._path)] += 1
            except (OSError, BadResponse, Closed) as error:
                self.told[repr(error)] += 1
            kept = self._ask_kept(kept)
        if kept is not None:
            kept.close()

    def _ask_kept(self, kept: Connection | None) -> Connection | None:
        """Ask on the kept connection, or a new one; the connection, if it can be asked again."""
        try:
            if kept is not None:
                # It may end while nobody asks; a Unix socket tells that when a request is sent.
                with suppress(BrokenPipeError, Closed):
                    return self._answered(kept)
                kept.close()
            kept = Connection(self._address)
            return self._answered(kept)
        except (OSError, BadResponse, Closed) as error:
            self.told[repr(error)] += 1
            if kept is not None:
                kept.close()
            return None

    def _answered(self, connection: Connection) -> Connection | None:
        """Ask once; the connection, unless the answer ends it."""
        response = connection.request("GET", self._path)
        self.told[response.status, response.body.decode().strip()] += 1
        if response.get("Connection") != "close":
            return connection
        connection.close()
        return None
