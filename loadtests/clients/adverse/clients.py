"""Process of many adverse clients: `python -m loadtests.clients.adverse.clients KIND PORT COUNT`.

It connects them all, writes a line, and answers each line on its standard input with what has
become of them, as JSON. It ends with its input. Clients that do nothing cost it nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import select
import socket
import statistics
import struct
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadtests.errors import LabError
from loadtests.measure.machine import allow_files

TICKS = 50
"""Parts of a second over which the bytes of slow senders are spread."""
PER_ADDRESS = 4_000
CONNECT_SECONDS = 10.0
LARGE = 10_000_000
"""Octets of the answer that is not read."""
SMALL_BUFFER = 4_096

_HOST = b"Host: 127.0.0.1\r\n"
_SLOW_HEAD = b"GET / HTTP/1.1\r\n" + _HOST + b"X-Slow: "
_POST = b"POST / HTTP/1.1\r\n" + _HOST
# A reset instead of a farewell: ports and sockets are free again at once.
_ABORT = struct.pack("ii", 1, 0)


def _nothing(second: int) -> bytes:
    return b""


def _half_a_head(second: int) -> bytes:
    return b"" if second else b"GET / HTTP/1.1\r\n" + _HOST + b"X-Half"


def _head(second: int) -> bytes:
    return _SLOW_HEAD[second : second + 1] or b"a"


def _body(second: int) -> bytes:
    return b"a" if second else _POST + b"Content-Length: 1000000\r\n\r\na"


def _chunks(second: int) -> bytes:
    head = b"" if second else _POST + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + b"1\r\na\r\n"


def _download(second: int) -> bytes:
    return b"" if second else b"GET /%d HTTP/1.1\r\n%b\r\n" % (LARGE, _HOST)


@dataclass(frozen=True)
class Kind:
    """A kind of client: what it sends in each second; `manners` are given to clients in turn.

    Those who do not drip send something in the first second only. With `small_buffers` every other
    client lets the kernel take hardly anything on its behalf.
    """

    manners: tuple[Callable[[int], bytes], ...]
    drips: bool = False
    small_buffers: bool = False


KINDS = {
    "dead": Kind((_nothing, _half_a_head)),
    "head": Kind((_head,), drips=True),
    "body": Kind((_body, _chunks), drips=True),
    "stalled": Kind((_download,), small_buffers=True),
}


class Client:
    """One client, over all the connections that it makes."""

    def __init__(self, number: int, kind: Kind, port: int) -> None:
        self.number = number
        self.socket: socket.socket | None = None
        self.began = 0.0
        self.connections = 0
        self._second = 0
        self._kind = kind
        self._port = port
        self._says = kind.manners[number % len(kind.manners)]

    def open(self) -> socket.socket:
        """Connects and says what is said in the first second."""
        opened = socket.socket()
        try:
            opened.settimeout(CONNECT_SECONDS)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            if self._kind.small_buffers and self.number % 2:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            # Else the kernel reserves a port for all destinations and runs out of them early.
            no_port = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)
            opened.setsockopt(socket.IPPROTO_IP, no_port, 1)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.bind((f"127.0.0.{2 + self.number // PER_ADDRESS}", 0))
            opened.connect(("127.0.0.1", self._port))
            opened.setblocking(False)
        except OSError:
            opened.close()
            raise
        self.socket, self.began, self._second = opened, time.monotonic(), 0
        self.connections += 1
        self.speak()
        return opened

    def speak(self) -> None:
        """Says what is due this second."""
        octets = self._says(self._second)
        self._second += 1
        if octets and self.socket is not None:
            try:
                self.socket.send(octets)
            except OSError:
                # If the connection has ended, the poller tells.
                return

    def has_unread(self) -> bool:
        """Whether an answer has begun to arrive."""
        if self.socket is None:
            return False
        unread = fcntl.ioctl(self.socket, termios.FIONREAD, bytes(4))
        return any(unread)

    def ended(self) -> tuple[float, str]:
        """After the server has ended the connection: how long it lasted, and what it was told."""
        assert self.socket is not None
        lasted = time.monotonic() - self.began
        try:
            said = self.socket.recv(64)
        except OSError:
            said = b""
        self.socket.close()
        self.socket = None
        return lasted, said[9:12].decode("latin-1") if said.startswith(b"HTTP/1.") else ""


class Clients:
    """All clients. With `renew`, one whose connection was closed makes another one."""

    def __init__(self, kind: Kind, port: int, count: int, renew: bool) -> None:
        self._clients = [Client(number, kind, port) for number in range(count)]
        self._by_file: dict[int, Client] = {}
        self._kind = kind
        self._renew = renew
        self._poller = select.epoll()
        self._absent: list[Client] = []
        self._lives: list[float] = []
        self._told: dict[str, int] = {}
        self._ticks = 0

    def open(self) -> None:
        """Connects all. Raises LabError if the server does not let one in."""
        for client in self._clients:
            try:
                self._open(client)
            except OSError as error:
                raise LabError(f"connection {client.number + 1:,} failed: {error}") from None

    def _open(self, client: Client) -> None:
        opened = client.open()
        self._by_file[opened.fileno()] = client
        # Not readable ones: nobody reads.
        self._poller.register(opened, select.EPOLLRDHUP | select.EPOLLET)

    def state(self) -> dict[str, Any]:
        """The present states; times in seconds from the first byte to the end."""
        lives = sorted(self._lives)
        return {
            "count": len(self._clients),
            "open": len(self._by_file),
            "unread": sum(client.has_unread() for client in self._clients),
            "closed": len(lives),
            "never": sum(
                client.connections == 1 and client.socket is not None for client in self._clients
            ),
            "first": lives[0] if lives else None,
            "median": statistics.median(lives) if lives else None,
            "last": lives[-1] if lives else None,
            "told": self._told,
        }

    def run(self) -> None:
        """Until the end of standard input."""
        asked = sys.stdin.buffer
        self._poller.register(asked, select.EPOLLIN)
        started = time.monotonic()
        while True:
            due = started + self._ticks / TICKS
            wait = max(due - time.monotonic(), 0.0) if self._kind.drips else None
            for file, _ in self._poller.poll(wait):
                if file == asked.fileno():
                    if not asked.readline():
                        return
                    print(json.dumps(self.state()), flush=True)
                elif file in self._by_file:
                    self._close(self._by_file.pop(file))
            if self._kind.drips and time.monotonic() >= due:
                self._tick()

    def _close(self, client: Client) -> None:
        lasted, told = client.ended()
        self._lives.append(lasted)
        self._told[told] = self._told.get(told, 0) + 1
        if self._renew:
            self._absent.append(client)

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


def main() -> int:
    """The command line; only the lab uses it."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.clients.adverse.clients", description=__doc__
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("port", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--renew", action="store_true")
    options = parser.parse_args()
    try:
        allow_files(options.count + 50)
        crowd = Clients(KINDS[options.kind], options.port, options.count, options.renew)
        crowd.open()
    except LabError as error:
        print(error, flush=True)
        return 1
    print("ready", flush=True)
    crowd.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
