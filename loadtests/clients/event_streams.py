"""A client of many streams of server-sent events, over as many connections or over one of HTTP/2.

As a process, `python -m loadtests.clients.event_streams PORT TARGET COUNT http/1.1|h2c`, it says
`ready` when it has connected, and answers each line on its standard input with `State` as JSON.
"""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import socket
import sys
import time
from dataclasses import asdict, dataclass

from loadtests.clients.connection import request_bytes
from loadtests.clients.http2_connection import Http2Connection
from loadtests.clients.http2_frames import (
    ACK,
    AUTHORITY,
    DATA,
    METHOD_GET,
    PING,
    SCHEME_HTTP,
    SETTINGS,
    frame,
    request,
    setting,
    window_update,
)
from loadtests.measure.machine import allow_files
from loadtests.measure.waiting import HANG

EVENT = re.compile(rb"data: (\d+)\n\n")
"""An event, with the time at which it was made."""
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4
"""Numbers of settings (RFC 9113 section 6.5.2)."""
WINDOW = 1 << 30
"""Bytes that may come on a stream, and on a connection: more than ever come."""


@dataclass
class State:
    """What has happened so far, and since the answer before.

    Attributes:
        begun: streams that have had an event.
        begun_after: seconds from the beginning to the first event of the last of them.
        ended: streams that have ended.
        heard: streams that have had an event since the answer before.
        events: events since then.
        p50_us, p99_us: microseconds from when such an event was made to when it was here.
    """

    begun: int
    begun_after: float
    ended: int
    heard: int
    events: int
    p50_us: float
    p99_us: float


class Tally:
    """Counts of the events of all streams."""

    def __init__(self) -> None:
        self.ended: set[int] = set()
        self._start = time.monotonic()
        self._first: dict[int, float] = {}
        self._heard: set[int] = set()
        self._delays: list[float] = []
        self._rest: dict[int, bytes] = {}

    def take(self, stream: int, received: bytes) -> None:
        """Counts the events in what a stream has received."""
        content, end, now = self._rest.get(stream, b"") + received, 0, time.monotonic_ns()
        for found in EVENT.finditer(content):
            end = found.end()
            self._delays.append((now - int(found[1])) / 1e3)
            self._heard.add(stream)
            self._first.setdefault(stream, time.monotonic() - self._start)
        self._rest[stream] = content[end:]

    def state(self) -> State:
        delays, heard = sorted(self._delays) or [0.0], len(self._heard)
        state = State(
            len(self._first),
            max(self._first.values(), default=0.0),
            len(self.ended),
            heard,
            len(self._delays),
            delays[(len(delays) - 1) // 2],
            delays[(len(delays) - 1) * 99 // 100],
        )
        self._delays, self._heard = [], set()
        return state


class Connection:
    """A connection of HTTP/1.1 with one stream."""

    def __init__(self, port: int, target: str, stream: int, tally: Tally) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), HANG)
        self._stream, self._tally = stream, tally
        self.socket.sendall(request_bytes(target))

    def receive(self) -> bool:
        """Receives once; whether the connection goes on."""
        received = b""
        with contextlib.suppress(ConnectionError):
            received = self.socket.recv(1 << 16)
        self._tally.take(self._stream, received)
        if not received:
            self._tally.ended.add(self._stream)
        return bool(received)


class Http2Streams(Http2Connection):
    """A connection of HTTP/2 that begins as many streams as wanted, and as the server allows."""

    def __init__(self, port: int, target: str, count: int, tally: Tally) -> None:
        self._streams, self._tally = [2 * number + 1 for number in range(count)], tally
        settings = frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, WINDOW))
        super().__init__(port, settings + window_update(0, WINDOW))
        path = target.encode("ascii")
        block = METHOD_GET + SCHEME_HTTP + b"\x04" + bytes([len(path)]) + path + AUTHORITY
        allowed = (self.settings or {}).get(MAX_CONCURRENT_STREAMS, count)
        self.exchange(b"".join(request(stream, block) for stream in self._streams[:allowed]))

    def receive(self) -> bool:
        """Receives once; whether the connection goes on."""
        try:
            self._read()
        except ConnectionError:
            self.closed = True
        if self.closed:
            self._tally.ended.update(self._streams)
        return not self.closed

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        super()._take(kind, flags, stream, payload)
        if kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            self._tally.take(stream, payload)
        self._tally.ended |= self.over


def main(port: str, target: str, count: str, protocol: str) -> None:
    """Receives events, and answers the lines of the lab."""
    allow_files(int(count) + 100)
    tally = Tally()
    connections: list[Connection | Http2Streams] = (
        [Http2Streams(int(port), target, int(count), tally)]
        if protocol == "h2c"
        else [Connection(int(port), target, number, tally) for number in range(int(count))]
    )
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                if not sys.stdin.readline():
                    return
                print(json.dumps(asdict(tally.state())), flush=True)
            elif not key.data.receive():
                selector.unregister(key.fileobj)


if __name__ == "__main__":
    main(*sys.argv[1:])
