"""A client of HTTP/2 that sends an attack in large writes, and reads what comes meanwhile."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING

from loadtests.clients.http2_attacks import Attack
from loadtests.clients.http2_frames import (
    ACK,
    DATA,
    END_STREAM,
    GOAWAY,
    HEAD,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    frame,
    frames,
    request,
)
from loadtests.measure.waiting import HANG

if TYPE_CHECKING:
    from typing_extensions import Self

AT_ONCE = 100
"""Steps at once of an attack whose client waits for answers."""
_CHECKED = 2_000_001
"""The stream of a request that shows whether the connection lasts."""


class Attacker:
    """A connection.

    Attributes:
        sent: bytes.
        error: code and reason of the GOAWAY that has ended it.
        over: streams that have ended.
        closed: the server has closed it.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), HANG)
        self.port: int = self.socket.getsockname()[1]
        self.sent = 0
        self.error: tuple[int, str] | None = None
        self.over: set[int] = set()
        self.closed = False
        self._pongs = 0
        self._received = bytearray()
        self.exchange(PREFACE + frame(SETTINGS, 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def open(self, attack: Attack) -> None:
        """Sends what stands before the steps."""
        self.exchange(attack.opening)

    def take(self, attack: Attack, steps: Iterable[int]) -> None:
        """Takes steps of an attack, until the server ends the connection."""
        numbers = iter(steps)
        while not self.closed and (
            batch := list(islice(numbers, AT_ONCE if attack.waits else None))
        ):
            ended = len(self.over) + len(batch)
            data = b"".join(map(attack.unit, batch))
            self.exchange(data, lambda ended=ended: not attack.waits or len(self.over) >= ended)  # type: ignore[misc]

    def is_served(self) -> bool:
        """Whether a request is answered on this connection."""
        self.exchange(request(_CHECKED, HEAD), lambda: _CHECKED in self.over)
        return _CHECKED in self.over and self.error is None

    def flush(self) -> None:
        """Waits until the server has handled everything that was sent, or has closed."""
        seen = self._pongs
        self.exchange(frame(PING, 0, 0, bytes(8)), lambda: self._pongs > seen)

    def until_closed(self) -> None:
        """Waits until the server closes the connection."""
        self.exchange(b"", lambda: False)

    def exchange(self, data: bytes, done: Callable[[], bool] = lambda: True) -> None:
        """Sends, and reads meanwhile, until this is `done` or the connection has ended."""
        rest = memoryview(data)
        while not self.closed and (rest or not done()):
            writing = [self.socket] if rest else []
            readable, writable, _ = select.select([self.socket], writing, [], HANG)
            if not readable and not writable:
                raise TimeoutError(f"nothing happens for {HANG:.0f} seconds")
            try:
                if readable:
                    self._read()
                if writable:
                    count = self.socket.send(rest, socket.MSG_DONTWAIT)
                    self.sent += count
                    rest = rest[count:]
            except BlockingIOError:
                continue
            except ConnectionError:
                # The reset behind what the server has sent; that may still be there to read.
                self.closed = True

    def _read(self) -> None:
        received = self.socket.recv(1 << 18)
        self.closed = not received
        self._received += received
        for kind, flags, stream, payload in frames(self._received):
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                self.over.add(stream)
            elif kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and flags & ACK:
                self._pongs += 1
            elif kind == GOAWAY:
                code = int.from_bytes(payload[4:8], "big")
                self.error = (code, payload[8:].decode())
