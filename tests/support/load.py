"""Steady load from well-behaved clients, for tests of reloads, upgrades and stops."""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.testkit.client import HANG, BadResponse, Closed, Connection
from tests.testkit.server import join, wait_for

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds between two requests of a client: enough clients keep two cores busy without it.
PAUSE = 0.005


class Wrong(Exception):
    """An answer, but not the one to what was asked."""


class Clients:
    """Clients in threads of the test, as long as a block runs: `_over` ends them."""

    def __init__(self, *clients: Callable[[], None]) -> None:
        self._over = threading.Event()
        self._threads = [threading.Thread(target=client, daemon=True) for client in clients]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let every client have its last answer."""
        self._over.set()
        join(*self._threads)


class Load(Clients):
    """Clients each of which asks, checks the whole answer, and asks again.

    They behave as well as clients can: one that is told `Connection: close` opens a new connection,
    and so does one that finds its idle connection closed. What begins is to be answered.

    They connect to a port of 127.0.0.1, or as they are told.

    Attributes:
        faults: what went wrong, in words.
        failed: the numbers of the requests that it went wrong with, which they have as their query.
        answers: how many were right, of each version of the application.
        pids: how many each process has given.
    """

    def __init__(self, to: int | Callable[[], Connection], clients: int = 6) -> None:
        self._to = to
        self.faults: list[str] = []
        self.failed: set[int] = set()
        self.answers: Counter[str] = Counter()
        self.pids: Counter[int] = Counter()
        self._number = itertools.count()
        kinds: list[Callable[[], None]] = [
            partial(self._stay, "GET", "/"),
            partial(self._stay, "POST", "/"),
            self._once,
            partial(self._stay, "POST", "/50"),
        ]
        super().__init__(*(kinds[number % len(kinds)] for number in range(clients)))

    def check(self) -> None:
        """Nothing went wrong, and there was something to go wrong."""
        assert not self.faults, f"{len(self.faults)} faults: {self.faults[:10]}"
        assert self.answers

    def wait_version(self, version: str) -> None:
        """Wait for an answer of this version."""
        wait_for(lambda: self.answers[version], f"an answer of version {version}")

    def wait_more(self, answers: int) -> None:
        before = self.answers.total()
        wait_for(lambda: self.answers.total() >= before + answers, f"{answers} more answers")

    def number(self) -> int:
        """A number: of requests that begin from now on, all are higher."""
        return next(self._number)

    def wait_pids(self, pids: Iterable[int]) -> None:
        """Wait for an answer of each of these processes."""
        wait_for(lambda: set(pids) <= set(self.pids), "an answer of each process")

    # Clients

    def _once(self) -> None:
        while not self._over.wait(PAUSE):
            with self._connected() as connection:
                self._ask(connection, "GET", "/", "Connection: close")

    def _stay(self, method: str, path: str) -> None:
        while not self._over.is_set():
            with self._connected() as connection:
                while not self._over.wait(PAUSE):
                    if _is_closed(connection) or not self._ask(connection, method, path):
                        break

    def _connected(self) -> Connection:
        try:
            return Connection(("127.0.0.1", self._to)) if isinstance(self._to, int) else self._to()
        except OSError as error:
            self.faults.append(f"no connection: {error!r}")
            self._over.set()
            raise

    def _ask(self, connection: Connection, method: str, path: str, *fields: str) -> bool:
        """Ask once, and check the answer; whether the connection may be used again."""
        number = next(self._number)
        body = f"{number} ".encode() * (1 + number % 5_000) if method == "POST" else None
        began = time.monotonic()
        try:
            response = connection.request(method, f"{path}?{number}", *fields, body=body)
            if response.status != 200:
                raise Wrong(f"{response.status} {response.body!r}")
            told: dict[str, Any] = response.json()
            if told["query"] != str(number):
                raise Wrong(f"the answer to ?{told['query']}")
            if told["digest"] != hashlib.sha256(body or b"").hexdigest():
                raise Wrong("another body has arrived")
        except (OSError, Closed, BadResponse, ValueError, Wrong) as error:
            after = time.monotonic() - began
            self.failed.add(number)
            self.faults.append(f"{method} {path}?{number}: {error!r} after {after:.3f} s")
            return False
        self.answers[told["version"]] += 1
        self.pids[told["pid"]] += 1
        return response.get("Connection") != "close" and not fields


def _is_closed(connection: Connection) -> bool:
    connection.socket.setblocking(False)
    try:
        return connection.socket.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.socket.settimeout(HANG)
