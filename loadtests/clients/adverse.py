"""Adverse clients: dead, slow, and those that do not read; a process, and its handle in the lab.

`python -m loadtests.clients.adverse KIND PORT COUNT [renew]` connects them all, writes a line, and
answers each line on its standard input with what has become of them, as JSON. It ends with its
input. Clients that do nothing cost it nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import select
import socket
import statistics
import struct
import sys
import termios
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.clients.client_process import ClientProcess
from loadtests.errors import LabError
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import patience

TICKS = 50
"""Parts of a second over which the bytes of slow senders are spread."""
PER_ADDRESS = 4_000
CONNECT_SECONDS = patience(10.0)
LARGE = 10_000_000
"""Bytes of the answer that is not read."""
SMALL_BUFFER = 4_096
# A reset instead of a farewell: ports and sockets are free again at once.
_ABORT = struct.pack("ii", 1, 0)
# Else the kernel reserves a port for all destinations and runs out of them early.
_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)


_HOST = b"Host: 127.0.0.1\r\n"
_POST = b"POST / HTTP/1.1\r\n" + _HOST
_CHUNK = b"1\r\na\r\n"
_SLOW_HEAD = b"GET / HTTP/1.1\r\n" + _HOST + b"X-Slow: "
KINDS: dict[str, Sequence[tuple[Sequence[bytes], bytes]]] = {
    "dead": [([], b""), ([b"GET / HTTP/1.1\r\n" + _HOST + b"X-Half"], b"")],
    "head": [([bytes([one]) for one in _SLOW_HEAD], b"a")],
    "body": [
        ([_POST + b"Content-Length: 1000000\r\n\r\na"], b"a"),
        ([_POST + b"Transfer-Encoding: chunked\r\n\r\n" + _CHUNK], _CHUNK),
    ],
    "stalled": [([b"GET /%d HTTP/1.1\r\n%b\r\n" % (LARGE, _HOST)], b"")],
}
"""What clients of a kind send, in turn: in their first seconds, and in each second after them."""


class Client:
    """One client, over all the connections that it makes."""

    def __init__(self, number: int, kind: str, port: int) -> None:
        self.number = number
        self.connections = 0
        self._port = port
        self._first, self._later = KINDS[kind][number % len(KINDS[kind])]
        # Every other one lets the kernel take hardly anything on its behalf.
        self._is_small = kind == "stalled" and bool(number % 2)

    def open(self) -> None:
        """Connects and says what is said in the first second."""
        opened = socket.socket()
        try:
            opened.settimeout(CONNECT_SECONDS)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            if self._is_small:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            opened.setsockopt(socket.IPPROTO_IP, _NO_PORT, 1)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.bind((f"127.0.0.{2 + self.number // PER_ADDRESS}", 0))
            opened.connect(("127.0.0.1", self._port))
            opened.setblocking(False)
        except OSError:
            opened.close()
            raise
        self.socket, self._began, self._second = opened, time.monotonic(), 0
        self.connections += 1
        self.speak()

    def speak(self) -> None:
        """Says what is due this second."""
        due = self._first[self._second] if self._second < len(self._first) else self._later
        self._second += 1
        # If the connection has ended, the poller tells.
        if due:
            with contextlib.suppress(OSError):
                self.socket.send(due)

    def end(self) -> tuple[float, str]:
        """After the server has ended the connection: how long it lasted, and what it was told."""
        lasted = time.monotonic() - self._began
        try:
            said = self.socket.recv(64)
        except OSError:
            said = b""
        self.socket.close()
        return lasted, said[9:12].decode("latin-1") if said.startswith(b"HTTP/1.") else ""


class Clients:
    """All clients. With `renew`, one whose connection was closed makes another one."""

    def __init__(self, kind: str, port: int, count: int, renew: bool) -> None:
        self._clients = [Client(number, kind, port) for number in range(count)]
        self._drip = any(later for _, later in KINDS[kind])
        self._renew = renew
        self._poller = select.epoll()
        self._by_file: dict[int, Client] = {}
        self._absent: list[Client] = []
        self._lives: list[float] = []
        self._told = Counter[str]()
        self._ticks = 0

    def open(self) -> None:
        """Connects all. Raises LabError if the server does not let one in."""
        for client in self._clients:
            try:
                self._open(client)
            except OSError as error:
                raise LabError(f"connection {client.number + 1:,} failed: {error}") from None

    def _open(self, client: Client) -> None:
        client.open()
        self._by_file[client.socket.fileno()] = client
        # Not readable ones: nobody reads.
        self._poller.register(client.socket, select.EPOLLRDHUP | select.EPOLLET)

    def state(self) -> dict[str, Any]:
        """The present states; times in seconds from the first byte to the end."""
        present, lives = self._by_file.values(), self._lives
        unread = (fcntl.ioctl(one.socket, termios.FIONREAD, bytes(4)) for one in present)
        return {
            "count": len(self._clients),
            "open": len(present),
            "unread": sum(map(any, unread)),
            "never": sum(one.connections == 1 for one in present),
            "first": min(lives, default=None),
            "median": statistics.median(lives) if lives else None,
            "last": max(lives, default=None),
            "told": self._told,
        }

    def run(self) -> None:
        """Until the end of standard input."""
        asked = sys.stdin.buffer
        self._poller.register(asked, select.EPOLLIN)
        started = time.monotonic()
        while True:
            due = started + self._ticks / TICKS
            wait = max(due - time.monotonic(), 0.0) if self._drip else None
            for file, _ in self._poller.poll(wait):
                if file == asked.fileno():
                    if not asked.readline():
                        return
                    print(json.dumps(self.state()), flush=True)
                elif client := self._by_file.pop(file, None):
                    lasted, told = client.end()
                    self._lives.append(lasted)
                    self._told[told] += 1
                    self._absent += [client] if self._renew else []
            if self._drip and time.monotonic() >= due:
                self._tick()

    def _tick(self) -> None:
        for client in self._clients[self._ticks % TICKS :: TICKS]:
            client.speak()
        self._ticks += 1
        absent, self._absent = self._absent, []
        for client in absent:
            try:
                self._open(client)
            except OSError:
                self._absent.append(client)


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
    """`count` clients of a kind of `loadtests.clients.adverse`, connected until the end.

    Raises ServerFailure if the server does not let them all in.
    """

    def __init__(
        self, kind: str, port: int, count: int, *, renew: bool = False, core: int | None = None
    ) -> None:
        arguments = [kind, str(port), str(count), *(["renew"] if renew else [])]
        super().__init__(f"{count:,} clients", "loadtests.clients.adverse", arguments, core)
        self.count = count

    def state(self) -> State:
        return State(**self.ask("state"))


def main(kind: str, port: str, count: str, renew: str = "") -> int:
    """The command line; only the lab uses it."""
    try:
        allow_files(int(count) + 50)
        crowd = Clients(kind, int(port), int(count), bool(renew))
        crowd.open()
    except LabError as error:
        print(error, flush=True)
        return 1
    print("ready", flush=True)
    crowd.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
