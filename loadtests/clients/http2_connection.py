"""A connection of HTTP/2 that sends any bytes, and reads what comes meanwhile."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from loadtests.clients.http2_frames import (
    ACK,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    frame,
    frames,
    window_update,
)
from loadtests.measure.waiting import HANG

if TYPE_CHECKING:
    from typing_extensions import Self

OPENING = frame(SETTINGS, 0, 0) + window_update(0, 1 << 30)
"""No settings, and room for all answers, as browsers make it: only streams have narrow windows."""


class Http2Connection:
    """A connection on which the server's settings have come; `opening` are ours, and more.

    Attributes:
        port: the client's.
        sent: bytes.
        settings: those of the server, by number.
        error: code and reason of the GOAWAY that has ended it.
        over: streams that have ended.
        closed: the server has closed it.
    """

    def __init__(self, port: int, opening: bytes = OPENING) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), HANG)
        self.port: int = self.socket.getsockname()[1]
        self.sent = 0
        self.settings: dict[int, int] | None = None
        self.error: tuple[int, str] | None = None
        self.over: set[int] = set()
        self.closed = False
        self._pongs = 0
        self._received = bytearray()
        # The answer to the settings of the server must not come within a header block.
        self.exchange(PREFACE + opening, lambda: self.settings is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        """Waits until the server has handled everything that was sent, or has closed."""
        seen = self._pongs
        self.exchange(frame(PING, 0, 0, bytes(8)), lambda: self._pongs > seen)

    def finish(self, data: bytes, count: int) -> None:
        """Sends, and reads until so many more streams have ended, or the connection has."""
        wanted = len(self.over) + count
        self.exchange(data, lambda: not count or len(self.over) >= wanted)

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
                # What the server has sent before may still be there to read.
                with suppress(ConnectionError):
                    while not self.closed:
                        self._read()
                self.closed = True

    def _read(self) -> None:
        received = self.socket.recv(1 << 18)
        self.closed = not received
        self._received += received
        for kind, flags, stream, payload in frames(self._received):
            self._take(kind, flags, stream, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """A frame of the server."""
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.over.add(stream)
        elif kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
            self.settings = {**(self.settings or {}), **dict(struct.iter_unpack("!HI", payload))}
        elif kind == PING and flags & ACK:
            self._pongs += 1
        elif kind == GOAWAY:
            code = int.from_bytes(payload[4:8], "big")
            self.error = (code, payload[8:].decode())
